# SPDX-License-Identifier: Apache-2.0
"""Gradients that PyTorch calls by name and does not take apart, or that are one operator here, attention, and batch
normalisation, which keeps running statistics.

Each takes `call`, which runs an operator, and the call's arguments by position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tenon.jit.foreign_calls import Refused
from tenon.torch._device_record import Record, Value
from tenon.torch._native import _cast, _pair
from tenon.torch._native_layers import convolution

# -- convolutions and pools -------------------------------------------------------------------------------


def _convolution(call: Record, *arguments: Any) -> Value:
    return convolution(call, *arguments)


def _convolution_backward(
    call: Record,
    grad_output: Value,
    input: Value,
    weight: Value,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> list[Any]:
    spatial = weight.ndim - 2
    if spatial > 2:
        step, margin, apart = (_pair(each, spatial) for each in (stride, padding, dilation))
        sizes = step, margin, apart
        return _convolution3d_backward(
            call, grad_output, input, weight, *sizes, transposed, groups, output_mask
        )
    settings: tuple[Any, ...] = (_pair(stride), _pair(padding), _pair(dilation), groups)
    grad, x, kernel = grad_output, input, weight
    if spatial == 1:  # one row of an image
        grad, x, kernel = (call("unsqueeze", each, [2]) for each in (grad, x, kernel))
        settings = ([1, stride[0]], [0, padding[0]], [1, dilation[0]], groups)

    def as_given(value: Value) -> Value:
        return call("squeeze", value, [2]) if spatial == 1 else value

    # A transposed convolution is the gradient of one, from its result to its input.
    of_input = of_weight = of_bias = None
    if output_mask[0] and transposed:
        of_input = as_given(call("conv2d", grad, kernel, None, *settings))
    elif output_mask[0]:
        of_input = as_given(call("conv2d_input_grad", grad, kernel, x.shape, *settings))
    if output_mask[1]:
        out, source = (x, grad) if transposed else (grad, x)
        of_weight = as_given(call("conv2d_weight_grad", out, source, kernel.shape, *settings))
    if output_mask[2]:
        of_bias = call("sum", grad, [0, 2, 3], False)
    return [of_input, of_weight, of_bias]


def _convolution3d_backward(
    call: Record,
    grad: Value,
    x: Value,
    kernel: Value,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    groups: int,
    output_mask: Any,
) -> list[Any]:
    """By convolutions forwards: no operator is a gradient of one with three spatial axes."""
    of_input = of_weight = of_bias = None
    taps = kernel.shape[2:]
    if output_mask[0] and transposed:
        of_input = call("conv3d", grad, kernel, None, stride, padding, dilation, groups)
    elif output_mask[0]:
        more = [
            size - ((out - 1) * step - 2 * margin + apart * (tap - 1) + 1)
            for size, out, step, margin, apart, tap in zip(
                x.shape[2:], grad.shape[2:], stride, padding, dilation, taps, strict=True
            )
        ]
        settings = stride, padding, more, dilation, groups
        of_input = call("conv_transpose3d", grad, kernel, None, *settings)
    if output_mask[1]:
        if groups > 1:
            raise Refused("its channels are in groups, along three spatial axes")
        out, source = (x, grad) if transposed else (grad, x)
        # What slides over the images is the gradient: images and channels are swapped, and so do steps and distances.
        slid = call(
            "conv3d",
            call("transpose", source, 0, 1),
            call("transpose", out, 0, 1),
            None,
            dilation,
            padding,
            stride,
            1,
        )
        for axis, tap in enumerate(taps, 2):
            slid = call("narrow", slid, axis, 0, tap)
        of_weight = call("transpose", slid, 0, 1)
    if output_mask[2]:
        of_bias = call("sum", grad, [0, 2, 3, 4], False)
    return [of_input, of_weight, of_bias]


def _batch(call: Record, value: Value) -> Value:
    return call("unsqueeze", value, [0]) if value.ndim == 3 else value


def _unbatch(call: Record, value: Value, like: Value) -> Value:
    return call("squeeze", value, [0]) if like.ndim == 3 else value


def _max_pool_backward(
    call: Record, grad_output: Value, self: Value, *settings_and_indices: Any
) -> Value:
    indices = settings_and_indices[-1]
    made = call(
        "max_pool2d_grad",
        _batch(call, grad_output),
        _batch(call, indices),
        _batch(call, self).shape,
    )
    return _unbatch(call, made, self)


def _avg_pool_backward(
    call: Record,
    grad_output: Value,
    self: Value,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Value:
    if divisor_override is not None:
        raise Refused("its windows are divided by another number than their size")
    made = call(
        "avg_pool2d_grad",
        _batch(call, grad_output),
        _batch(call, self).shape,
        _pair(kernel_size),
        _pair(stride) if stride else None,
        _pair(padding),
        ceil_mode,
        count_include_pad,
    )
    return _unbatch(call, made, self)


def _adaptive_avg_pool_backward(call: Record, grad_output: Value, self: Value) -> Value:
    height, width = self.shape[-2:]
    rows, columns = grad_output.shape[-2:]
    if rows == 0 or columns == 0 or height % rows or width % columns:
        raise Refused("its windows are not all of one size")
    window = [height // rows, width // columns]
    return _avg_pool_backward(call, grad_output, self, window, window, [0, 0], False, True, None)


# -- normalisation ----------------------------------------------------------------------------------------


def _native_batch_norm(
    call: Record,
    input: Value,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Value]:
    if not training:
        out = call("batch_norm_inference", input, running_mean, running_var, weight, bias, eps)
        nothing = call("full", [0], 0.0, dtype=str(running_mean.dtype).removeprefix("tenon."))
        return [out, nothing, call("clone", nothing)]
    out, mean, var = call("batch_norm", input, weight, bias, eps)
    if running_mean is not None:
        count = input.numel() // max(input.shape[1], 1)
        unbiased = call("multiply", var, count / max(count - 1, 1))
        for statistic, new in ((running_mean, mean), (running_var, unbiased)):
            kept = call("multiply", statistic, 1 - momentum)
            moved = call("add", kept, call("multiply", _cast(call, new, statistic.dtype), momentum))
            call.writes.append((_cast(call, moved, statistic.dtype), statistic.reference[1]))
    return [out, mean, call("rsqrt", call("add", var, eps))]


def _native_batch_norm_backward(
    call: Record,
    grad_out: Value,
    input: Value,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_invstd: Any,
    train: bool,
    eps: float,
    output_mask: Any,
) -> list[Any]:
    if not train:
        raise Refused("its statistics are not those of the batch")
    var = call("subtract", call("reciprocal", call("multiply", save_invstd, save_invstd)), eps)
    return list(call("batch_norm_grad", grad_out, input, weight, save_mean, var, eps))


# -- attention, in one operator ---------------------------------------------------------------------------


def _factor(query: Value, scale: float | None) -> float:
    return query.shape[-1] ** -0.5 if scale is None else float(scale)


def _attention(
    call: Record,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Any,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float | None,
) -> list[Any]:
    """Beside the result PyTorch wants what kernels of others need backwards: here the sums of the rows alone."""
    if dropout_p or return_debug_mask:
        raise Refused("attention of one operator drops nothing and gives no mask")
    bias = None if attn_bias is None else _cast(call, attn_bias, query.dtype)
    factor = _factor(query, scale)
    out, sums = call("attention", query, key, value, bias, is_causal, factor)
    return [out, sums, None, None, 0, 0, None, None, None]


def _attention_backward(
    call: Record,
    grad_out: Value,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Any,
    grad_input_mask: Any,
    out: Value,
    logsumexp: Value,
    cum_seq_q: Any,
    cum_seq_k: Any,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Any,
    philox_offset: Any,
    scale: float | None,
) -> list[Any]:
    bias = None if attn_bias is None else _cast(call, attn_bias, query.dtype)
    factor = _factor(query, scale)
    given = grad_out, query, key, value, bias
    grads = list(call("attention_grad", *given, out, logsumexp, is_causal, factor))
    of_bias = None
    if bias is not None and grad_input_mask[3]:
        of_scores = call("attention_mask_grad", *given, is_causal, factor)
        wide = [1] * (of_scores.ndim - bias.ndim) + bias.shape
        pairs = enumerate(zip(wide, of_scores.shape, strict=True))
        axes = [axis for axis, (own, size) in pairs if own != size]
        summed = call("sum", of_scores, axes, True) if axes else of_scores
        of_bias = _cast(call, call("reshape", summed, bias.shape), attn_bias.dtype)
    return [*grads, of_bias]


# -- softmax and activations ------------------------------------------------------------------------------


def _softmax_backward(
    call: Record, grad_output: Value, output: Value, dim: int, input_dtype: Any
) -> Value:
    weighted = call("multiply", grad_output, output)
    total = call("sum", weighted, [dim], True)
    made = call("subtract", weighted, call("multiply", output, total))
    return _cast(call, made, input_dtype)


def _log_softmax_backward(
    call: Record, grad_output: Value, output: Value, dim: int, input_dtype: Any
) -> Value:
    total = call("sum", grad_output, [dim], True)
    made = call("subtract", grad_output, call("multiply", call("exp", output), total))
    return _cast(call, made, input_dtype)


def _threshold_backward(call: Record, grad_output: Value, self: Value, threshold: Any) -> Value:
    return call("where", call("less_equal", self, threshold), 0, grad_output)


def _sigmoid_backward(call: Record, grad_output: Value, output: Value) -> Value:
    rest = call("subtract", 1, output)
    return call("multiply", grad_output, call("multiply", output, rest))


def _tanh_backward(call: Record, grad_output: Value, output: Value) -> Value:
    rest = call("subtract", 1, call("multiply", output, output))
    return call("multiply", grad_output, rest)


def _embedding_backward(
    call: Record,
    grad_output: Value,
    indices: Value,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Value:
    if scale_grad_by_freq:
        raise Refused("it divides by how often each index is there")
    width = grad_output.shape[-1]
    rows = call("reshape", grad_output, [-1, width])
    positions = call("reshape", indices, [-1])
    if padding_idx >= 0:
        is_kept = call("not_equal", positions, padding_idx)
        rows = call("where", call("unsqueeze", is_kept, [1]), rows, 0)
    zeros = call("full", [num_weights, width], 0, dtype=grad_output.dtype)
    return call("index_add", zeros, positions, rows, 0)


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "convolution": _convolution,
    "convolution_backward_overrideable": _convolution_backward,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "avg_pool2d_backward": _avg_pool_backward,
    "_adaptive_avg_pool2d_backward": _adaptive_avg_pool_backward,
    "native_batch_norm": _native_batch_norm,
    "_native_batch_norm_legit": _native_batch_norm,
    "native_batch_norm_backward": _native_batch_norm_backward,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
    "_scaled_dot_product_fused_attention_overrideable_backward": _attention_backward,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _log_softmax_backward,
    "threshold_backward": _threshold_backward,
    "sigmoid_backward": _sigmoid_backward,
    "tanh_backward": _tanh_backward,
    "embedding_dense_backward": _embedding_backward,
}
