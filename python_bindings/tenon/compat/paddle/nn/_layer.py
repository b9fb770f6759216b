# SPDX-License-Identifier: Apache-2.0
"""paddle.nn: the base class, containers, and layers that are a function and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tenon
from tenon import _core
from tenon._core import Tensor
from tenon.compat._signature import table
from tenon.compat._signed import bound
from tenon.compat.paddle._attributes import ParamAttr
from tenon.compat.paddle._lazy import LazyParameter, made
from tenon.compat.paddle.nn import functional, initializer

Parameter = tenon.nn.Parameter


class Layer(tenon.nn.Module):
    """A module of Tenon's with Paddle's names for its parts."""

    _dtype: Any = "float32"  # of parameters, as is the device
    _device: Any = None

    def __init__(self, name_scope: str | None = None, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = _core.dtype(dtype)

    def parameters(self, include_sublayers: bool = True) -> list[Tensor]:  # type: ignore[override]
        """The parameters as a list, of this layer alone where `include_sublayers` is false."""
        return [
            each for name, each in self.named_parameters() if include_sublayers or "." not in name
        ]

    def sublayers(self, include_self: bool = False) -> list[Any]:
        """All layers in this one, as a list."""
        return [each for name, each in self.named_modules() if include_self or name]

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """All layers in this one by their names."""
        for name, each in self.named_modules():
            if name or include_self:
                yield ".".join(filter(None, (prefix, name))), each

    def add_sublayer(self, name: str, sublayer: Any) -> Any:
        """Makes a layer a part of this one."""
        setattr(self, name, sublayer)
        return sublayer

    def add_parameter(self, name: str, parameter: Tensor | None) -> Tensor | None:
        """Makes a parameter a part of this layer."""
        setattr(self, name, parameter)
        return parameter

    def set_state_dict(self, state_dict: Mapping[str, Tensor]) -> Any:
        """Takes over values by name, also of files that Paddle has written."""
        state = dict(state_dict)
        for path, module in self._named_paths(""):
            if isinstance(module, Layer):
                module._take_names_of_paddle(state, f"{path}." if path else "")
        return self.load_state_dict(state)

    def load_state_dict(self, state: Mapping[str, Tensor], *args: Any, **settings: Any) -> Any:
        """tenon.nn.Module.load_state_dict(), for which parameters made under LazyGuard get their memory."""
        for name, parameter in self.named_parameters():
            if name in state and isinstance(parameter, LazyParameter):
                parameter.initialize()
        return super().load_state_dict(state, *args, **settings)

    def _take_names_of_paddle(self, state: dict[str, Any], prefix: str) -> None:
        """Puts what Paddle calls otherwise under the names that it has here."""

    set_dict = load_dict = set_state_dict

    def clear_gradients(self) -> None:
        """Forgets the gradients."""
        for each in self.parameters():
            each.grad = None

    def create_parameter(
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Callable[[Tensor], Any] | None = None,
    ) -> Any:
        """A trainable tensor; None where `attr` is false. It is filled by `attr`, by the initialiser, with
        zeros for a bias, or by Xavier's rule."""
        if attr is False:
            return None
        trained = True
        if isinstance(attr, ParamAttr):
            trained, attr = attr.trainable, attr.initializer
        if attr is not None and not callable(attr):
            raise TypeError(
                "create_parameter(): expected attr None, False, a ParamAttr or a function that fills a tensor, got "
                f"{attr!r}"
            )
        fill = attr or initializer.of_layers(is_bias) or default_initializer
        if fill is None and not is_bias:
            fill = tenon.nn.init.xavier_uniform_
        return made(list(shape), dtype or self._dtype, self._device, fill, trained)


class Sequential(Layer):
    """Layers one after another, or pairs of a name and a layer."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        for i, each in enumerate(layers):
            name, layer = each if isinstance(each, (tuple, list)) else (str(i), each)
            setattr(self, name, layer)

    def forward(self, x: Any) -> Any:
        for _, layer in self.named_children():
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(list(self.named_children()))

    def __getitem__(self, index: Any) -> Any:
        layers = dict(self.named_children())
        if isinstance(index, str):
            return layers[index]
        found = list(layers.values())[index]
        return Sequential(*found) if isinstance(index, slice) else found

    def __iter__(self) -> Iterator[Any]:
        return iter([each for _, each in self.named_children()])


class LayerList(tenon.nn.ModuleList):
    """Layers in a list."""

    def __init__(self, sublayers: Any = None) -> None:
        super().__init__([] if sublayers is None else sublayers)


class ParameterList(tenon.nn.ParameterList):
    """Parameters in a list."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__([] if parameters is None else parameters)


class Identity(Layer):
    """Gives its argument back, whatever it was made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


# Layers: names, constructor | function, and what it is always given | operands of forward. The settings go to the function by
# name; `training` is the layer's state.
_TABLE = """
ReLU ReLU6 Sigmoid Tanh Tanhshrink Softsign Mish Swish LogSigmoid Hardswish Hardsigmoid(name=None) | | x
Silu SiLU(inplace=False, name=None) | silu | x
CELU ELU(alpha=1.0, name=None) | | x
GELU(approximate=False, name=None) | gelu | x
GLU(axis=-1, name=None) | glu | x
Hardshrink Softshrink(threshold=0.5, name=None) | | x
Hardtanh(min=-1.0, max=1.0, name=None) | hardtanh | x
LeakyReLU(negative_slope=0.01, name=None) | leaky_relu | x
LogSoftmax(axis=-1, name=None) | log_softmax | x
Softmax(axis=-1, name=None) | softmax | x
Maxout(groups, axis=1, name=None) | maxout | x
SELU(scale=1.0507009873554805, alpha=1.6732632423543772, name=None) | selu | x
Softplus(beta=1, threshold=20, name=None) | softplus | x
ThresholdedReLU(threshold=1.0, value=0.0, name=None) | thresholded_relu | x
AlphaDropout FeatureAlphaDropout(p=0.5, name=None) | | x training
Dropout(p=0.5, inplace=False, axis=None, mode='upscale_in_train', name=None) | dropout | x training
Dropout2D(p=0.5, data_format='NCHW', name=None) | dropout2d | x training
Dropout3D(p=0.5, data_format='NCDHW', name=None) | dropout3d | x training
AdaptiveAvgPool1D(output_size, name=None) | adaptive_avg_pool1d | x
AdaptiveAvgPool2D(output_size, data_format='NCHW', name=None) | adaptive_avg_pool2d | x
AdaptiveAvgPool3D(output_size, data_format='NCDHW', name=None) | adaptive_avg_pool3d | x
AdaptiveMaxPool1D(output_size, return_mask=False, name=None) | adaptive_max_pool1d | x
AdaptiveMaxPool2D(output_size, return_mask=False, name=None) | adaptive_max_pool2d | x
AdaptiveMaxPool3D(output_size, return_mask=False, name=None) | adaptive_max_pool3d | x
AvgPool1D(kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None) | avg_pool1d | x
AvgPool2D(kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None, data_format='NCHW', name=None) | avg_pool2d | x
AvgPool3D(kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None, data_format='NCDHW', name=None) | avg_pool3d | x
MaxPool1D(kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, name=None) | max_pool1d | x
MaxPool2D(kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format='NCHW', name=None) | max_pool2d | x
MaxPool3D(kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format='NCDHW', name=None) | max_pool3d | x
MaxUnPool1D(kernel_size, stride=None, padding=0, data_format='NCL', output_size=None, name=None) | max_unpool1d | x indices
MaxUnPool2D(kernel_size, stride=None, padding=0, data_format='NCHW', output_size=None, name=None) | max_unpool2d | x indices
MaxUnPool3D(kernel_size, stride=None, padding=0, data_format='NCDHW', output_size=None, name=None) | max_unpool3d | x indices
Pad1D(padding, mode='constant', value=0.0, data_format='NCL', name=None) | pad | x
Pad2D(padding, mode='constant', value=0.0, data_format='NCHW', name=None) | pad | x
Pad3D(padding, mode='constant', value=0.0, data_format='NCDHW', name=None) | pad | x
ZeroPad2D(padding, data_format='NCHW', name=None) | zeropad2d | x
ConstantPad1D ConstantPad1d(padding, value, data_format='NCL', name=None) | pad mode=constant | x
ConstantPad2D ConstantPad2d(padding, value, data_format='NCHW', name=None) | pad mode=constant | x
ConstantPad3D ConstantPad3d(padding, value, data_format='NCDHW', name=None) | pad mode=constant | x
ReflectionPad1D ReflectionPad1d(padding, data_format='NCL', name=None) | pad mode=reflect | x
ReflectionPad2D ReflectionPad2d(padding, data_format='NCHW', name=None) | pad mode=reflect | x
ReflectionPad3D ReflectionPad3d(padding, data_format='NCDHW', name=None) | pad mode=reflect | x
ReplicationPad1D ReplicationPad1d(padding, data_format='NCL', name=None) | pad mode=replicate | x
ReplicationPad2D ReplicationPad2d(padding, data_format='NCHW', name=None) | pad mode=replicate | x
ReplicationPad3D ReplicationPad3d(padding, data_format='NCDHW', name=None) | pad mode=replicate | x
CircularPad1D CircularPad1d(padding, data_format='NCL', name=None) | pad mode=circular | x
CircularPad2D CircularPad2d(padding, data_format='NCHW', name=None) | pad mode=circular | x
CircularPad3D CircularPad3d(padding, data_format='NCDHW', name=None) | pad mode=circular | x
ZeroPad1D(padding, data_format='NCL', name=None) | pad mode=constant | x
ZeroPad3D(padding, data_format='NCDHW', name=None) | pad mode=constant | x
UpsamplingNearest2D(size=None, scale_factor=None, data_format='NCHW', name=None) | interpolate mode=nearest | x
UpsamplingBilinear2D(size=None, scale_factor=None, data_format='NCHW', name=None) | interpolate mode=bilinear align_corners=True | x
RReLU(lower=0.125, upper=0.3333333333333333, name=None) | rrelu | x training
PixelShuffle(upscale_factor, data_format='NCHW', name=None) | pixel_shuffle | x
PixelUnshuffle(downscale_factor, data_format='NCHW', name=None) | pixel_unshuffle | x
ChannelShuffle(groups, data_format='NCHW', name=None) | channel_shuffle | x
Unfold(kernel_sizes, dilations=1, paddings=0, strides=1, name=None) | unfold | x
Fold(output_sizes, kernel_sizes, dilations=1, paddings=0, strides=1, name=None) | fold | x
Upsample(size=None, scale_factor=None, mode='nearest', align_corners=False, align_mode=0, data_format=None, recompute_scale_factor=None, name=None) | interpolate | x
LocalResponseNorm(size, alpha=0.0001, beta=0.75, k=1.0, data_format='NCHW', name=None) | local_response_norm | x
CosineSimilarity(axis=1, eps=1e-08) | cosine_similarity | x1 x2
PairwiseDistance(p=2.0, epsilon=1e-06, keepdim=False, name=None) | pairwise_distance | x y
BCELoss(weight=None, reduction='mean', name=None) | binary_cross_entropy | input label
BCEWithLogitsLoss(weight=None, reduction='mean', pos_weight=None, name=None) | binary_cross_entropy_with_logits | logit label
CTCLoss(blank=0, reduction='mean', zero_infinity=False) | ctc_loss | log_probs labels input_lengths label_lengths
CosineEmbeddingLoss(margin=0, reduction='mean', name=None) | cosine_embedding_loss | input1 input2 label
CrossEntropyLoss(weight=None, ignore_index=-100, reduction='mean', soft_label=False, axis=-1, use_softmax=True, label_smoothing=0.0, name=None) | cross_entropy | input label
GaussianNLLLoss(full=False, epsilon=1e-06, reduction='mean', name=None) | gaussian_nll_loss | input label variance
HingeEmbeddingLoss(margin=1.0, reduction='mean', name=None) | hinge_embedding_loss | input label
KLDivLoss(reduction='mean', log_target=False) | kl_div | input label
L1Loss(reduction='mean', name=None) | l1_loss | input label
MSELoss(reduction='mean') | mse_loss | input label
MarginRankingLoss(margin=0.0, reduction='mean', name=None) | margin_ranking_loss | input other label
MultiLabelMarginLoss(reduction='mean', name=None) | multi_label_margin_loss | input label
MultiLabelSoftMarginLoss(weight=None, reduction='mean', name=None) | multi_label_soft_margin_loss | input label
MultiMarginLoss(p=1, margin=1.0, weight=None, reduction='mean', name=None) | multi_margin_loss | input label
NLLLoss(weight=None, ignore_index=-100, reduction='mean', name=None) | nll_loss | input label
PoissonNLLLoss(log_input=True, full=False, epsilon=1e-08, reduction='mean', name=None) | poisson_nll_loss | input label
SmoothL1Loss(reduction='mean', delta=1.0, is_huber=True, name=None) | smooth_l1_loss | input label
SoftMarginLoss(reduction='mean', name=None) | soft_margin_loss | input label
TripletMarginLoss(margin=1.0, p=2.0, epsilon=1e-06, swap=False, reduction='mean', name=None) | triplet_margin_loss | input positive negative
TripletMarginWithDistanceLoss(distance_function=None, margin=1.0, swap=False, reduction='mean', name=None) | triplet_margin_with_distance_loss | input positive negative
"""

_FUNCTIONS_OF = {
    "LogSigmoid": "log_sigmoid",
    "AlphaDropout": "alpha_dropout",
    "FeatureAlphaDropout": "feature_alpha_dropout",
}
_RENAMED = {"padding": "pad"}  # of the layers that are pad()


def _layer_of(
    name: str, signature: Any, function: str, always: dict[str, Any], operands: list[str]
) -> type[Layer]:
    trains = operands[-1] == "training"
    operands = operands[:-1] if trains else operands

    def settings_of(**settings: Any) -> dict[str, Any]:
        return settings

    bind = bound(f"tenon.compat.paddle.nn.{name}", signature, settings_of)

    class Made(Layer):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__()
            settings = bind(*args, **kwargs)
            settings.pop("name", None)
            self._settings = {
                (_RENAMED.get(key, key) if function == "pad" else key): value
                for key, value in settings.items()
            } | always
            if function == "pad" and isinstance(self._settings["pad"], int):
                axes = next(int(letter) for letter in name if letter.isdigit())
                self._settings["pad"] = [self._settings["pad"]] * (2 * axes)

        def forward(self, *given: Any, **named: Any) -> Any:
            settings = {**self._settings, "training": self.training} if trains else self._settings
            return getattr(functional, function)(*given, **named, **settings)

    Made.__name__ = Made.__qualname__ = name
    Made.__module__ = "tenon.compat.paddle.nn"
    Made.__doc__ = f"functional.{function}() of {', '.join(operands)}."
    Made.__signature__ = signature  # type: ignore[attr-defined]
    return Made


def _made() -> dict[str, type[Layer]]:
    layers = {}
    for line in filter(None, _TABLE.splitlines()):
        head, called, operands = (part.strip() for part in line.split("|"))
        function, *given = called.split() or [""]
        pairs = (each.split("=") for each in given)
        always = {key: True if value == "True" else value for key, value in pairs}
        for name, signature in table(head).items():
            own = function or _FUNCTIONS_OF.get(name, name.lower())
            layers[name] = _layer_of(name, signature, own, always, operands.split())
    return layers


LAYERS = _made()
