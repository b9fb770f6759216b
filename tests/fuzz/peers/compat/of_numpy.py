# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.numpy, held against NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tenon
from tenon.compat import numpy as compat

from . import numpy_samples
from .numpy_differences import DIFFERENCES
from .signature_calls import Difference

_UFUNC = inspect.signature(
    lambda x1, x2, /, out=None, *, where=True, casting="same_kind", order="K", dtype=None, subok=True: (
        0
    )
)

# Names whose results NumPy leaves open, or that say something about NumPy alone.
LEFT_OUT = frozenset("empty empty_like set_printoptions get_printoptions printoptions".split())

# The tolerance of each dtype: sums are added in another order.
_TOLERANCES = {"float16": 4e-3, "float32": 2e-5, "complex64": 2e-5}


class NumpyLibrary:
    """The functions of NumPy, its linalg and its fft."""

    name = "NumPy"
    differences: tuple[Difference, ...] = DIFFERENCES

    def functions(self) -> list[str]:
        found = []
        for space in ("", "linalg", "fft"):
            place = getattr(compat, space) if space else compat
            for each in dir(place):
                value = getattr(place, each)
                if callable(value) and not isinstance(value, type) and each not in LEFT_OUT:
                    found.append(f"{space}.{each}" if space else each)
        return [each for each in found if self.theirs(each) is not None]

    def theirs(self, function: str) -> Callable[..., Any] | None:
        return _find(np, function)

    def ours(self, function: str) -> Callable[..., Any]:
        found = _find(compat, function)
        assert found is not None
        return found

    def signatures(self, function: str) -> list[inspect.Signature]:
        theirs = _find(np, function)
        if isinstance(theirs, np.ufunc):
            parameters = list(_UFUNC.parameters.values())
            if theirs.nin == 1:
                parameters = [parameters[0].replace(name="x"), *parameters[2:]]
            return [_UFUNC.replace(parameters=parameters)]
        assert theirs is not None
        return [inspect.signature(theirs)]

    def samples(self, function: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        theirs = _find(np, function)
        if isinstance(theirs, np.ufunc) and theirs.signature is None:
            yield from numpy_samples.of_ufunc(theirs)
        yield from numpy_samples.of_function(function)

    def alternatives(
        self, function: str, parameter: inspect.Parameter, arguments: dict[str, Any]
    ) -> Iterable[Any]:
        return numpy_samples.alternatives(function, _find(np, function), parameter.name, arguments)

    def fresh(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.copy(order="K")
        return _mapped(value, self.fresh)

    def recording(self, value: Any) -> Any:
        return value  # NumPy's arrays record nothing

    def to_ours(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biufc":
                raise LookupError(f"an array of {value.dtype}")
            if value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous:
                turned = tenon.tensor(value.T.copy())
                return turned.permute(list(range(value.ndim))[::-1])
            return tenon.tensor(value.copy())
        if isinstance(value, (np.dtype, type)) and value not in (bool, int, float, complex):
            name = np.dtype(value).name
            return getattr(tenon, name, None) or _not_held(value)
        if isinstance(value, np.generic) or value is np._NoValue:
            return value if isinstance(value, np.generic) else _not_held(value)
        return _mapped(value, self.to_ours)

    def difference(
        self, function: str, ours: Any, our_arguments: Any, theirs: Any, their_arguments: Any
    ) -> str | None:
        mine, other = _arrays(our_arguments), _arrays(their_arguments)
        # What is written into `out` has the digits of the dtype that it was computed in.
        is_ufunc = isinstance(_find(np, function), np.ufunc)
        is_written = "out" in our_arguments[1] or (is_ufunc and len(mine) > 1)
        least = 4e-3 if is_written else 0.0
        for index, (a, b) in enumerate(zip(mine, other, strict=True)):
            found = _values(a, b, least)
            if found is not None:
                return f"array {index} of the arguments after the call: {found}"
        return _structure(ours, theirs, least) or _shared(ours, mine, theirs, other)

    def describe(self, value: Any) -> str:
        if isinstance(value, np.ndarray):
            if value.size <= 6:
                return f"array({value.tolist()}, {value.dtype})"
            return f"{value.dtype}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.describe, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        return repr(value)


def _find(place: Any, function: str) -> Callable[..., Any] | None:
    for part in function.split("."):
        place = getattr(place, part, None)
    return place


def _not_held(value: Any) -> Any:
    raise LookupError(f"{value!r}")


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        changed = [change(each) for each in value]
        return changed if isinstance(value, list) else tuple(changed)
    if isinstance(value, dict):
        return {name: change(each) for name, each in value.items()}
    return value


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (np.ndarray, tenon.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in _arrays(part)]
    return []


def _structure(ours: Any, theirs: Any, least: float) -> str | None:
    if theirs is None or isinstance(theirs, str):
        return None if ours == theirs else f"{ours!r}, NumPy gives {theirs!r}"
    if isinstance(theirs, (list, tuple)):
        if isinstance(ours, (list, tuple)) and isinstance(ours, list) == isinstance(theirs, list):
            if len(ours) != len(theirs):
                return f"{len(ours)} results, NumPy gives {len(theirs)}"
            pairs = zip(ours, theirs, strict=True)
            return next(filter(None, (_structure(a, b, least) for a, b in pairs)), None)
        return f"a {type(ours).__name__}, NumPy gives a {type(theirs).__name__}"
    if isinstance(theirs, (bool, int, float, complex)) and not isinstance(theirs, np.generic):
        if isinstance(ours, tenon.Tensor):
            return "a tensor, NumPy gives a number of Python's"
        return None if ours == theirs or ours != ours else f"{ours}, NumPy gives {theirs}"
    if isinstance(theirs, np.dtype):
        return None if str(ours) == theirs.name else f"{ours}, NumPy gives {theirs}"
    if isinstance(theirs, (np.ndarray, np.generic)):
        if not isinstance(ours, tenon.Tensor):
            return f"a {type(ours).__name__}, NumPy gives an array"
        return _values(ours, np.asarray(theirs), least)
    return None


def _values(ours: Any, theirs: np.ndarray, least: float = 0.0) -> str | None:
    mine = ours.numpy()
    if mine.shape != theirs.shape:
        return f"shape {mine.shape}, NumPy gives {theirs.shape}"
    if mine.dtype != theirs.dtype:
        return f"dtype {mine.dtype}, NumPy gives {theirs.dtype}"
    if mine.dtype.kind not in "fc":
        same = mine == theirs
    else:
        bound = max(_TOLERANCES.get(mine.dtype.name, 1e-10), least)
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = float(finite.max()) if finite.size else 0.0
        with np.errstate(all="ignore"):
            same = np.isclose(mine, theirs, rtol=bound, atol=bound * scale + 1e-13, equal_nan=True)
            if mine.dtype.kind == "c":  # one part may be infinite, the other of any kind
                same |= np.isinf(mine) & np.isinf(theirs)
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    return f"at {at}: {mine[at]}, NumPy gives {theirs[at]}"


def _shared(ours: Any, mine: list[Any], theirs: Any, other: list[Any]) -> str | None:
    """Which result is a view of an argument in one library alone."""
    results = [each for each in _arrays(theirs)]
    ours_flat = _arrays(ours)
    if len(results) != len(ours_flat):
        return None  # NumPy's scalars are no arrays
    for index, (a, b) in enumerate(zip(ours_flat, results, strict=True)):
        for place, (x, y) in enumerate(zip(mine, other, strict=True)):
            if not b.size or not y.size:
                continue
            our_view = np.may_share_memory(a.numpy(), x.numpy())
            their_view = np.may_share_memory(b, y)
            if our_view != their_view:
                what = ("a view", "a copy") if our_view else ("a copy", "a view")
                return f"result {index} is {what[0]} of argument {place}, NumPy gives {what[1]}"
    return None


LIBRARY = NumpyLibrary()
