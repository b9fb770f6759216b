# SPDX-License-Identifier: Apache-2.0
"""Shapes: alone, broadcast against each other, and related by a template."""

from __future__ import annotations

# Around the lengths of vectors, with tails; 0 and 1 come apart from them.
EXTENTS = [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65]
LONG = [129, 257, 1000, 4099]
_MAX_ELEMENTS = 20000
# The product of all letters of a template: about as many multiplications.
_MAX_WORK = 2_000_000


def draw_extent(rng, large):
    chance = rng.random()
    if chance < 0.04:
        return 0
    if chance < 0.16:
        return 1
    if large and chance < 0.4:
        return int(rng.choice(LONG))
    return int(rng.choice(EXTENTS[:6] if not large or chance < 0.8 else EXTENTS))


def draw_shape(rng, large=False, least=0, most=4):
    """A shape of `least` to `most` axes."""
    rank = int(rng.integers(least, most + 1))
    shape = [draw_extent(rng, large) for _ in range(rank)]
    return limited(shape)


def limited(shape):
    """The shape with its longest extents shortened until it has few enough elements.

    An extent of 0 counts as 1: what broadcasts against the shape may lack that axis.
    """
    shape = list(shape)
    while _count(max(extent, 1) for extent in shape) > _MAX_ELEMENTS:
        longest = shape.index(max(shape))
        shape[longest] = shape[longest] // 2 + 1
    return tuple(shape)


def _count(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def broadcast_shapes(rng, shape, count):
    """`count` shapes that broadcast to `shape`; the first is `shape` most of the time."""
    shapes = []
    for i in range(count):
        if rng.random() < (0.7 if i == 0 else 0.5):
            shapes.append(shape)
            continue
        kept = shape[int(rng.integers(0, len(shape) + 1)) :]
        shapes.append(tuple(1 if rng.random() < 0.3 else extent for extent in kept))
    return shapes


def from_templates(rng, templates, large=False, **fixed):
    """Shapes by name from texts such as `n g*c h+2`; equal letters are equal extents.

    `*b` stands for zero to two axes, the same ones in every text. Returns (shapes, letters).
    """
    for attempt in range(9):
        letters = dict(fixed)
        shapes = {
            name: sum((_token(rng, t, letters, large and attempt < 8) for t in text.split()), ())
            for name, text in templates.items()
        }
        extents = [e for v in letters.values() for e in (v if isinstance(v, tuple) else (v,))]
        # An extent of 0 counts as 1: a rule may derive a shape without that axis from the letters.
        work = _count(max(e, 1) for e in extents)
        sizes = [_count(max(e, 1) for e in shape) for shape in shapes.values()]
        if work <= _MAX_WORK and max(sizes, default=0) <= _MAX_ELEMENTS:
            break
    return shapes, letters


def _token(rng, token, letters, large):
    if token.startswith("*"):
        if token not in letters:
            letters[token] = draw_shape(rng, False, 0, 2)
        return letters[token]
    for separator in "*+":
        if separator in token:
            left, right = (_token(rng, part, letters, large)[0] for part in token.split(separator))
            return (left * right if separator == "*" else left + right,)
    if token.isdigit():
        return (int(token),)
    if token not in letters:
        letters[token] = draw_extent(rng, large)
    return (letters[token],)
