# SPDX-License-Identifier: Apache-2.0
"""Layers that find out how many inputs they have when they are first called."""

from __future__ import annotations

import inspect
from typing import Any

import tenon
from tenon import Tensor

from . import conv, linear, normalization
from .module import Module
from .parameter import Buffer, Parameter


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet. An optimizer may hold it already: it is the same object when
    the layer has been called once."""

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return super().__new__(cls, tenon.empty([0], device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass

    def materialize(self, value: Tensor) -> None:
        """From now on an ordinary parameter with these elements."""
        self.data = value.detach().to(self.dtype).to(self.device)
        self.__class__ = Parameter  # type: ignore[assignment]


class UninitializedBuffer(Buffer):
    """A buffer whose shape is not known yet."""

    def __new__(
        cls,
        persistent: bool = True,
        device: Any = None,
        dtype: Any = None,
        optional: bool = False,
    ) -> Any:
        data = tenon.empty([0], device=device, dtype=dtype)
        return super().__new__(cls, data, persistent, optional)

    def __init__(self, *settings: Any, **more: Any) -> None:
        pass

    def materialize(self, value: Tensor) -> None:
        """From now on an ordinary buffer with these elements."""
        whole = value.dtype.is_integer
        self.data = value.to(self.device) if whole else value.to(self.dtype).to(self.device)
        self.__class__ = Buffer  # type: ignore[assignment]


def is_lazy(value: Any) -> bool:
    """Whether it is a parameter or buffer without a shape, or a module that has one."""
    if isinstance(value, Module):
        return any(map(is_lazy, [*value.parameters(), *value.buffers()]))
    return isinstance(value, (UninitializedParameter, UninitializedBuffer))


def _lazy(base: Any, first: str, channel_axis: int, axes: int | None = None) -> Any:
    """The class `LazyBase`: `base` without its parameter `first`, which is the extent of `channel_axis` of the
    first input. With `axes` an input may lack the batch, and then has that many."""

    class Made(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if first in kwargs:
                raise TypeError(
                    f"Lazy{base.__name__}: expected no {first}, which the first call tells, got {kwargs[first]!r}"
                )
            # Of one input, to check the settings and to know the names of parts.
            given = inspect.signature(base).bind(1, *args, **kwargs).arguments
            self._settings = (args, kwargs)
            part = base(given.get("groups", 1), *args, **kwargs)
            for name, value in vars(part).items():
                if isinstance(value, Parameter):
                    value = UninitializedParameter(value.requires_grad, value.device, value.dtype)
                elif isinstance(value, Buffer):
                    value = UninitializedBuffer(
                        value.persistent, value.device, value.dtype, value.optional
                    )
                setattr(self, name, value)
            setattr(self, first, 0)

        def __call__(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
            settings, named = self._settings
            axis = channel_axis
            if axes is not None and x.ndim == axes:
                axis -= 1
            if not -x.ndim <= axis < x.ndim:
                raise ValueError(
                    f"Lazy{base.__name__}: expected an input with an axis {axis} of channels, got shape {tuple(x.shape)}"
                )
            whole = base(x.shape[axis], *settings, **named)
            del self._settings
            for name, value in vars(whole).items():
                own = vars(self).get(name)
                if isinstance(own, (UninitializedParameter, UninitializedBuffer)):
                    own.materialize(value)
                else:
                    setattr(self, name, value)
            self.__class__ = base
            return self(x, *args, **kwargs)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(
                f"Lazy{base.__name__}: expected a call of the layer, which makes its parameters, got one of forward()"
            )

        def extra_repr(self) -> str:
            return f"{first}=unknown"

    Made.__name__ = Made.__qualname__ = f"Lazy{base.__name__}"
    Made.__module__ = __name__
    Made.__doc__ = (
        f"{base.__name__} whose {first} the first call tells. Then it is a {base.__name__}; an optimizer "
        f"that has its parameters before goes on with them."
    )
    return Made


LazyLinear = _lazy(linear.Linear, "in_features", -1)
LazyConv1d = _lazy(conv.Conv1d, "in_channels", 1, 2)
LazyConv2d = _lazy(conv.Conv2d, "in_channels", 1, 3)
LazyConv3d = _lazy(conv.Conv3d, "in_channels", 1, 4)
LazyConvTranspose1d = _lazy(conv.ConvTranspose1d, "in_channels", 1, 2)
LazyConvTranspose2d = _lazy(conv.ConvTranspose2d, "in_channels", 1, 3)
LazyConvTranspose3d = _lazy(conv.ConvTranspose3d, "in_channels", 1, 4)
LazyBatchNorm1d = _lazy(normalization.BatchNorm1d, "num_features", 1)
LazyBatchNorm2d = _lazy(normalization.BatchNorm2d, "num_features", 1)
LazyBatchNorm3d = _lazy(normalization.BatchNorm3d, "num_features", 1)
LazyInstanceNorm1d = _lazy(normalization.InstanceNorm1d, "num_features", 1, 2)
LazyInstanceNorm2d = _lazy(normalization.InstanceNorm2d, "num_features", 1, 3)
LazyInstanceNorm3d = _lazy(normalization.InstanceNorm3d, "num_features", 1, 4)
