# SPDX-License-Identifier: Apache-2.0
"""What there is to choose: how each parameter of a module is cut, and where activations between modules are."""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
from collections.abc import Mapping, Sequence

from tenon import Tensor
from tenon.nn import Module, Parameter

from ...placements import Placement, Replicate, Shard

Placements = tuple[Placement, ...]
Style = tuple[tuple[str, Placements], ...]  # of the parameters of a part, by name there


@dataclasses.dataclass(frozen=True)
class Leaf:
    """The parameters that one module has itself, which are cut together: what has fewer axes than the largest of them, as a
    bias beside its weight, is cut where it has the first axis of that, and is whole otherwise."""

    name: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]  # the largest number of axes first
    options: tuple[Style, ...]


def leaves_of(
    part: Module, path: str, mesh_shape: Sequence[int], wanted: Mapping[str, Sequence[Placement]]
) -> list[Leaf]:
    """`wanted` are the user's placements by patterns of names in the model; the part is at `path`."""
    leaves = []
    seen: set[int] = set()
    for name, module in part.named_modules():
        # A parameter that several modules have is cut where it stands first.
        own = [
            (key, p)
            for key, p in vars(module).items()
            if isinstance(p, Parameter) and id(p) not in seen
        ]
        seen.update(id(p) for _, p in own)
        if not own:
            continue
        own = sorted(own, key=lambda each: -each[1].ndim)
        prefix = f"{name}." if name else ""
        shapes = tuple((prefix + key, tuple(p.shape)) for key, p in own)
        options = []
        for at in itertools.product(*(_ways(own[0][1], size) for size in mesh_shape)):
            style = tuple((key, _follows(at, shapes[0][1], shape)) for key, shape in shapes)
            if all(_is_wanted(f"{path}.{key}".strip("."), p, wanted) for key, p in style):
                options.append(style)
        if not options:
            style = tuple(
                (key, _wanted(f"{path}.{key}".strip("."), wanted, len(mesh_shape)))
                for key, _ in shapes
            )
            options.append(style)
        leaves.append(Leaf(name, shapes, tuple(dict.fromkeys(options))))
    return leaves


def states_of(shape: Sequence[int], mesh_shape: Sequence[int]) -> list[Placements]:
    """Where a tensor between two modules may be: whole, or cut along an axis that all ranks of a mesh's axis can share."""
    ways: list[list[Placement]] = []
    for ranks in mesh_shape:
        cuts: list[Placement] = [Shard(d) for d, n in enumerate(shape) if n % ranks == 0 and n > 1]
        ways.append([Replicate(), *(cuts if ranks > 1 else [])])
    return [at for at in itertools.product(*ways) if _divides(shape, at, mesh_shape)]


def _ways(parameter: Tensor, ranks: int) -> list[Placement]:
    # Vectors stay whole: cutting a norm saves nothing that counts.
    dims = range(parameter.ndim) if parameter.ndim > 1 and ranks > 1 else ()
    cuts = [Shard(d) for d in dims if parameter.shape[d] >= ranks and d < 2]
    return [Replicate(), *cuts]


def _follows(at: Placements, first: tuple[int, ...], shape: tuple[int, ...]) -> Placements:
    if shape == first:
        return at
    same_rows = bool(shape) and shape[0] == first[0]
    return tuple(p if p == Shard(0) and same_rows else Replicate() for p in at)


def _divides(shape: Sequence[int], at: Placements, mesh_shape: Sequence[int]) -> bool:
    sizes = list(shape)
    for placement, ranks in zip(at, mesh_shape, strict=True):
        if isinstance(placement, Shard):
            if sizes[placement.dim] % ranks:
                return False
            sizes[placement.dim] //= ranks
    return True


def _patterns(name: str, wanted: Mapping[str, Sequence[Placement]]) -> list[Sequence[Placement]]:
    return [at for pattern, at in wanted.items() if fnmatch.fnmatchcase(name, pattern)]


def _is_wanted(name: str, at: Placements, wanted: Mapping[str, Sequence[Placement]]) -> bool:
    return all(tuple(each) == at for each in _patterns(name, wanted))


def _wanted(name: str, wanted: Mapping[str, Sequence[Placement]], axes: int) -> Placements:
    for each in _patterns(name, wanted):
        return tuple(each)
    return (Replicate(),) * axes
