# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.paddle, held against Paddle."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import paddle
import tenon
from tenon.compat import paddle as compat

from . import paddle_samples
from .paddle_differences import DIFFERENCES
from .signature_calls import Difference

# Names that draw numbers, whose results are compared by shape and dtype, or say something of the process.
DRAWN = frozenset(
    """bernoulli binomial empty empty_like log_normal multinomial normal poisson rand rand_like randint randint_like
    randn randn_like randperm standard_gamma standard_normal uniform nn.functional.dropout nn.functional.dropout1d
    nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout
    nn.functional.feature_alpha_dropout nn.functional.gumbel_softmax nn.functional.rrelu create_parameter""".split()
)
# Functions of float64 that Paddle computes with constants of single precision.
SINGLE = frozenset(
    """atan2 nn.functional.batch_norm nn.functional.cross_entropy nn.functional.hardsigmoid
    nn.functional.label_smooth nn.functional.selu nn.functional.interpolate nn.functional.upsample renorm renorm_
    stanh""".split()
)
# Names that are not asked. Paddle 3.3.1's nll_loss breaks its own memory: later calls crash or wait for ever. Its index_put_ crashes.
LEFT_OUT = frozenset(
    """device_plugins get_include get_lib kernel_table load_all load_device_plugin load save seed
    set_printoptions get_rng_state set_rng_state no_grad enable_grad set_grad_enabled is_grad_enabled index_put_
    get_default_dtype set_default_dtype nn.functional.nll_loss""".split()
)


class PaddleLibrary:
    """The functions of Paddle, its linalg, fft, signal and nn.functional."""

    name = "Paddle"
    differences: tuple[Difference, ...] = DIFFERENCES

    def functions(self) -> list[str]:
        found = []
        for space in ("", "linalg", "fft", "signal", "nn.functional"):
            place = _find(compat, space) if space else compat
            for each in dir(place):
                value = getattr(place, each)
                if callable(value) and not isinstance(value, type):
                    found.append(f"{space}.{each}" if space else each)
        return [each for each in found if each not in LEFT_OUT]

    def theirs(self, function: str) -> Callable[..., Any] | None:
        return _find(paddle, function)

    def ours(self, function: str) -> Callable[..., Any]:
        return _find(compat, function)

    def signatures(self, function: str) -> list[inspect.Signature]:
        try:
            return [inspect.signature(_find(paddle, function))]
        except ValueError:  # a function that is compiled says nothing
            return [inspect.signature(_find(compat, function))]

    def samples(self, function: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        return paddle_samples.of_function(function)

    def alternatives(
        self, function: str, parameter: inspect.Parameter, arguments: dict[str, Any]
    ) -> Iterable[Any]:
        return paddle_samples.alternatives(function, parameter.name)

    def fresh(self, value: Any) -> Any:
        if isinstance(value, paddle.Tensor):
            copy = paddle.to_tensor(value.numpy())
            copy.stop_gradient = value.stop_gradient
            return copy
        return _mapped(value, self.fresh)

    def recording(self, value: Any) -> Any:
        if isinstance(value, paddle.Tensor) and value.dtype in (paddle.float32, paddle.float64):
            copy = paddle.to_tensor(value.numpy())
            copy.stop_gradient = False
            return copy
        return _mapped(value, self.recording)

    def to_ours(self, value: Any) -> Any:
        if isinstance(value, paddle.Tensor):
            return tenon.tensor(value.numpy(), requires_grad=not value.stop_gradient)
        if isinstance(value, paddle.dtype):
            return str(value).removeprefix("paddle.")
        if value is paddle_samples.distance:
            return paddle_samples.distance
        return _mapped(value, self.to_ours)

    def difference(
        self, function: str, ours: Any, our_arguments: Any, theirs: Any, their_arguments: Any
    ) -> str | None:
        mine, other = _tensors(our_arguments), _tensors(their_arguments)
        for index, (a, b) in enumerate(zip(mine, other, strict=True)):
            found = _values(function, a, b)
            if found is not None:
                return f"tensor {index} of the arguments after the call: {found}"
        return _structure(function, ours, theirs)

    def describe(self, value: Any) -> str:
        if isinstance(value, paddle.Tensor):
            dtype = str(value.dtype).removeprefix("paddle.")
            if value.size <= 6:
                return f"tensor({value.tolist()}, {dtype})"
            return f"{dtype}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self.describe, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner})"
        return repr(value)


def _find(place: Any, function: str) -> Any:
    for part in function.split("."):
        place = getattr(place, part, None)
    return place


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        changed = [change(each) for each in value]
        return changed if isinstance(value, list) else tuple(changed)
    if isinstance(value, dict):
        return {name: change(each) for name, each in value.items()}
    return value


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (paddle.Tensor, tenon.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in _tensors(part)]
    return []


def _structure(function: str, ours: Any, theirs: Any) -> str | None:
    if isinstance(theirs, (list, tuple)) and not isinstance(theirs, paddle.Tensor):
        if not isinstance(ours, (list, tuple)) or isinstance(ours, list) != isinstance(
            theirs, list
        ):
            return f"a {type(ours).__name__}, Paddle gives a {type(theirs).__name__}"
        if len(ours) != len(theirs):
            return f"{len(ours)} results, Paddle gives {len(theirs)}"
        pairs = zip(ours, theirs, strict=True)
        return next(filter(None, (_structure(function, a, b) for a, b in pairs)), None)
    if isinstance(theirs, paddle.Tensor):
        if not isinstance(ours, tenon.Tensor):
            return f"a {type(ours).__name__}, Paddle gives a tensor"
        return _values(function, ours, theirs)
    if isinstance(theirs, (bool, int, float, str)) or theirs is None:
        return None if ours == theirs else f"{ours!r}, Paddle gives {theirs!r}"
    return None


def _values(function: str, ours: Any, theirs: Any) -> str | None:
    mine, other = ours.detach().numpy(), theirs.detach().numpy()
    if mine.shape != other.shape:
        return f"shape {mine.shape}, Paddle gives {other.shape}"
    if mine.dtype != other.dtype:
        return f"dtype {mine.dtype}, Paddle gives {other.dtype}"
    if function in DRAWN:
        return None
    if mine.dtype.kind not in "fc":
        same = mine == other
    else:
        # Solvers and sums of float32 in another order; float64 is compared much closer.
        bound = 1e-9 if mine.dtype.name in ("float64", "complex128") else 1e-4
        bound = 1e-6 if bound < 1e-6 and function in SINGLE else bound
        bound = 1e-2 if mine.dtype.name == "float16" else bound
        finite = np.abs(other[np.isfinite(other)])
        scale = float(finite.max()) if finite.size else 0.0
        with np.errstate(all="ignore"):
            same = np.isclose(mine, other, rtol=bound, atol=bound * scale + 1e-12, equal_nan=True)
    if np.all(same):
        return None
    at = tuple(int(i) for i in np.argwhere(~np.asarray(same))[0])
    return f"at {at}: {mine[at]}, Paddle gives {other[at]}"


LIBRARY = PaddleLibrary()
