# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions of layers, windows and programs."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat.torch import _pooling
from tenon.nn import functional as F

Size = builtins.int | Sequence[builtins.int]

__all__ = """adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d bartlett_window bilinear blackman_window channel_shuffle compile cond
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d hamming_window hann_window
hardshrink istft kaiser_window pdist stft""".split()


def _of_complex(
    x: Tensor, weight: Tensor, bias: Tensor | None, run: Callable[..., Tensor]
) -> Tensor:
    """The convolution of complex numbers by three of real ones (Gauss's product)."""
    real, imag = _core.operator("real"), _core.operator("imag")
    a, b, c, d = real(x), imag(x), real(weight), imag(weight)
    first, second = run(a, c, None), run(b, d, None)
    both = run(a + b, c + d, None)
    result = _core.operator("complex")(first - second, both - first - second)
    if bias is None:
        return result
    return result + bias.reshape([-1] + [1] * (result.ndim - 2))


def _of_batch(
    input: Tensor, weight: Tensor, bias: Tensor | None, run: Callable[..., Tensor]
) -> Tensor:
    """`run` with a batch, which `input` may lack. Whole numbers are convolved in float64, which is
    exact while sums are below 2^53."""
    alone = input.ndim == weight.ndim - 1
    x = input.unsqueeze(0) if alone else input
    if input.dtype.is_floating_point:
        result = run(x, weight, bias)
    elif input.dtype.is_complex:
        result = _of_complex(x, weight, bias, run)
    else:
        wide = [
            each if each is None else each.to(dtype=_core.float64) for each in (x, weight, bias)
        ]
        result = _core.operator("round")(run(*wide)).to(dtype=input.dtype)
    return result.squeeze(0) if alone else result


def _convolution(name: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Size = 1,
        padding: Any = 0,
        dilation: Size = 1,
        groups: builtins.int = 1,
    ) -> Tensor:
        if padding == "valid":
            padding = 0
        if padding == "same" and name == "conv2d":
            return _of_batch(
                input,
                weight,
                bias,
                lambda x, w, b: _same_conv2d(x, w, b, stride, dilation, groups),
            )
        return _of_batch(
            input,
            weight,
            bias,
            lambda x, w, b: getattr(F, name)(x, w, b, stride, padding, dilation, groups),
        )

    function.__doc__ = f"tenon.nn.functional.{name}."
    return function


def _transposed(name: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: builtins.int = 1,
        dilation: Size = 1,
    ) -> Tensor:
        return _of_batch(
            input,
            weight,
            bias,
            lambda x, w, b: getattr(F, name)(
                x,
                w,
                b,
                stride=stride,
                padding=padding,
                output_padding=output_padding,
                groups=groups,
                dilation=dilation,
            ),
        )

    function.__doc__ = f"tenon.nn.functional.{name}."
    return function


def _same_conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size,
    dilation: Size,
    groups: builtins.int,
) -> Tensor:
    """conv2d whose result has the extents of `x`; the odd margin is at the end."""
    strides = (stride, stride) if isinstance(stride, builtins.int) else tuple(stride)
    dilations = (dilation, dilation) if isinstance(dilation, builtins.int) else tuple(dilation)
    if set(strides) != {1}:
        raise ValueError(f"conv2d(): expected stride 1 for padding='same', got {stride}")
    margins = [d * (k - 1) for d, k in zip(dilations * 2, weight.shape[2:], strict=False)]
    pads = [each for m in margins for each in (m // 2, m - m // 2)]
    padded = _core.operator("pad")(x, [0, 0, 0, 0, *pads])
    return F.conv2d(padded, weight, bias, 1, 0, list(dilations), groups)


conv1d, conv2d, conv3d = map(_convolution, ("conv1d", "conv2d", "conv3d"))
conv_transpose1d, conv_transpose2d = (
    _transposed("conv_transpose1d"),
    _transposed("conv_transpose2d"),
)
conv_transpose3d = _transposed("conv_transpose3d")


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1 weight x2, for each output."""
    return F.bilinear(input1, input2, weight, bias)


def adaptive_avg_pool1d(input: Tensor, output_size: Size) -> Tensor:
    """Means of as many windows as `output_size` says."""
    return _pooling.adaptive_avg_pool1d(input, output_size)


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window."""
    return _pooling.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def adaptive_max_pool1d(input: Tensor, output_size: Size) -> tuple[Tensor, Tensor]:
    """Maxima of as many windows as `output_size` says, and where they are."""
    return _pooling.adaptive_max_pool1d_with_indices(input, output_size)


def channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Channels of groups, interleaved."""
    return F.channel_shuffle(input, groups)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 within `lambd` of 0."""
    return F.hardshrink(input, lambd)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Distances of every two rows."""
    return F.pdist(input, p)


# -- windows ----------------------------------------------------------------------------------------


def _floating(name: str, dtype: Any) -> None:
    if dtype is not None and not _core.dtype(dtype).is_floating_point:
        raise TypeError(f"{name}(): expected a floating dtype, got {dtype}")


def _window(name: str) -> Callable[..., Tensor]:
    def function(
        window_length: builtins.int, periodic: bool = True, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        _floating(name, dtype)
        return getattr(tenon.signal, name)(window_length, periodic, dtype=dtype, device=device)

    function.__doc__ = f"tenon.signal.{name}."
    return function


bartlett_window, blackman_window = _window("bartlett_window"), _window("blackman_window")
hann_window = _window("hann_window")


def hamming_window(
    window_length: builtins.int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """tenon.signal.hamming_window."""
    _floating("hamming_window", dtype)
    return tenon.signal.hamming_window(
        window_length, periodic, alpha, beta, dtype=dtype, device=device
    )


def kaiser_window(
    window_length: builtins.int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """tenon.signal.kaiser_window."""
    _floating("kaiser_window", dtype)
    return tenon.signal.kaiser_window(window_length, periodic, beta, dtype=dtype, device=device)


def stft(
    input: Tensor,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """tenon.signal.stft, complex or as pairs of real numbers."""
    if align_to_window is not None:
        raise NotImplementedError(
            f"stft(): expected align_to_window=None, got {align_to_window!r}; pad the signal instead"
        )
    pad_mode = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise ValueError("stft(): expected return_complex=True or False for real numbers, got None")
    spectra = tenon.signal.stft(
        input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided
    )
    return tenon.as_real(spectra) if return_complex is False else spectra


def istft(
    input: Tensor,
    n_fft: builtins.int,
    hop_length: builtins.int | None = None,
    win_length: builtins.int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: builtins.int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """tenon.signal.istft; the number of frequencies says whether they are one side. For a real result of both
    sides the first half counts, as PyTorch takes it."""
    if onesided is None:
        onesided = not return_complex and input.ndim > 1 and input.shape[-2] != n_fft
    if not onesided and not return_complex and input.ndim > 1 and input.shape[-2] == n_fft:
        input, onesided = input.narrow(-2, 0, n_fft // 2 + 1), True
    return tenon.signal.istft(
        input,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        normalized,
        onesided,
        length,
        return_complex,
    )


# -- programs ---------------------------------------------------------------------------------------


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: builtins.int | None = None,
    isolate_recompiles: bool = False,
    dynamic_shapes: Any = None,
) -> Any:
    """tenon.compile. What chooses a compiler of PyTorch's, or tells it how, is refused; so is `fullgraph`, as a
    function that cannot be compiled runs as it is."""
    chosen = {
        "dynamic": dynamic,
        "backend": None if backend == "inductor" else backend,  # PyTorch's default
        "mode": None if mode == "default" else mode,
        "options": options,
        "name": name,
        "recompile_limit": recompile_limit,
        "isolate_recompiles": isolate_recompiles or None,
        "dynamic_shapes": dynamic_shapes,
    }
    for word, value in chosen.items():
        if value is not None:
            raise NotImplementedError(
                f"compile(): expected no {word}, got {value!r}; tenon.compile has its own compiler and settings"
            )
    if fullgraph:
        raise NotImplementedError(
            "compile(): expected fullgraph=False, got True; explain() says what runs as a program"
        )
    if model is None:
        return lambda function: function if disable else tenon.compile(function)
    return model if disable else tenon.compile(model)


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """tenon.jit.cond."""
    predicate = pred if isinstance(pred, Tensor) else _core.tensor(bool(pred))
    return tenon.jit.cond(predicate, true_fn, false_fn, *operands)
