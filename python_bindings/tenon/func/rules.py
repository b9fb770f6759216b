# SPDX-License-Identifier: Apache-2.0
"""How operators are called for a whole batch.

A rule gets the arguments by the operator's own names. Those in `call.batched` have the batch as axis 0, the
others are shared by all samples. It returns the result, or results, with the batch as axis 0; NotImplemented
where it does not cover the call. Then, and for operators without a rule, the operator is called once for
each sample and the results are stacked: the same values, at the cost of as many calls.
"""

from __future__ import annotations

import functools
import string
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tenon import _core
from tenon._core import Tensor
from tenon._schema import parameters
from tenon.func.batched import Batched

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}
# Operators as compositions of others, for what their rules do not cover.
COMPOSED: dict[str, Callable[..., Any]] = {}
_loops: Counter[str] = Counter()


def loops() -> dict[str, int]:
    """How often each operator was called sample by sample in this program, for want of a rule."""
    return dict(_loops)


def _operator(name: str) -> Any:
    return _core.operator(name)


@dataclass
class Call:
    """A call of an operator for the samples of one vmap()."""

    op: Any
    args: dict[str, Any]  # by parameter; what was left out has its default
    batched: set[str]
    size: int

    def rank(self, name: str) -> int:
        """Number of axes of one sample of a tensor argument."""
        x = self.args[name]
        return x.ndim - (name in self.batched) if isinstance(x, Tensor) else 0

    def changed(self, **changes: Any) -> Any:
        """The operator's result for these arguments in place of its own."""
        return self.op(**{**self.args, **changes})

    def repeated(self, name: str) -> Tensor:
        """A tensor argument with its batch, also where all samples share it."""
        x = self.args[name]
        if name in self.batched:
            return x
        return _operator("expand")(_operator("unsqueeze")(x, [0]), (self.size, *x.shape))

    def only(self, *names: str) -> bool:
        """Whether no tensor argument but these is batched."""
        return self.batched <= set(names)


# -- calling ---------------------------------------------------------------------------------------


_SPELLINGS = {"keepdims": "keepdim", "dim": "axis", "ddof": "correction"}


def _bind(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments by parameter; None for a call that the operator itself has to judge."""
    known = parameters(op.schema)
    names = [each.name for each in known]
    bound = {each.name: each.default for each in known}
    if len(args) > len(names):  # f(x, 2, 3) for f(x, (2, 3))
        last = len(names) - 1
        if not known[-1].kind.startswith("int["):
            return None
        args = (*args[:last], tuple(args[last:]))
    bound.update(zip(names, args))
    for name, value in kwargs.items():
        own = name if name in bound else _SPELLINGS.get(name)
        if own not in bound:
            return None
        bound[own] = value
    return bound


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _level(value: Any) -> int:
    return max((x.level for x in _items(value) if isinstance(x, Batched)), default=0)


def _of_level(value: Any, level: int, get: Callable[[Batched], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_of_level(each, level, get) for each in value]
    return get(value) if isinstance(value, Batched) and value.level == level else value


def _wrap(result: Any, level: int) -> Any:
    if isinstance(result, Tensor):
        return Batched(result, level)
    if isinstance(result, list):
        return [Batched(each, level) for each in result]
    items = [Batched(each, level) if isinstance(each, Tensor) else each for each in result]
    return tuple(items) if type(result) is tuple else type(result)(items)


def call_operator(op: Any, *args: Any, **kwargs: Any) -> Any:
    """`op(*args, **kwargs)`, where some tensors are batched: called for every operator that meets one."""
    name = op.__name__
    if name.endswith("_"):
        target = args[0]
        if not isinstance(target, Batched):
            raise RuntimeError(
                f"vmap: {name}() would write a batch into one tensor that all samples share; use "
                f"{name[:-1]}(), which gives a new one"
            )
        return target.copy_(_operator(name[:-1])(*args, **kwargs))
    if kwargs.get("out") is not None:
        raise RuntimeError(f"vmap: {name}() cannot write a batch into out=; use the result")
    kwargs.pop("out", None)
    level = max(map(_level, (*args, *kwargs.values())))
    bound = _bind(op, args, kwargs)
    if bound is not None:
        batched = {key for key, value in bound.items() if _level(value) == level}
        first = next(x for key in batched for x in _items(bound[key]) if _level(x) == level)
        physical = {key: _of_level(v, level, lambda x: x.physical) for key, v in bound.items()}
        rule = RULES.get(name)
        if rule is not None:
            call = Call(op, physical, batched, first.physical.shape[0])
            if name in _LISTS:
                call.args["is_batched"] = [_level(x) == level for x in bound[_LISTS[name]]]
            result = rule(call)
            if result is not NotImplemented:
                return _wrap(result, level)
        if name in COMPOSED:
            result = COMPOSED[name](**bound)
            if result is not NotImplemented:
                return result
    return _wrap(_loop(op, args, kwargs, level), level)


def _sample(i: int, x: Batched) -> Tensor:
    return x.physical[i]


def _loop(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int) -> Any:
    """The operator called for one sample after the other."""
    _loops[op.__name__] += 1
    sizes = [
        x.physical.shape[0]
        for value in (*args, *kwargs.values())
        for x in _items(value)
        if _level(x) == level
    ]
    if sizes[0] == 0:
        raise ValueError(
            f"vmap: expected a batch of at least one sample, as {op.__name__}() has no rule for a "
            f"whole batch, got an empty one"
        )
    results = []
    for i in range(sizes[0]):
        get = functools.partial(_sample, i)
        sample = [_of_level(each, level, get) for each in args]
        named = {key: _of_level(value, level, get) for key, value in kwargs.items()}
        results.append(op(*sample, **named))
    stack = _operator("stack")
    if isinstance(results[0], Tensor):
        return stack(results, 0)
    parts = [stack(list(part), 0) for part in zip(*results, strict=True)]
    kind = type(results[0])
    return kind(parts) if kind is not list else parts


# -- rules -----------------------------------------------------------------------------------------


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule of these operators."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return add


def shifted(axis: int, rank: int) -> int:
    """An axis of a sample of `rank` axes as one of the batch."""
    if not -rank <= axis < rank:
        raise IndexError(f"vmap: expected an axis of a sample of {rank} axes, got {axis}")
    return axis % rank + 1


def aligned(call: Call, name: str, rank: int) -> Any:
    """A batched argument whose samples have axes of length 1 in front, so that there are `rank`."""
    x = call.args[name]
    missing = rank - call.rank(name)
    if name not in call.batched or missing <= 0:
        return x
    return x.reshape((x.shape[0], *(1,) * missing, *x.shape[1:]))


@rule(
    *"""abs acos acosh add angle asin asinh atan atan2 atanh bernoulli bitwise_and bitwise_invert
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor cast cbrt ceil celu clip clone conj
    contiguous copysign cos cosh deg2rad digamma divide dropout elu entr equal erf erfc exp exp2 expm1
    floor floor_divide fmax fmin fmod frac gelu greater greater_equal hardshrink hardsigmoid hardswish
    hardtanh heaviside hypot imag isclose isfinite isinf isnan isneginf isposinf leaky_relu lerp less
    less_equal lgamma log log10 log1p log2 log_sigmoid logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logit masked_fill maximum minimum mish multiply nan_to_num negative nextafter
    normal_like not_equal ones_like positive pow rad2deg real reciprocal relu relu6 remainder round rsqrt
    selu sigmoid sign signbit silu sin sinc sinh softplus softshrink softsign sqrt square stop_gradient
    subtract tan tanh tanhshrink threshold trunc uniform_like where xlog1py xlogy zeros_like full_like
    empty_like addcmul addcdiv""".split()
)
def elementwise(call: Call) -> Any:
    tensors = [name for name, value in call.args.items() if isinstance(value, Tensor)]
    rank = max(map(call.rank, tensors))
    return call.changed(**{name: aligned(call, name, rank) for name in tensors})


def _reduction_axes(axis: Any, rank: int) -> list[int]:
    axes = range(rank) if axis is None else _items(axis)
    return [shifted(each, rank) for each in axes]


@rule(*"sum nansum nanmean mean prod max min any all count_nonzero var std logsumexp norm".split())
def reduction(call: Call) -> Any:
    x, rank, axis = call.args["x"], call.rank("x"), call.args["axis"]
    if rank == 0:  # no axes would mean every axis, that of the batch as well
        if axis is not None and _items(axis):
            return NotImplemented
        return call.changed(x=x.unsqueeze([1]), axis=[1], keepdim=False)
    if axis is not None and not _items(axis):
        return NotImplemented
    return call.changed(axis=_reduction_axes(axis, rank))


@rule("argmax", "argmin")
def arg_reduction(call: Call) -> Any:
    x, rank, axis = call.args["x"], call.rank("x"), call.args["axis"]
    if axis is not None:
        return call.changed(axis=shifted(axis, rank))
    if call.args["keepdim"]:
        return NotImplemented
    return call.changed(x=x.reshape((x.shape[0], -1 if x.size else 0)), axis=1)


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


# -- rules of views and shapes -----------------------------------------------------------------------


@rule("reshape", "view")
def reshape(call: Call) -> Any:
    x = call.args["x"]
    shape = _items(call.args["shape"])
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
    order = reversed(range(rank)) if axes is None else _items(axes)
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
        [shifted(axis, rank) for axis in _items(call.args[name])]
        for name in ("source", "destination")
    )
    return call.changed(source=source, destination=destination)


@rule("unsqueeze")
def unsqueeze(call: Call) -> Any:
    axes = _items(call.args["axis"])
    rank = call.rank("x") + len(axes)
    return call.changed(axis=[shifted(axis, rank) for axis in axes])


@rule("squeeze")
def squeeze(call: Call) -> Any:
    x, rank, axis = call.args["x"], call.rank("x"), call.args["axis"]
    if axis is None:
        axes = [i for i in range(1, x.ndim) if x.shape[i] == 1]
    else:
        axes = [shifted(each, rank) for each in _items(axis)]
    return call.changed(axis=axes) if axes else x


@rule("flip")
def flip(call: Call) -> Any:
    axes = _reduction_axes(call.args["axis"], call.rank("x"))
    return call.changed(axis=axes) if axes else call.args["x"]


@rule("roll")
def roll(call: Call) -> Any:
    if call.args["axis"] is None:
        return NotImplemented
    return call.changed(axis=_reduction_axes(call.args["axis"], call.rank("x")))


@rule("expand")
def expand(call: Call) -> Any:
    shape = _items(call.args["shape"])
    x = aligned(call, "x", len(shape))
    return call.changed(x=x, shape=[x.shape[0], *shape])


@rule("select", "narrow", "unbind", "split", "repeat", "sliding_window")
def one_axis(call: Call) -> Any:
    if call.args["axis"] is None:
        return NotImplemented
    return call.changed(axis=shifted(call.args["axis"], call.rank("x")))


@rule("slice")
def slice_(call: Call) -> Any:
    return call.changed(axes=_reduction_axes(_items(call.args["axes"]), call.rank("x")))


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
    repeats, rank = _items(call.args["repeats"]), call.rank("x")
    repeats = [1] * (rank - len(repeats)) + repeats
    return call.changed(x=aligned(call, "x", len(repeats)), repeats=[1, *repeats])


@rule("pad")
def pad(call: Call) -> Any:
    padding = _items(call.args["padding"])
    if len(padding) != 2 * call.rank("x"):
        return NotImplemented
    return call.changed(padding=[0, 0, *padding])


# Operators of a list of tensors, and that parameter.
_LISTS = {"concat": "tensors", "stack": "tensors", "index": "indices", "einsum": "operands"}


@rule("concat", "stack")
def join(call: Call) -> Any:
    is_batched = call.args.pop("is_batched")
    tensors = [
        x if mine else _operator("expand")(_operator("unsqueeze")(x, [0]), (call.size, *x.shape))
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
    return _operator("movedim")(call.changed(axis=axis), axis, 0)


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
        return _operator("movedim")(call.changed(indices=together), axis, 0)
    if axis != 0:
        return NotImplemented
    device = together[0].device
    samples = _operator("arange")(call.size, dtype="int64", device=device)
    return call.changed(indices=[samples.reshape((-1, *(1,) * rank)), *together])


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
    return _operator("vecdot")(call.args["x"], call.args["y"], -1)


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
            _operator("matmul"),
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


def composed(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: these operators in terms of others, which have rules."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSED.update(dict.fromkeys(names, function))
        return function

    return add


@composed("addmm", "addmv", "baddbmm")
def add_product(x: Any, beta: Any, alpha: Any, a: Any, b: Any = None, v: Any = None) -> Any:
    return beta * x + alpha * _operator("matmul")(a, v if b is None else b)


@composed("addr")
def add_outer(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    return beta * x + alpha * _operator("outer")(a, b)


@composed("trace")
def trace(x: Any, offset: int) -> Any:
    if x.ndim != 2:
        return NotImplemented
    return _operator("sum")(_operator("diagonal")(x, offset, 0, 1), [0])


@composed("layer_norm")
def scaled_layer_norm(x: Any, weight: Any, bias: Any, normalized_ndim: int, eps: float) -> Any:
    result = _operator("layer_norm")(x, None, None, normalized_ndim, eps)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@composed("rms_norm")
def scaled_rms_norm(x: Any, weight: Any, eps: float) -> Any:
    return _operator("rms_norm")(x, None, eps) * weight


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
    if not call.only("x") or x.ndim < 3 or x.size == 0:
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
    images = _operator("movedim")(x, 0, 1).reshape((x.shape[1], -1, *x.shape[3:]))
    kernels = weight.reshape((-1, *weight.shape[2:]))
    biases = None if bias is None else call.repeated("bias").reshape(-1)
    groups = call.args["groups"] * call.size
    result = call.changed(x=images, weight=kernels, bias=biases, groups=groups)
    result = result.reshape((x.shape[1], call.size, -1, *result.shape[2:]))
    return _operator("movedim")(result, 1, 0)


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
    return _operator(reduction_name)(result, list(range(1, result.ndim)))


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
    total = _operator("sum")(result, [1])
    if reduction_name == "sum":
        return total
    counted = _operator("count_nonzero")(target != call.args["ignore_index"], [1])
    return total / counted.to(total.dtype)


@rule(
    *"det slogdet logdet inv pinv cholesky cholesky_inverse qr svd svdvals eigh eigvalsh eig eigvals "
    "matrix_exp matrix_power matrix_norm matrix_rank lu lu_factor".split()
)
def of_matrices(call: Call) -> Any:
    return call.changed() if call.rank("x") >= 2 else NotImplemented


@rule("solve")
def solve(call: Call) -> Any:
    if call.rank("a") != 2 or call.rank("b") not in (1, 2):
        return NotImplemented
    a, b = call.repeated("a"), call.repeated("b")
    if call.rank("b") == 2:
        return call.changed(a=a, b=b)
    return call.changed(a=a, b=b.unsqueeze([-1])).squeeze([-1])
