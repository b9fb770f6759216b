# SPDX-License-Identifier: Apache-2.0
"""Products of matrices, convolutions, pools, normalisations, attention and recurrence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenon.onnx.exporter import messages
from tenon.onnx.exporter.converters import exports
from tenon.onnx.exporter.elementwise import Elements
from tenon.onnx.exporter.program_text import Step, Value
from tenon.onnx.exporter.writer import Refusal, Writer, axis_of


@exports("matmul")
def _matmul(g: Writer, step: Step) -> str:
    dtype = step.results[0].dtype
    return g.node("MatMul", *(g.operand(each, dtype) for each in step.operands[:2]))


@exports("linear")
def _linear(g: Writer, step: Step) -> str:
    x, weight, bias = (step.given(i, name) for i, name in enumerate(("x", "weight", "bias")))
    if len(x.shape) == 2:
        operands = [g.name(each) for each in (x, weight, bias) if each is not None]
        return g.node("Gemm", *operands, transB=1)
    product = g.node("MatMul", g.name(x), g.node("Transpose", g.name(weight), perm=[1, 0]))
    return product if bias is None else g.node("Add", product, g.name(bias))


def _pair(numbers: Any) -> list[int]:
    listed = list(numbers)
    return listed * 2 if len(listed) == 1 else listed


@exports("conv2d")
def _conv2d(g: Writer, step: Step) -> str:
    x, weight, bias = (step.given(i, name) for i, name in enumerate(("x", "weight", "bias")))
    padding = _pair(step.given(4, "padding", [0, 0]))
    operands = [g.name(each) for each in (x, weight, bias) if each is not None]
    return g.node(
        "Conv",
        *operands,
        kernel_shape=list(weight.shape[2:]),
        strides=_pair(step.given(3, "stride", [1, 1])),
        pads=padding * 2,
        dilations=_pair(step.given(5, "dilation", [1, 1])),
        group=step.given(6, "groups", 1),
    )


@exports("conv_transpose2d")
def _conv_transpose2d(g: Writer, step: Step) -> str:
    x, weight, bias = (step.given(i, name) for i, name in enumerate(("x", "weight", "bias")))
    operands = [g.name(each) for each in (x, weight, bias) if each is not None]
    return g.node(
        "ConvTranspose",
        *operands,
        kernel_shape=list(weight.shape[2:]),
        strides=_pair(step.given(3, "stride", [1, 1])),
        pads=_pair(step.given(4, "padding", [0, 0])) * 2,
        output_padding=_pair(step.given(5, "output_padding", [0, 0])),
        dilations=_pair(step.given(6, "dilation", [1, 1])),
        group=step.given(7, "groups", 1),
    )


@exports("conv2d_input_grad")
def _conv2d_input_grad(g: Writer, step: Step) -> str:
    """What conv_transpose2d is made of: the sizes that the stride leaves open follow from the input's shape."""
    grad, weight = step.operands[:2]
    stride = _pair(step.given(3, "stride", [1, 1]))
    padding = _pair(step.given(4, "padding", [0, 0]))
    dilation = _pair(step.given(5, "dilation", [1, 1]))
    extra = []
    for i in range(2):
        wanted, size = step.results[0].shape[2 + i], grad.shape[2 + i]
        if not isinstance(wanted, int) or not isinstance(size, int):
            raise Refusal("of images whose size is open; export for fixed sizes of images")
        least = (
            (size - 1) * stride[i] - 2 * padding[i] + dilation[i] * (weight.shape[2 + i] - 1) + 1
        )
        extra.append(wanted - least)
    return g.node(
        "ConvTranspose",
        g.name(grad),
        g.name(weight),
        kernel_shape=list(weight.shape[2:]),
        strides=stride,
        pads=padding * 2,
        output_padding=extra,
        dilations=dilation,
        group=step.given(6, "groups", 1),
    )


def _pool(step: Step, **more: Any) -> dict[str, Any]:
    kernel = _pair(step.given(1, "kernel_size"))
    stride = step.given(2, "stride")
    return {
        "kernel_shape": kernel,
        "strides": kernel if stride is None else _pair(stride),
        "pads": _pair(step.given(3, "padding", [0, 0])) * 2,
        **more,
    }


@exports("max_pool2d", "max_pool2d_with_indices")
def _max_pool2d(g: Writer, step: Step) -> Any:
    value = step.operands[0]
    attributes = _pool(step, dilations=_pair(step.given(4, "dilation", [1, 1])))
    if step.given(5, "ceil_mode", False):
        attributes["ceil_mode"] = 1
    pooled = g.node("MaxPool", g.name(value), **attributes)
    return pooled if step.op == "tenon::max_pool2d" else [pooled, None]


@exports("avg_pool2d")
def _avg_pool2d(g: Writer, step: Step) -> str:
    if step.given(4, "ceil_mode", False):
        raise Refusal(
            "with ceil_mode, for which libraries count margins differently; pad the images"
        )
    inside = bool(step.given(5, "count_include_pad", True))
    attributes = _pool(step, count_include_pad=int(inside))
    return g.node("AveragePool", g.name(step.operands[0]), **attributes)


@exports("batch_norm_inference")
def _batch_norm(g: Writer, step: Step) -> str:
    x, mean, var = step.operands[:3]
    weight, bias = step.given(3, "weight"), step.given(4, "bias")
    channels = mean.shape[0]
    scale = g.name(weight) if weight is not None else _filled(g, 1, mean, channels)
    shift = g.name(bias) if bias is not None else _filled(g, 0, mean, channels)
    eps = float(step.given(5, "eps", 1e-5))
    return g.node(
        "BatchNormalization", g.name(x), scale, shift, g.name(mean), g.name(var), epsilon=eps
    )


def _filled(g: Writer, number: int, like: Value, count: Any) -> str:
    return g.node("Expand", g.constant(number, like.dtype), g.shape([count]))


@exports("layer_norm")
def _layer_norm(g: Writer, step: Step) -> str:
    x, weight, bias = (step.given(i, name) for i, name in enumerate(("x", "weight", "bias")))
    count = step.given(3, "normalized_ndim", 1)
    eps = float(step.given(4, "eps", 1e-5))
    if weight is None:
        sizes = x.shape[len(x.shape) - count :]
        scale = g.node("Expand", g.constant(1, x.dtype), g.shape(sizes))
    else:
        scale = g.name(weight)
    operands = [scale] if bias is None else [scale, g.name(bias)]
    return g.node("LayerNormalization", g.name(x), *operands, axis=-count, epsilon=eps)


@exports("rms_norm")
def _rms_norm(g: Writer, step: Step) -> str:
    x, weight = step.given(0, "x"), step.given(1, "weight")
    eps = float(step.given(2, "eps", 1e-6))
    if x.dtype not in ("float32", "float64"):
        raise Refusal(f"of {x.dtype}, whose squares are added in float32; cast to float32")
    m = Elements(g, x.dtype)
    name = g.name(x)
    mean = g.node("ReduceMean", m.Mul(name, name), g.constant([-1]))
    normal = m.Div(name, m.Sqrt(m.Add(mean, eps)))
    return normal if weight is None else m.Mul(normal, g.name(weight))


@exports("attention")
def _attention(g: Writer, step: Step) -> Any:
    """Softmax of scores. A row that sees nothing gives zeros, as the operator does."""
    query, key, value, mask = (
        step.given(i, n) for i, n in enumerate(("query", "key", "value", "mask"))
    )
    m = Elements(g, query.dtype)
    ndim = len(key.shape)
    turned = [*range(ndim - 2), ndim - 1, ndim - 2]
    scaled = m.Mul(g.name(query), float(step.given(5, "scale")))
    scores = g.node("MatMul", scaled, g.node("Transpose", g.name(key), perm=turned))
    hidden = None
    if mask is not None:
        if mask.dtype == "bool":
            hidden = g.node("Not", g.name(mask))
        else:
            scores = m.Add(scores, g.operand(mask, query.dtype))
    if step.given(4, "causal"):
        sizes = query.shape[-2], key.shape[-2]
        ends = [g.node("Squeeze", g.size(size)) for size in sizes]
        zero, one = g.constant(0), g.constant(1)
        rows = g.node("Unsqueeze", g.node("Range", zero, ends[0], one), g.constant([1]))
        later = g.node("Less", rows, g.node("Range", zero, ends[1], one))
        hidden = later if hidden is None else g.node("Or", hidden, later)
    if hidden is not None:
        scores = g.node("Where", hidden, g.constant(float("-inf"), query.dtype), scores)
    weights = g.node("Softmax", scores, axis=-1)
    if mask is not None:
        weights = g.node("Where", g.node("IsNaN", weights), g.constant(0, query.dtype), weights)
    return [g.node("MatMul", weights, g.name(value)), None]


@exports("lstm_recurrence")
def _lstm(g: Writer, step: Step) -> Any:
    """A Scan over the steps, because ONNX's LSTM returns no cells but the last."""
    x, weight, hidden, cells = step.operands[:4]
    size = hidden.shape[-1]
    if not isinstance(size, int):
        raise Refusal("of a state whose size is open; export for fixed sizes of states")
    turned = g.node("Transpose", g.name(weight), perm=[1, 0])
    body: list[bytes] = []

    def add(op: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> None:
        body.append(
            messages.node(
                op,
                inputs,
                [f"{prefix}{o}" for o in outputs],
                f"{prefix}{outputs[0]}.node",
                attributes,
            )
        )

    prefix = g.fresh("lstm") + "."
    p = prefix
    split = g.constant([size] * 4)
    add("MatMul", [p + "h", turned], "product")
    add("Add", [p + "x", p + "product"], "sum")
    add("Split", [p + "sum", split], "i0", "f0", "g0", "o0", axis=-1)
    for letter in "ifo":
        add("Sigmoid", [p + letter + "0"], letter)
    add("Tanh", [p + "g0"], "g")
    add("Mul", [p + "f", p + "c"], "kept")
    add("Mul", [p + "i", p + "g"], "new")
    add("Add", [p + "kept", p + "new"], "c1")
    add("Tanh", [p + "c1"], "t")
    add("Mul", [p + "o", p + "t"], "h1")
    add("Identity", [p + "h1"], "h2")
    add("Identity", [p + "c1"], "c2")
    add("Concat", [p + "i", p + "f", p + "g", p + "o"], "gates", axis=-1)

    def values(*names: str) -> list[bytes]:
        return [messages.value_info(p + name, x.dtype, [None, None]) for name in names]

    graph = messages.Graph(
        messages.graph(
            p + "step", body, values("h", "c", "x"), values("h1", "c1", "h2", "c2", "gates")
        )
    )
    results = g.node(
        "Scan",
        g.name(hidden),
        g.name(cells),
        g.name(x),
        count=5,
        num_scan_inputs=1,
        body=graph,
    )
    return results[2:]


@exports("group_norm")
def _group_norm(g: Writer, step: Step) -> str:
    x = step.operands[0]
    groups = step.given(1, "groups")
    weight, bias = step.given(2, "weight"), step.given(3, "bias")
    eps = float(step.given(4, "eps", 1e-5))
    m = Elements(g, x.dtype)
    rows = g.node("Reshape", g.name(x), g.constant([0, int(groups), -1]))
    away = m.Sub(rows, g.node("ReduceMean", rows, g.constant([-1])))
    var = g.node("ReduceMean", m.Mul(away, away), g.constant([-1]))
    normal = m.Div(away, m.Sqrt(m.Add(var, eps)))
    result = g.node("Reshape", normal, g.node("Shape", g.name(x)))
    across = [axis for axis in range(len(x.shape) - 1) if axis]
    for op, each in (("Mul", weight), ("Add", bias)):
        if each is not None:
            wide = g.node("Unsqueeze", g.name(each), g.constant(across)) if across else g.name(each)
            result = g.node(op, result, wide)
    return result


@exports("one_hot")
def _one_hot(g: Writer, step: Step) -> str:
    index, made = step.operands[0], step.results[0]
    numbers = g.node("Range", g.constant(0), g.constant(made.shape[-1]), g.constant(1))
    wide = g.node("Unsqueeze", g.operand(index, "int64"), g.constant([axis_of(made, -1)]))
    return g.cast(g.node("Equal", wide, numbers), "bool", made.dtype)
