# SPDX-License-Identifier: Apache-2.0
"""How tensors print: like NumPy's arrays, without needing NumPy."""

import math

from tenon import _core

_EDGE = 3  # elements shown at either end of a long axis
_THRESHOLD = 1000  # elements from which on the middle is left out
_PRECISION = 4
_WIDTH = 88
_DEFAULT_DTYPES = frozenset({"float32", "int64", "bool"})


def format_tensor(tensor):
    """The text of repr(tensor)."""
    prefix = "tensor("
    notes = _notes(tensor)
    if str(tensor.device).startswith("meta"):
        return f"{prefix}..., shape={_shape_text(tensor)}{''.join(', ' + note for note in notes)})"
    if tensor.size == 0:
        body = "[]"
        if tensor.shape != (0,):
            notes.insert(0, f"shape={_shape_text(tensor)}")
    else:
        body = _body(tensor.detach().cpu(), len(prefix))
    text = prefix + body
    last_line = len(text) - (text.rfind("\n") + 1)
    for note in notes:
        if last_line + len(note) + 3 > _WIDTH:
            text += ",\n" + " " * len(prefix) + note
            last_line = len(prefix) + len(note)
        else:
            text += ", " + note
            last_line += len(note) + 2
    return text + ")"


def _shape_text(tensor):
    return str(tuple(tensor.shape))


def _notes(tensor):
    notes = []
    if tensor.dtype.name not in _DEFAULT_DTYPES:
        notes.append(f"dtype={tensor.dtype!r}")
    if tensor.device != _core.tensor(0).device:
        notes.append(f"device='{tensor.device}'")
    if tensor.grad_fn is not None:
        notes.append(f"grad_fn=<{tensor.grad_fn}>")
    elif tensor.requires_grad:
        notes.append("requires_grad=True")
    return notes


def _body(tensor, indent):
    summarise = tensor.size > _THRESHOLD
    values = _corners(tensor, summarise)
    formatter = _formatter(list(_leaves(values)))
    return _lines(values, tensor.ndim, formatter, indent + 1)


class _Gap:
    """Stands for the elements that are left out."""


_gap = _Gap()


def _corners(tensor, summarise):
    """Nested lists of values; long axes keep their ends around a gap."""
    if tensor.ndim == 0:
        return tensor.item()
    if not summarise or tensor.shape[0] <= 2 * _EDGE:
        if not summarise or tensor.ndim == 1:
            return tensor.tolist()
        return [_corners(part, summarise) for part in tensor]
    ends = [_corners(tensor[i], summarise) for i in (*range(_EDGE), *range(-_EDGE, 0))]
    return [*ends[:_EDGE], _gap, *ends[_EDGE:]]


def _leaves(values):
    if isinstance(values, list):
        for value in values:
            yield from _leaves(value)
    elif values is not _gap:
        yield values


def _formatter(values):
    """A function from a value to text; all texts have one width."""
    if isinstance(values[0], complex):
        texts = [_complex_text(value) for value in values]
        width = max(map(len, texts))
        return lambda value: _complex_text(value).rjust(width)
    if not isinstance(values[0], float):
        width = max(len(str(value)) for value in values)
        return lambda value: str(value).rjust(width)
    text = _float_style([value for value in values if math.isfinite(value)])
    width = max(len(text(value)) for value in values)
    return lambda value: text(value).rjust(width)


def _float_style(finite):
    magnitudes = [abs(value) for value in finite if value != 0]
    largest, smallest = max(magnitudes, default=1.0), min(magnitudes, default=1.0)
    if largest >= 1e8 or smallest < 1e-4 or largest / smallest > 1e5:
        return lambda value: _special(value) or f"{value:.{_PRECISION}e}"
    # As few decimals as show every value: 1., 0.5, 0.3333
    shown = [f"{value:.{_PRECISION}f}".rstrip("0") for value in finite]
    decimals = max((len(text.partition(".")[2]) for text in shown), default=0)
    if decimals == 0:
        return lambda value: _special(value) or f"{value:.0f}."
    return lambda value: _special(value) or f"{value:.{decimals}f}"


def _special(value):
    if math.isfinite(value):
        return None
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _complex_text(value):
    real = _special(value.real) or f"{value.real:.{_PRECISION}g}"
    imaginary = _special(abs(value.imag)) or f"{abs(value.imag):.{_PRECISION}g}"
    sign = "-" if math.copysign(1.0, value.imag) < 0 else "+"
    return f"{real}{sign}{imaginary}j"


def _lines(values, ndim, formatter, indent):
    if ndim == 0:
        return formatter(values).strip()
    if ndim == 1:
        return _row(values, formatter, indent)
    separator = "," + "\n" * (ndim - 1) + " " * indent
    parts = [
        "..." if value is _gap else _lines(value, ndim - 1, formatter, indent + 1)
        for value in values
    ]
    return "[" + separator.join(parts) + "]"


def _row(values, formatter, indent):
    texts = ["..." if value is _gap else formatter(value) for value in values]
    lines, line = [], ""
    for text in texts:
        if line and indent + len(line) + len(text) + 2 > _WIDTH:
            lines.append(line)
            line = ""
        line += (", " if line else "") + text
    lines.append(line)
    return "[" + (",\n" + " " * indent).join(lines) + "]"
