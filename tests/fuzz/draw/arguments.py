# SPDX-License-Identifier: Apache-2.0
"""Rules of operators whose arguments depend on each other in ways that no template says.

Every function takes a Drawer and returns the arguments by name.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from . import matrices

_OPEN = 2**63 - 1


def _x(d, least=0, most=4):
    return d.tensor(d.shape(least, most))


def concat(d):
    shape, count = d.shape(1, 3), d.integer(1, 4)
    axis = d.axis(len(shape))
    tensors = []
    for _ in range(count):
        one = list(shape)
        one[axis] = d.extent()
        tensors.append(d.tensor(tuple(one)))
    return {"tensors": tensors, "axis": axis}


def stack(d):
    shape = d.shape(0, 3)
    tensors = [d.tensor(shape) for _ in range(d.integer(1, 3))]
    return {"tensors": tensors, "axis": d.integer(-len(shape) - 1, len(shape))}


def broadcast_tensors(d):
    return {"tensors": [d.tensor(s) for s in d.broadcast(d.shape(), d.integer(1, 3))]}


def meshgrid(d):
    tensors = [d.tensor((d.extent(),)) for _ in range(d.integer(1, 3))]
    return {"tensors": tensors, "indexing": d.choice(["ij", "xy"])}


def tile(d):
    return {"x": _x(d, 0, 3), "repeats": [d.integer(0, 3) for _ in range(d.integer(0, 3))]}


def repeat(d):
    x = _x(d, 0, 3)
    arguments = {"x": x, "repeats": d.integer(0, 3)}
    if x.values.ndim and d.chance(0.6):
        arguments["axis"] = d.axis(x.values.ndim)
    return arguments


def roll(d):
    x = _x(d, 0, 3)
    axes = d.axes(x.values.ndim)
    if not axes:
        return {"x": x, "shift": [d.integer(-5, 5)]}
    return {"x": x, "shift": [d.integer(-5, 5) for _ in axes], "axis": axes}


def pad(d):
    x = _x(d, 1, 3)
    mode = d.choice(["constant", "edge", "reflect", "wrap"])
    most = 3 if mode != "reflect" else min(3, max(0, min(x.shape) - 1))
    padding = [d.integer(0, most) for _ in range(2 * x.values.ndim)]
    arguments = {"x": x, "padding": padding, "mode": mode}
    return arguments | ({"value": d.number()} if mode == "constant" and d.chance(0.5) else {})


def reshape(d):
    x = _x(d, 0, 4)
    extents = [int(e) for e in x.shape]
    d.rng.shuffle(extents)
    while len(extents) > 1 and d.chance(0.4):
        extents[-2:] = [extents[-2] * extents[-1]]
    if extents and x.values.size and d.chance(0.3):
        extents[d.integer(0, len(extents) - 1)] = -1
    return {"x": x, "shape": extents}


def view(d):
    arguments = reshape(d)
    return arguments | {"x": arguments["x"].with_layout("plain")}


def flatten(d):
    x = _x(d, 1, 4)
    start = d.integer(0, x.values.ndim - 1)
    return {"x": x, "start": start, "stop": d.integer(start, x.values.ndim - 1)}


def transpose(d):
    x = _x(d, 2, 4)
    return {"x": x, "axis0": d.axis(x.values.ndim), "axis1": d.axis(x.values.ndim)}


def permute(d):
    x = _x(d)
    axes = [int(a) - x.values.ndim * d.chance(0.3) for a in d.rng.permutation(x.values.ndim)]
    return {"x": x, "axes": axes}


def movedim(d):
    x = _x(d, 1, 4)
    source = d.axes(x.values.ndim)
    target = [int(a) for a in d.rng.permutation(x.values.ndim)[: len(source)]]
    return {"x": x, "source": source, "destination": target}


def squeeze(d):
    shape = tuple(1 if d.chance(0.5) else e for e in d.shape())
    ones = [i - len(shape) * d.chance(0.3) for i, e in enumerate(shape) if e == 1]
    arguments = {"x": d.tensor(shape)}
    return arguments if d.chance(0.4) else arguments | {"axis": ones[: d.integer(0, len(ones))]}


def unsqueeze(d):
    x = _x(d, 0, 3)
    count = d.integer(1, 2)
    total = x.values.ndim + count
    axes = [int(a) - total * d.chance(0.3) for a in d.rng.permutation(total)[:count]]
    return {"x": x, "axis": axes}


def expand(d):
    shape = d.shape()
    return {"x": d.tensor(d.broadcast(shape, 1)[0]), "shape": list(shape)}


def slice_(d):
    x = _x(d, 1, 4)
    axes = d.axes(x.values.ndim)
    steps = [d.choice([1, 1, 2, 3, -1, -2]) for _ in axes]
    bounds = [-_OPEN - 1, _OPEN, *range(-6, 7)]
    starts = [d.choice(bounds) for _ in axes]
    stops = [d.choice(bounds) for _ in axes]
    arguments = {"x": x, "axes": axes, "starts": starts, "stops": stops}
    return arguments | ({"steps": steps} if d.chance(0.7) else {})


def narrow(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    start = d.integer(0, x.shape[axis])
    return {"x": x, "axis": axis, "start": start, "length": d.integer(0, x.shape[axis] - start)}


def select(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    extent = max(1, x.shape[axis])
    return {"x": x, "axis": axis, "index": d.integer(-extent, extent - 1)}


def diagonal(d):
    x = _x(d, 2, 4)
    axes = [int(a) for a in d.rng.permutation(x.values.ndim)[:2]]
    return {"x": x, "offset": d.integer(-3, 3), "axis0": axes[0], "axis1": axes[1]}


def split(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    extent = x.shape[axis]
    if d.chance(0.5):
        return {"x": x, "sizes": d.integer(1, 4), "axis": axis}
    first = d.integer(0, extent)
    return {"x": x, "sizes": [first, extent - first], "axis": axis}


def unbind(d):
    x = _x(d, 1, 3)
    short = tuple(min(e, 5) for e in x.shape)
    return {"x": d.tensor(short), "axis": d.axis(len(short))}


def sliding_window(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    size = d.integer(1, max(1, min(4, x.shape[axis])))
    named = {"step": d.integer(1, 3), "dilation": d.integer(1, 2)} if d.chance(0.5) else {}
    return {"x": x, "axis": axis, "size": size} | named


def topk(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    named = {"largest": d.chance(0.5)} if d.chance(0.5) else {}
    return {"x": x, "count": d.integer(0, x.shape[axis]), "axis": axis} | named


def searchsorted(d):
    x = d.tensor((d.extent(),))
    ordered = x.with_values(np.sort(x.values))
    return {"sorted": ordered, "values": _x(d, 0, 2), "right": d.chance(0.5)}


def sorted_matches(d):
    drawn = searchsorted(d)
    return {"sorted": drawn["sorted"], "values": d.tensor((d.extent(),))}


def tdm_sampler(d):
    """A tree in layers of nodes that are numbered one after the other."""
    sizes = [d.integer(1, 5) for _ in range(d.integer(1, 3))]
    offsets = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    items = d.integer(1, 4)
    travel = [
        [1 + offsets[i] + d.integer(0, n - 1) for i, n in enumerate(sizes)] for _ in range(items)
    ]
    return {
        "x": d.indices((d.integer(1, 4),), items, negative=False),
        "travel": Array(np.asarray(travel), "int64", "plain"),
        "layer": Array(np.arange(1, offsets[-1] + 1), "int64", "plain"),
        "counts": [d.integer(0, n - 1) for n in sizes],
        "offsets": offsets,
        "output_positive": d.chance(0.5),
    }


def index(d):
    x = _x(d, 1, 3)
    axis = d.integer(0, x.values.ndim - 1)
    count = d.integer(1, x.values.ndim - axis)
    shapes = d.broadcast(d.shape(0, 2), count)
    if any(x.shape[axis + i] == 0 for i in range(count)):
        shapes = [(0,)] * count
    indices = [d.indices(s, x.shape[axis + i]) for i, s in enumerate(shapes)]
    return {"x": x, "indices": indices, "axis": axis}


def _indexed_shape(arguments):
    """The shape of the elements that `index` takes."""
    x, axis = arguments["x"], arguments["axis"]
    picked = np.broadcast_shapes(*(i.shape for i in arguments["indices"]))
    return (*x.shape[:axis], *picked, *x.shape[axis + len(arguments["indices"]) :])


def index_put(d):
    arguments = index(d)
    axis = arguments.pop("axis")
    accumulate = d.chance(0.5) and d.dtype != "bool"
    if not accumulate:  # which of several values stays is not specified
        arguments["indices"] = [_distinct(d, arguments["x"].shape[axis])]
    shape = _indexed_shape(arguments | {"axis": axis})
    value = d.number() if d.chance(0.2) else d.tensor(d.broadcast(shape, 1)[0])
    return {**arguments, "value": value, "axis": axis, "accumulate": accumulate}


def _distinct(d, extent):
    picked = d.rng.permutation(extent)[: d.integer(0, extent)]
    return Array(picked.astype(np.int64), "int64")


def index_select(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    return {"x": x, "index": d.indices(d.shape(1, 2), x.shape[axis]), "axis": axis}


def index_add(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    picked = d.indices((d.extent(),), x.shape[axis])
    shape = list(x.shape)
    shape[axis] = picked.shape[0]
    return {"x": x, "index": picked, "source": d.tensor(tuple(shape)), "axis": axis}


def gather(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    shape = [d.integer(min(1, e), e) for e in x.shape]
    shape[axis] = d.integer(0, 5) if x.shape[axis] else 0
    return {"x": x, "index": d.indices(tuple(shape), x.shape[axis]), "axis": axis}


def take_along_axis(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    shape = [1 if d.chance(0.3) else e for e in x.shape]
    shape[axis] = d.integer(0, 5) if x.shape[axis] else 0
    return {"x": x, "index": d.indices(tuple(shape), x.shape[axis]), "axis": axis}


def scatter_add(d):
    arguments = gather(d)
    axis = arguments.pop("axis")
    source = d.number() if d.chance(0.2) else d.tensor(arguments["index"].shape)
    return {**arguments, "source": source, "axis": axis}


def scatter(d):
    x = _x(d, 1, 3)
    axis = d.axis(x.values.ndim)
    extent = x.shape[axis]
    shape = [d.integer(min(1, e), e) for e in x.shape]
    shape[axis] = d.integer(0, extent)
    order = np.argsort(d.rng.random(x.shape), axis=axis)  # no index twice
    picked = order[tuple(slice(e) for e in shape)]
    source = d.number() if d.chance(0.2) else d.tensor(tuple(shape))
    index = Array(picked.astype(np.int64), "int64")
    return {"x": x, "index": index, "source": source, "axis": axis}


def masked_select(d):
    shapes = d.broadcast(d.shape(), 2)
    return {"x": d.tensor(shapes[0]), "mask": d.booleans(shapes[1])}


def masked_scatter(d):
    x = _x(d)
    mask = d.booleans(d.broadcast(x.shape, 1)[0])
    return {"x": x, "mask": mask, "source": d.tensor((x.values.size,))}


def tensordot(d):
    x = _x(d, 0, 3)
    axes = [int(a) for a in d.rng.permutation(x.values.ndim)[: d.integer(0, x.values.ndim)]]
    shape = [x.shape[a] for a in axes] + [d.extent() for _ in range(d.integer(0, 1))]
    return {"x": x, "y": d.tensor(tuple(shape)), "axes_x": axes, "axes_y": list(range(len(axes)))}


def einsum(d):
    equations = [
        "ij,jk->ik",
        "i,i->",
        "i,j->ij",
        "bij,bjk->bik",
        "ij,ij",
        "ij->ji",
        "ij->",
        "ijk->ki",
    ]
    equations += ["bhqd,bhkd->bhqk", "ij,jk,kl->il", "ij,j->i", "i->", "ij,kj->k", "ii->i", "ii"]
    equation = d.choice(equations)
    inputs = equation.split("->")[0].split(",")
    shapes, _ = d.related({str(i): " ".join(text) for i, text in enumerate(inputs)})
    return {
        "equation": equation,
        "operands": [d.tensor(shapes[str(i)]) for i in range(len(inputs))],
    }


def clip(d):
    shapes = d.broadcast(d.shape(), 3)
    bounds = [d.number() if d.chance(0.4) else d.tensor(s) for s in shapes[1:]]
    named = {n: b for n, b in zip(("min", "max"), bounds) if d.chance(0.7)}
    return {"x": d.tensor(shapes[0]), **named}


def arange(d):
    step = d.choice([1, 2, -1, 0.5, 0.1])
    start, stop = d.integer(-5, 5), d.integer(-5, 20)
    return {"start": start, "stop": stop, "step": step}


def linspace(d):
    named = {"endpoint": d.chance(0.5)} if d.chance(0.5) else {}
    if d.chance(0.4):
        named["dtype"] = d.choice(["float64", "float16", "int64"])
    return {"start": d.number(), "stop": d.number(), "num": d.integer(0, 9)} | named


def full(d):
    return {"shape": list(d.shape()), "value": d.number(), "dtype": d.dtype}


def eye(d):
    return {"rows": d.integer(0, 5), "columns": d.integer(0, 5), "offset": d.integer(-3, 3)}


def shift(d):
    """By less than the width of the dtype: other counts have no meaning in C."""
    x = _x(d)
    bits = np.iinfo(d.dtype).bits
    counts = d.rng.integers(0, bits, d.broadcast(x.shape, 1)[0])
    return {"x": x, "y": Array(np.asarray(counts).astype(d.dtype), d.dtype)}


def randint(d):
    low = d.integer(-9, 9)
    return {"low": low, "high": low + d.integer(1, 9), "shape": list(d.shape())}


def sample_neighbors(d):
    """A graph whose nodes have no neighbours, so that every array of starts fits."""
    nodes = d.integer(1, 5)
    return {
        "row": d.indices((d.integer(0, 6),), nodes),
        "start": d.indices((nodes + 1,), 1),
        "nodes": d.indices((d.integer(0, 4),), nodes),
        "size": d.integer(-1, 3),
    }


def randperm(d):
    return {"count": d.integer(0, 9)}


def to_device(d):
    return {"x": _x(d), "device": "cpu"}


def conv2d_input_grad(d):
    shapes, stride, padding = _convolved(d)
    return {
        "grad_out": d.tensor(shapes["out"]),
        "weight": d.tensor(shapes["weight"]),
        "input_shape": list(shapes["x"]),
        "stride": stride,
        "padding": padding,
    }


def conv2d_weight_grad(d):
    shapes, stride, padding = _convolved(d)
    return {
        "grad_out": d.tensor(shapes["out"]),
        "x": d.tensor(shapes["x"]),
        "weight_shape": list(shapes["weight"]),
        "stride": stride,
        "padding": padding,
    }


def _convolved(d):
    """Shapes of a convolution's input, weight and result."""
    kernel = {"kh": d.integer(1, 3), "kw": d.integer(1, 3)}
    shapes, letters = d.related({"x": "n c h+3 w+3", "weight": "o c kh kw"}, **kernel)
    stride, padding = d.integer(1, 2), d.integer(0, 1)
    extents = (
        (shapes["x"][2 + i] + 2 * padding - kernel[k]) // stride + 1
        for i, k in enumerate(("kh", "kw"))
    )
    shapes["out"] = (letters["n"], letters["o"], *extents)
    return shapes, [stride] * 2, [padding] * 2


def softmax(d):
    x = _x(d, 1, 4)
    return {"x": x, "axis": d.axis(x.values.ndim)}


def cast(d):
    from .attributes import DTYPES

    return {"x": _x(d), "dtype": d.choice(" ".join(DTYPES).split())}


FUNCTIONS = {
    **{
        name: globals()[name]
        for name in (
            "concat stack broadcast_tensors meshgrid tile repeat roll pad reshape view flatten "
            "transpose permute movedim squeeze unsqueeze expand narrow select diagonal split "
            "unbind sliding_window topk searchsorted sorted_matches tdm_sampler index index_put index_select index_add "
            "gather take_along_axis scatter scatter_add masked_select masked_scatter tensordot "
            "einsum clip arange linspace full eye randint randperm sample_neighbors to_device conv2d_input_grad "
            "conv2d_weight_grad softmax cast"
        ).split()
    },
    "slice": slice_,
    "log_softmax": softmax,
    "bitwise_left_shift": shift,
    "bitwise_right_shift": shift,
    **matrices.FUNCTIONS,
}
