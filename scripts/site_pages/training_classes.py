# SPDX-License-Identifier: Apache-2.0
"""A table of PyTorch's layers, functions, optimizers and schedules: here, or why not."""

import tenon

LAYERS = """AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss
AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d
BCELoss BCEWithLogitsLoss BatchNorm1d BatchNorm2d BatchNorm3d Bilinear CELU CTCLoss ChannelShuffle
CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Container Conv1d
Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss CosineSimilarity
CrossEntropyLoss CrossMapLRN2d DataParallel Dropout Dropout1d Dropout2d Dropout3d ELU Embedding
EmbeddingBag FeatureAlphaDropout Flatten Fold FractionalMaxPool2d FractionalMaxPool3d GELU GLU GRU
GRUCell GaussianNLLLoss GroupNorm Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss
HuberLoss Identity InstanceNorm1d InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LPPool1d LPPool2d
LPPool3d LSTM LSTMCell LayerNorm LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d
LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d
LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LeakyReLU Linear LinearCrossEntropyLoss
LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d MaxPool2d MaxPool3d
MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish Module ModuleDict ModuleList MultiLabelMarginLoss
MultiLabelSoftMarginLoss MultiMarginLoss MultiheadAttention NLLLoss NLLLoss2d PReLU PairwiseDistance
ParameterDict ParameterList PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm RNN RNNBase RNNCell
RNNCellBase RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d
ReplicationPad2d ReplicationPad3d SELU Sequential SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax
Softmax2d Softmin Softplus Softshrink Softsign SyncBatchNorm Tanh Tanhshrink Threshold Transformer
TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
TripletMarginLoss TripletMarginWithDistanceLoss Unflatten Unfold Upsample UpsamplingBilinear2d
UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d""".split()
OPTIMIZERS = """ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam Optimizer RAdam
RMSprop Rprop SGD SparseAdam""".split()
SCHEDULES = """ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR
ExponentialLR LRScheduler LambdaLR LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR
ReduceLROnPlateau SequentialLR StepLR""".split()

LAZY = "write the number of inputs: a module has its parameters from the start"
REASONS = {
    "Container": "PyTorch has withdrawn it; write Module",
    "CrossMapLRN2d": "LocalResponseNorm computes the same",
    "DataParallel": "PyTorch advises against it; one process for each device",
    "LinearCrossEntropyLoss": "write Linear and CrossEntropyLoss; there is no fused kernel yet",
    "NLLLoss2d": "NLLLoss takes images",
    "SparseAdam": "there are no sparse gradients",
    "SyncBatchNorm": "not written yet: statistics over processes",
    **{name: LAZY for name in LAYERS if name.startswith("Lazy")},
}
GROUPS = [
    ("Layers, losses and containers", "tenon.nn", LAYERS),
    ("Optimizers", "tenon.optim", OPTIMIZERS),
    ("Schedules", "tenon.optim.lr_scheduler", SCHEDULES),
]


def find(module: str, name: str):
    thing = tenon
    for part in module.split(".")[1:]:
        thing = getattr(thing, part)
    return getattr(thing, name, None)


def rows(module: str, names: list[str]) -> list[tuple[str, str]]:
    """Each name with `there`, or with the reason why it is not."""
    result = []
    for name in names:
        if find(module, name) is not None:
            result.append((name, "there"))
        elif name in REASONS:
            result.append((name, f"not there: {REASONS[name]}"))
        else:
            raise SystemExit(
                f"training_classes: {module}.{name} is not there; give a reason in REASONS"
            )
    return result


def pages() -> dict[str, str]:
    out = ["# Layers, optimizers and schedules of PyTorch", ""]
    for title, module, names in GROUPS:
        table = rows(module, names)
        count = sum(status == "there" for _, status in table)
        out += [f"## {title}", "", f"`{module}` has {count} of {len(table)}.", ""]
        out += ["| PyTorch | Tenon |", "|---|---|"]
        out += [f"| `{name}` | {status} |" for name, status in table] + [""]
    return {"reference/training_classes.md": "\n".join(out)}
