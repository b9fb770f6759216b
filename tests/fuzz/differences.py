# SPDX-License-Identifier: Apache-2.0
"""Known differences: what differs on purpose, and why. A mismatch without a row here fails."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from .draw.values import LIMITS


@dataclass(frozen=True)
class Difference:
    operators: str  # a regular expression for the whole name
    oracles: str  # the same for the oracle
    reason: str  # "differs on purpose, because ..."
    dtypes: str = ".*"  # for all dtypes of the tensors, with commas between
    detail: str = ""  # occurs in what differs
    values: str = ""  # occurs in the program that shows it
    within: float = math.inf  # how far the two numbers may be apart
    when: Callable = lambda mismatch: True  # what else is true of the mismatch

    def explains(self, mismatch):
        return (
            re.fullmatch(self.operators, mismatch.op) is not None
            and re.fullmatch(self.oracles, mismatch.oracle) is not None
            and re.fullmatch(self.dtypes, ",".join(mismatch.dtypes)) is not None
            and re.search(self.detail, mismatch.detail) is not None
            and re.search(self.values, mismatch.script.partition("print")[2]) is not None
            and (self.within == math.inf or _distance(mismatch) <= self.within)
            and self.when(mismatch)
        )


_NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"


def _pair(mismatch):
    """The two numbers that differ: (got, expected)."""
    found = re.search(r"(\S+) instead of ([^\s,]+)", mismatch.detail)
    return [complex(number) for number in found.groups()] if found else [math.nan, math.nan]


def _distance(mismatch):
    got, expected = _pair(mismatch)
    return abs(got - expected)


def _is_subnormal(mismatch):
    """The expected number is below the normal numbers of the narrowest dtype, or next to them."""
    normals = [LIMITS[name][1] for name in mismatch.dtypes if name in LIMITS]
    return abs(_pair(mismatch)[1]) < 2 * max(normals, default=0.0)


def _numbers(mismatch):
    """All numbers of the tensors of the program."""
    literals = re.findall(r"tenon\.tensor\((.*?)dtype=", mismatch.script)
    return [float(number) for text in literals for number in re.findall(_NUMBER, text)]


def _products_leave_range(mismatch):
    """The product of some of the numbers is not a normal number of the narrowest accumulator."""
    limits = [LIMITS[name] for name in mismatch.dtypes if name in LIMITS]
    if not limits:
        return False
    sizes = [math.log(abs(n)) for n in _numbers(mismatch) if n and math.isfinite(n)]
    least = sum(size for size in sizes if size < 0)
    most = sum(size for size in sizes if size > 0)
    largest, normal = LIMITS["float32"][:2]  # of the accumulators of narrower dtypes
    normal = max(min(limit[1], normal) for limit in limits)
    largest = min(max(limit[0], largest) for limit in limits)
    return least < math.log(normal) or most > math.log(largest)


def _has_equal_numbers(mismatch):
    """A maximum or an order that more than one element could have."""
    numbers = _numbers(mismatch)
    repeats = "np.resize" in mismatch.script or ".expand(" in mismatch.script
    return repeats or len(set(numbers)) < len(numbers)


def _has_zero(mismatch):
    return 0.0 in _numbers(mismatch)


def _has_subnormal_bfloat16(mismatch):
    return any(0 < abs(number) < LIMITS["bfloat16"][1] for number in _numbers(mismatch))


def _has_whole_quotient(mismatch):
    """Division of the arguments gives a number next to a whole one."""
    program = re.sub(r"tenon\.(floor_divide|remainder)\(", "tenon.divide(", mismatch.script)
    names: dict = {}
    exec(program.partition("; r = r[0]")[0], names)
    quotients = names["r"].detach().numpy()
    return bool((abs(quotients - quotients.round()) <= 1e-3 * (1 + abs(quotients))).any())


def _is_at_threshold(mismatch):
    """A number whose magnitude is the threshold, 0.5 by default."""
    found = re.search(r"\), (\d+\.?\d*)\); r = ", mismatch.script)
    return float(found[1] if found else 0.5) in map(abs, _numbers(mismatch))


def _largest_exponential(mismatch):
    """The largest element of the exponential of a matrix in the program, in float64."""
    program = mismatch.script.partition("; print(")
    arguments = re.search(r"tenon\.matrix_exp\((tenon\.tensor\(.*?\)\))", program[2])
    names: dict = {}
    exec(f"{program[0]}; r = tenon.matrix_exp({arguments[1][:-1]}.astype('complex128'))", names)
    return float(abs(names["r"].numpy()).max())


def _is_outside_integer_dtype(mismatch):
    """A number that the dtype to convert to does not hold."""
    found = re.search(r"'(u?)int(\d+)'\)", mismatch.script)
    if found is None:
        return False
    bits = int(found[2])
    low, high = (0, 2**bits) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return any(not low - 1 < number < high for number in _numbers(mismatch))


DIFFERENCES = (
    Difference(
        "triplet_margin_loss",
        "meta|device .*",
        "differs on purpose, because the distance of two numbers beside a tensor is one of the host's, which the tensor's "
        "device refuses",
        detail="expected all tensors on one device",
        values="swap=True",
    ),
    Difference(
        "view_dtype",
        "gradient|second_gradient|meta|validation|layout",
        "differs on purpose, because the memory of the argument decides whether its last axis may be seen as another dtype",
        detail="expected a dense last axis",
    ),
    Difference(
        "log_softmax",
        "numpy",
        "differs on purpose, because next to inf every logarithm is NaN, as in PyTorch; SciPy has "
        "-inf",
        detail="nan",
    ),
    Difference(
        "max_pool2d_with_indices",
        "torch",
        "differs on purpose, because the index is that of the first NaN; PyTorch has the last "
        "one's",
        detail="^result 1",
        values="nan",
    ),
    Difference(
        "max_pool2d_with_indices",
        "torch",
        "differs on purpose, because a window of padding alone has the index 0; PyTorch's is outside of the image",
        detail="^result 1: 0 instead of",
        values="padding=.*dilation=",
    ),
    Difference(
        "cumprod",
        "gradient|second_gradient",
        "differs on purpose, because the gradient is documented to be NaN where a factor is zero",
        detail="nan instead of",
    ),
    Difference(
        "digamma",
        "numpy|torch|device .*|isa .*",
        "differs on purpose, because digits are lost next to its negative zeros (docs/accuracy.md)",
        dtypes="float64",
        values=r"[\[ ]-\d",
        within=1e-9,
    ),
    Difference(
        "(varlen|cached|paged)_attention",
        "layout|wide|recording|threads|validation|isa .*",
        "differs on purpose, because scores or sums leave the range, where their order decides",
        detail="inf|nan|e\\+",
        values=r"e\+|inf|nan",
    ),
    Difference(
        "weight_only_linear|linear_blocks|linear_fp8|moe_linear|rotary_embedding|box_.*|generalized_box_iou|roi_align|add_.*_norm|affine_channel|moe_combine",
        "wide|layout|recording|isa .*",
        "differs on purpose, because partial results overflow, and infinities of both signs cancel",
        values=r"e\+|inf|nan",
    ),
    Difference(
        "linear_fp8|moe_linear|limit_by_capacity|correlation|spectral_norm|match_matrix_tensor|rank_attention|sequence_conv|gru_recurrence|"
        "margin_cross_entropy|softmax_with_cross_entropy|"
        "(dice|poisson_nll|gaussian_nll|hsigmoid|npair|multilabel_soft_margin|triplet_margin)_loss",
        "wide|layout|recording|device .*|isa .*",
        "differs on purpose, because partial results overflow, where the order of sums decides, and infinities of both "
        "signs cancel",
        detail="inf|nan",
        values=r"e\+(1[5-9]|[23]\d|\d{3})|inf|nan",
    ),
    Difference(
        ".*_loss",
        "device .*",
        "differs on purpose, because devices of examples add up a long mean one number after the other",
        when=lambda mismatch: (
            len(_numbers(mismatch)) >= 16 and _distance(mismatch) <= 3e-4 * abs(_pair(mismatch)[1])
        ),
    ),
    Difference(
        "cosine_embedding_loss",
        "wide",
        "differs on purpose, because squares leave the range of the accumulator, as in cosine_similarity",
        values=r"e[+-](1[89]|[2-9]\d)|e[+-]\d{3}",
    ),
    Difference(
        "soft_margin_loss",
        "wide",
        "differs on purpose, because the exponential multiplies the rounding of the product by its size",
        when=lambda mismatch: _distance(mismatch) <= 1e-5 * abs(_pair(mismatch)[1]),
    ),
    Difference(
        "sigmoid_focal_loss",
        "wide|device .*|isa .*",
        "differs on purpose, because the power multiplies the rounding of the probability by gamma",
        values="gamma=",
        when=lambda mismatch: _distance(mismatch) <= 1e-5 * abs(_pair(mismatch)[1]),
    ),
    Difference(
        "triplet_margin_loss",
        "device .*|isa .*",
        "differs on purpose, because differences of unsigned integers wrap, and two large distances cancel",
        dtypes="uint.*",
    ),
    Difference(
        "correlation",
        "device .*",
        "differs on purpose, because integers are added up as floats, whose order decides where large ones cancel",
        dtypes="u?int.*",
    ),
    Difference(
        "spectral_norm",
        "gradient|second_gradient",
        "differs on purpose, because the singular vectors are taken as constants, and move with the differences",
        detail="by differences",
    ),
    Difference(
        "gaussian_nll_loss",
        "gradient|second_gradient",
        "differs on purpose, because a variance below eps is raised to it with the gradient of one that is not, and differences see "
        "a constant",
        detail="by differences",
        when=lambda mismatch: any(number < 1e-3 for number in _numbers(mismatch)),
    ),
    Difference(
        "moe_gate|viterbi_decode|beam_search_step|nms|segment_m(ax|in)",
        "wide",
        "differs on purpose, because numbers that are equal once they are rounded are in another order",
    ),
    Difference(
        "fake_quantize|fake_quantize_abs_max",
        "gradient|second_gradient",
        "differs on purpose, because gradients pass straight through the steps that differences see",
    ),
    Difference(
        "fake_quantize.*|quantize_linear|weight_quantize",
        "wide",
        "differs on purpose, because a number next to the middle of a step is rounded to another one",
    ),
    Difference(
        "roi_align|roi_pool",
        "gradient|second_gradient",
        "differs on purpose, because boxes get no gradients, and move with the differences",
    ),
    Difference(
        "segment_.*|sequence_pad",
        "meta",
        "differs on purpose, because without a count the extent of the result is read from the data",
    ),
    Difference(
        "scaled_dot_product_attention",
        "layout|wide|torch|recording",
        "differs on purpose, because values next to the largest number overflow before the "
        "division by the sum of weights, where the order of sums decides",
        detail=r"inf instead of -?[0-9.]+e\+|e\+[0-9]+ instead of -?inf",
    ),
    Difference(
        "gelu|silu",
        "torch",
        "differs on purpose, because Tenon keeps digits of small results that PyTorch loses "
        "(docs/accuracy.md)",
        within=1e-14,
    ),
    Difference(
        "pow",
        "numpy",
        "differs on purpose, because pow(-inf, 0.5) is inf by C's Annex F; NumPy takes a root "
        "there",
        detail="inf instead of nan",
    ),
    Difference(
        "lstm_recurrence",
        "wide|recording",
        "differs on purpose, because gates below the normal numbers keep few digits",
        detail=r"e-(3[6-9]|4[0-9]|30[5-9]) instead of",
    ),
    Difference(
        "copysign",
        "numpy|torch",
        "differs on purpose, because NaN has no sign that every dtype and conversion keeps",
        detail="^-?([0-9.e+-]+|inf) instead of",
        values="nan",
    ),
    Difference(
        "batch_norm_inference",
        "wide|numpy|torch|recording|layout",
        "differs on purpose, because scale and shift are folded: next to infinite ones other results "
        "are NaN",
        detail="nan|inf",
        values="inf",
    ),
    Difference(
        "conv1d|conv2d",
        "torch",
        "differs on purpose, because without input channels every output channel is 0; PyTorch "
        "has none",
        detail="^shape",
    ),
    Difference(
        "binary_cross_entropy.*|.*_loss|cross_entropy|kl_div",
        "wide|numpy|torch|recording",
        "differs on purpose, because the sum before a mean, of rows or with label smoothing of classes, "
        "overflows in its accumulator, as in PyTorch",
        detail=r"inf instead of -?[0-9.]+e\+(3[3-8]|30\d)",
        when=lambda mismatch: (
            "'none'" not in mismatch.script or "label_smoothing" in mismatch.script
        ),
    ),
    Difference(
        "copysign",
        "gradient|second_gradient",
        "differs on purpose, because |x| has no derivative at 0, where the gradient has the sign "
        "of y",
    ),
    Difference(
        "sigmoid|silu",
        "numpy|torch",
        "differs on purpose, because Tenon keeps results below the normal numbers that peers flush",
        detail=r"e-3[0-2][0-9] instead of -?0.0",
    ),
    Difference(
        "hardswish",
        "torch",
        "differs on purpose, because x below -3 gives 0, also where x is -inf; PyTorch multiplies",
        detail="0.0 instead of nan",
    ),
    Difference(
        "adaptive_avg_pool2d|avg_pool.d|(nan)?mean|var|std|var_mean|std_mean|group_norm|layer_norm|batch_norm",
        "wide|numpy|torch",
        "differs on purpose, because a sum that the accumulator does not hold overflows before the "
        "division, as in NumPy and PyTorch",
        detail="inf instead of",
    ),
    Difference(
        "interpolate2d",
        "torch",
        "differs on purpose, because a neighbour of weight 0 is left out; PyTorch multiplies it, and "
        "inf times 0 is NaN",
        detail="instead of nan",
        values="inf|nan",
    ),
    Difference(
        "scaled_dot_product_attention",
        "torch",
        "differs on purpose, because what a mask hides is left out; PyTorch multiplies it, and inf "
        "times 0 is NaN",
        detail="instead of nan",
        values="inf|nan",
    ),
    Difference(
        "norm|dist|normalize|renorm|rms_norm|spectral_norm|std|var|std_mean|var_mean|cosine_similarity|pairwise_distance|"
        "triplet_margin_loss|cosine_embedding_loss|gaussian_nll_loss|npair_loss",
        "wide|numpy|torch",
        "differs on purpose, because squares leave the range of the accumulator, as in NumPy and "
        "PyTorch",
        detail=r"^(result \d+: )?(-?(inf|0\.0|0j)|\(-?0[+-]0j\)) instead of",
        values=r"e[+-](1[89]|[2-9]\d)|e[+-]\d{3}",
    ),
    Difference(
        "norm",
        "wide|numpy|torch",
        "differs on purpose, because squares below the normal numbers of the accumulator keep few digits, as in "
        "NumPy and PyTorch",
        dtypes="float32|complex64",
        when=lambda mismatch: abs(_pair(mismatch)[1]) ** 2 < LIMITS["float32"][1] * 2**10,
    ),
    Difference(
        "cumsum|cumprod",
        "torch",
        "differs on purpose, because sums of unsigned integers stay unsigned, as in NumPy; PyTorch has int64",
        dtypes="uint64",
    ),
    Difference(
        "norm|normalize|std|var",
        "torch",
        "differs on purpose, because squares of double numbers leave the range in PyTorch alone",
        dtypes="float64|complex128",
        detail=r"instead of (-?(inf|0\.0|0j)|\(-0-0j\)) at",
        values=r"e[+-][123]\d\d",
    ),
    Difference(
        "normalize|renorm",
        "gradient|second_gradient",
        "differs on purpose, because a norm of order 0 counts: where all numbers are 0 the gradient is "
        "that of a count of 0, as in PyTorch, and differences see a count of 1",
        detail="by differences",
        values=r"\), 0\.0",
        when=_has_zero,
    ),
    Difference(
        "softmax",
        "wide|numpy|torch",
        "differs on purpose, because weights below the normal numbers are 0 (docs/accuracy.md)",
        detail=r"^0\.0 instead of [0-9.]+e-(3[89]|4\d|30[89]|3[12]\d)",
    ),
    Difference(
        "binary_cross_entropy_with_logits",
        "torch",
        "differs on purpose, because an infinite logit times a target of 0 is NaN",
        detail="nan instead of inf",
        values="inf",
    ),
    Difference(
        "nan_to_num",
        "wide|numpy",
        "differs on purpose, because infinities become the largest number of the dtype",
        detail=r"e\+38",
        values="inf",
    ),
    Difference(
        "signbit",
        "numpy|torch",
        "differs on purpose, because NaN has no sign that every dtype and conversion keeps",
        values="nan",
    ),
    Difference(
        "cumprod|prod",
        "wide|numpy|torch|device .*",
        "differs on purpose, because a product that overflows before a factor of 0 is NaN; the order "
        "of factors decides",
        detail=r"nan instead of -?0\.0",
        values=r"e\+(3[0-9]|30[0-9])",
    ),
    Difference(
        "cumprod|prod",
        "wide|numpy|torch|validation|layout|recording|device .*|isa .*",
        "differs on purpose, because a part of the product overflows, or is below the normal numbers "
        "and keeps few digits; the order of factors, which depends on the layout, decides",
        when=_products_leave_range,
    ),
    Difference(
        ".*_loss|kl_div",
        "wide|numpy|torch",
        "differs on purpose, because sums below the normal numbers keep few digits",
        when=_is_subnormal,
    ),
    Difference(
        "erfc",
        "numpy",
        "differs on purpose, because Tenon keeps digits of small results that SciPy loses "
        "(docs/accuracy.md)",
        detail=r"e-\d+ instead of",
    ),
    Difference(
        "elu|selu",
        "gradient|second_gradient",
        "differs on purpose, because differences along a direction see both sides of the kink at 0",
        detail="by differences",
        when=_has_zero,
    ),
    Difference(
        "max_pool.d|max_pool2d_with_indices|adaptive_max_pool2d|sort|sort_with_indices|topk|msort|(nan)?median|(nan)?quantile|"
        "kthvalue|cummax|cummin|aminmax|mode|scatter_reduce|put_along_axis|index_reduce|segment_max|segment_min|moe_gate",
        "gradient|second_gradient",
        "differs on purpose, because differences along a direction see both sides of a kink between "
        "equal elements",
        detail="by differences",
        when=_has_equal_numbers,
    ),
    Difference(
        "floor_divide|remainder",
        "gradient",
        "differs on purpose, because differences see a step where the quotient is whole",
        detail="by differences",
        when=_has_whole_quotient,
    ),
    Difference(
        "softmax|log_softmax|cross_entropy",
        "device .*",
        "differs on purpose, because beside inf the decomposition gives 0 or -inf for other elements, "
        "where kernels give NaN",
        values="inf",
    ),
    Difference(
        "cast",
        "device .*",
        "differs on purpose, because a number that an integer dtype does not hold has no defined "
        "conversion",
        when=_is_outside_integer_dtype,
    ),
    Difference(
        "silu|mish|glu|rms_norm|layer_norm|group_norm",
        "wide|torch|numpy",
        "differs on purpose, because results below the normal numbers keep few digits "
        "(docs/accuracy.md)",
        when=_is_subnormal,
    ),
    Difference(
        "tanhshrink",
        "torch",
        "differs on purpose, because Tenon keeps digits of small results that PyTorch loses "
        "(docs/accuracy.md)",
        dtypes="float.*|bfloat16",
        within=1e-15,
    ),
    Difference(
        "tanhshrink",
        "wide|torch|numpy|recording",
        "differs on purpose, because small complex results are differences of larger numbers "
        "(docs/accuracy.md)",
        dtypes="complex.*",
        within=1e-7,
    ),
    Difference(
        "binary_cross_entropy_with_logits",
        "torch",
        "differs on purpose, because Tenon keeps digits of small losses that PyTorch loses",
        within=1e-14,
    ),
    Difference(
        "binary_cross_entropy_with_logits",
        "torch",
        "differs on purpose, because the other class's part of an infinite loss is 0; PyTorch "
        "subtracts infinities",
        detail="inf instead of nan",
        values="inf",
    ),
    Difference(
        "norm|dist|std|var",
        "numpy|torch",
        "differs on purpose, because peers add the numbers one by one, Tenon in blocks, which loses less",
        dtypes="float64(,float64)*",
        when=lambda mismatch: _distance(mismatch) <= 1e-14 * abs(_pair(mismatch)[1]),
    ),
    Difference(
        "softmax|norm",
        "torch",
        "differs on purpose, because PyTorch adds the numbers of a long axis one by one, Tenon in "
        "blocks",
        values=r"\d, .{2000}",
        dtypes="float64",
        when=lambda mismatch: _distance(mismatch) <= 1e-12 * abs(_pair(mismatch)[1]),
    ),
    Difference(
        "lerp",
        "wide|numpy|torch",
        "differs on purpose, because the difference of the ends leaves the range, as in PyTorch "
        "(docs/accuracy.md)",
        detail="(nan|inf) instead of",
        values=r"e\+(3[89]|30[78])",
    ),
    Difference(
        "sign",
        "numpy",
        "differs on purpose, because NumPy loses a part of complex numbers whose magnitude overflows",
        dtypes="complex.*",
        values=r"e\+(38|308)",
    ),
    Difference(
        "ldexp",
        "torch",
        "differs on purpose, because ldexp(inf, n) is inf and ldexp(0, n) is 0 for every n; PyTorch multiplies by "
        "2 ** n, which may be 0 or infinite",
        detail="instead of nan",
    ),
    Difference(
        "lerp",
        "torch",
        "differs on purpose, because an infinite end has the weight 1; PyTorch multiplies the "
        "difference by 0",
        detail="inf instead of nan",
        values="inf",
    ),
    Difference(
        "pow",
        "numpy|torch",
        "differs on purpose, because complex powers are exponentials of y log(x), whose rounding error "
        "grows with its size (docs/accuracy.md); NumPy multiplies whole powers",
        dtypes="complex128.*",
        when=lambda mismatch: _distance(mismatch) <= 1e-13 * abs(_pair(mismatch)[1]),
    ),
    Difference(
        "pow",
        "wide|numpy|torch",
        "differs on purpose, because y log(x) of complex numbers overflows, and the direction of the "
        "result is then unknown",
        dtypes="complex.*",
        detail=r"\(nan\+nanj\) instead of",
        values=r"e\+(3[78]|30[78])",
    ),
    Difference(
        "renorm",
        "gradient|second_gradient",
        "differs on purpose, because a norm at its bound is a kink, and one of order 0 counts",
        detail="by differences",
        when=_has_zero,
    ),
    Difference(
        "softshrink|hardshrink|threshold",
        "gradient|second_gradient",
        "differs on purpose, because differences along a direction see both sides of the kink at the "
        "threshold",
        detail="by differences",
        when=_is_at_threshold,
    ),
    Difference(
        "exp2",
        "wide|numpy|torch",
        "differs on purpose, because the phase of a large imaginary part turns with each rounding of its product with "
        "log 2",
        dtypes="complex64",
        values=r"e\+\d\d",
    ),
    Difference(
        "log1p",
        "numpy",
        "differs on purpose, because NumPy loses the real part of a small complex number",
        dtypes="complex.*",
        within=1e-15,
    ),
    Difference(
        "remainder|fmod|floor_divide",
        "wide|numpy|torch",
        "differs on purpose, because a number beside a tensor is rounded to its dtype, and a remainder jumps where "
        "the quotient is whole",
        dtypes="float8.*|float16|bfloat16",
        values=r"\), -?[\d.]+\)",
    ),
    Difference(
        "pow",
        "wide|numpy|torch",
        "differs on purpose, because a number beside a tensor is rounded to its dtype, and the logarithm of the "
        "other operand, which is below 89, multiplies that",
        dtypes="float32|complex64",
        values=r"\), -?[\d.]+\)|complex\(",
        when=lambda mismatch: _distance(mismatch) <= 1e-5 * abs(_pair(mismatch)[1]),
    ),
    Difference(
        "sinc",
        "wide|numpy|torch",
        "differs on purpose, because the sine overflows before it is divided",
        dtypes="complex64",
        detail=r"nan instead of|\(nan",
    ),
    # Linear algebra.
    Difference(
        "matrix_exp",
        "wide|numpy|torch",
        "differs on purpose, because errors are bounded by the norm of the result and grow with the number of "
        "squarings, as in SciPy and PyTorch (docs/accuracy.md)",
        dtypes="float32|complex64",
        when=lambda mismatch: _distance(mismatch) <= 3e-5 * _largest_exponential(mismatch),
    ),
    Difference(
        "cholesky|eigh|eigvalsh",
        "gradient|second_gradient",
        "differs on purpose, because the gradient is that of a function of symmetric matrices, half of "
        "it in each triangle; only one triangle is read, and differences see that",
    ),
    Difference(
        "svd",
        "gradient|second_gradient",
        "differs on purpose, because vectors beyond the singular values, and those of equal values, "
        "are arbitrary",
    ),
    Difference(
        "eigh?|eigvals|svd|pinv|qr|cond",
        ".*",
        "differs on purpose, because signs of vectors, vectors of close values, and inverses of values "
        "next to the cutoff are decided by rounding; test_linalg.py compares products of factors",
        detail="(?!derivative)",
    ),
    Difference(
        "lstsq",
        ".*",
        "differs on purpose, because residuals of equations that have a solution are rounding errors",
        detail="e-|0.0 instead of|instead of 0.0",
    ),
    Difference(
        "cross",
        "wide|numpy",
        "differs on purpose, because two products are subtracted, each of which overflows, or cancels",
    ),
    Difference(
        "addcdiv|cov|corrcoef|cumulative_trapezoid|renorm|send_ue_recv|send_u_recv|deform_conv2d",
        "wide|numpy|layout|threads|validation|recording|isa .*",
        "differs on purpose, because partial results overflow, and infinities of both signs cancel",
        detail="nan|inf",
    ),
    Difference(
        "addmm|addmv|addr|addbmm|baddbmm",
        "wide|numpy",
        "differs on purpose, because a product overflows before it is multiplied by alpha, as in NumPy",
        detail="(inf|nan) instead of",
        values="alpha=",
    ),
    Difference(
        "matmul|addmm|addmv|addbmm|baddbmm|inner|dot|vecdot|tensordot|einsum|linear",
        "wide|numpy|torch|isa .*",
        "differs on purpose, because instructions for bfloat16 take factors below the normal numbers for 0 "
        "(docs/accuracy.md)",
        dtypes=".*bfloat16.*",
        when=_has_subnormal_bfloat16,
    ),
    Difference(
        "addcmul",
        "wide|numpy|torch",
        "differs on purpose, because the product of value and a leaves the range, as in PyTorch",
        when=_products_leave_range,
    ),
    Difference(
        "cov|corrcoef",
        "wide|numpy|torch",
        "differs on purpose, because squares below the normal numbers keep few digits, as in NumPy and PyTorch",
        dtypes="float32|complex64|float16|bfloat16",
        values=r"e-(1[89]|[2-9]\d)",
    ),
    Difference(
        "multi_dot|einsum",
        ".*",
        "differs on purpose, because the order of the products, and of their sums, is chosen by the "
        "work that they take, and partial results overflow",
        detail="nan|inf",
    ),
    Difference(
        "addcdiv",
        "wide",
        "differs on purpose, because quotients of complex numbers next to the largest overflow, as in NumPy",
        dtypes="complex64.*",
        values=r"e\+3[78]",
    ),
    Difference(
        "check_finite_and_unscale",
        "wide",
        "differs on purpose, because a gradient that the narrower dtype does not hold is not finite in it",
        detail="1.0 instead of",
    ),
    Difference(
        "cdist",
        "wide",
        "differs on purpose, because squares below the smallest number are zero, and those above the "
        "largest one infinite, as in norm",
        detail="0.0 instead of|e-|inf instead of",
    ),
)


def explanation(mismatch):
    """The row that explains a mismatch, or None."""
    return next((row for row in DIFFERENCES if row.explains(mismatch)), None)
