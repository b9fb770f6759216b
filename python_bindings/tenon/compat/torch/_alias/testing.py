# SPDX-License-Identifier: Apache-2.0
"""torch.testing: whether values are close."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon.compat.torch import _moments

__all__ = ["assert_close"]

# By which an element may be off: relative to the expected one, and beside that. Dtypes of whole numbers are exact.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_CHECKED = ("device", "dtype", "layout", "stride")


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless each element of `actual` is within `atol + rtol * abs(expected)` of `expected`, in values that may be
    tensors, numbers, and sequences and mappings of these. Without tolerances, those of the dtype; either both are given or none."""
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close(): expected rtol and atol, or none of both, got rtol={rtol} and atol={atol}"
        )
    checks = dict(
        zip(_CHECKED, (check_device, check_dtype, check_layout, check_stride), strict=True)
    )

    def fail(text: str, path: str) -> None:
        text = f"assert_close(): {text}{f' at {path}' if path else ''}"
        raise AssertionError(msg(text) if callable(msg) else msg or text)

    def compare(one: Any, other: Any, path: str) -> None:
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                fail(
                    f"expected the keys {sorted(other, key=str)}, got {sorted(one, key=str)}", path
                )
            for key in one:
                compare(one[key], other[key], f"{path}[{key!r}]")
        elif _is_list(one) and _is_list(other):
            if len(one) != len(other):
                fail(f"expected {len(other)} values, got {len(one)}", path)
            for index, pair in enumerate(zip(one, other, strict=True)):
                compare(*pair, f"{path}[{index}]")
        elif one is None or other is None:
            if one is not other:
                fail(f"expected {other!r}, got {one!r}", path)
        else:
            compare_tensors(one, other, path)

    def compare_tensors(one: Any, other: Any, path: str) -> None:
        is_tensor = isinstance(one, Tensor)
        if not allow_subclasses and type(one) is not type(other):
            raise TypeError(
                f"assert_close(): expected values of one class, got {type(one).__name__} and {type(other).__name__}"
            )
        if is_tensor != isinstance(other, Tensor):
            raise TypeError(
                f"assert_close(): expected two tensors or two numbers, got {type(one).__name__} and {type(other).__name__}"
            )
        first, second = _as_tensor(one), _as_tensor(other)
        if first.shape != second.shape:
            fail(f"expected shape {tuple(second.shape)}, got {tuple(first.shape)}", path)
        for name in _CHECKED if is_tensor or checks["dtype"] else ():
            mine, theirs = _property(first, name), _property(second, name)
            if checks[name] and mine != theirs:
                fail(f"expected {name} {theirs}, got {mine}", path)
        near = rtol, atol
        if rtol is None:
            each = [_TOLERANCES.get(tensor.dtype.name, (0.0, 0.0)) for tensor in (first, second)]
            near = max(a for a, _ in each), max(b for _, b in each)
        apart = _apart(first, second, near[0], near[1], equal_nan)
        if apart:
            fail(apart, path)

    compare(actual, expected, "")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return (
            value.detach().to_dense()
            if value.layout is not tenon.compat.torch.strided
            else value.detach()
        )
    if isinstance(value, bool | int):
        return tenon.tensor(value)
    if isinstance(value, float | complex):  # as exact as Python has it
        return tenon.tensor(value, dtype="float64" if isinstance(value, float) else "complex128")
    try:
        return tenon.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"assert_close(): expected tensors, numbers, or sequences and mappings of these, got {type(value).__name__}"
        ) from None


def _property(tensor: Tensor, name: str) -> Any:
    return tensor.stride() if name == "stride" else getattr(tensor, name)


def _apart(one: Tensor, other: Tensor, rtol: Any, atol: Any, equal_nan: bool) -> str:
    """What differs, in words; nothing if nothing does."""
    common = tenon.result_type(one, other)
    if common == tenon.bool:
        common = tenon.int64
    first, second = one.to(dtype=common, device="cpu"), other.to(dtype=common, device="cpu")
    close = _moments.isclose(first, second, rtol, atol, equal_nan)
    if bool(tenon.all(close)):
        return ""
    count = first.numel() - int(tenon.sum(close.to(dtype=tenon.int64)).item())
    distance = tenon.abs(first - second)
    inexact = tenon.where(close, tenon.zeros_like(distance), distance)
    index = int(tenon.argmax(inexact.reshape([-1])).item())
    mine, theirs = first.reshape([-1])[index].item(), second.reshape([-1])[index].item()
    where = "" if first.ndim == 0 else f", {count} of {first.numel()} elements"
    return f"expected {theirs!r} within rtol={rtol} and atol={atol}, got {mine!r}{where}"
