# SPDX-License-Identifier: Apache-2.0
"""Layers beside those of PyTorch: same names, settings and weights give the same values and gradients.

Runs where torch is installed; it is no dependency of Tenon.
"""

import math

import numpy as np
import pytest
import tenon
from tenon import nn

torch = pytest.importorskip("torch", reason="needs torch, which is no dependency of Tenon")

rng = np.random.default_rng(0)
IMAGE, SERIES, VOLUME = (2, 4, 7, 6), (2, 4, 9), (2, 4, 5, 6, 7)
VECTORS = (5, 6)


def signs(*shape):
    return np.where(rng.normal(size=shape) > 0, 1.0, -1.0).astype(np.float32)


def positive(*shape):
    return (rng.uniform(0.1, 2.0, size=shape)).astype(np.float32)


def classes(count, *shape):
    return rng.integers(0, count, size=shape)


# name, positional settings, named settings, inputs (a shape stands for normal values)
LOSSES = [
    ("PoissonNLLLoss", (), {}, [VECTORS, positive(*VECTORS)]),
    ("PoissonNLLLoss", (), {"log_input": False, "full": True}, [positive(5, 6), positive(5, 6)]),
    ("GaussianNLLLoss", (), {}, [VECTORS, VECTORS, positive(5, 6)]),
    ("GaussianNLLLoss", (), {"full": True}, [VECTORS, VECTORS, positive(5, 1)]),
    ("MarginRankingLoss", (0.5,), {}, [(7,), (7,), signs(7)]),
    ("HingeEmbeddingLoss", (1.5,), {}, [VECTORS, signs(5, 6)]),
    ("CosineEmbeddingLoss", (0.1,), {}, [VECTORS, VECTORS, signs(5)]),
    ("TripletMarginLoss", (), {}, [VECTORS, VECTORS, VECTORS]),
    ("TripletMarginLoss", (2.0, 1.0), {"swap": True}, [VECTORS, VECTORS, VECTORS]),
    ("TripletMarginWithDistanceLoss", (), {"margin": 2.0}, [VECTORS, VECTORS, VECTORS]),
    ("SoftMarginLoss", (), {}, [VECTORS, signs(5, 6)]),
    ("MultiLabelSoftMarginLoss", (), {}, [VECTORS, (signs(5, 6) + 1) / 2]),
    ("MultiLabelMarginLoss", (), {}, [(2, 4), np.array([[3, 0, -1, 1], [0, -1, 2, 3]])]),
    ("MultiMarginLoss", (), {}, [VECTORS, classes(6, 5)]),
    ("MultiMarginLoss", (2, 0.7), {}, [VECTORS, classes(6, 5)]),
    ("KLDivLoss", (), {"reduction": "batchmean"}, [VECTORS, positive(5, 6)]),
    ("CosineSimilarity", (), {"dim": 1}, [VECTORS, VECTORS]),
    ("CosineSimilarity", (), {"dim": -1}, [IMAGE, IMAGE]),
    ("PairwiseDistance", (), {}, [VECTORS, VECTORS]),
    ("PairwiseDistance", (1.0,), {"keepdim": True}, [VECTORS, VECTORS]),
]
ACTIVATIONS = [
    (name, settings, {}, [IMAGE])
    for name, settings in [
        ("Hardshrink", (0.4,)),
        ("Softshrink", (0.4,)),
        ("Tanhshrink", ()),
        ("Threshold", (0.1, 20.0)),
        ("Softmin", (1,)),
        ("Softmax2d", ()),
        ("Hardtanh", (-0.5, 0.7)),
        ("Softplus", (2.0,)),
        ("PReLU", (4,)),
        ("GLU", (1,)),
        ("LogSigmoid", ()),
    ]
] + [
    ("GELU", (), {"approximate": "tanh"}, [IMAGE]),
    ("Softmax", (), {"dim": 1}, [IMAGE]),
    ("LogSoftmax", (), {"dim": -2}, [IMAGE]),
    ("Hardtanh", (), {"min_val": -0.5, "max_val": 0.7}, [IMAGE]),
    ("ReLU", (), {"inplace": True}, [IMAGE]),
]
LAYOUT = [
    *[
        (f"{kind}Pad{axes}d", (padding,), {}, [[SERIES, IMAGE, VOLUME][axes - 1]])
        for kind in ("Reflection", "Replication", "Circular", "Zero")
        for axes in (1, 2, 3)
        for padding in (2, tuple(range(1, 2 * axes + 1))[::-1])
        if kind == "Zero" or padding == 2
    ],
    ("ConstantPad1d", ((1, -2), 3.5), {}, [SERIES]),
    ("ConstantPad2d", (2, 3.5), {}, [IMAGE]),
    ("ConstantPad3d", (1, 3.5), {}, [VOLUME]),
    ("ReflectionPad2d", ((1, 0, 2, 3),), {}, [IMAGE]),
    ("PixelShuffle", (2,), {}, [IMAGE]),
    ("PixelShuffle", (2,), {}, [(4, 3, 3)]),
    ("PixelUnshuffle", (2,), {}, [(2, 3, 4, 6)]),
    ("ChannelShuffle", (2,), {}, [IMAGE]),
    ("Flatten", (1, 2), {}, [IMAGE]),
    ("Unflatten", (1, (2, 2)), {}, [IMAGE]),
    ("Unfold", ((3, 2),), {"dilation": 2, "padding": 1, "stride": (2, 1)}, [IMAGE]),
    ("Fold", ((7, 6), (3, 2)), {"stride": 2, "padding": 1}, [(2, 12, 16)]),
    ("Fold", ((6, 5), 2), {"dilation": 2}, [(2, 12, 12)]),
    ("Upsample", (), {"scale_factor": 2}, [SERIES]),
    ("Upsample", (), {"size": 5, "mode": "linear"}, [SERIES]),
    ("Upsample", (), {"size": (9, 4), "mode": "bilinear"}, [IMAGE]),
    ("Upsample", (), {"size": (9, 4), "mode": "bicubic"}, [IMAGE]),
    ("Upsample", (), {"size": (9, 14), "mode": "bicubic", "align_corners": True}, [IMAGE]),
    ("Upsample", (), {"size": (3, 9, 4), "mode": "trilinear"}, [VOLUME]),
    ("Upsample", (), {"size": (3, 9, 4), "mode": "trilinear", "align_corners": True}, [VOLUME]),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, [IMAGE]),
    ("UpsamplingBilinear2d", (), {"size": (9, 4)}, [IMAGE]),
]
POOLING = [
    *[
        (name.format(axes), (), settings, [[SERIES, IMAGE, VOLUME][axes - 1]])
        for axes in (1, 2, 3)
        for name, settings in [
            ("MaxPool{}d", {"kernel_size": 2}),
            ("MaxPool{}d", {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
            ("MaxPool{}d", {"kernel_size": 2, "stride": 1, "dilation": 2}),
            ("AvgPool{}d", {"kernel_size": 2}),
            ("AvgPool{}d", {"kernel_size": 3, "stride": 2, "padding": 1}),
            (
                "AvgPool{}d",
                {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
            ),
            ("AvgPool{}d", {"kernel_size": 2, "stride": 2, "ceil_mode": True}),
            ("AdaptiveAvgPool{}d", {"output_size": 3}),
            ("AdaptiveMaxPool{}d", {"output_size": 3}),
            ("LPPool{}d", {"norm_type": 2.0, "kernel_size": 2}),
        ]
    ],
    ("AdaptiveAvgPool2d", ((None, 2),), {}, [IMAGE]),
    ("AvgPool2d", (2,), {"divisor_override": 3}, [IMAGE]),
    ("MaxPool2d", ((3, 2),), {"stride": (2, 1)}, [IMAGE]),
    ("MaxPool2d", (2,), {}, [(4, 6, 6)]),
    ("LPPool1d", (3.0, 2), {"stride": 1}, [positive(*SERIES)]),
]
CONVOLUTIONS = [
    *[
        (name.format(axes), (4, 6, 3), settings, [[SERIES, IMAGE, VOLUME][axes - 1]])
        for axes in (1, 2, 3)
        for name, settings in [
            ("Conv{}d", {}),
            ("Conv{}d", {"stride": 2, "padding": 1, "groups": 2}),
            ("Conv{}d", {"dilation": 2, "padding": 2, "bias": False}),
            ("Conv{}d", {"padding": "same"}),
            ("Conv{}d", {"padding": 1, "padding_mode": "circular"}),
            ("Conv{}d", {"padding": 1, "padding_mode": "replicate"}),
            ("ConvTranspose{}d", {}),
            ("ConvTranspose{}d", {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
            ("ConvTranspose{}d", {"dilation": 2, "bias": False}),
        ]
    ],
    ("Conv2d", (4, 6, 2), {"padding": "same", "padding_mode": "reflect"}, [IMAGE]),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (1, 2)}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {}, [(4, 7, 6)]),
    ("Conv1d", (4, 6, 3), {}, [(4, 9)]),
    ("Conv3d", (4, 2, (1, 2, 3)), {"stride": (1, 2, 1), "padding": (0, 1, 1)}, [VOLUME]),
]
NORMS = [
    ("BatchNorm1d", (4,), {}, [SERIES]),
    ("BatchNorm2d", (4,), {}, [IMAGE]),
    ("BatchNorm2d", (4,), {"momentum": None}, [IMAGE]),
    ("BatchNorm2d", (4,), {"affine": False, "track_running_stats": False}, [IMAGE]),
    ("BatchNorm3d", (4,), {"momentum": 0.3}, [VOLUME]),
    ("InstanceNorm1d", (4,), {}, [SERIES]),
    ("InstanceNorm2d", (4,), {"affine": True}, [IMAGE]),
    ("InstanceNorm2d", (4,), {"track_running_stats": True}, [IMAGE]),
    ("InstanceNorm2d", (4,), {}, [(4, 7, 6)]),
    ("InstanceNorm3d", (4,), {"affine": True}, [VOLUME]),
    ("LocalResponseNorm", (3,), {"alpha": 0.1, "k": 2.0}, [IMAGE]),
    ("LocalResponseNorm", (2,), {}, [SERIES]),
    ("LayerNorm", ((7, 6),), {}, [IMAGE]),
    ("LayerNorm", (6,), {"elementwise_affine": False}, [IMAGE]),
    ("LayerNorm", (6,), {"bias": False}, [IMAGE]),
    ("RMSNorm", (6,), {"eps": 1e-5}, [IMAGE]),
    ("RMSNorm", ((7, 6),), {"eps": 1e-5}, [IMAGE]),
    ("GroupNorm", (2, 4), {}, [IMAGE]),
]
OTHERS = [
    ("Bilinear", (3, 4, 5), {}, [(6, 3), (6, 4)]),
    ("Bilinear", (3, 4, 5), {"bias": False}, [(2, 6, 3), (2, 6, 4)]),
    ("Embedding", (7, 3), {"padding_idx": 2}, [classes(7, 4, 5)]),
    ("EmbeddingBag", (7, 3), {"mode": "sum"}, [classes(7, 4, 5)]),
    ("EmbeddingBag", (7, 3), {"mode": "mean", "padding_idx": 2}, [classes(7, 4, 5)]),
    ("EmbeddingBag", (7, 3), {"mode": "max"}, [classes(7, 9), np.array([0, 3, 3, 7])]),
    ("EmbeddingBag", (7, 3), {}, [classes(7, 9), np.array([0, 3, 3, 7])]),
]
RECURRENT = [
    (name, (4, 5), settings, [(6, 3, 4)])
    for name in ("RNN", "LSTM", "GRU")
    for settings in [
        {},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "bias": False},
    ]
] + [
    ("RNN", (4, 5), {"nonlinearity": "relu"}, [(6, 3, 4)]),
    ("LSTM", (4, 5), {"proj_size": 3, "num_layers": 2, "bidirectional": True}, [(6, 3, 4)]),
    ("GRU", (4, 5), {}, [(6, 4)]),
    ("LSTM", (4, 5), {}, [(6, 4)]),
    ("RNNCell", (4, 5), {}, [(3, 4)]),
    ("LSTMCell", (4, 5), {}, [(3, 4)]),
    ("GRUCell", (4, 5), {"bias": False}, [(3, 4)]),
    ("GRUCell", (4, 5), {}, [(4,)]),
]
TRANSFORMERS = [
    ("MultiheadAttention", (8, 2), {}, [(5, 3, 8)] * 3),
    (
        "MultiheadAttention",
        (8, 2),
        {"batch_first": True, "bias": False},
        [(3, 5, 8), (3, 6, 8)] * 1 + [(3, 6, 8)],
    ),
    ("MultiheadAttention", (8, 2), {"kdim": 4, "vdim": 6}, [(5, 3, 8), (7, 3, 4), (7, 3, 6)]),
    ("MultiheadAttention", (8, 2), {"add_bias_kv": True, "add_zero_attn": True}, [(5, 3, 8)] * 3),
    ("MultiheadAttention", (8, 2), {}, [(5, 8)] * 3),
    ("TransformerEncoderLayer", (8, 2, 16, 0.0), {}, [(5, 3, 8)]),
    (
        "TransformerEncoderLayer",
        (8, 2, 16, 0.0, "gelu"),
        {"norm_first": True, "batch_first": True, "bias": False},
        [(5, 3, 8)],
    ),
    ("TransformerDecoderLayer", (8, 2, 16, 0.0), {}, [(5, 3, 8), (6, 3, 8)]),
    ("TransformerDecoderLayer", (8, 2, 16, 0.0), {"norm_first": True}, [(5, 3, 8), (6, 3, 8)]),
    ("Transformer", (8, 2, 2, 2, 16, 0.0), {}, [(5, 3, 8), (6, 3, 8)]),
]
CASES = [
    *LOSSES,
    *ACTIVATIONS,
    *LAYOUT,
    *POOLING,
    *CONVOLUTIONS,
    *NORMS,
    *OTHERS,
    *RECURRENT,
    *TRANSFORMERS,
]


def first_tensors(result, kind):
    """All tensors of a result that may be nested."""
    if isinstance(result, kind):
        return [result]
    return [t for part in result or () for t in first_tensors(part, kind)]


def close(got, want, scale=1.0):
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5 * scale)


def title(case):
    name, settings, named, _ = case
    return "-".join([name, *map(str, settings), *(f"{k}={v}" for k, v in named.items())])


@pytest.mark.parametrize("case", CASES, ids=title)
def test_same_values_and_gradients(case):
    name, settings, named, inputs = case
    arrays = [rng.normal(size=x).astype(np.float32) if isinstance(x, tuple) else x for x in inputs]
    theirs = getattr(torch.nn, name)(*settings, **named)
    for i, parameter in enumerate(theirs.parameters()):
        values = np.random.default_rng(i).normal(size=tuple(parameter.shape)) * 0.5
        parameter.data = torch.tensor(values.astype(np.float32))
    ours = getattr(nn, name)(*settings, **named)
    state = {key: tenon.tensor(value.numpy()) for key, value in theirs.state_dict().items()}
    report = ours.load_state_dict(state)
    assert report.missing == [] == report.unexpected
    floating = [isinstance(x, tuple) for x in inputs]
    x = [tenon.tensor(a, requires_grad=f) for a, f in zip(arrays, floating)]
    y = [torch.tensor(a, requires_grad=f) for a, f in zip(arrays, floating)]
    if isinstance(theirs, torch.nn.ReLU):
        y[0] = y[0] + 0.0
    got, want = first_tensors(ours(*x), tenon.Tensor), first_tensors(theirs(*y), torch.Tensor)
    assert len(got) == len(want)
    total, reference = 0.0, 0.0
    for i, (a, b) in enumerate(zip(got, want)):
        assert tuple(a.shape) == tuple(b.shape)
        close(a.detach().numpy(), b.detach().numpy())
        weights = np.random.default_rng(i).normal(size=tuple(b.shape)).astype(np.float32)
        total = total + (a * tenon.tensor(weights)).sum()
        reference = reference + (b * torch.tensor(weights)).sum()
    if not reference.requires_grad:
        return
    total.backward()
    reference.backward()
    for a, b in zip(x, y):
        if b.is_leaf and b.grad is not None:
            scale = max(1.0, float(b.grad.abs().max()))
            close(a.grad.numpy(), b.grad.numpy(), scale)
    others = dict(theirs.named_parameters())
    for key, parameter in ours.named_parameters():
        grad = others[key].grad
        if grad is not None:
            close(parameter.grad.numpy(), grad.numpy(), max(1.0, float(grad.abs().max())))
    for key, value in theirs.state_dict().items():  # running statistics have moved alike
        close(ours.state_dict()[key].numpy(), value.numpy())
    close(
        first_tensors(ours.eval()(*x), tenon.Tensor)[0].detach().numpy(),
        first_tensors(theirs.eval()(*y), torch.Tensor)[0].detach().numpy(),
    )


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("settings", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2}])
def test_unpooling(axes, settings):
    x = rng.normal(size=[SERIES, IMAGE, VOLUME][axes - 1]).astype(np.float32)
    results = []
    for library, tensor in ((nn, tenon.tensor(x)), (torch.nn, torch.tensor(x))):
        pool = getattr(library, f"MaxPool{axes}d")(**settings, return_indices=True)
        unpool = getattr(library, f"MaxUnpool{axes}d")(**settings)
        values, indices = pool(tensor)
        size = x.shape if axes < 3 else x.shape[2:]
        results.append([values, indices, unpool(values, indices, output_size=size)])
    for got, want in zip(*results):
        np.testing.assert_array_equal(got.numpy(), want.numpy())


@pytest.mark.parametrize("axes", [2, 3])
def test_fractional_pooling(axes):
    shape = [IMAGE, VOLUME][axes - 2]
    x = rng.normal(size=shape).astype(np.float32)
    samples = rng.uniform(size=(*shape[:2], axes)).astype(np.float32)
    got = getattr(nn, f"FractionalMaxPool{axes}d")(
        2, output_size=3, _random_samples=tenon.tensor(samples)
    )(tenon.tensor(x))
    want = getattr(torch.nn, f"FractionalMaxPool{axes}d")(
        2, output_size=3, _random_samples=torch.tensor(samples)
    )(torch.tensor(x))
    close(got.numpy(), want.numpy())


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc(reduction):
    x = rng.normal(size=(12, 3, 5)).astype(np.float32)
    x = x - np.log(np.exp(x).sum(-1, keepdims=True))
    targets = rng.integers(1, 5, size=(3, 4))
    lengths = ([12, 10, 7], [4, 2, 3])
    a, b = tenon.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    got = nn.CTCLoss(reduction=reduction)(a, tenon.tensor(targets), *lengths)
    want = torch.nn.CTCLoss(reduction=reduction)(b, torch.tensor(targets), *lengths)
    close(got.detach().numpy(), want.detach().numpy())
    # torch's gradient includes that of log_softmax, with which it is combined.
    raw = rng.normal(size=(12, 3, 5)).astype(np.float32)
    a, b = tenon.tensor(raw, requires_grad=True), torch.tensor(raw, requires_grad=True)
    loss = nn.CTCLoss(reduction=reduction)(
        tenon.log_softmax(a, axis=-1), tenon.tensor(targets), *lengths
    )
    loss.sum().backward()
    torch.nn.CTCLoss(reduction=reduction)(
        torch.log_softmax(b, -1), torch.tensor(targets), *lengths
    ).sum().backward()
    close(a.grad.numpy(), b.grad.numpy())


def test_adaptive_softmax():
    settings = (16, 30, [5, 12])
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*settings, div_value=2.0)
    ours = nn.AdaptiveLogSoftmaxWithLoss(*settings, div_value=2.0)
    ours.load_state_dict({k: tenon.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x, target = rng.normal(size=(9, 16)).astype(np.float32), classes(30, 9)
    got, want = (
        ours(tenon.tensor(x), tenon.tensor(target)),
        theirs(torch.tensor(x), torch.tensor(target)),
    )
    close(got.output.detach().numpy(), want.output.detach().numpy())
    close(got.loss.detach().numpy(), want.loss.detach().numpy())
    close(
        ours.log_prob(tenon.tensor(x)).detach().numpy(),
        theirs.log_prob(torch.tensor(x)).detach().numpy(),
    )
    assert ours.predict(tenon.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_packed_sequences(name):
    theirs = getattr(torch.nn, name)(4, 5, num_layers=2, bidirectional=True)
    ours = getattr(nn, name)(4, 5, num_layers=2, bidirectional=True)
    ours.load_state_dict({k: tenon.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x, lengths = rng.normal(size=(6, 3, 4)).astype(np.float32), [3, 6, 4]
    packed = nn.utils.rnn.pack_padded_sequence(tenon.tensor(x), lengths, enforce_sorted=False)
    other = torch.nn.utils.rnn.pack_padded_sequence(
        torch.tensor(x), torch.tensor(lengths), enforce_sorted=False
    )
    (got, state), (want, after) = ours(packed), theirs(other)
    close(got.data.detach().numpy(), want.data.detach().numpy())
    assert got.batch_sizes.tolist() == want.batch_sizes.tolist()
    for a, b in zip(first_tensors(state, tenon.Tensor), first_tensors(after, torch.Tensor)):
        close(a.detach().numpy(), b.detach().numpy())
    padded, counts = nn.utils.rnn.pad_packed_sequence(got, padding_value=-1.0)
    reference, _ = torch.nn.utils.rnn.pad_packed_sequence(want, padding_value=-1.0)
    close(padded.detach().numpy(), reference.detach().numpy())
    assert counts.tolist() == lengths


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masks", ["boolean", "floating", "causal", "both"])
def test_attention_masks(need_weights, masks):
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    ours = nn.MultiheadAttention(8, 2, batch_first=True)
    ours.load_state_dict({k: tenon.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = rng.normal(size=(3, 5, 8)).astype(np.float32)
    above = np.triu(np.ones((5, 5), bool), 1)
    padding = np.arange(5) >= np.array([[5], [3], [4]])
    given = {}
    if masks != "boolean":
        given["attn_mask"] = above if masks != "floating" else np.where(above, -1.5, 0.5)
    if masks in ("boolean", "both"):
        given["key_padding_mask"] = padding
    given = {
        key: value if value.dtype == bool else value.astype(np.float32)
        for key, value in given.items()
    }
    a = tenon.tensor(x)
    got = ours(a, a, a, need_weights=need_weights, **{k: tenon.tensor(v) for k, v in given.items()})
    b = torch.tensor(x)
    want = theirs(
        b, b, b, need_weights=need_weights, **{k: torch.tensor(v) for k, v in given.items()}
    )
    close(got[0].detach().numpy(), want[0].detach().numpy())
    if need_weights:
        close(got[1].detach().numpy(), want[1].detach().numpy())
    if masks == "causal":
        out = ours(a, a, a, need_weights=need_weights, is_causal=True)[0]
        close(out.detach().numpy(), want[0].detach().numpy())


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [False, True])
def test_grids(mode, padding_mode, corners):
    theta = rng.normal(size=(2, 2, 3)).astype(np.float32)
    x = rng.normal(size=IMAGE).astype(np.float32)
    F = nn.functional
    grid = F.affine_grid(tenon.tensor(theta), [2, 4, 5, 3], align_corners=corners)
    other = torch.nn.functional.affine_grid(
        torch.tensor(theta), [2, 4, 5, 3], align_corners=corners
    )
    close(grid.numpy(), other.numpy())
    settings = {"mode": mode, "padding_mode": padding_mode, "align_corners": corners}
    a, b = tenon.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    got = F.grid_sample(a, tenon.tensor(other.numpy()), **settings)
    want = torch.nn.functional.grid_sample(b, other, **settings)
    close(got.detach().numpy(), want.detach().numpy())
    got.sum().backward()
    want.sum().backward()
    close(a.grad.numpy(), b.grad.numpy())


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_parametrizations(name):
    theirs = torch.nn.Linear(5, 4).eval()
    ours = nn.Linear(5, 4).eval()
    ours.load_state_dict({k: tenon.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    getattr(torch.nn.utils.parametrizations, name)(theirs)
    getattr(nn.utils.parametrizations, name)(ours)
    state = {k: tenon.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    x = rng.normal(size=(3, 5)).astype(np.float32)
    got, want = ours(tenon.tensor(x)), theirs(torch.tensor(x))
    close(got.detach().numpy(), want.detach().numpy())
    got.sum().backward()
    want.sum().backward()
    for key, parameter in theirs.named_parameters():
        close(ours.get_parameter(key).grad.numpy(), parameter.grad.numpy())
    assert math.isfinite(float(got.sum().item()))
