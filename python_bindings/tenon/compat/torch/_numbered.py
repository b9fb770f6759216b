# SPDX-License-Identifier: Apache-2.0
"""Functions of torch.nn.functional as torch itself has them, too: modes and reductions are numbers there, statistics come after the
weights, and nothing has a default that a layer would know. And one step of recurrent layers."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import tenon
from tenon._core import Tensor
from tenon._core import operator as _operator
from tenon.compat.torch import _copies, _functions
from tenon.compat.torch.nn import functional as _F

__all__ = """affine_grid_generator alpha_dropout batch_norm binary_cross_entropy_with_logits cosine_embedding_loss
ctc_loss embedding feature_alpha_dropout feature_dropout frobenius_norm grid_sampler group_norm gru_cell hinge_embedding_loss
instance_norm kl_div layer_norm lstm_cell margin_ranking_loss max_pool1d max_pool2d max_pool3d native_channel_shuffle
norm_except_dim nuclear_norm poisson_nll_loss rms_norm rnn_relu_cell rnn_tanh_cell rrelu rsub triplet_margin_loss
unsafe_split_with_sizes""".split()

# By default nothing is reduced, though PyTorch's schema says "mean": so do its functions in Python.
_REDUCTIONS = ("none", "mean", "sum")
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _chosen(name: str, parameter: str, names: Sequence[str], number: Any) -> str:
    """What a number stands for."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(names):
        meant = ", ".join(f"{i} ({each})" for i, each in enumerate(names))
        raise ValueError(f"{name}(): expected {parameter} one of {meant}, got {number!r}")
    return names[number]


# -- layers ------------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[builtins.int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalisation over the last axes. `cudnn_enable` allows a library that is used on no device here."""
    return _F.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[builtins.int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Division by the root of the mean of squares over the last axes."""
    return _F.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor,
    num_groups: builtins.int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalisation of groups of channels."""
    return _F.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Normalisation of channels over the batch, or by what was measured in training."""
    return _F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Normalisation of channels of each item."""
    return _F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: builtins.int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight`. -1 is no row of padding."""
    padding = None if padding_idx == -1 else padding_idx
    return _F.embedding(
        indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
    )


def _pool(axes: builtins.int) -> Any:
    name = f"max_pool{axes}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Tensor:
        function = getattr(_F, name)
        result: Tensor = function(
            input, kernel_size, None if stride == () else stride, padding, dilation, ceil_mode
        )
        return result

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = "The largest element of each window."
    return pool


max_pool1d, max_pool2d, max_pool3d = map(_pool, (1, 2, 3))


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps mean and variance of what selu() gives."""
    return _F.alpha_dropout(input, p, train)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout() of whole channels."""
    return _F.feature_alpha_dropout(input, p, train)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels, which are the second axis."""
    if input.ndim < 2:
        raise ValueError(
            f"feature_dropout(): expected a batch with channels, of two axes or more, got shape {tuple(input.shape)}"
        )
    if not train:
        return input
    kept = _operator("ones_like")(
        input[(slice(None), slice(None), *[slice(0, 1)] * (input.ndim - 2))]
    )
    return input * _F.dropout(kept, p, True)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """relu() with slopes left of zero, in training drawn from [lower, upper]."""
    return _F.rrelu(input, lower, upper, training)


def native_channel_shuffle(input: Tensor, groups: builtins.int) -> Tensor:
    """Channels of groups, taken in turn."""
    return _F.channel_shuffle(input, groups)


def affine_grid_generator(
    theta: Tensor, size: Sequence[builtins.int], align_corners: bool
) -> Tensor:
    """Where affine maps of images look."""
    return _F.affine_grid(theta, size, align_corners)


def grid_sampler(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: builtins.int,
    padding_mode: builtins.int,
    align_corners: bool,
) -> Tensor:
    """Images, looked at where `grid` says."""
    mode = _chosen("grid_sampler", "interpolation_mode", _MODES, interpolation_mode)
    padding = _chosen("grid_sampler", "padding_mode", _PADDINGS, padding_mode)
    return _F.grid_sample(input, grid, mode, padding, align_corners)


# -- losses ------------------------------------------------------------------------------------------


def kl_div(
    input: Tensor, target: Tensor, reduction: builtins.int = 0, *, log_target: bool = False
) -> Tensor:
    """Divergence of distributions, of which `input` has logarithms."""
    chosen = _chosen("kl_div", "reduction", _REDUCTIONS, reduction)
    return _F.kl_div(input, target, reduction=chosen, log_target=log_target)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: builtins.int = 0,
) -> Tensor:
    """Cross entropy of yes and no, of numbers before sigmoid()."""
    chosen = _chosen("binary_cross_entropy_with_logits", "reduction", _REDUCTIONS, reduction)
    return _F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=chosen, pos_weight=pos_weight
    )


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: builtins.int = 0
) -> Tensor:
    """Distances where the target is 1, and what they lack of the margin where it is -1."""
    chosen = _chosen("hinge_embedding_loss", "reduction", _REDUCTIONS, reduction)
    return _F.hinge_embedding_loss(input, target, margin, reduction=chosen)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: builtins.int = 0
) -> Tensor:
    """How far two rankings are from the order that `target` says."""
    chosen = _chosen("margin_ranking_loss", "reduction", _REDUCTIONS, reduction)
    return _F.margin_ranking_loss(input1, input2, target, margin, reduction=chosen)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: builtins.int = 0
) -> Tensor:
    """1 minus the cosine of pairs that belong together, and the cosine above the margin of others."""
    chosen = _chosen("cosine_embedding_loss", "reduction", _REDUCTIONS, reduction)
    return _F.cosine_embedding_loss(input1, input2, target, margin, reduction=chosen)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: builtins.int = 0,
) -> Tensor:
    """By how much the negative one is not farther than the positive one."""
    chosen = _chosen("triplet_margin_loss", "reduction", _REDUCTIONS, reduction)
    return _F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=chosen
    )


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: builtins.int
) -> Tensor:
    """Negative log likelihood of counts."""
    chosen = _chosen("poisson_nll_loss", "reduction", _REDUCTIONS, reduction)
    return _F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=chosen)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: builtins.int = 0,
    reduction: builtins.int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """Loss of connectionist temporal classification."""
    chosen = _chosen("ctc_loss", "reduction", _REDUCTIONS, reduction)
    return _F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, chosen, zero_infinity
    )


# -- one step of recurrent layers --------------------------------------------------------------------

Bias = Tensor | None


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """The next state of a plain recurrent layer with tanh()."""
    return _operator("tanh")(_F.linear(input, w_ih, b_ih) + _F.linear(hx, w_hh, b_hh))


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """The next state of a plain recurrent layer with relu()."""
    return _operator("relu")(_F.linear(input, w_ih, b_ih) + _F.linear(hx, w_hh, b_hh))


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """The next state of gated recurrent units; rows of weights are reset, update and new."""
    given = tenon.chunk(_F.linear(input, w_ih, b_ih), 3, -1)
    kept = tenon.chunk(_F.linear(hx, w_hh, b_hh), 3, -1)
    reset, update = (_operator("sigmoid")(given[i] + kept[i]) for i in (0, 1))
    new = _operator("tanh")(given[2] + reset * kept[2])
    return new + update * (hx - new)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Bias = None,
    b_hh: Bias = None,
) -> tuple[Tensor, Tensor]:
    """The next output and cell of a long short-term memory; rows of weights are input, forget, new and output."""
    state, cell = hx
    gates = tenon.chunk(_F.linear(input, w_ih, b_ih) + _F.linear(state, w_hh, b_hh), 4, -1)
    entered, kept, shown = (_operator("sigmoid")(gates[i]) for i in (0, 1, 3))
    cell = kept * cell + entered * _operator("tanh")(gates[2])
    return shown * _operator("tanh")(cell), cell


# -- older names -------------------------------------------------------------------------------------


def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares over `dim`."""
    axes = dim if dim is None or isinstance(dim, int) else list(dim) or None
    return _functions.norm(input, "fro", axes, keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices, which are the axes `dim`."""
    return _functions.norm(input, "nuc", dim, keepdim)


def norm_except_dim(v: Tensor, pow: builtins.int = 2, dim: builtins.int = 0) -> Tensor:
    """The norm of order `pow` over all axes but one; over all of them with dim=-1."""
    if dim == -1:
        return _operator("norm")(v, float(pow))
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return _operator("norm")(v, float(pow), axes, True) if axes else abs(v)


def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`other` - `alpha` * `input`."""
    return _operator("subtract")(other, input if alpha == 1 else input * alpha)


def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[builtins.int], dim: builtins.int = 0
) -> tuple[Tensor, ...]:
    """split() by sizes, as unsafe_split() is split()."""
    return _copies.unsafe_split(input, split_sizes, dim)
