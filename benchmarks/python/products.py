# SPDX-License-Identifier: Apache-2.0
"""Matrix products, convolutions, pooling and attention beside NumPy, PyTorch and oneDNN called directly.

    python products.py [--quick] [--only bfloat16] [--threads 1] [--rounds 15] [--json results.json]

NumPy's products are those of the OpenBLAS in its wheel. oneDNN has two columns: operands as they lie, and
with the right one rearranged beforehand, outside the time, as it can be for a weight that does not change.
"""

from __future__ import annotations

import timeit

from _libraries import Built, Case, limit_threads, measure
from _onednn import OneDnn
from _report import Report, parser, selects

arguments = parser(__doc__, rounds=9, peers=("numpy", "torch", "channels last", "onednn", "packed"))
options = arguments.parse_args()
limit_threads(options.threads)  # before the libraries load

import numpy as np  # noqa: E402
import tenon  # noqa: E402

tenon.set_num_threads(options.threads)
try:
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(options.threads)
except ImportError:
    torch = None

onednn = OneDnn()
COLUMNS = ["tenon", "numpy"] + (["torch", "channels last"] if torch else [])
COLUMNS += ["onednn", "packed"] if onednn.library and torch else []
COLUMNS = [each for each in COLUMNS if each in ("tenon", *options.peers.split(","))]

# (m, n, k); T: the right operand is transposed, as a layer's weight is.
SQUARES = "64x64x64 256x256x256 512x512x512 1024x1024x1024"
WEIGHTS = "64x784x256T 256x3072x768T 256x768x3072T 16x1024x4096T 8x1024x4096T 1x4096x4096T"
OTHERS = "8x4096x1024 1x4096x4096 12:256x256x64T 12:256x64x256 384:64x64x64"
SKINNY = "4096x16x4096 4096x16x4096T 4096x4096x16 16x16x100000 100000x16x16 1000x8x512"
MATRICES = {
    "float32": f"4x4x4 8x8x8 16x16x16 24x24x24 32x32x32 48x48x48 128x128x128 {SQUARES} 2048x2048x2048"
    f" {WEIGHTS} {OTHERS} {SKINNY} 64x784x256 64x10x128T 64:8x8x8",
    "float64": "16x16x16 64x64x64 256x256x256 512x512x512 64x256x784T 1x2048x2048T",
    "bfloat16": f"16x16x16 128x128x128 {SQUARES} {WEIGHTS} {OTHERS}",
    "float16": f"64x64x64 256x256x256 512x512x512 {WEIGHTS} 8x4096x1024 1x4096x4096",
    "int32": "64x64x64 256x256x256",
    "int8": "64x64x64 256x256x256",
    "int8 to int32": f"{SQUARES} {WEIGHTS} 8x4096x1024 1x4096x4096",
}
QUICK = {"64x64x64", "512x512x512", "256x3072x768T", "1x4096x4096T", "8x1024x4096T"}

# channels, filters, height, kernel, stride, groups, and dilation where it is not 1; batch 8, or 64 for
# LeNet.
CONVOLUTIONS = {
    "ResNet 7x7 s2": (3, 64, 224, 7, 2, 1),
    "ResNet 3x3 64": (64, 64, 56, 3, 1, 1),
    "ResNet 3x3 128": (128, 128, 28, 3, 1, 1),
    "ResNet 3x3 256": (256, 256, 14, 3, 1, 1),
    "ResNet 3x3 512": (512, 512, 7, 3, 1, 1),
    "ResNet 3x3 s2": (64, 128, 56, 3, 2, 1),
    "ResNet 1x1 s2": (64, 128, 56, 1, 2, 1),
    "1x1 64-256": (64, 256, 56, 1, 1, 1),
    "1x1 256-64": (256, 64, 56, 1, 1, 1),
    "1x1 1024-256": (1024, 256, 14, 1, 1, 1),
    "VGG 3x3 3-64": (3, 64, 112, 3, 1, 1),
    "5x5 48-64": (48, 64, 27, 5, 1, 1),
    "dilated 3x3": (64, 64, 28, 3, 1, 1, 2),
    "LeNet 5x5 1-6": (1, 6, 28, 5, 1, 1),
    "LeNet 5x5 6-16": (6, 16, 14, 5, 1, 1),
    "depthwise 3x3": (64, 64, 56, 3, 1, 64),
    "depthwise 3x3 14": (512, 512, 14, 3, 1, 512),
    "depthwise 3x3 7": (1024, 1024, 7, 3, 1, 1024),
    "depthwise 3x3 s2": (64, 64, 112, 3, 2, 64),
    "depthwise 5x5": (96, 96, 28, 5, 1, 96),
    "4 groups 3x3": (64, 64, 56, 3, 1, 4),
    "32 groups 3x3": (256, 256, 28, 3, 1, 32),
}
QUICK_CONVOLUTIONS = {
    "float32": {"ResNet 3x3 64", "ResNet 3x3 256", "1x1 256-64", "depthwise 3x3"},
    "bfloat16": {"ResNet 3x3 256"},
}

# operator, images or rows, weight, stride, padding
OTHER_CONVOLUTIONS = {
    "1-d 3": ("conv1d", (8, 64, 1024), (64, 64, 3), 1, 1),
    "1-d 9 s2": ("conv1d", (8, 32, 2048), (64, 32, 9), 2, 4),
    "1-d depthwise 4": ("conv1d", (4, 512, 512), (512, 1, 4), 1, 3),
    "transposed 4x4 s2": ("conv_transpose2d", (8, 128, 14, 14), (128, 64, 4, 4), 2, 1),
    "transposed 2x2 s2": ("conv_transpose2d", (4, 128, 28, 28), (128, 64, 2, 2), 2, 0),
    "transposed 3x3": ("conv_transpose2d", (8, 64, 28, 28), (64, 64, 3, 3), 1, 1),
}

# kind, images, size of the window, stride, padding
POOLINGS = {
    "max 3x3 s2": ("max", (8, 64, 112, 112), 3, 2, 1),
    "max 2x2 s2": ("max", (8, 64, 56, 56), 2, 2, 0),
    "max 3x3": ("max", (8, 64, 28, 28), 3, 1, 1),
    "average 3x3 s2": ("avg", (8, 64, 56, 56), 3, 2, 1),
    "average 2x2 s2": ("avg", (8, 512, 14, 14), 2, 2, 0),
    "average 3x3": ("avg", (8, 64, 28, 28), 3, 1, 1),
}
QUICK_POOLINGS = {"max 3x3 s2", "average 2x2 s2"}

# batch, heads, rows, columns, features; what a row sees: all, those before it, or what a mask says.
ATTENTION = {
    "256 x 64": (1, 12, 256, 256, 64, "all"),
    "256 x 64 causal": (1, 12, 256, 256, 64, "causal"),
    "256 x 64 masked": (1, 12, 256, 256, 64, "mask"),
    "4 of 256 x 64": (4, 12, 256, 256, 64, "all"),
    "4 of 256 x 64 causal": (4, 12, 256, 256, 64, "causal"),
    "1024 x 64": (1, 12, 1024, 1024, 64, "all"),
    "1024 x 64 causal": (1, 12, 1024, 1024, 64, "causal"),
    "1024 x 64 masked": (1, 12, 1024, 1024, 64, "mask"),
    "2048 x 64": (1, 12, 2048, 2048, 64, "all"),
    "2048 x 64 causal": (1, 12, 2048, 2048, 64, "causal"),
    "1024 x 128 causal": (1, 12, 1024, 1024, 128, "causal"),
    "decode 1024 x 64": (8, 12, 1, 1024, 64, "all"),
}
QUICK_ATTENTION = {"256 x 64 causal", "1024 x 64 causal"}

random = np.random.default_rng(0)


def operand(shape, dtype):
    """The same numbers for Tenon, NumPy (None where it lacks the dtype) and PyTorch."""
    if dtype.startswith("int"):
        array = random.integers(-8, 8, shape).astype(dtype)
    else:
        array = random.standard_normal(shape).astype(
            np.float64 if dtype == "float64" else np.float32
        )
    ours = tenon.tensor(array).to(getattr(tenon, dtype))
    theirs = torch.tensor(array).to(getattr(torch, dtype)) if torch else None
    numpy = array if array.dtype == dtype else None
    return ours, numpy, theirs


def numbers(result):
    """Any library's result as float64, to compare."""
    if isinstance(result, (tuple, list)):
        return [numbers(each) for each in result]
    if isinstance(result, np.ndarray):
        return result.astype(np.float64)
    if torch and isinstance(result, torch.Tensor):
        return result.detach().to(torch.float64).contiguous().numpy()
    return result.detach().to(tenon.float64).numpy()


TOLERANCE = {"bfloat16": 2e-2, "float16": 3e-3, "float64": 1e-12}


def directly(x, y, shape, dtype, result, packed):
    """oneDNN's product of two PyTorch tensors, whose memory it uses."""
    out = torch.empty(shape, dtype=getattr(torch, result))
    parts = (
        (each.data_ptr(), tuple(each.shape), each.stride(), kind)
        for each, kind in ((x, dtype), (y, dtype), (out, result))
    )
    product = onednn.product(*parts, packed)

    def run(keep=(x, y)):
        product()
        return out

    return product and run


def matrix_case(shape, name):
    dtype, _, result = name.partition(" to ")
    text, transposed = shape.rstrip("T"), shape.endswith("T")
    batch, _, text = text.rpartition(":")
    m, n, k = (int(each) for each in text.split("x"))
    lead = (int(batch),) if batch else ()
    x = operand((*lead, m, k), dtype)
    y = operand((*lead, n, k) if transposed else (*lead, k, n), dtype)
    a, b = x[0], y[0].mT if transposed else y[0]
    runs = {"tenon": (lambda: tenon.matmul_integer(a, b)) if result else (lambda: a @ b)}
    if x[1] is not None and dtype != "int8":
        c, d = x[1], np.swapaxes(y[1], -1, -2) if transposed else y[1]
        runs["numpy"] = lambda: c @ d
    if torch:
        e, f = x[2], y[2].mT if transposed else y[2]
        runs["torch"] = (lambda: torch._int_mm(e, f)) if result else (lambda: e @ f)
        if onednn.library and (result or dtype not in ("float64", "int32", "int8")):
            for packed, column in ((False, "onednn"), (True, "packed")):
                run = directly(e, f, (*lead, m, n), dtype, result or dtype, packed)
                runs.update({column: run} if run else {})
    return 2 * m * n * k * (lead[0] if lead else 1), TOLERANCE.get(dtype, 1e-5), runs


def matrix_cases(quick):
    for name, shapes in MATRICES.items():
        for shape in shapes.split():
            if not quick or shape in QUICK:
                yield f"matrix products, {name}", shape, lambda s=shape, n=name: matrix_case(s, n)


def channels_innermost(x):
    """The same numbers, with a channel stride of 1."""
    return tenon.permute(tenon.permute(x, [0, 2, 3, 1]).contiguous(), [0, 3, 1, 2])


def in_layouts(tensor):
    """A PyTorch tensor in both layouts, by the names of their columns."""
    return {
        "torch": tensor.contiguous(),
        "channels last": tensor.contiguous(memory_format=torch.channels_last),
    }


def convolution_cases(quick):
    for dtype, chosen in QUICK_CONVOLUTIONS.items():
        for name in CONVOLUTIONS:
            if not quick or name in chosen:
                yield from convolution_cases_of(name, dtype)


def convolution_cases_of(name, dtype):
    channels, filters, side, kernel, stride, groups, *dilated = CONVOLUTIONS[name]
    dilation = dilated[0] if dilated else 1
    batch = 64 if name.startswith("LeNet") else 8
    padding = 0 if name == "LeNet 5x5 6-16" else kernel // 2 * dilation
    x, _, tx = operand((batch, channels, side, side), dtype)
    w, _, tw = operand((filters, channels // groups, kernel, kernel), dtype)
    settings = ([stride], [padding], [dilation], groups)
    out = tenon.conv2d(x, w, None, *settings)
    g, _, tg = operand(out.shape, dtype)
    flops = 2 * out.numel() * (channels // groups) * kernel * kernel

    def ours(x, g):
        return {
            "forward": lambda: tenon.conv2d(x, w, None, *settings),
            "input grad": lambda: tenon.conv2d_input_grad(g, w, list(x.shape), *settings),
            "weight grad": lambda: tenon.conv2d_weight_grad(g, x, list(w.shape), *settings),
        }

    def theirs(x, g):
        pairs = ([stride] * 2, [padding] * 2, [dilation] * 2)

        def backward(which):
            mask = [which == "input", which == "weight", False]
            args = (g, x, tw, None, *pairs, False, [0, 0], groups, mask)
            return torch.ops.aten.convolution_backward(*args)[mask.index(True)]

        return {
            "forward": lambda: F.conv2d(x, tw, None, *pairs, groups),
            "input grad": lambda: backward("input"),
            "weight grad": lambda: backward("weight"),
        }

    peers = {}
    if torch:
        images, grads = in_layouts(tx), in_layouts(tg)
        peers = {layout: theirs(images[layout], grads[layout]) for layout in images}
    group = "convolutions" if dtype == "float32" else f"convolutions, {dtype}"
    tolerance = TOLERANCE.get(dtype, 1e-4)
    by_layout = {
        "": ours(x, g),
        ", our input channels last": ours(channels_innermost(x), channels_innermost(g)),
    }
    for layout, each in by_layout.items():
        for direction, run in each.items():
            runs = {"tenon": run, **{peer: of[direction] for peer, of in peers.items()}}
            yield group, f"{name}, {direction}{layout}", flops, tolerance, runs


def other_convolution_cases(quick):
    for name, (kind, shape, weight, stride, padding) in OTHER_CONVOLUTIONS.items():
        if quick:
            return
        x, _, tx = operand(shape, "float32")
        w, _, tw = operand(weight, "float32")
        groups = shape[1] // weight[1] if kind == "conv1d" else 1
        settings = {"stride": stride, "padding": padding, "groups": groups}
        lists = {name: each if kind == "conv1d" else [each] for name, each in settings.items()}
        lists["groups"] = groups
        call = getattr(tenon, kind)
        out = call(x, w, None, **lists)
        grad, _, tg = operand(out.shape, "float32")
        seen = out.numel() if kind == "conv1d" else x.numel()
        flops = 2 * seen * int(np.prod(weight[1:]))
        leaves = [each.detach() for each in (x, w)]
        for each in leaves:
            each.requires_grad = True

        def train(call=call, leaves=leaves, lists=lists, grad=grad):
            return tenon.autograd.grad(call(*leaves, None, **lists), leaves, grad)

        forward = {"tenon": lambda x=x, w=w, f=call, lists=lists: f(x, w, None, **lists)}
        backward = {"tenon": train}
        if torch:
            theirs = getattr(F, kind)
            tleaves = [each.detach().requires_grad_() for each in (tx, tw)]

            def train_torch(f=theirs, leaves=tleaves, settings=settings, grad=tg):
                return torch.autograd.grad(f(*leaves, None, **settings), leaves, grad)

            forward["torch"] = lambda x=tx, w=tw, f=theirs, s=settings: f(x, w, None, **s)
            backward["torch"] = train_torch
        yield "other convolutions", f"{name}, forward", flops, 1e-4, forward
        yield "other convolutions", f"{name}, with backward", 3 * flops, 1e-4, backward


def pooling_cases(quick):
    for name, (kind, shape, size, stride, padding) in POOLINGS.items():
        if quick and name not in QUICK_POOLINGS:
            continue
        x, _, tx = operand(shape, "float32")
        pool = getattr(tenon, f"{kind}_pool2d")
        out = pool(x, [size], [stride], [padding])
        grad, _, tg = operand(out.shape, "float32")
        work = out.numel() * size * size

        def ours(x, pool=pool, settings=([size], [stride], [padding])):
            return pool(x, *settings)

        def theirs(x, kind=kind, settings=(size, stride, padding)):
            return getattr(F, f"{kind}_pool2d")(x, *settings)

        images, grads = (in_layouts(tx), in_layouts(tg)) if torch else ({}, {})
        peers = {peer: lambda x=image, f=theirs: f(x) for peer, image in images.items()}
        for layout, image in (("", x), (", our input channels last", channels_innermost(x))):
            runs = {"tenon": lambda x=image, f=ours: f(x), **peers}
            yield "pooling", f"{name}, forward{layout}", work, 1e-6, runs
        x = tenon.tensor(x.numpy())
        x.requires_grad = True

        def train(x=x, grad=grad, f=ours):
            return tenon.autograd.grad(f(x), [x], grad)

        runs = {"tenon": train}
        for peer, image in images.items():
            image = image.detach().requires_grad_(True)

            def train_torch(x=image, grad=grads[peer], f=theirs):
                return torch.autograd.grad(f(x), [x], grad)

            runs[peer] = train_torch
        yield "pooling", f"{name}, with backward", 2 * work, 1e-6, runs


def heads(batch, count, length, features, dtype):
    """As layers pass them: a view of [batch, length, heads, features]."""
    ours, _, theirs = operand((batch, length, count, features), dtype)
    return ours.transpose(1, 2), theirs.transpose(1, 2) if torch else None


def attention_case(dtype, batch, count, rows, columns, features, sees):
    """The runs of a forward pass and of one with the gradients of query, key and value."""
    pairs = [heads(batch, count, n, features, dtype) for n in (rows, columns, columns, rows)]
    (*ours, grad), (*theirs, torch_grad) = zip(*pairs)
    keep = random.random((rows, columns)) > 0.25 if sees == "mask" else None
    mask = None if keep is None else tenon.tensor(keep)
    settings = {"causal": sees == "causal"}
    forward = {"tenon": lambda: tenon.scaled_dot_product_attention(*ours, mask, **settings)}
    leaves = [each.detach() for each in ours]
    for each in leaves:
        each.requires_grad = True

    def train():
        out = tenon.scaled_dot_product_attention(*leaves, mask, **settings)
        return tenon.autograd.grad(out, leaves, grad)

    backward = {"tenon": train}
    if torch:
        torch_mask = None if keep is None else torch.tensor(keep)
        torch_settings = {"attn_mask": torch_mask, "is_causal": sees == "causal"}
        forward["torch"] = lambda: F.scaled_dot_product_attention(*theirs, **torch_settings)
        torch_leaves = [each.detach().requires_grad_() for each in theirs]

        def train_torch():
            out = F.scaled_dot_product_attention(*torch_leaves, **torch_settings)
            return torch.autograd.grad(out, torch_leaves, torch_grad)

        backward["torch"] = train_torch
    return forward, backward


def attention_cases(quick):
    for dtype, tolerance in (("float32", 1e-4), ("bfloat16", 2e-2)):
        for name, sizes in ATTENTION.items():
            if quick and name not in QUICK_ATTENTION:
                continue
            batch, count, rows, columns, features, sees = sizes
            seen = 2 if sees == "causal" else 1
            flops = 4 * batch * count * rows * columns * features // seen
            forward, backward = attention_case(dtype, *sizes)
            yield f"attention, {dtype}", name, flops, tolerance, forward
            if rows > 1:
                flops = flops * 7 // 2
                yield f"attention, {dtype}", f"{name}, with backward", flops, tolerance, backward


def selected():
    """The operations and the runs by column, of the requested cases, in a fixed order."""
    every = matrix_cases, convolution_cases, other_convolution_cases, pooling_cases, attention_cases
    for cases in every:
        for group, name, *case in cases(options.quick):
            if selects(options, name, group):
                yield group, name, *(case[0]() if len(case) == 1 else case)


def build(library, case, options):
    """In the library's process, which makes the cases in the order of the requests."""
    *_, runs = next(each for each in remaining if each[:2] == (case.group, case.name))
    run = runs.get(library)
    return run and Built(timeit.Timer(run), lambda: numbers(run()))


def main():
    report = Report("products", options, COLUMNS)
    if options.quick:
        options.rounds = min(options.rounds, 3)
    cases = (
        Case(name, group, (flops, "FLOP"), tolerance=tolerance)
        for group, name, flops, tolerance, _ in selected()
    )
    measure(cases, build, options, report)
    report.close()


if __name__ == "__main__":
    main()
else:  # a library's process
    remaining = selected()
