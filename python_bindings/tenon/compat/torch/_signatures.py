# SPDX-License-Identifier: Apache-2.0
"""PyTorch's signatures of functions that Tenon calls otherwise, or whose options Tenon's functions lack.

A line is a signature and the functions that have it. What a parameter is called in Tenon follows from its name, from
WORDS, and from its position. Functions that are written out for PyTorch have a line only where a parameter has two names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from tenon.compat._calls import by_signature, signature
from tenon.compat.torch._options import FACTORY_OPTIONS, OPTIONS

_FACTORY = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False"
_LIKE = f"{_FACTORY}, memory_format=None"

SIGNATURES = f"""
(input): det imag isreal logdet selu view_as_complex view_as_real is_complex is_floating_point
    numel ravel isfinite isinf isnan trace matrix_exp nn.functional.sigmoid nn.functional.tanh
    nn.functional.tanhshrink nn.functional.logsigmoid
(input, *, out=None): abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
    bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac frexp geqrf
    inverse isneginf isposinf lgamma log log10 log1p log2 logical_not msort neg negative rad2deg reciprocal relu rsqrt
    sin sinc sinh slogdet sqrt square tan tanh trunc special.digamma special.entr special.erf special.erfc
    special.erfcx special.erfinv special.exp2 special.expit special.expm1 special.gammaln special.i0 special.i0e
    special.i1 special.i1e special.log1p special.log_ndtr special.modified_bessel_i0 special.modified_bessel_i1
    special.ndtr special.ndtri special.psi special.sinc linalg.eig linalg.eigvals
(input, other, *, out=None): arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    copysign floor_divide fmax fmin fmod gcd ge greater greater_equal gt hypot inner kron lcm le less less_equal
    logaddexp2 logical_and logical_or logical_xor lt matmul maximum minimum mul multiply ne nextafter not_equal
    remainder true_divide xlogy special.gammainc special.gammaincc special.xlog1py special.xlogy special.zeta
(input, exponent, *, out=None): pow float_power
(input, values, *, out=None): heaviside
(input, vec2, *, out=None): ger outer
(real, imag, *, out=None): complex
(abs, angle, *, out=None): polar
(input, tensor1, tensor2, *, value=1, out=None): addcdiv addcmul
(input, threshold, value, *, out=None): threshold
(input, mask, value): masked_fill
(input, mask, *, out=None): masked_select
(n, input, *, out=None): polygamma special.polygamma
(input, p, *, out=None): special.multigammaln
(input, other, p=2): dist
(input, p, dim, maxnorm, *, out=None): renorm
(x1, x2, dim=1, eps=1e-8): cosine_similarity nn.functional.cosine_similarity
(x1, x2, p=2.0, eps=1e-6, keepdim=False): pairwise_distance
(input, alpha=1.0): celu
(input, p, train): dropout
(input, dim, *, out=None): cummax cummin logcumsumexp
(input, dim=-1, keepdim=False, *, out=None): mode
(input, k, dim=-1, keepdim=False, *, out=None): kthvalue
(input, diagonal=0, *, out=None): tril triu
(input, offset=0): diagflat
(input, dims): permute
(input, shape): reshape
(input, source, destination): movedim moveaxis
(input, axis0, axis1): swapaxes
(input, dim0, dim1): swapdims
(input, dim): unsqueeze
(input, dim=0): unbind
(input, dim, sizes): unflatten
(input, dim, index): select
(input, src, dim, index): select_scatter
(input, src, offset=0, dim1=0, dim2=1): diagonal_scatter
(A, pivot=True, get_infos=False, out=None): lu
(input, split_sizes, dim=0): split_with_sizes
(input, split_sizes, dim=0, *, out=None): split_with_sizes_copy
(input, split_size, dim=0, *, out=None): split_copy
(tensors, dim=0, *, out=None): concat concatenate stack
(tensors, *, out=None): hstack vstack linalg.multi_dot
(x, N=None, increasing=False): vander
(type1, type2): promote_types
(input, p="fro", dim=None, keepdim=False, out=None, dtype=None): norm
(a, b, dims=2, out=None): tensordot
(input, p=2.0, dim=1, eps=1e-12, out=None): nn.functional.normalize
(elements, test_elements, *, assume_unique=False, invert=False, out=None): isin
(input, scale, zero_point, axis, quant_min, quant_max): fake_quantize_per_channel_affine
(input, scales, zero_points, axis, dtype): quantize_per_channel
(input, n, *, out=None): matrix_power
(input, upper=False, *, out=None): cholesky_inverse
(input, input2, upper=False, *, out=None): cholesky_solve
(input, input2, *, out=None): orgqr
(input, rcond=1e-15): pinverse
(n, *, generator=None, out=None, {_FACTORY}): randperm
(input, num_samples, replacement=False, *, generator=None, out=None): multinomial
(input, *, {_LIKE}): empty_like ones_like zeros_like
(input, *, memory_format=None): clone
(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False): tensor

(A, *, out=None): linalg.det linalg.inv linalg.slogdet
(A, *, driver=None, out=None): linalg.svdvals
(input, *, upper=False, out=None): linalg.cholesky
(input, p=None, *, out=None): linalg.cond
(input, tau, *, out=None): linalg.householder_product
(input, n, *, out=None): linalg.matrix_power
(input, ind=2, *, out=None): linalg.tensorinv
(input): linalg.matrix_exp

(input, dim=-1): nn.functional.glu
(input, weight, bias=None, *, out=None): nn.functional.linear
(input1, input2, weight, bias=None): nn.functional.bilinear
(input, inplace=False): nn.functional.hardsigmoid nn.functional.hardswish nn.functional.mish nn.functional.relu
    nn.functional.relu6 nn.functional.selu nn.functional.silu
(input, alpha=1.0, inplace=False): nn.functional.celu nn.functional.elu
(input, negative_slope=0.01, inplace=False): nn.functional.leaky_relu
(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False): nn.functional.rrelu
(input, min_val=-1.0, max_val=1.0, inplace=False): nn.functional.hardtanh
(input, threshold, value, inplace=False): nn.functional.threshold
(input, p=0.5, training=True, inplace=False): nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d
    nn.functional.dropout3d
(input, p=0.5, training=False, inplace=False): nn.functional.alpha_dropout nn.functional.feature_alpha_dropout
(input, num_groups, weight=None, bias=None, eps=1e-5): nn.functional.group_norm
(input, normalized_shape, weight=None, bias=None, eps=1e-5): nn.functional.layer_norm
(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    nn.functional.batch_norm
(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    nn.functional.instance_norm
(input, size, alpha=0.0001, beta=0.75, k=1.0): nn.functional.local_response_norm
(input, groups): nn.functional.channel_shuffle channel_shuffle
(input, p=2.0): nn.functional.pdist
(input, kernel_size, dilation=1, padding=0, stride=1): nn.functional.unfold
(input, output_size, kernel_size, dilation=1, padding=0, stride=1): nn.functional.fold
(input, indices, kernel_size, stride=None, padding=0, output_size=None): nn.functional.max_unpool1d
    nn.functional.max_unpool2d nn.functional.max_unpool3d
(input, target, size_average=None, reduce=None, reduction="mean"): nn.functional.multilabel_margin_loss
    nn.functional.soft_margin_loss
(input, target, weight=None, size_average=None, reduce=None, reduction="mean"): nn.functional.binary_cross_entropy
    nn.functional.multilabel_soft_margin_loss
(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    nn.functional.binary_cross_entropy_with_logits
(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    nn.functional.nll_loss
(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    nn.functional.cross_entropy
(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0): nn.functional.smooth_l1_loss
(input, target, size_average=None, reduce=None, reduction="mean", weight=None): nn.functional.l1_loss
    nn.functional.mse_loss
(input, target, reduction="mean", delta=1.0, weight=None): nn.functional.huber_loss
(input, target, size_average=None, reduce=None, reduction="mean", log_target=False): nn.functional.kl_div
(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    nn.functional.poisson_nll_loss
(input, target, var, full=False, eps=1e-6, reduction="mean"): nn.functional.gaussian_nll_loss
(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"): nn.functional.hinge_embedding_loss
(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    nn.functional.multi_margin_loss
(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    nn.functional.cosine_embedding_loss nn.functional.margin_ranking_loss
(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    nn.functional.triplet_margin_loss
"""

# Functions that are written out for PyTorch, and take more than their own parameters.
_MORE = {
    "out": """add addbmm addmm addmv addr alias_copy all amax amin aminmax any conj_physical cumprod diag log_softmax
    nan_to_num nanmean sgn sign slice_scatter softmax any arange argmax argmin argsort as_strided_copy
    baddbmm bmm bucketize cat chain_matmul clamp clip column_stack cross cumsum detach_copy diagonal_copy diff div
    divide dot dstack empty eq expand_copy eye full gather hardshrink histc histogram i0 igamma igammac index_add
    index_copy index_reduce index_select ldexp lerp linspace logaddexp logit logspace logsumexp lu_solve lu_unpack
    max mean median min mm mv mvlgamma nanmedian nanquantile nansum narrow_copy nonzero nonzero_static normal ones
    ormqr permute_copy prod quantile rand randint randn range round row_stack scatter scatter_add scatter_reduce
    searchsorted select_copy sigmoid signbit sort squeeze_copy std sub subtract sum svd t_copy take take_along_dim
    topk transpose_copy triangular_solve unbind_copy unfold_copy unsqueeze_copy var vdot view_copy where zeros
    bernoulli nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.gelu nn.functional.hardshrink
    nn.functional.softplus nn.functional.softshrink""",
    "layout": """arange empty empty_permuted empty_strided eye full full_like kaiser_window linspace logspace normal
    ones rand rand_like randint randint_like randn randn_like range scalar_tensor tril_indices triu_indices zeros
    bartlett_window blackman_window hamming_window hann_window fft.fftfreq fft.rfftfreq""",
    "pin_memory": """arange empty empty_permuted empty_strided eye full full_like kaiser_window linspace logspace normal
    ones rand rand_like randint randint_like randn randn_like range scalar_tensor tril_indices triu_indices zeros
    bartlett_window blackman_window hamming_window hann_window fft.fftfreq fft.rfftfreq""",
    "requires_grad": """arange empty empty_permuted empty_strided eye full full_like kaiser_window linspace logspace
    normal ones rand rand_like randint randint_like randn randn_like range scalar_tensor tril_indices triu_indices zeros
    bartlett_window blackman_window hamming_window hann_window fft.fftfreq fft.rfftfreq""",
    "memory_format": "empty full_like rand_like randint_like randn_like",
    "generator": "rand_like randint_like randn_like",
}
_PREFIXES_WITH_OUT = ("linalg.", "special.", "fft.")
_WITHOUT_OUT = set(
    """linalg.diagonal linalg.matrix_exp linalg.matrix_sqrth linalg.vander fft.fftshift fft.ifftshift special.softmax
    special.log_softmax""".split()
)
_DEFAULTS: dict[str, Any] = {"pin_memory": False, "requires_grad": False}

# What Tenon calls a parameter of PyTorch's that has a default; the first that there is counts. Those without one are
# matched in order.
WORDS = {
    "dim": ("axis",),
    "dims": ("axes", "axis"),
    "dim0": ("axis0",),
    "dim1": ("axis0", "axis1"),
    "dim2": ("axis1",),
    "min_val": ("min",),
    "max_val": ("max",),
    "diagonal": ("offset",),
    "rcond": ("rtol",),
    "N": ("n",),
}

# Other keywords for a parameter: NumPy's words, which PyTorch takes, and those of its documentation.
SYNONYMS = {
    "x": ("input",),
    "a": ("input",),
    "x1": ("input",),
    "x2": ("other",),
    "axis": ("dim",),
    "keepdims": ("keepdim",),
    "self": ("input",),
    "input": ("A", "x", "tensor"),
    "A": ("input",),
    "b": ("B", "input"),
    "B": ("input",),
    "L": ("input2", "input"),
    "tau": ("input2",),
    "other": ("input3", "B"),
    "tensor": ("input",),
    "indices": ("indices_or_sections",),
    "sections": ("indices_or_sections",),
    "tensor_indices_or_sections": ("indices_or_sections",),
}


def _table(text: str) -> dict[str, inspect.Signature]:
    result = {}
    for line in text.replace("\n    ", " ").strip().splitlines():
        if line:
            parameters, _, names = line.rpartition(":")
            result.update(dict.fromkeys(names.split(), signature(parameters.strip())))
    return result


_TABLE = _table(SIGNATURES)
_OPTIONS_OF = {option: set(names.split()) for option, names in _MORE.items()}


def of(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """PyTorch's signature of the function with this dotted name."""
    if name in _TABLE:
        return _TABLE[name]
    own = inspect.signature(function)
    more = [option for option, names in _OPTIONS_OF.items() if name in names]
    if name.startswith(_PREFIXES_WITH_OUT) and name not in _WITHOUT_OUT:
        more.append("out")
    if name.startswith("signal.windows."):
        more.append("layout")
    added = [
        inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(each))
        for each in more
        if each not in own.parameters
    ]
    named = list(own.parameters.values())
    if named and named[-1].kind is inspect.Parameter.VAR_KEYWORD:
        named[-1:] = [*added, named[-1]]
    else:
        named += added
    return own.replace(parameters=named)


def in_space(space: str) -> list[str]:
    """The functions of a module that have a line of their own."""
    return [name.removeprefix(f"{space}.") for name in _TABLE if name.startswith(f"{space}.")]


def adapted(name: str, function: Any) -> Any:
    """The function of Tenon's with this dotted name of PyTorch's, called by PyTorch's signature. What is no function
    stays what it is."""
    if not callable(function) or isinstance(function, type) or hasattr(function, "__signature__"):
        return function
    try:
        theirs = of(name, function)
    except ValueError:  # a function of C without a signature
        return function
    options = OPTIONS | FACTORY_OPTIONS if "layout" in theirs.parameters else OPTIONS
    return by_signature(name, function, theirs, WORDS, SYNONYMS, options)


def adapt_all(space: str, names: Iterable[str], module: dict[str, Any]) -> None:
    """adapted() for the functions of a module by these names, in place."""
    for each in names:
        module[each] = adapted(f"{space}.{each}", module[each])
