# SPDX-License-Identifier: Apache-2.0
"""Operators in NumPy: expressions over the names of the signature, in float64 or integers.

`sp` is scipy.special; expressions with it are left out where SciPy is not installed.
"""

_SAME = (
    "equal not_equal less less_equal greater greater_equal isnan isinf isfinite signbit exp exp2 "
    "expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh add subtract multiply divide "
    "floor_divide remainder fmod negative positive abs sign square maximum minimum fmax fmin "
    "copysign hypot logaddexp floor ceil trunc logical_and logical_or logical_xor logical_not "
    "bitwise_and bitwise_or bitwise_xor bitwise_invert bitwise_left_shift bitwise_right_shift "
    "matmul outer conj real imag where"
).split()
_ARGUMENTS = {
    1: "x",
    2: "x, y",
}

NUMPY = {
    "equal": "np.equal(x, y)",
    "asin": "np.arcsin(x)",
    "acos": "np.arccos(x)",
    "atan": "np.arctan(x)",
    "asinh": "np.arcsinh(x)",
    "acosh": "np.arccosh(x)",
    "atanh": "np.arctanh(x)",
    "atan2": "np.arctan2(x, y)",
    "rsqrt": "1 / np.sqrt(x)",
    "reciprocal": "1 / x",
    "pow": "np.power(x, y)",
    "round": "np.round(x)",
    "nextafter": "np.nextafter(x, y)",
    "where": "np.where(condition, x, y)",
    "masked_fill": "np.where(mask, value, x)",
    "isclose": "np.isclose(x, y, rtol, atol, equal_nan)",
    "allclose": "np.allclose(x, y, rtol, atol, equal_nan)",
    "lerp": "x + weight * (y - x)",
    "frac": "x - np.trunc(x)",
    "clip": "np.clip(x, min, max)",
    "nan_to_num": "np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)",
    "relu": "np.maximum(x, 0)",
    "relu6": "np.clip(x, 0, 6)",
    "leaky_relu": "np.where(x > 0, x, negative_slope * x)",
    "prelu": "np.where(x > 0, x, weight * x)",
    "softsign": "x / (1 + np.abs(x))",
    "hardtanh": "np.where(x < min, min, np.where(x > max, max, x))",
    "erf": "sp.erf(x)",
    "erfc": "sp.erfc(x)",
    "i0": "np.where(np.isinf(x), np.inf, sp.i0(x))",
    "i1": "np.where(np.isinf(x), x, sp.i1(x))",
    "lgamma": "sp.gammaln(x)",
    "digamma": "sp.digamma(x)",
    "sigmoid": "sp.expit(x)",
    "log_sigmoid": "sp.log_expit(x)",
    "softmax": "sp.softmax(x, axis)",
    "log_softmax": "sp.log_softmax(x, axis)",
    "logsumexp": "sp.logsumexp(x, axis, keepdims=keepdim) if x.ndim and axis not in ([], ()) else x",
    "xlogy": "sp.xlogy(x, y)",
    "sum": "np.sum(x, axis, keepdims=keepdim)",
    "mean": "np.mean(x, axis, keepdims=keepdim)",
    "prod": "np.prod(x, axis, keepdims=keepdim)",
    "max": "np.max(x, axis, keepdims=keepdim)",
    "min": "np.min(x, axis, keepdims=keepdim)",
    "any": "np.any(x, axis, keepdims=keepdim)",
    "all": "np.all(x, axis, keepdims=keepdim)",
    "count_nonzero": "np.count_nonzero(x, axis, keepdims=keepdim)",
    "argmax": "np.argmax(x, axis, keepdims=keepdim)",
    "argmin": "np.argmin(x, axis, keepdims=keepdim)",
    "var": "np.var(x, axis, ddof=correction, keepdims=keepdim)",
    "std": "np.std(x, axis, ddof=correction, keepdims=keepdim)",
    "cumsum": (
        "(np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse else np.cumsum(x, axis))"
        ".reshape(x.shape)"
    ),
    "cumprod": "np.cumprod(x, axis).reshape(x.shape)",
    "diff": "np.diff(x, axis=axis)",
    "argsort": ("np.argsort(x, axis, stable=True).reshape(x.shape) if not descending else None"),
    "searchsorted": "np.searchsorted(sorted, values, 'right' if right else 'left')",
    "linear": "x @ weight.T if bias is None else x @ weight.T + bias",
    "matmul_integer": "np.matmul(x.astype(np.int32), y.astype(np.int32))",
    "dot": "np.dot(x, y)",
    "vecdot": "np.vecdot(x, y, axis=axis)",
    "tensordot": "np.tensordot(x, y, (axes_x, axes_y))",
    "einsum": "np.einsum(equation, *operands)",
    "trace": "np.trace(x, offset, -2, -1)",
    "tril": "np.tril(x, diagonal)",
    "triu": "np.triu(x, diagonal)",
    "concat": "np.concatenate(tensors, axis)",
    "stack": "np.stack(tensors, axis)",
    "broadcast_tensors": "np.broadcast_arrays(*tensors)",
    "meshgrid": "np.meshgrid(*tensors, indexing=indexing)",
    "tile": "np.tile(x, repeats)",
    "repeat": "np.repeat(x, repeats, axis)",
    "roll": "np.roll(x, shift, axis)",
    "pad": (
        "np.pad(x, np.reshape(padding, (-1, 2)), mode, **({'constant_values': value} if mode "
        "== 'constant' else {}))"
    ),
    "reshape": "np.reshape(x, shape)",
    "view": "np.reshape(x, shape)",
    "transpose": "np.swapaxes(x, axis0, axis1)",
    "permute": "np.transpose(x, axes)",
    "movedim": "np.moveaxis(x, source, destination)",
    "squeeze": "np.squeeze(x, axis)",
    "unsqueeze": "np.expand_dims(x, axis)",
    "expand": "np.broadcast_to(x, shape)",
    "flip": "np.flip(x, axis)",
    "diagonal": "np.diagonal(x, offset, axis0, axis1)",
    "select": "np.take(x, index, axis)",
    "unbind": "np.unstack(x, axis=axis)",
    "index_select": "np.take(x, index, axis)",
    "index": "x[(slice(None),) * axis + tuple(indices)]",
    "gather": (
        "np.take_along_axis(x[tuple(slice(None) if i == axis % x.ndim else slice(e) for i, e "
        "in enumerate(index.shape))], index, axis)"
    ),
    "take_along_axis": (
        "np.take_along_axis(x, np.broadcast_to(index, [e if i == axis % x.ndim else max(e, "
        "n) if n else 0 for i, (e, n) in enumerate(zip(index.shape, x.shape))]), axis)"
    ),
    "nonzero": "np.argwhere(x)",
    "masked_select": (
        "np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[np.broadcast_to(mask, "
        "np.broadcast_shapes(x.shape, mask.shape))]"
    ),
    "embedding": "weight[indices]",
    "one_hot": "np.eye(count, dtype=np.int64)[indices]",
    "arange": "np.arange(start, stop, step)",
    "linspace": "np.linspace(start, stop, num, endpoint=endpoint)",
    "full": "np.full(shape, value)",
    "eye": "np.eye(rows, columns, offset)",
    "clone": "x",
    "contiguous": "x",
    "stop_gradient": "x",
    "zeros_like": "np.zeros(x.shape)",
    "ones_like": "np.ones(x.shape)",
    "conv2d": "conv2d(x, weight, bias, stride, padding, dilation, groups)",
    "conv_transpose2d": (
        "conv_transpose2d(x, weight, bias, stride, padding, output_padding, dilation, groups)"
    ),
    "layer_norm": "layer_norm(x, weight, bias, normalized_ndim, eps)",
    "rms_norm": "rms_norm(x, weight, eps)",
    "group_norm": "group_norm(x, groups, weight, bias, eps)",
    "batch_norm_inference": "batch_norm_inference(x, mean, var, weight, bias, eps)",
    "interpolate2d": "interpolate2d(x, size, mode, align_corners)",
    "sgd_update": "sgd_update(param, grad, lr, weight_decay)",
    "momentum_update": (
        "momentum_update(param, grad, velocity, lr, momentum, dampening, weight_decay, nesterov)"
    ),
    "adam_update": "adam_update(param, grad, m, v, step, lr, beta1, beta2, eps, weight_decay)",
    "rmsprop_update": "rmsprop_update(param, grad, v, lr, alpha, eps, weight_decay)",
    "adagrad_update": "adagrad_update(param, grad, v, lr, eps, weight_decay)",
    "mse_loss": "reduce_loss((x - target) ** 2, reduction)",
    "l1_loss": "reduce_loss(np.abs(x - target), reduction)",
}

_BINARY = set(
    "equal not_equal less less_equal greater greater_equal add subtract multiply divide "
    "floor_divide remainder fmod maximum minimum fmax fmin copysign hypot logaddexp logical_and "
    "logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift matmul outer".split()
)
for _name in _SAME:
    NUMPY.setdefault(_name, f"np.{_name}({_ARGUMENTS[2 if _name in _BINARY else 1]})")
