# SPDX-License-Identifier: Apache-2.0
"""Methods of Tensor that write random numbers over its elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon._tensor.generators import stream_of as _stream_of


def _fill(self: Tensor, name: str, generator: Any, values: Callable[[], Tensor]) -> Tensor:
    if self.layout != "strided":
        raise NotImplementedError(
            f"random numbers in place: expected a tensor of layout strided, got {self.layout}; fill its "
            "values(), which it shares"
        )
    with _stream_of(generator, self.device, f"{name}()"):
        return self.copy_(values())


def _float_dtype(self: Tensor) -> Any:
    return self.dtype if self.dtype.is_floating_point else _core.float32


def uniform_(
    self: Tensor,
    low: float = 0.0,
    high: float = 1.0,
    *,
    generator: Any = None,
) -> Tensor:
    """Overwrite with uniform numbers in [low, high)."""
    like = {"dtype": _float_dtype(self), "device": self.device}
    return _fill(
        self, "uniform_", generator, lambda: _operator("uniform")(self.shape, low, high, **like)
    )


def normal_(
    self: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    generator: Any = None,
) -> Tensor:
    """Overwrite with normal numbers."""
    like = {"dtype": _float_dtype(self), "device": self.device}
    return _fill(
        self, "normal_", generator, lambda: _operator("normal")(self.shape, mean, std, **like)
    )


def random_(
    self: Tensor,
    low: int = 0,
    high: int | None = None,
    *,
    generator: Any = None,
) -> Tensor:
    """Overwrite with whole numbers from `low` to `high` - 1: random_(high) or random_(low, high).
    Without limits, all that the dtype holds from 0 on without gaps."""
    if high is None and low:
        low, high = 0, low
    if high is None:
        from tenon._tensor.array_api import finfo, iinfo  # few programs need it

        if self.dtype.name == "bool":
            high = 2
        elif self.dtype.is_integer:
            high = min(iinfo(self.dtype).max, 2**63 - 2) + 1
        else:
            high = min(int(2 / finfo(self.dtype).eps) + 1, 2**63 - 1)
    limits = (low, high)
    return _fill(
        self,
        "random_",
        generator,
        lambda: _operator("randint")(*limits, self.shape, device=self.device),
    )


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Overwrite with 1 with probability `p`, a number or a tensor, and else 0."""
    chance = p if isinstance(p, Tensor) else self.new_full((), p, dtype=_float_dtype(self))
    return _fill(
        self, "bernoulli_", generator, lambda: _operator("bernoulli")(chance.expand(self.shape))
    )


def _sampled(name: str, doc: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *parameters: Any, generator: Any = None) -> Tensor:
        from tenon._tensor import samplers  # few programs need it

        sampler = getattr(samplers, name)
        like = {"shape": self.shape, "dtype": _float_dtype(self), "device": self.device}
        return _fill(self, f"{name}_", generator, lambda: sampler(*parameters, **like))

    method.__name__ = f"{name}_"
    method.__doc__ = f"Overwrite with {doc}, of the parameters of tenon.random.{name}()."
    return method


exponential_ = _sampled("exponential", "exponential numbers")
geometric_ = _sampled("geometric", "numbers of trials up to the first success")
cauchy_ = _sampled("cauchy", "Cauchy numbers")
log_normal_ = _sampled("log_normal", "log-normal numbers")
