# SPDX-License-Identifier: Apache-2.0
"""Rules of products, layers, losses and linear algebra."""

from __future__ import annotations

import string
from typing import Any

from tenon._core import operator
from tenon.func.rules import Call, composed, rule

# -- rules of products -------------------------------------------------------------------------------


@rule("matmul")
def matmul(call: Call) -> Any:
    x, y = call.args["x"], call.args["y"]
    rank_x, rank_y = call.rank("x"), call.rank("y")
    if rank_x == 0 or rank_y == 0:
        return NotImplemented
    if "y" not in call.batched and rank_y <= 2:
        return call.changed()
    parts = []
    for name, rank, axis in (("x", rank_x, -2), ("y", rank_y, -1)):
        part = call.args[name]
        if name not in call.batched:
            part = part.unsqueeze([0])
        parts.append(part.unsqueeze([axis]) if rank == 1 else part)
    rank = max(part.ndim for part in parts)
    x, y = (
        part.reshape((part.shape[0], *(1,) * (rank - part.ndim), *part.shape[1:])) for part in parts
    )
    result = call.changed(x=x, y=y)
    if rank_y == 1:
        result = result.squeeze([-1])
    return result.squeeze([-2 if rank_y > 1 else -1]) if rank_x == 1 else result


@rule("dot", "vecdot", "inner")
def dot(call: Call) -> Any:
    if call.rank("x") != 1 or call.rank("y") != 1:
        return NotImplemented
    return operator("vecdot")(call.args["x"], call.args["y"], -1)


@rule("outer")
def outer(call: Call) -> Any:
    x, y = call.args["x"], call.args["y"]
    return x.unsqueeze([-1]) * y.unsqueeze([-2])


@rule("linear")
def linear(call: Call) -> Any:
    weight, bias = call.args["weight"], call.args["bias"]
    if call.only("x"):
        return call.changed()
    product = matmul(
        Call(
            operator("matmul"),
            {"x": call.args["x"], "y": weight.mT},
            call.batched & {"x"} | ({"y"} if "weight" in call.batched else set()),
            call.size,
        )
    )
    if product is NotImplemented or bias is None:
        return product
    if not call.batched & {"x", "weight"}:
        product = call.args["x"] @ weight.mT
        product = product.unsqueeze([0])
    if "bias" in call.batched:
        bias = bias.reshape((bias.shape[0], *(1,) * (product.ndim - 2), bias.shape[1]))
    return product + bias


@rule("einsum")
def einsum(call: Call) -> Any:
    """The batch is one more letter."""
    is_batched, equation = call.args.pop("is_batched"), call.args["equation"].replace(" ", "")
    if "..." in equation or "->" not in equation:
        return NotImplemented
    inputs, _, output = equation.partition("->")
    letter = next(each for each in string.ascii_letters if each not in equation)
    parts = zip(inputs.split(","), is_batched, strict=True)
    batched = ",".join(letter + part if mine else part for part, mine in parts)
    return call.op(f"{batched}->{letter}{output}", call.args["operands"])


def _scaled_sum(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        return NotImplemented  # factors are checked there
    return (operator("zeros_like")(x) if beta == 0 else beta * x) + alpha * product


@composed("addmm", "addmv", "baddbmm")
def add_product(x: Any, beta: Any, alpha: Any, a: Any, b: Any = None, v: Any = None) -> Any:
    return _scaled_sum(x, operator("matmul")(a, v if b is None else b), beta, alpha)


@composed("addr")
def add_outer(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    return _scaled_sum(x, operator("outer")(a, b), beta, alpha)


@composed("trace")
def trace(x: Any, offset: int) -> Any:
    if x.ndim != 2:
        return NotImplemented
    return operator("sum")(operator("diagonal")(x, offset, 0, 1), [0])


@composed("layer_norm")
def scaled_layer_norm(x: Any, weight: Any, bias: Any, normalized_ndim: int, eps: float) -> Any:
    result = operator("layer_norm")(x, None, None, normalized_ndim, eps)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@composed("rms_norm")
def scaled_rms_norm(x: Any, weight: Any, eps: float) -> Any:
    return operator("rms_norm")(x, None, eps) * weight


# -- rules of layers ---------------------------------------------------------------------------------


@rule("layer_norm", "rms_norm")
def norm_of_layer(call: Call) -> Any:
    return call.changed() if call.only("x") else NotImplemented


@rule(
    *"max_pool2d avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d max_pool1d avg_pool1d "
    "pixel_shuffle pixel_unshuffle interpolate2d conv_transpose2d group_norm channel_shuffle "
    "batch_norm_inference".split()
)
def of_images(call: Call) -> Any:
    """Operators of batches of images: the samples of vmap() become more of the batch."""
    x = call.args["x"]
    if not call.only("x") or x.ndim < 3 or x.numel() == 0:
        return NotImplemented
    result = call.changed(x=x.reshape((-1, *x.shape[2:])))
    return result.reshape((*x.shape[:2], *result.shape[1:]))


@rule("conv1d", "conv2d")
def conv(call: Call) -> Any:
    x, weight, bias = (call.args[name] for name in ("x", "weight", "bias"))
    if call.only("x"):
        return of_images(call)
    if call.rank("x") != call.rank("weight") or call.size == 0:
        return NotImplemented
    # Each sample is a group: its channels meet its own kernels alone.
    x, weight = call.repeated("x"), call.repeated("weight")
    channels, filters = call.size * x.shape[2], call.size * weight.shape[1]
    images = operator("movedim")(x, 0, 1).reshape((x.shape[1], channels, *x.shape[3:]))
    kernels = weight.reshape((filters, *weight.shape[2:]))
    biases = None if bias is None else call.repeated("bias").reshape(-1)
    groups = call.args["groups"] * call.size
    result = call.changed(x=images, weight=kernels, bias=biases, groups=groups)
    result = result.reshape((x.shape[1], call.size, weight.shape[1], *result.shape[2:]))
    return operator("movedim")(result, 1, 0)


@rule(
    *"mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits kl_div".split()
)
def loss(call: Call) -> Any:
    reduction_name = call.args["reduction"]
    known = reduction_name in ("none", "mean", "sum")
    if call.rank("x") != call.rank("target") or not call.only("x", "target") or not known:
        return NotImplemented
    result = call.changed(x=call.repeated("x"), target=call.repeated("target"), reduction="none")
    if reduction_name == "none":
        return result
    if result.ndim == 1:
        return result
    return operator(reduction_name)(result, list(range(1, result.ndim)))


@rule("cross_entropy", "nll_loss", "softmax_cross_entropy")
def classification_loss(call: Call) -> Any:
    """A sample with targets of its own: those of all samples at once, and then the mean of each."""
    x, target = call.repeated("x"), call.repeated("target")
    if (
        call.rank("x") != 2
        or call.rank("target") != 1
        or call.args.get("weight") is not None
        or not target.dtype.is_integer
    ):
        return NotImplemented
    reduction_name = call.args["reduction"]
    result = call.changed(
        x=x.reshape((-1, x.shape[2])), target=target.reshape(-1), reduction="none"
    ).reshape(tuple(target.shape))
    if reduction_name == "none":
        return result
    total = operator("sum")(result, [1])
    if reduction_name == "sum":
        return total
    counted = operator("count_nonzero")(target != call.args["ignore_index"], [1])
    return total / counted.to(total.dtype)


@rule(
    *"det slogdet logdet inv pinv cholesky qr svd svdvals eigh eigvalsh eig eigvals "
    "matrix_exp matrix_power matrix_norm matrix_rank lu lu_factor".split()
)
def of_matrices(call: Call) -> Any:
    return call.changed() if call.rank("x") >= 2 else NotImplemented


@rule("cholesky_inverse")
def of_factors(call: Call) -> Any:
    return call.changed() if call.rank("factor") >= 2 else NotImplemented


@rule("solve")
def solve(call: Call) -> Any:
    if call.rank("a") != 2 or call.rank("b") not in (1, 2):
        return NotImplemented
    a, b = call.repeated("a"), call.repeated("b")
    if call.rank("b") == 2:
        return call.changed(a=a, b=b)
    return call.changed(a=a, b=b.unsqueeze([-1])).squeeze([-1])
