# SPDX-License-Identifier: Apache-2.0
"""Layers beside those of PyTorch.

    python -m tests.fuzz.peers.nn [--minutes 5] [--seed 0]

A layer of random settings is built in both libraries, by position and by name, and Tenon's loads the state
dict of PyTorch's. Results in training, in evaluation and in training again, gradients by arguments and
parameters, and the state dict afterwards are compared. Before that the signatures of all layers are:
order, names and defaults of the settings. PyTorch comes from an environment outside the repository.
"""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tenon
import torch
from tenon import nn

from .beside import Comparison, main, pick

KNOWN = {
    "signature AvgPool1d": "also takes divisor_override, which it refuses",
    "signature Hardtanh": "min_value and max_value, which PyTorch deprecates, are taken by name",
    "signature ParameterDict": "the mapping is called values",
    "signature RNNBase": "what layers share is no layer to be built",
    "signature RNNCellBase": "what layers share is no layer to be built",
    "signature Sequential": "the layers are called modules",
    "signature SyncBatchNorm": "has no bias=False",
    "default ConstantPad1d": "margins are zero unless a value is given",
    "default ConstantPad2d": "margins are zero unless a value is given",
    "default ConstantPad3d": "margins are zero unless a value is given",
    "default GELU": "False stands for 'none'",
    "default Threshold": "has a default",
    "default Transformer": "'relu' stands for the function",
    "default TransformerEncoderLayer": "'relu' stands for the function",
    "default TransformerDecoderLayer": "'relu' stands for the function",
    "default Upsample": "False stands for None",
}
_NAMES = {"dim": "axis", "min_val": "min", "max_val": "max", "lambd": "threshold"} | {
    "process_group": "communicator"
}
Draw = np.random.Generator
Case = tuple[tuple, list[Any]]  # positional settings, inputs
LAYERS: dict[str, Callable[[Draw], Case]] = {}


def _named(function: Callable[[Draw, str], Case], name: str, rng: Draw) -> Case:
    return function(rng, name)


def layer(*names: str) -> Callable[[Callable[[Draw, str], Case]], None]:
    """Decorator: how settings and inputs of these layers are drawn."""

    def add(function: Callable[[Draw, str], Case]) -> None:
        for name in names:
            LAYERS[name] = functools.partial(_named, function, name)

    return add


def number(rng: Draw, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def flag(rng: Draw) -> bool:
    return bool(rng.random() < 0.5)


def normal(rng: Draw, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def _extents(rng: Draw, axes: int, least: int = 5) -> list[int]:
    return [number(rng, least, least + 4) for _ in range(axes)]


def _axes(name: str) -> int:
    return int(name[-2])


@layer("Linear")
def _(rng: Draw, name: str) -> Case:
    n, m = number(rng, 1, 6), number(rng, 1, 6)
    lead = [number(rng, 1, 4) for _ in range(number(rng, 0, 3))]
    return (n, m, flag(rng), None, torch.float64), [normal(rng, *lead, n)]


@layer("Bilinear")
def _(rng: Draw, name: str) -> Case:
    a, b, c = (number(rng, 1, 5) for _ in range(3))
    return (a, b, c, flag(rng), None, torch.float64), [normal(rng, 3, a), normal(rng, 3, b)]


@layer("Conv1d", "Conv2d", "Conv3d")
def _(rng: Draw, name: str) -> Case:
    axes, groups = _axes(name), number(rng, 1, 2)
    before, after = groups * number(rng, 1, 3), groups * number(rng, 1, 3)
    mode = str(pick(rng, ["zeros", "reflect", "replicate", "circular"]))
    stride = number(rng, 1, 2)
    padding: Any = number(rng, 0, 2) if mode == "zeros" or stride > 1 else 1
    if stride == 1 and flag(rng):
        padding = str(pick(rng, ["same", "valid"]))
    kernel = number(rng, 1, 3)
    settings = (before, after, kernel, stride, padding, number(rng, 1, 2), groups, flag(rng), mode)
    batch = [number(rng, 1, 3)] if flag(rng) else []
    return (*settings, None, torch.float64), [normal(rng, *batch, before, *_extents(rng, axes, 6))]


@layer("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
def _(rng: Draw, name: str) -> Case:
    groups = number(rng, 1, 2)
    before, after = groups * number(rng, 1, 3), groups * number(rng, 1, 3)
    stride, dilation = number(rng, 1, 3), number(rng, 1, 2)
    extra = number(rng, 0, max(stride, dilation) - 1)
    settings = (before, after, number(rng, 1, 3), stride, number(rng, 0, 1), extra, groups)
    more = (flag(rng), dilation, "zeros", None, torch.float64)
    return (*settings, *more), [normal(rng, 2, before, *_extents(rng, _axes(name), 4))]


@layer(
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
)
def _(rng: Draw, name: str) -> Case:
    count = number(rng, 1, 4)
    momentum = None if flag(rng) and "Batch" in name else float(rng.uniform(0, 1))
    eps = float(pick(rng, [1e-5, 1e-3, 0.1]))
    settings = (count, eps, momentum, flag(rng), flag(rng), None, torch.float64)
    return settings, [3 + 2 * normal(rng, number(rng, 2, 4), count, *_extents(rng, _axes(name), 2))]


@layer("LayerNorm", "RMSNorm")
def _(rng: Draw, name: str) -> Case:
    shape = [number(rng, 1, 4) for _ in range(number(rng, 1, 2))]
    eps = float(pick(rng, [1e-5, 1e-2])) if name == "LayerNorm" or flag(rng) else None
    settings = (shape, eps, flag(rng)) + ((flag(rng),) if name == "LayerNorm" else ())
    return (*settings, None, torch.float64), [normal(rng, 2, 3, *shape)]


@layer("GroupNorm")
def _(rng: Draw, name: str) -> Case:
    groups = number(rng, 1, 3)
    channels = groups * number(rng, 1, 3)
    settings = (groups, channels, 1e-5, flag(rng), None, torch.float64)
    return settings, [normal(rng, 2, channels, *_extents(rng, number(rng, 0, 2), 2))]


@layer("LocalResponseNorm")
def _(rng: Draw, name: str) -> Case:
    return (number(rng, 1, 5), 0.1, 0.75, 1.5), [normal(rng, 2, 6, 4)]


@layer("MaxPool1d", "MaxPool2d", "MaxPool3d")
def _(rng: Draw, name: str) -> Case:
    kernel = number(rng, 1, 3)
    settings = (kernel, number(rng, 1, 3), number(rng, 0, kernel // 2), number(rng, 1, 2))
    return (*settings, flag(rng), flag(rng)), [normal(rng, 2, 2, *_extents(rng, _axes(name), 6))]


@layer("AvgPool1d", "AvgPool2d", "AvgPool3d")
def _(rng: Draw, name: str) -> Case:
    kernel = number(rng, 1, 3)
    settings = (kernel, number(rng, 1, 3), number(rng, 0, kernel // 2), flag(rng), flag(rng))
    return settings, [normal(rng, 2, 2, *_extents(rng, _axes(name)))]


@layer(*[f"Adaptive{kind}Pool{axes}d" for kind in ("Avg", "Max") for axes in (1, 2, 3)])
def _(rng: Draw, name: str) -> Case:
    size = [number(rng, 1, 7) for _ in range(_axes(name))]
    return (size if flag(rng) else size[0],), [normal(rng, 2, 2, *_extents(rng, _axes(name)))]


@layer("LPPool1d", "LPPool2d")
def _(rng: Draw, name: str) -> Case:
    x = np.abs(normal(rng, 2, 2, *_extents(rng, _axes(name)))) + 0.1
    return (float(pick(rng, [1.0, 2.0, 3.0])), number(rng, 1, 3), number(rng, 1, 2), flag(rng)), [x]


@layer(
    *[
        f"{kind}Pad{axes}d"
        for kind in ("Reflection", "Replication", "Zero", "Circular")
        for axes in (1, 2, 3)
    ]
)
def _(rng: Draw, name: str) -> Case:
    axes = _axes(name)
    sizes = tuple(number(rng, 0, 2) for _ in range(2 * axes))
    return (sizes,), [normal(rng, 2, 2, *_extents(rng, axes, 3))]


@layer("ConstantPad1d", "ConstantPad2d", "ConstantPad3d")
def _(rng: Draw, name: str) -> Case:
    axes = _axes(name)
    sizes = tuple(number(rng, -1, 2) for _ in range(2 * axes))
    return (sizes, float(rng.uniform(-1, 1))), [normal(rng, 2, 2, *_extents(rng, axes, 3))]


@layer("MaxUnpool2d")
def _(rng: Draw, name: str) -> Case:
    at = np.stack([rng.permutation(16)[:4] for _ in range(6)]).reshape(2, 3, 2, 2)
    return (2, 2, 0), [normal(rng, 2, 3, 2, 2), at]


@layer("Fold")
def _(rng: Draw, name: str) -> Case:
    kernel, stride = number(rng, 1, 3), number(rng, 1, 2)
    blocks = [(extent + 2 - kernel) // stride + 1 for extent in (5, 6)]
    x = normal(rng, 2, 3 * kernel * kernel, blocks[0] * blocks[1])
    return ([5, 6], kernel, 1, 1, stride), [x]


_ACTIVATIONS: dict[str, Callable[[Draw], tuple]] = {
    **dict.fromkeys(
        ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid"),
        lambda rng: (False,),
    ),
    **dict.fromkeys(
        ("Sigmoid", "Tanh", "LogSigmoid", "Softsign", "Tanhshrink", "Softmax2d"), lambda rng: ()
    ),
    **dict.fromkeys(("ELU", "CELU"), lambda rng: (float(rng.uniform(0.1, 2)), False)),
    **dict.fromkeys(("Softshrink", "Hardshrink"), lambda rng: (float(rng.uniform(0, 1)),)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Softmin"), lambda rng: (int(rng.integers(-4, 4)),)),
    "LeakyReLU": lambda rng: (float(rng.uniform(0, 1)), False),
    "Hardtanh": lambda rng: (-float(rng.uniform(0, 1)), float(rng.uniform(0, 1)), False),
    "Threshold": lambda rng: (float(rng.uniform(-1, 1)), float(rng.uniform(-1, 1)), False),
    "Softplus": lambda rng: (
        float(pick(rng, [-0.7, 0.1, 1.0, 3.0])),
        float(pick(rng, [0.5, 2.0, 20.0])),
    ),
    "GELU": lambda rng: (str(pick(rng, ["none", "tanh"])),),
    "GLU": lambda rng: (int(pick(rng, [1, -1])),),
    "PReLU": lambda rng: (int(pick(rng, [1, 4])), 0.3, None, torch.float64),
}


def _activation(rng: Draw, draw: Callable[[Draw], tuple]) -> Case:
    return draw(rng), [2 * normal(rng, 2, 4, 3, 6)]


for _name, _draw in _ACTIVATIONS.items():
    LAYERS[_name] = functools.partial(_activation, draw=_draw)


@layer("Embedding")
def _(rng: Draw, name: str) -> Case:
    rows, padding = number(rng, 3, 6), pick(rng, [None, 0, -1, 2])
    settings = (rows, number(rng, 1, 4), padding, None, 2.0, flag(rng), False, None, False)
    return (*settings, None, torch.float64), [rng.integers(0, rows, size=(3, 4))]


@layer("EmbeddingBag")
def _(rng: Draw, name: str) -> Case:
    rows, mode = number(rng, 3, 6), str(pick(rng, ["sum", "mean", "max"]))
    by_frequency = mode != "max" and flag(rng)
    has_end, padding = flag(rng), pick(rng, [None, 0, -1])
    settings = (rows, number(rng, 1, 4), None, 2.0, by_frequency, mode, False, None, has_end)
    indices = rng.integers(0, rows, size=number(rng, 1, 9))
    offsets = np.sort(rng.integers(0, indices.size + 1, size=number(rng, 1, 4)))
    offsets[0] = 0
    if has_end:
        offsets = np.append(offsets, indices.size)
    return (*settings, padding, None, torch.float64), [indices, offsets]


@layer("RNN", "LSTM", "GRU")
def _(rng: Draw, name: str) -> Case:
    size, hidden, layers = number(rng, 1, 4), number(rng, 2, 4), number(rng, 1, 2)
    rule = (str(pick(rng, ["tanh", "relu"])),) if name == "RNN" else ()
    settings = (size, hidden, layers, *rule, flag(rng), flag(rng), 0.0, flag(rng))
    projected = (number(rng, 0, hidden - 1),) if name == "LSTM" else (0,)
    return (*settings, *projected, None, torch.float64), [normal(rng, 3, 2, size)]


@layer("RNNCell", "LSTMCell", "GRUCell")
def _(rng: Draw, name: str) -> Case:
    size, hidden = number(rng, 1, 4), number(rng, 1, 4)
    rule = (str(pick(rng, ["tanh", "relu"])),) if name == "RNNCell" else ()
    return (size, hidden, flag(rng), *rule, None, torch.float64), [normal(rng, 2, size)]


@layer("MultiheadAttention")
def _(rng: Draw, name: str) -> Case:
    heads = number(rng, 1, 3)
    width = heads * number(rng, 1, 3)
    kdim, vdim = (None, None) if flag(rng) else (number(rng, 1, 4), number(rng, 1, 4))
    settings = (width, heads, 0.0, flag(rng), flag(rng), flag(rng), kdim, vdim, flag(rng))
    q, k, v = ([2, 3, n or width] for n in (width, kdim, vdim))
    return (*settings, None, torch.float64), [normal(rng, *each) for each in (q, k, v)]


@layer("TransformerEncoderLayer")
def _(rng: Draw, name: str) -> Case:
    settings = (4, 2, 6, 0.0, str(pick(rng, ["relu", "gelu"])), 1e-5, flag(rng), flag(rng))
    return (*settings, flag(rng), None, torch.float64), [normal(rng, 3, 2, 4)]


@layer("TransformerDecoderLayer")
def _(rng: Draw, name: str) -> Case:
    settings = (4, 2, 6, 0.0, "relu", 1e-5, False, flag(rng), flag(rng), None, torch.float64)
    return settings, [normal(rng, 3, 2, 4), normal(rng, 5, 2, 4)]


@layer("PixelShuffle", "PixelUnshuffle", "ChannelShuffle")
def _(rng: Draw, name: str) -> Case:
    return (2,), [normal(rng, 2, 8, 4, 6)]


@layer("Flatten")
def _(rng: Draw, name: str) -> Case:
    return (number(rng, 0, 2), int(pick(rng, [-1, 2, 3]))), [normal(rng, 2, 3, 4, 2)]


@layer("Unfold")
def _(rng: Draw, name: str) -> Case:
    settings = (number(rng, 1, 3), number(rng, 1, 2), number(rng, 0, 2), number(rng, 1, 2))
    return settings, [normal(rng, 2, 3, 7, 6)]


@layer("Upsample")
def _(rng: Draw, name: str) -> Case:
    mode = str(pick(rng, ["nearest", "bilinear", "bicubic"]))
    align = None if mode == "nearest" else flag(rng)
    if flag(rng):
        return ([number(rng, 1, 9), number(rng, 1, 9)], None, mode, align), [
            normal(rng, 2, 2, 5, 4)
        ]
    # Where a factor leaves the size as it is, PyTorch leaves the image, in most modes; the grid follows
    # from the factor here.
    return (None, float(pick(rng, [0.5, 0.7, 1.5, 2.3])), mode, align), [normal(rng, 2, 2, 5, 4)]


@layer("CosineSimilarity")
def _(rng: Draw, name: str) -> Case:
    return (number(rng, -2, 1), 1e-8), [normal(rng, 3, 4), normal(rng, 3, 4)]


@layer("PairwiseDistance")
def _(rng: Draw, name: str) -> Case:
    return (float(pick(rng, [1.0, 2.0, 3.0])), 1e-6, flag(rng)), [
        normal(rng, 3, 4),
        normal(rng, 3, 4),
    ]


# -- losses ------------------------------------------------------------------------------------------


def _reductions(rng: Draw) -> tuple[Any, Any, str]:
    """size_average, reduce, reduction."""
    if flag(rng):
        return None, None, str(pick(rng, ["none", "mean", "sum"]))
    return (None, flag(rng), "mean") if flag(rng) else (flag(rng), None, "mean")


@layer("MSELoss", "L1Loss", "SoftMarginLoss")
def _(rng: Draw, name: str) -> Case:
    y = normal(rng, 3, 4)
    return _reductions(rng), [normal(rng, 3, 4), np.sign(y) if "Margin" in name else y]


@layer("SmoothL1Loss")
def _(rng: Draw, name: str) -> Case:
    return (*_reductions(rng), float(rng.uniform(0.1, 2))), [normal(rng, 3, 4), normal(rng, 3, 4)]


@layer("HuberLoss")
def _(rng: Draw, name: str) -> Case:
    return (_reductions(rng)[2], float(rng.uniform(0.1, 2))), [normal(rng, 3, 4), normal(rng, 3, 4)]


@layer("CrossEntropyLoss", "NLLLoss")
def _(rng: Draw, name: str) -> Case:
    average, reduce, reduction = _reductions(rng)
    weight = None if flag(rng) else rng.uniform(0.1, 2, size=4)
    more = (float(rng.uniform(0, 0.5)),) if name[0] == "C" else ()
    ignored = int(pick(rng, [-100, 1]))
    settings = (weight, average, ignored, reduce, reduction, *more)
    return settings, [normal(rng, 5, 4, 2), rng.integers(0, 4, size=(5, 2))]


@layer("BCELoss", "BCEWithLogitsLoss")
def _(rng: Draw, name: str) -> Case:
    weight = None if flag(rng) else rng.uniform(0.1, 2, size=4)
    positive = (None if flag(rng) else rng.uniform(0.1, 2, size=4),) if "Logits" in name else ()
    return (weight, *_reductions(rng), *positive), [rng.uniform(0.1, 0.9, size=(3, 4)),
                                                    rng.uniform(size=(3, 4))]  # fmt: skip


@layer("KLDivLoss")
def _(rng: Draw, name: str) -> Case:
    average, reduce, reduction = _reductions(rng)
    if average is None and reduce is None and flag(rng):
        reduction = "batchmean"
    return (average, reduce, reduction, flag(rng)), [normal(rng, 3, 4), rng.uniform(size=(3, 4))]


@layer("MarginRankingLoss", "CosineEmbeddingLoss", "HingeEmbeddingLoss")
def _(rng: Draw, name: str) -> Case:
    shape = (3, 4) if name[0] == "C" else (7,)
    inputs = [normal(rng, *shape) for _ in range(1 if name[0] == "H" else 2)]
    target = np.sign(normal(rng, shape[0]))
    return (float(rng.uniform(0, 1)), *_reductions(rng)), [*inputs, target]


@layer("TripletMarginLoss")
def _(rng: Draw, name: str) -> Case:
    settings = (float(rng.uniform(0, 2)), float(pick(rng, [1.0, 2.0])), 1e-6, flag(rng))
    return (*settings, *_reductions(rng)), [normal(rng, 3, 4) for _ in range(3)]


@layer("MultiMarginLoss")
def _(rng: Draw, name: str) -> Case:
    weight = None if flag(rng) else rng.uniform(0.1, 2, size=4)
    settings = (number(rng, 1, 2), float(rng.uniform(0.1, 2)), weight, *_reductions(rng))
    return settings, [normal(rng, 3, 4), rng.integers(0, 4, size=3)]


@layer("MultiLabelSoftMarginLoss")
def _(rng: Draw, name: str) -> Case:
    weight = None if flag(rng) else rng.uniform(0.1, 2, size=4)
    target = rng.integers(0, 2, size=(3, 4)) + 0.0
    return (weight, *_reductions(rng)), [normal(rng, 3, 4), target]


@layer("MultiLabelMarginLoss")
def _(rng: Draw, name: str) -> Case:
    target = np.stack([np.append(rng.permutation(4)[:2], [-1, 0]) for _ in range(3)])
    return _reductions(rng), [normal(rng, 3, 4), target]


@layer("PoissonNLLLoss")
def _(rng: Draw, name: str) -> Case:
    average, reduce, reduction = _reductions(rng)
    settings = (flag(rng), flag(rng), average, 1e-8, reduce, reduction)
    return settings, [rng.uniform(0.1, 2, size=(3, 4)), rng.integers(1, 5, size=(3, 4)) + 0.0]


# -- comparing ---------------------------------------------------------------------------------------


def _ours(value: Any) -> Any:
    """A setting or an input of PyTorch's as one of Tenon's."""
    if isinstance(value, np.ndarray):
        return tenon.tensor(value)
    return tenon.float64 if value is torch.float64 else value


def _theirs(value: Any) -> Any:
    return torch.tensor(value) if isinstance(value, np.ndarray) else value


def _tensors(result: Any) -> list[Any]:
    if isinstance(result, (list, tuple)):
        return [each for part in result for each in _tensors(part)]
    return [] if result is None else [result]


def observed(module: Any, inputs: list[Any]) -> dict[str, Any]:
    """What is seen of a layer: results, gradients, state; in training, evaluation and training."""
    seen: dict[str, Any] = {}
    for n, training in enumerate((True, False, True)):
        module.train(training)
        module.zero_grad()
        leaves = [x.detach().clone() for x in inputs]
        for leaf in leaves:
            if leaf.dtype.is_floating_point:
                leaf.requires_grad_()
        results = _tensors(module(*leaves))
        seen[f"results {n}"] = [each.detach().numpy() for each in results]
        total = sum((each * each.cos()).sum() for each in results if each.dtype.is_floating_point)
        if getattr(total, "requires_grad", False):
            total.backward()
        grads = [*leaves, *module.parameters()]
        seen[f"gradients {n}"] = [None if g.grad is None else g.grad.numpy() for g in grads]
        state = module.state_dict()
        seen[f"state {n}"] = {name: each.numpy().copy() for name, each in state.items()}
    return seen


def ask(name: str, settings: tuple, inputs: list[Any]) -> Iterator[Comparison]:
    """The layer built by position and by name."""
    theirs_of = getattr(torch.nn, name)
    given = [_theirs(each) for each in settings]
    if name in ("RNN", "GRU"):
        given.pop(-3)  # proj_size, which LSTM alone has
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # size_average is deprecated
            peer = theirs_of(*given)
    except Exception:  # settings that PyTorch refuses
        return
    names = [each for each in inspect.signature(getattr(nn, name)).parameters]
    ours = [_ours(each) for each in settings]
    if name == "RNN":
        ours.pop(-3)
    state = {key: tenon.tensor(each.numpy()) for key, each in peer.state_dict().items()}

    def build(by_name: bool) -> Any:
        made = getattr(nn, name)
        made = made(**dict(zip(names, ours))) if by_name else made(*ours)
        made.load_state_dict(state)
        return made

    text = f"{settings} of {[x.shape for x in inputs]}"
    want: list[Any] = []

    def expected() -> dict[str, Any]:
        if not want:
            want.append(observed(peer, [_theirs(x) for x in inputs]))
        return want[0]

    def found(by_name: bool) -> dict[str, Any]:
        return observed(build(by_name), [_ours(x) for x in inputs])

    for by_name in (False, True):
        yield Comparison(
            name,
            f"{'by name' if by_name else 'by position'} {text}",
            functools.partial(found, by_name),
            expected,
            1e-6,
            1e-8,
        )


def signatures() -> Iterator[Comparison]:
    """Order, names and defaults of the settings of every layer that both libraries have."""

    def known(cls: type) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(cls).parameters

    def defaults(of: Mapping[str, inspect.Parameter], names: list[str]) -> dict[str, str]:
        return {name: repr(of[name].default) for name in names}

    for name in sorted(vars(nn)):
        ours, theirs = getattr(nn, name), getattr(torch.nn, name, None)
        if not (inspect.isclass(ours) and issubclass(ours, nn.Module)) or theirs is None:
            continue
        mine, peers = known(ours), known(theirs)
        if list(peers) == ["args", "kwargs"]:
            continue  # asked by building it
        renamed = {_NAMES.get(k, k) if k not in mine else k: v for k, v in peers.items()}
        yield Comparison(
            f"signature {name}",
            "",
            functools.partial(list, mine),
            functools.partial(list, renamed),
        )
        both = [k for k in renamed if k in mine]
        yield Comparison(
            f"default {name}",
            "",
            functools.partial(defaults, mine, both),
            functools.partial(defaults, renamed, both),
        )


def draw(rng: Draw) -> Iterator[Comparison]:
    """Each layer once, with settings of its own."""
    for name, case in LAYERS.items():
        yield from ask(name, *case(rng))


def draw_all(rng: Draw) -> Iterator[Comparison]:
    yield from signatures()
    yield from draw(rng)


if __name__ == "__main__":
    main(draw_all, KNOWN)
