# SPDX-License-Identifier: Apache-2.0
"""Operators in PyTorch: expressions over the names of the signature; F is torch.nn.functional."""

TORCH = {
    "elu": "F.elu(x, alpha)",
    "selu": "F.selu(x)",
    "celu": "F.celu(x, alpha)",
    "silu": "F.silu(x)",
    "gelu": "F.gelu(x, approximate='tanh' if approximate else 'none')",
    "mish": "F.mish(x)",
    "softplus": "F.softplus(x, beta, 1e300)",
    "hardsigmoid": "F.hardsigmoid(x)",
    "hardswish": "F.hardswish(x)",
    "hardshrink": "F.hardshrink(x, threshold)",
    "softshrink": "F.softshrink(x, threshold)",
    "tanhshrink": "F.tanhshrink(x)",
    "log_sigmoid": "F.logsigmoid(x)",
    "sigmoid": "torch.sigmoid(x)",
    "glu": "F.glu(x, axis)",
    "softmax": "F.softmax(x, axis)",
    "log_softmax": "F.log_softmax(x, axis)",
    "logsumexp": "torch.logsumexp(x, tuple(range(x.ndim)) if axis is None else axis, keepdim)"
    " if axis != () else None",
    "lgamma": "torch.lgamma(x)",
    "digamma": "torch.digamma(x)",
    "logaddexp": "torch.logaddexp(x, y)",
    "norm": "torch.linalg.vector_norm(x, ord, axis, keepdim) if axis != () else None",
    "normalize": "F.normalize(x, p, axis, eps)",
    "conv1d": "F.conv1d(x, weight, bias, stride, padding, dilation, groups)",
    "conv2d": "F.conv2d(x, weight, bias, stride, padding, dilation, groups)",
    "conv_transpose2d": (
        "F.conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation)"
    ),
    "conv2d_input_grad": (
        "torch.nn.grad.conv2d_input(input_shape, weight, grad_out, stride, padding, "
        "dilation, groups)"
    ),
    "conv2d_weight_grad": (
        "torch.nn.grad.conv2d_weight(x, weight_shape, grad_out, stride, padding, dilation, groups)"
    ),
    "max_pool1d": "F.max_pool1d(x, kernel_size, stride, padding, dilation, ceil_mode)",
    "max_pool2d": "F.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode)",
    "max_pool2d_with_indices": (
        "F.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, True)"
    ),
    "avg_pool1d": "F.avg_pool1d(x, kernel_size, stride, padding, ceil_mode, count_include_pad)",
    "avg_pool2d": "F.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad)",
    "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(x, output_size)",
    "adaptive_max_pool2d": "F.adaptive_max_pool2d(x, output_size)",
    "interpolate2d": (
        "F.interpolate(x, size, mode=mode, align_corners=align_corners if mode != 'nearest' "
        "else None)"
    ),
    "interpolate": (
        "F.interpolate(x, size, mode=mode, align_corners=align_corners if 'linear' in mode or "
        "mode == 'bicubic' else None, antialias=antialias)"
    ),
    "grid_sample": "F.grid_sample(x, grid, mode, padding_mode, align_corners)",
    "layer_norm": "F.layer_norm(x, x.shape[x.ndim - normalized_ndim:], weight, bias, eps)",
    "rms_norm": "F.rms_norm(x, x.shape[-1:], weight, eps)",
    "group_norm": "F.group_norm(x, groups, weight, bias, eps)",
    "mse_loss": "F.mse_loss(x, target, reduction=reduction)",
    "l1_loss": "F.l1_loss(x, target, reduction=reduction)",
    "smooth_l1_loss": "F.smooth_l1_loss(x, target, reduction=reduction, beta=beta)",
    "huber_loss": "F.huber_loss(x, target, reduction=reduction, delta=delta)",
    "binary_cross_entropy": "F.binary_cross_entropy(x, target, weight, reduction=reduction)",
    "binary_cross_entropy_with_logits": (
        "F.binary_cross_entropy_with_logits(x, target, weight, pos_weight=pos_weight, "
        "reduction=reduction)"
    ),
    "nll_loss": (
        "F.nll_loss(x, target.long(), weight, ignore_index=ignore_index, reduction=reduction)"
    ),
    "cross_entropy": (
        "F.cross_entropy(x, target.long(), weight, ignore_index=ignore_index, "
        "reduction=reduction, label_smoothing=label_smoothing)"
    ),
    "kl_div": "F.kl_div(x, target, reduction=reduction, log_target=log_target)",
    "scaled_dot_product_attention": (
        "F.scaled_dot_product_attention(query, key, value, mask, 0.0, causal, scale=scale)"
    ),
    "batch_norm": (
        "(F.batch_norm(x, None, None, weight, bias, True, 0.1, eps), x.transpose(0, "
        "1).flatten(1).mean(1), x.transpose(0, 1).flatten(1).var(1, correction=0))"
    ),
    "cumsum": "torch.cumsum(x.flip(axis), axis).flip(axis) if reverse else torch.cumsum(x, axis)",
    "topk": "torch.topk(x, count, axis, largest).values",
    "sort": "torch.sort(x, stable=True, dim=axis, descending=descending).values",
    "argsort": "torch.argsort(x, axis, descending, stable=True)",
    "sort_with_indices": "tuple(torch.sort(x, stable=True, dim=axis, descending=descending))",
    "sliding_window": "x.unfold(axis, size, step) if dilation == 1 else None",
    "split": "torch.split(x, list(sizes) if isinstance(sizes, tuple) else sizes, axis)",
    "narrow": "torch.narrow(x, axis, start, length)",
    "flatten": "torch.flatten(x, start, stop)",
    "scatter": "x.scatter(axis, index, source)",
    "scatter_add": "x.scatter_add(axis, index, source)",
    "index_add": "x.index_add(axis, index % max(1, x.shape[axis]), source)",
    "index_put": (
        "x.index_put((slice(None),) * 0 + tuple(i.long() for i in indices), "
        "torch.as_tensor(value, dtype=x.dtype), accumulate) if axis == 0 else None"
    ),
    "masked_scatter": "x.masked_scatter(mask, source)",
    "std": "torch.std(x, axis, correction=correction, keepdim=keepdim) if axis != () else None",
    "lerp": "torch.lerp(x, y, weight)",
    "erfinv": "torch.erfinv(x)",
    "ndtri": "torch.special.ndtri(x)",
    "log_ndtr": "torch.special.log_ndtr(x)",
    "erfcx": "torch.special.erfcx(x)",
    "i0e": "torch.special.i0e(x)",
    "i1e": "torch.special.i1e(x)",
    "multigammaln": "torch.special.multigammaln(x, p) if (x > (p - 1) / 2).all() else None",
    "cummax": "tuple(torch.cummax(x, axis))",
    "cummin": "tuple(torch.cummin(x, axis))",
    "logcumsumexp": "torch.logcumsumexp(x, axis)",
    "kthvalue": "torch.kthvalue(x, k, axis, keepdim).values",
    "scatter_reduce": (
        "x.scatter_reduce(axis, index % max(1, x.shape[axis]), source, reduce, "
        "include_self=include_self) if x.ndim and x.dtype.is_floating_point else None"
    ),
    "gather_nd": "x[tuple(index.movedim(-1, 0))]",
    "diagonal_scatter": "torch.diagonal_scatter(x, source, offset, axis0, axis1)",
    "select_scatter": "torch.select_scatter(x, source, axis, index)",
    "slice_scatter": "torch.slice_scatter(x, source, axis, start, stop, step)",
    "frexp": "tuple(torch.frexp(x))",
    "ldexp": "torch.ldexp(x, exponent)",
}
