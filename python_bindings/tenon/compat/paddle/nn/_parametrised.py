# SPDX-License-Identifier: Apache-2.0
"""paddle.nn: layers with parameters, in Paddle's shapes and by its defaults. `weight_attr` and `bias_attr` are
None, False for no parameter, or a function that fills a tensor."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.paddle._lazy import then
from tenon.compat.paddle.nn import functional
from tenon.compat.paddle.nn._layer import Layer
from tenon.compat.paddle.nn.functional._layout import is_last, spread

__all__ = """BatchNorm1D BatchNorm2D BatchNorm3D Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose
Embedding Flatten GroupNorm InstanceNorm1D InstanceNorm2D InstanceNorm3D LayerNorm Linear PReLU SpectralNorm""".split()


def _constant(value: float) -> Any:
    return lambda tensor: tensor.fill_(value)


def _place(layer: Layer, device: Any, dtype: Any) -> None:
    """Where a layer's parameters are made, and of which dtype."""
    layer._device = device
    if dtype is not None:
        layer._dtype = _core.dtype(dtype)


class Linear(Layer):
    """x @ weight + bias, with a weight [in, out]."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)


class Flatten(Layer):
    """Several axes as one."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self._axes = (start_axis, stop_axis)

    def forward(self, input: Tensor) -> Tensor:
        return _core.operator("flatten")(input, *self._axes)


class Embedding(Layer):
    """Rows of a weight [num_embeddings, embedding_dim], that of `padding_idx` zeros."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        *,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        _place(self, device, dtype)
        if _weight is not None or _freeze:
            raise NotImplementedError("Embedding(): expected no _weight and no _freeze")
        if max_norm is not None or sparse:
            raise NotImplementedError("Embedding(): expected max_norm=None and sparse=False")
        if num_embeddings <= 0 or embedding_dim <= 0:
            raise ValueError(
                f"Embedding(): expected sizes above 0, got {num_embeddings} and {embedding_dim}"
            )
        self._padding_idx = padding_idx
        self._scale = scale_grad_by_freq
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)
        if padding_idx is not None:
            then(self.weight, lambda weight: weight[padding_idx].zero_())

    def forward(self, x: Tensor) -> Tensor:
        return functional.embedding(
            x, self.weight, self._padding_idx, scale_grad_by_freq=self._scale
        )


class PReLU(Layer):
    """x, below 0 times a weight: one, or one for each channel."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._data_format = data_format
        self._weight = self.create_parameter(
            [num_parameters], weight_attr, default_initializer=_constant(init)
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.prelu(x, self._weight, self._data_format)


# -- convolutions ----------------------------------------------------------------------------------


class _Convolution(Layer):
    _count = 2
    _formats = {1: "NCL", 2: "NCHW", 3: "NCDHW"}

    def _prepare(
        self,
        shape: list[int],
        fan_in: int,
        out_channels: int,
        weight_attr: Any,
        bias_attr: Any,
        settings: dict[str, Any],
    ) -> None:
        deviation = math.sqrt(2.0 / fan_in)

        def draw(weight: Tensor) -> None:
            weight.copy_(_core.operator("normal")(shape, 0.0, deviation, dtype=weight.dtype))

        self.weight = self.create_parameter(shape, weight_attr, default_initializer=draw)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)
        is_last(type(self).__name__, settings["data_format"], self._count)
        self._settings = settings


def _convolution(count: int) -> type[_Convolution]:
    name = f"Conv{count}D"

    class Made(_Convolution):
        _count = count

        def __init__(
            self,
            in_channels: int,
            out_channels: int,
            kernel_size: Any,
            stride: Any = 1,
            padding: Any = 0,
            dilation: Any = 1,
            groups: int = 1,
            *,
            bias: bool = True,
            padding_mode: str = "zeros",
            device: Any = None,
            dtype: Any = None,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = _Convolution._formats[count],
        ) -> None:
            super().__init__()
            _place(self, device, dtype)
            bias_attr = bias_attr if bias else False
            if padding_mode != "zeros":
                raise NotImplementedError(
                    f"{name}(): expected padding_mode='zeros', got {padding_mode!r}; use Pad{count}D"
                )
            if in_channels % groups:
                raise ValueError(
                    f"{name}(): expected groups that divide {in_channels}, got {groups}"
                )
            kernel = spread(name, "kernel_size", kernel_size, count)
            settings = {
                "stride": stride,
                "padding": padding,
                "dilation": dilation,
                "groups": groups,
                "data_format": data_format,
            }
            shape = [out_channels, in_channels // groups, *kernel]
            fan_in = math.prod(kernel) * in_channels
            self._prepare(shape, fan_in, out_channels, weight_attr, bias_attr, settings)

        def forward(self, x: Tensor) -> Tensor:
            function = getattr(functional, f"conv{count}d")
            return function(x, self.weight, self.bias, **self._settings)

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = f"functional.conv{count}d() with a weight and a bias."
    return Made


def _transposed(count: int) -> type[_Convolution]:
    name = f"Conv{count}DTranspose"

    class Made(_Convolution):
        _count = count

        def __init__(
            self,
            in_channels: int,
            out_channels: int,
            kernel_size: Any,
            stride: Any = 1,
            padding: Any = 0,
            output_padding: Any = 0,
            groups: int = 1,
            dilation: Any = 1,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = _Convolution._formats[count],
        ) -> None:
            super().__init__()
            if out_channels % groups:
                raise ValueError(
                    f"{name}(): expected groups that divide {out_channels}, got {groups}"
                )
            kernel = spread(name, "kernel_size", kernel_size, count)
            settings = {
                "stride": stride,
                "padding": padding,
                "output_padding": output_padding,
                "dilation": dilation,
                "groups": groups,
                "data_format": data_format,
            }
            shape = [in_channels, out_channels // groups, *kernel]
            fan_in = math.prod(kernel) * in_channels
            self._prepare(shape, fan_in, out_channels, weight_attr, bias_attr, settings)

        def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
            function = getattr(functional, f"conv{count}d_transpose")
            settings = dict(self._settings)
            if output_size is not None:
                settings["output_padding"] = 0
            return function(x, self.weight, self.bias, output_size=output_size, **settings)

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = f"functional.conv{count}d_transpose() with a weight and a bias."
    return Made


Conv1D, Conv2D, Conv3D = _convolution(1), _convolution(2), _convolution(3)
Conv1DTranspose = _transposed(1)


def _transposed_with_dilation_first(count: int) -> type[_Convolution]:
    name, base = f"Conv{count}DTranspose", _transposed(count)

    class Made(base):  # type: ignore[misc, valid-type]
        def __init__(
            self,
            in_channels: int,
            out_channels: int,
            kernel_size: Any,
            stride: Any = 1,
            padding: Any = 0,
            output_padding: Any = 0,
            dilation: Any = 1,
            groups: int = 1,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = _Convolution._formats[count],
        ) -> None:
            super().__init__(
                in_channels,
                out_channels,
                kernel_size,
                stride,
                padding,
                output_padding,
                groups,
                dilation,
                weight_attr,
                bias_attr,
                data_format,
            )

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = base.__doc__
    return Made


# Paddle has the groups before the dilation in one of them alone.
Conv2DTranspose, Conv3DTranspose = map(_transposed_with_dilation_first, (2, 3))


# -- normalization ---------------------------------------------------------------------------------


def _batch_norm(count: int, ndims: tuple[int, ...], data_format: str) -> type[Layer]:
    name, default_format = f"BatchNorm{count}D", data_format

    class Made(Layer):
        _mean: Tensor
        _variance: Tensor

        def __init__(
            self,
            num_features: int,
            momentum: float = 0.9,
            epsilon: float = 1e-5,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = default_format,
            use_global_stats: bool | None = None,
            name: str | None = None,
        ) -> None:
            super().__init__()
            self._momentum, self._epsilon = momentum, epsilon
            self._data_format, self._use_global_stats = data_format, use_global_stats
            self.weight = self.create_parameter(
                [num_features], weight_attr, default_initializer=_constant(1.0)
            )
            self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
            self.register_buffer("_mean", tenon.zeros([num_features]))
            self.register_buffer("_variance", tenon.ones([num_features]))

        def forward(self, input: Tensor) -> Tensor:
            if input.ndim not in ndims:
                raise ValueError(
                    f"{name}(): expected {' or '.join(map(str, ndims))} axes, got {input.ndim}"
                )
            return functional.batch_norm(
                input,
                self._mean,
                self._variance,
                self.weight,
                self.bias,
                self.training,
                self._momentum,
                self._epsilon,
                self._data_format,
                self._use_global_stats,
            )

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = "functional.batch_norm() with parameters and running statistics."
    return Made


BatchNorm1D = _batch_norm(1, (2, 3), "NCL")
BatchNorm2D, BatchNorm3D = _batch_norm(2, (4,), "NCHW"), _batch_norm(3, (5,), "NCDHW")


class LayerNorm(Layer):
    """functional.layer_norm() with parameters."""

    def __init__(
        self,
        normalized_shape: Any,
        epsilon: float = 1e-5,
        *,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        _place(self, device, dtype)
        self._shape = (
            [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        )
        self._epsilon = epsilon
        # Paddle's parameters are vectors.
        size = [math.prod(self._shape)]
        self.weight = self.create_parameter(
            size,
            weight_attr if elementwise_affine else False,
            default_initializer=_constant(1.0),
        )
        self.bias = self.create_parameter(
            size, bias_attr if elementwise_affine and bias else False, is_bias=True
        )

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self._shape, self.weight, self.bias, self._epsilon)


class GroupNorm(Layer):
    """functional.group_norm() with parameters."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        *,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        _place(self, device, dtype)
        self._settings = (num_groups, epsilon, data_format)
        self.weight = self.create_parameter(
            [num_channels],
            weight_attr if affine else False,
            default_initializer=_constant(1.0),
        )
        self.bias = self.create_parameter(
            [num_channels], bias_attr if affine else False, is_bias=True
        )

    def forward(self, input: Tensor) -> Tensor:
        groups, epsilon, data_format = self._settings
        return functional.group_norm(input, groups, epsilon, self.weight, self.bias, data_format)


def _instance_norm(count: int, ndims: tuple[int, ...], data_format: str) -> type[Layer]:
    name, default_format = f"InstanceNorm{count}D", data_format

    class Made(Layer):
        def __init__(
            self,
            num_features: int,
            epsilon: float = 1e-5,
            momentum: float = 0.9,
            weight_attr: Any = None,
            bias_attr: Any = None,
            data_format: str = default_format,
            name: str | None = None,
        ) -> None:
            super().__init__()
            self._epsilon = epsilon
            if is_last(type(self).__name__, data_format, count):
                raise ValueError(
                    f"InstanceNorm{count}D(): expected channels first, got {data_format!r}"
                )
            self.scale = self.create_parameter(
                [num_features], weight_attr, default_initializer=_constant(1.0)
            )
            self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

        def forward(self, input: Tensor) -> Tensor:
            if input.ndim not in ndims:
                raise ValueError(
                    f"{name}(): expected {' or '.join(map(str, ndims))} axes, got {input.ndim}"
                )
            return functional.instance_norm(
                input, None, None, self.scale, self.bias, eps=self._epsilon
            )

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = "functional.instance_norm() with parameters."
    return Made


InstanceNorm1D = _instance_norm(1, (3,), "NCL")
InstanceNorm2D, InstanceNorm3D = _instance_norm(2, (4,), "NCHW"), _instance_norm(3, (5,), "NCDHW")


class SpectralNorm(Layer):
    """A weight divided by its largest singular value (Miyato et al., 2018), where axis `dim` is taken as rows. The
    singular vectors are parameters that are not trained, from which each call starts its steps of the power method."""

    weight_u: Tensor
    weight_v: Tensor

    def __init__(
        self,
        weight_shape: Any,
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        shape = [int(size) for size in weight_shape]
        if math.prod(shape) < 1 or not shape:
            raise ValueError(
                f"SpectralNorm(): expected a weight_shape of sizes above 0, got {shape}"
            )
        if not -len(shape) <= dim < len(shape):
            raise ValueError(
                f"SpectralNorm(): expected dim an axis of weight_shape {shape}, got {dim}"
            )
        self._shape, self._dim, self._steps, self._eps = shape, dim, power_iters, eps
        rows = shape[dim]
        for name, size in (("weight_u", rows), ("weight_v", math.prod(shape) // rows)):
            drawn = tenon.randn([size], dtype=self._dtype)
            setattr(self, name, tenon.nn.Parameter(drawn, False))

    def forward(self, x: Tensor) -> Tensor:
        if list(x.shape) != self._shape:
            raise ValueError(
                f"SpectralNorm: expected a weight of shape {self._shape}, got {tuple(x.shape)}"
            )
        u, v = self.weight_u.detach(), self.weight_v.detach()
        return tenon.spectral_norm(x, u, v, self._dim, self._steps, self._eps)[0]
