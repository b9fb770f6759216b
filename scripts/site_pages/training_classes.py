# SPDX-License-Identifier: Apache-2.0
"""Tables of the layers, optimizers and schedules of PyTorch and Paddle: here, or why not."""

import re

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

REASONS = {
    "Container": "PyTorch has withdrawn it; write Module",
    "CrossMapLRN2d": "LocalResponseNorm computes the same",
    "DataParallel": "PyTorch advises against it; one process for each device",
    "LinearCrossEntropyLoss": "write Linear and CrossEntropyLoss; there is no fused kernel yet",
    "NLLLoss2d": "NLLLoss takes images",
    "SparseAdam": "there are no sparse gradients",
}

PADDLE_LAYERS = """AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveLogSoftmaxWithLoss
AdaptiveMaxPool1D AdaptiveMaxPool2D AdaptiveMaxPool3D AlphaDropout AvgPool1D AvgPool2D AvgPool3D
BCELoss BCEWithLogitsLoss BatchNorm BatchNorm1D BatchNorm2D BatchNorm3D BeamSearchDecoder BiRNN
Bilinear CELU CTCLoss ChannelShuffle Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D
Conv3DTranspose CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss Dropout Dropout2D Dropout3D ELU
Embedding FeatureAlphaDropout Flatten Fold FractionalMaxPool2D FractionalMaxPool3D GELU GLU GRU
GRUCell GaussianNLLLoss GroupNorm HSigmoidLoss Hardshrink Hardsigmoid Hardswish Hardtanh
HingeEmbeddingLoss Identity InstanceNorm1D InstanceNorm2D InstanceNorm3D KLDivLoss L1Loss LPPool1D
LPPool2D LSTM LSTMCell Layer LayerDict LayerList LayerNorm LeakyReLU Linear LocalResponseNorm
LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1D MaxPool2D MaxPool3D MaxUnPool1D MaxUnPool2D
MaxUnPool3D Maxout Mish MultiHeadAttention MultiLabelMarginLoss MultiLabelSoftMarginLoss
MultiMarginLoss NLLLoss PReLU Pad1D Pad2D Pad3D PairwiseDistance ParameterDict ParameterList
PixelShuffle PixelUnshuffle PoissonNLLLoss RNN RNNCellBase RNNTLoss RReLU ReLU ReLU6 SELU Sequential
Sigmoid Silu SimpleRNN SimpleRNNCell SmoothL1Loss SoftMarginLoss Softmax Softmax2D Softplus
Softshrink Softsign SpectralNorm Swish SyncBatchNorm Tanh Tanhshrink ThresholdedReLU Transformer
TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
TripletMarginLoss TripletMarginWithDistanceLoss Unflatten Unfold Upsample UpsamplingBilinear2D
UpsamplingNearest2D ZeroPad1D ZeroPad2D ZeroPad3D""".split()
PADDLE_INITIALIZERS = """Assign Bilinear Constant Dirac KaimingNormal KaimingUniform Normal Orthogonal
TruncatedNormal Uniform XavierNormal XavierUniform calculate_gain set_global_initializer""".split()
PADDLE_OPTIMIZERS = """ASGD Adadelta Adagrad Adam AdamW Adamax ClipGradByGlobalNorm ClipGradByNorm
ClipGradByValue DGCMomentum DecayedAdagrad ExponentialMovingAverage Ftrl LBFGS Lamb LarsMomentum
LookAhead ModelAverage Momentum NAdam Optimizer RAdam RMSProp Rprop SGD""".split()
PADDLE_SCHEDULES = """CosineAnnealingDecay CosineAnnealingWarmRestarts CyclicLR ExponentialDecay
InverseTimeDecay LRScheduler LambdaDecay LinearLR LinearWarmup MultiStepDecay MultiplicativeDecay
NaturalExpDecay NoamDecay OneCycleLR PiecewiseDecay PolynomialDecay ReduceOnPlateau StepDecay""".split()
PADDLE_METRICS = "Accuracy Auc Metric Precision Recall".split()

# What a name of Paddle is called here where it is neither the same nor follows from a rule.
OURS = {
    "Auc": "AUC",
    "Constant": "constant_",
    "Dirac": "dirac_",
    "ExponentialMovingAverage": "swa_utils.AveragedModel",
    "KaimingNormal": "kaiming_normal_",
    "KaimingUniform": "kaiming_uniform_",
    "LarsMomentum": "Lars",
    "Layer": "Module",
    "LayerDict": "ModuleDict",
    "LayerList": "ModuleList",
    "MultiHeadAttention": "MultiheadAttention",
    "Normal": "normal_",
    "Orthogonal": "orthogonal_",
    "RMSProp": "RMSprop",
    "RNN": "RNNBase",
    "ReduceOnPlateau": "ReduceLROnPlateau",
    "Silu": "SiLU",
    "SimpleRNN": "RNN",
    "SimpleRNNCell": "RNNCell",
    "SpectralNorm": "utils.parametrizations.spectral_norm",
    "Swish": "SiLU",
    "ThresholdedReLU": "Threshold",
    "TruncatedNormal": "trunc_normal_",
    "Uniform": "uniform_",
    "XavierNormal": "xavier_normal_",
    "XavierUniform": "xavier_uniform_",
}
PADDLE_REASONS = {
    "Assign": "write `parameter.copy_(value)`",
    "BatchNorm": "BatchNorm1d, 2d or 3d, which check the axes",
    "Bilinear initializer": "interpolate resizes without a kernel of weights",
    "DGCMomentum": "its steps are `optim.updates.dgc` and `dgc_momentum`; what ranks exchange is written around them",
    "DecayedAdagrad": "`RMSprop(alpha=decay)` computes the same",
    "ModelAverage": "`swa_utils.AveragedModel`, whose mean has no window",
    "Pad1D": "ConstantPad1d, ReflectionPad1d, ReplicationPad1d or CircularPad1d",
    "Pad2D": "ConstantPad2d, ReflectionPad2d, ReplicationPad2d or CircularPad2d",
    "Pad3D": "ConstantPad3d, ReflectionPad3d, ReplicationPad3d or CircularPad3d",
    "set_global_initializer": "a default of the whole process changes models that do not expect it; "
    "write `model.apply(function)`",
}
PADDLE_GROUPS = [
    ("Layers, losses and containers", "tenon.nn", PADDLE_LAYERS),
    ("Initializers", "tenon.nn.init", PADDLE_INITIALIZERS),
    ("Optimizers, averages and clipping", "tenon.optim", PADDLE_OPTIMIZERS),
    ("Schedules", "tenon.optim.lr_scheduler", PADDLE_SCHEDULES),
    ("Metrics", "tenon.metrics", PADDLE_METRICS),
]
GROUPS = [
    ("Layers, losses and containers", "tenon.nn", LAYERS),
    ("Optimizers", "tenon.optim", OPTIMIZERS),
    ("Schedules", "tenon.optim.lr_scheduler", SCHEDULES),
]


def find(path: str):
    """What lies at a path such as tenon.nn.Linear, or None."""
    thing = tenon
    for part in path.split(".")[1:]:
        thing = getattr(thing, part, None)
    return thing


def our_name(name: str) -> str:
    """The name here of a class of Paddle: Conv2DTranspose is ConvTranspose2d, StepDecay is StepLR."""
    name = OURS.get(name, name)
    name = re.sub(r"^Conv(\d)DTranspose$", r"ConvTranspose\1d", name)
    name = re.sub(r"^MaxUnPool", "MaxUnpool", name)
    name = re.sub(r"(\d)D$", r"\1d", name)
    return re.sub(r"Decay$", "LR", name)


def rows(
    module: str, names: list[str], reasons: dict[str, str], translate
) -> list[tuple[str, str]]:
    """Each name with what it is here, or with the reason why it is not."""
    result = []
    for name in names:
        path = f"{module}.{translate(name)}"
        reason = reasons.get(name) or reasons.get(f"{name} initializer")
        if find(path) is not None:
            result.append((name, f"`{path}`"))
        elif reason:
            result.append((name, f"not there: {reason}"))
        else:
            raise SystemExit(f"training_classes: {path} is not there; give {name} a reason")
    return result


def tables(library: str, groups, reasons: dict[str, str], translate) -> list[str]:
    out = [f"# Training library beside {library}", ""]
    for title, module, names in groups:
        table = rows(module, names, reasons, translate)
        count = sum(not status.startswith("not there") for _, status in table)
        out += [f"## {title}", "", f"`{module}` has {count} of {len(table)}.", ""]
        out += [f"| {library} | Tenon |", "|---|---|"]
        out += [f"| `{name}` | {status} |" for name, status in table] + [""]
    return out


def pages() -> dict[str, str]:
    torch = tables("PyTorch", GROUPS, REASONS, lambda name: name)
    paddle = tables("Paddle", PADDLE_GROUPS, PADDLE_REASONS, our_name)
    return {
        "reference/training_classes.md": "\n".join(torch),
        "reference/training_classes_paddle.md": "\n".join(paddle),
    }
