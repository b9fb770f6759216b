# SPDX-License-Identifier: Apache-2.0
"""Rules of elementwise operators, reductions, views and indices."""

from __future__ import annotations

from typing import Any

from tenon._core import Tensor, operator
from tenon.func.rules import Call, aligned, items, reduction_axes, rule, shifted


@rule(
    *"""abs acos acosh add angle asin asinh atan atan2 atanh bernoulli bitcast bitwise_and bitwise_invert
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor cast cbrt ceil celu clip clone
    conj contiguous copysign cos cosh deg2rad digamma divide dropout elu entr equal erf erfc exp
    exp2 expm1 floor floor_divide fmax fmin fmod frac gelu greater greater_equal hardshrink
    hardsigmoid hardswish hardtanh heaviside hypot imag isclose isfinite isinf isnan isneginf
    isposinf leaky_relu lerp less less_equal lgamma log log10 log1p log2 log_sigmoid logaddexp
    logaddexp2 logical_and logical_not logical_or logical_xor logit masked_fill maximum minimum
    mish multiply nan_to_num negative nextafter normal_like not_equal ones_like positive pow
    rad2deg real reciprocal relu relu6 remainder round rsqrt selu sigmoid sign signbit silu sin
    sinc sinh softplus softshrink softsign sqrt square stop_gradient subtract tan tanh tanhshrink
    threshold trunc uniform_like where xlog1py xlogy zeros_like full_like empty_like addcmul
    addcdiv""".split()
)
def elementwise(call: Call) -> Any:
    tensors = [name for name, value in call.args.items() if isinstance(value, Tensor)]
    rank = max(map(call.rank, tensors))
    return call.changed(**{name: aligned(call, name, rank) for name in tensors})


@rule(*"sum nansum nanmean mean prod max min any all count_nonzero var std logsumexp norm".split())
def reduction(call: Call) -> Any:
    x, rank, axis = call.args["x"], call.rank("x"), call.args["axis"]
    if rank == 0:  # no axes would mean every axis, that of the batch as well
        if axis is not None and items(axis):
            return NotImplemented
        return call.changed(x=x.unsqueeze([1]), axis=[1], keepdim=False)
    if axis is not None and not items(axis):
        return NotImplemented
    return call.changed(axis=reduction_axes(axis, rank))


@rule("argmax", "argmin")
def arg_reduction(call: Call) -> Any:
    x, rank, axis = call.args["x"], call.rank("x"), call.args["axis"]
    if axis is not None:
        return call.changed(axis=shifted(axis, rank))
    if call.args["keepdim"]:
        return NotImplemented
    return call.changed(x=x.reshape((x.shape[0], -1 if x.numel() else 0)), axis=1)


@rule(
    *"softmax log_softmax cumsum cumprod sort sort_with_indices argsort topk diff glu "
    "trapezoid".split()
)
def along_axis(call: Call) -> Any:
    name = "y" if "y" in call.args else "x"
    return call.changed(axis=shifted(call.args["axis"], call.rank(name)))


@rule("normalize", "cosine_similarity", "pairwise_distance")
def by_parts(call: Call) -> Any:
    if "axis" not in call.args or len(call.batched) != sum(n in call.args for n in ("x", "y")):
        return NotImplemented
    return call.changed(axis=shifted(call.args["axis"], call.rank("x")))


@rule("pack", "unpack")
def last_axis(call: Call) -> Any:
    # Of samples without axes the batch's axis would be the last one.
    return call.changed() if call.rank("x") > 0 else NotImplemented


# -- rules of views and shapes -----------------------------------------------------------------------


@rule("reshape", "view")
def reshape(call: Call) -> Any:
    x = call.args["x"]
    shape = items(call.args["shape"])
    if x.shape[0] == 0 and -1 in shape:
        return NotImplemented
    return call.changed(shape=[x.shape[0], *shape])


@rule("flatten")
def flatten(call: Call) -> Any:
    x, rank = call.args["x"], call.rank("x")
    if rank == 0:
        return x.reshape((x.shape[0], 1))
    return call.changed(
        start=shifted(call.args["start"], rank), stop=shifted(call.args["stop"], rank)
    )


@rule("permute")
def permute(call: Call) -> Any:
    rank, axes = call.rank("x"), call.args["axes"]
    order = reversed(range(rank)) if axes is None else items(axes)
    return call.changed(axes=[0, *(shifted(axis, rank) for axis in order)])


@rule("transpose", "diagonal", "rot90")
def two_axes(call: Call) -> Any:
    rank = call.rank("x")
    axes = [shifted(call.args[name], rank) for name in ("axis0", "axis1")]
    return call.changed(axis0=axes[0], axis1=axes[1])


@rule("movedim")
def movedim(call: Call) -> Any:
    rank = call.rank("x")
    source, destination = (
        [shifted(axis, rank) for axis in items(call.args[name])]
        for name in ("source", "destination")
    )
    return call.changed(source=source, destination=destination)


@rule("unsqueeze")
def unsqueeze(call: Call) -> Any:
    axes = items(call.args["axis"])
    rank = call.rank("x") + len(axes)
    return call.changed(axis=[shifted(axis, rank) for axis in axes])


@rule("squeeze")
def squeeze(call: Call) -> Any:
    x, rank, axis = call.args["x"], call.rank("x"), call.args["axis"]
    if axis is None:
        axes = [i for i in range(1, x.ndim) if x.shape[i] == 1]
    else:
        axes = [shifted(each, rank) for each in items(axis)]
    return call.changed(axis=axes) if axes else x


@rule("flip")
def flip(call: Call) -> Any:
    axes = reduction_axes(call.args["axis"], call.rank("x"))
    return call.changed(axis=axes) if axes else call.args["x"]


@rule("roll")
def roll(call: Call) -> Any:
    if call.args["axis"] is None:
        return NotImplemented
    return call.changed(axis=reduction_axes(call.args["axis"], call.rank("x")))


@rule("expand")
def expand(call: Call) -> Any:
    shape = items(call.args["shape"])
    x = aligned(call, "x", len(shape))
    return call.changed(x=x, shape=[x.shape[0], *shape])


@rule("select", "narrow", "unbind", "split", "repeat", "sliding_window")
def one_axis(call: Call) -> Any:
    if call.args["axis"] is None:
        return NotImplemented
    return call.changed(axis=shifted(call.args["axis"], call.rank("x")))


@rule("slice")
def slice_(call: Call) -> Any:
    return call.changed(axes=reduction_axes(items(call.args["axes"]), call.rank("x")))


@rule("tril", "triu")
def last_two(call: Call) -> Any:
    return call.changed() if call.rank("x") >= 2 else NotImplemented


@rule("scaled_dot_product_attention")
def attention(call: Call) -> Any:
    """Axes in front of the last two are batches already."""
    names = ("query", "key", "value")
    ranks = {call.rank(name) for name in names}
    if len(ranks) != 1 or not call.only(*names):
        return NotImplemented
    return call.changed(**{name: call.repeated(name) for name in names})


@rule("tile")
def tile(call: Call) -> Any:
    repeats, rank = items(call.args["repeats"]), call.rank("x")
    repeats = [1] * (rank - len(repeats)) + repeats
    return call.changed(x=aligned(call, "x", len(repeats)), repeats=[1, *repeats])


@rule("pad")
def pad(call: Call) -> Any:
    padding = items(call.args["padding"])
    if len(padding) != 2 * call.rank("x"):
        return NotImplemented
    return call.changed(padding=[0, 0, *padding])


@rule("concat", "stack")
def join(call: Call) -> Any:
    is_batched = call.args.pop("is_batched")
    tensors = [
        x if mine else operator("expand")(operator("unsqueeze")(x, [0]), (call.size, *x.shape))
        for x, mine in zip(call.args["tensors"], is_batched, strict=True)
    ]
    rank = tensors[0].ndim - 1 + (call.op.__name__ == "stack")
    return call.changed(tensors=tensors, axis=shifted(call.args["axis"], rank))


# -- rules of indices --------------------------------------------------------------------------------


@rule("gather", "take_along_axis")
def gather(call: Call) -> Any:
    axis = shifted(call.args["axis"], call.rank("x"))
    return call.changed(x=call.repeated("x"), index=call.repeated("index"), axis=axis)


@rule("scatter", "scatter_add")
def scatter(call: Call) -> Any:
    axis = shifted(call.args["axis"], call.rank("x"))
    source = call.args["source"]
    if not isinstance(source, Tensor) or call.rank("source") != call.rank("index"):
        return NotImplemented
    names = ("x", "index", "source")
    return call.changed(axis=axis, **{name: call.repeated(name) for name in names})


@rule("embedding")
def embedding(call: Call) -> Any:
    return call.changed() if call.only("indices") else NotImplemented


@rule("index_select")
def index_select(call: Call) -> Any:
    axis, rank = call.args["axis"], call.rank("x")
    if call.only("x"):
        return call.changed(axis=shifted(axis, rank))
    if not call.only("index"):
        return NotImplemented
    axis %= rank
    return operator("movedim")(call.changed(axis=axis), axis, 0)


@rule("index")
def index(call: Call) -> Any:
    is_batched, axis = call.args.pop("is_batched"), call.args["axis"]
    indices = call.args["indices"]
    rank = max(x.ndim - mine for x, mine in zip(indices, is_batched, strict=True))
    together = [
        x.reshape((x.shape[0], *(1,) * (rank - x.ndim + 1), *x.shape[1:])) if mine else x
        for x, mine in zip(indices, is_batched, strict=True)
    ]
    if "x" not in call.batched:
        return operator("movedim")(call.changed(indices=together), axis, 0)
    if axis != 0:
        return NotImplemented
    device = together[0].device
    samples = operator("arange")(call.size, dtype="int64", device=device)
    return call.changed(indices=[samples.reshape((-1, *(1,) * rank)), *together])
