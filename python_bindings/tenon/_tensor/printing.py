# SPDX-License-Identifier: Apache-2.0
"""How tensors print: like NumPy's arrays, without needing NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from tenon import _core
from tenon._tensor.dtypes import PACKED

_DEFAULT_DTYPES = frozenset({"float32", "int64", "bool"})


@dataclass(frozen=True)
class PrintOptions:
    """How tensors print."""

    precision: int = 4  # decimals of floating numbers
    threshold: int = 1000  # elements from which on the middle is left out
    edgeitems: int = 3  # elements shown at either end of a long axis
    linewidth: int = 88
    sci_mode: bool | None = None  # exponents always, never, or (None) where the numbers need them


_options = PrintOptions()


def get_printoptions() -> PrintOptions:
    """How tensors print now."""
    return _options


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    sci_mode: bool | None = None,
    *,
    profile: str | None = None,
) -> None:
    """Change how tensors print: decimals, the size from which on the middle is left out and what
    stays then, the width of a line, and whether numbers have exponents. What is None stays, except
    `sci_mode`, which chooses by the numbers then. `profile` starts from 'default', 'short' (2
    decimals, 2 items) or 'full' (all items)."""
    global _options
    profiles = {
        None: _options,
        "default": PrintOptions(),
        "short": PrintOptions(precision=2, edgeitems=2),
        "full": PrintOptions(threshold=2**63 - 1),
    }
    if profile not in profiles:
        raise ValueError(
            f"set_printoptions(): expected profile 'default', 'short' or 'full', got {profile!r}"
        )
    # Infinity is how NumPy and PyTorch say that nothing is left out.
    limit = int(min(threshold, 2**63 - 1)) if isinstance(threshold, float) else threshold
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": limit,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is not None and not hasattr(value, "__index__"):
            raise TypeError(
                f"set_printoptions(): expected {name} to be a whole number, got {value!r}"
            )
        if value is not None and value < (1 if name == "linewidth" else 0):
            raise ValueError(f"set_printoptions(): expected {name} of at least 0, got {value}")
    given = {name: value for name, value in given.items() if value is not None}
    _options = replace(profiles[profile], sci_mode=sci_mode, **given)


class printoptions:
    """A block in which set_printoptions() with these arguments holds."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def __enter__(self) -> PrintOptions:
        self._outer = _options
        set_printoptions(**self._options)
        return _options

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _options
        _options = self._outer


# Methods that give the parts of a layout.
_COMPRESSED = ("indptr", "indices", "values")
_PARTS = {
    "coo": ("indices", "values"),
    "csr": _COMPRESSED,
    "csc": _COMPRESSED,
    "bsr": _COMPRESSED,
    "ragged": ("offsets", "values"),
}


# Layouts of other packages, and what gives the text of their tensors.
formats: dict[str, Callable[[Any], str]] = {}


def format_tensor(tensor):
    """The text of repr(tensor)."""
    prefix = "tensor("
    if tensor.layout in formats:
        return formats[tensor.layout](tensor)
    if tensor.layout != "strided":
        return _format_composed(tensor)
    notes = _notes(tensor)
    if str(tensor.device).startswith("meta"):
        return f"{prefix}..., shape={_shape_text(tensor)}{''.join(', ' + note for note in notes)})"
    if tensor.dtype.name in PACKED and tensor.numel() > 0:
        # Both numbers of every element; the shape is that of elements.
        notes.insert(0, f"shape={_shape_text(tensor)}")
        pairs = tensor.detach().cpu()
        body = _body(
            _core.operator("unpack")(pairs if pairs.ndim else pairs.reshape([1])), len(prefix)
        )
    elif tensor.numel() == 0:
        body = "[]"
        if tensor.shape != (0,):
            notes.insert(0, f"shape={_shape_text(tensor)}")
    else:
        body = _body(tensor.detach().cpu(), len(prefix))
    text = prefix + body
    last_line = len(text) - (text.rfind("\n") + 1)
    for note in notes:
        if last_line + len(note) + 3 > _options.linewidth:
            text += ",\n" + " " * len(prefix) + note
            last_line = len(prefix) + len(note)
        else:
            text += ", " + note
            last_line += len(note) + 2
    return text + ")"


def _format_composed(whole):
    """By its parts, one below the other."""
    lines = []
    for name in _PARTS.get(whole.layout, ()):
        text = format_tensor(getattr(whole, name)().detach())
        lines.append(f"{name}={text}".replace("\n", "\n" + " " * (8 + len(name))))
    notes = [f"shape={_shape_text(whole)}", f"layout={whole.layout}"]
    if whole.requires_grad:
        notes.append("requires_grad=True")
    return "tensor(" + (",\n       ".join([*lines, ", ".join(notes)])) + ")"


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
    summarise = tensor.numel() > _options.threshold
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
    if not summarise or tensor.shape[0] <= 2 * _options.edgeitems:
        if not summarise or tensor.ndim == 1:
            return tensor.tolist()
        return [_corners(part, summarise) for part in tensor]
    edge = _options.edgeitems
    ends = [_corners(tensor[i], summarise) for i in (*range(edge), *range(-edge, 0))]
    return [*ends[:edge], _gap, *ends[edge:]]


def _leaves(values):
    if isinstance(values, list):
        for value in values:
            yield from _leaves(value)
    elif values is not _gap:
        yield values


def _formatter(values):
    """A function from a value to text; all texts have one width."""
    if not values:  # edgeitems 0 shows none
        return str
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
    precision, scientific = _options.precision, _options.sci_mode
    if scientific is None:
        scientific = largest >= 1e8 or smallest < 1e-4 or largest / smallest > 1e5
    if scientific:
        return lambda value: _special(value) or f"{value:.{precision}e}"
    # As few decimals as show every value: 1., 0.5, 0.3333
    shown = [f"{value:.{precision}f}".rstrip("0") for value in finite]
    decimals = max((len(text.partition(".")[2]) for text in shown), default=0)
    if decimals == 0:
        return lambda value: _special(value) or f"{value:.0f}."
    return lambda value: _special(value) or f"{value:.{decimals}f}"


def _special(value):
    if math.isfinite(value):
        return None
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _complex_text(value):
    real = _special(value.real) or f"{value.real:.{_options.precision}g}"
    imaginary = _special(abs(value.imag)) or f"{abs(value.imag):.{_options.precision}g}"
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
        if line and indent + len(line) + len(text) + 2 > _options.linewidth:
            lines.append(line)
            line = ""
        line += (", " if line else "") + text
    lines.append(line)
    return "[" + (",\n" + " " * indent).join(lines) + "]"
