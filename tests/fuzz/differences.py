# SPDX-License-Identifier: Apache-2.0
"""Known differences: what differs on purpose, and why. A mismatch without a row here fails."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    operators: str  # a regular expression for the whole name
    oracles: str  # the same for the oracle
    reason: str  # "differs on purpose, because ..."
    dtypes: str = ".*"  # for all dtypes of the tensors, with commas between
    detail: str = ""  # occurs in what differs
    values: str = ""  # occurs in the program that shows it

    def explains(self, mismatch):
        return (
            re.fullmatch(self.operators, mismatch.op) is not None
            and re.fullmatch(self.oracles, mismatch.oracle) is not None
            and re.fullmatch(self.dtypes, ",".join(mismatch.dtypes)) is not None
            and re.search(self.detail, mismatch.detail) is not None
            and re.search(self.values, mismatch.script.partition("print")[2]) is not None
        )


DIFFERENCES = (
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
        "cumprod",
        "gradient|second_gradient",
        "differs on purpose, because the gradient is documented to be NaN where a factor is zero",
        detail="nan instead of",
    ),
    Difference(
        "digamma",
        "wide|numpy|torch|device .*|isa .*",
        "differs on purpose, because digits are lost next to its negative zeros (docs/accuracy.md)",
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
        detail=r"e-[0-9]+ instead of|instead of -0\.|instead of -?0.0000|instead of -?0.0 ",
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
        "differs on purpose, because the sum before a mean overflows in its dtype, as in PyTorch",
        detail="inf instead of",
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
        detail=r"e-3[01][0-9] instead of -?0.0",
    ),
    Difference(
        "hardswish",
        "torch",
        "differs on purpose, because x below -3 gives 0, also where x is -inf; PyTorch multiplies",
        detail="0.0 instead of nan",
    ),
    Difference(
        "adaptive_avg_pool2d|avg_pool.d|mean|var|std|group_norm|layer_norm|batch_norm",
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
        "norm|normalize|rms_norm|std|var",
        "wide|numpy|torch",
        "differs on purpose, because squares leave the range of the accumulator, as in NumPy and "
        "PyTorch",
        detail=r"^(result \d+: )?-?(inf|0\.0) instead of",
        values=r"e[+-][2-9]\d|e[+-]\d{3}",
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
        "cumprod",
        "wide|device .*",
        "differs on purpose, because a product that overflows before a factor of 0 is NaN; the order "
        "of factors decides",
        detail=r"nan instead of -?0\.0",
        values=r"e\+(3[0-9]|30[0-9])",
    ),
    Difference(
        ".*_loss|kl_div",
        "wide|torch",
        "differs on purpose, because sums below the normal numbers keep few digits",
        detail=r"e-(3[89]|4\d|30[89]|3[12]\d) instead of",
    ),
    Difference(
        "erfc",
        "numpy",
        "differs on purpose, because Tenon keeps digits of small results that SciPy loses "
        "(docs/accuracy.md)",
        detail=r"e-\d+ instead of",
    ),
    Difference(
        "elu|max_pool.d|adaptive_max_pool2d",
        "gradient|second_gradient",
        "differs on purpose, because differences along a direction see both sides of a kink, at 0 or "
        "between equal elements",
        detail="by differences",
    ),
    Difference(
        "floor_divide|remainder",
        "gradient",
        "differs on purpose, because differences see a step where the quotient is whole",
        detail="by differences",
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
    ),
    # Linear algebra.
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
        "inner|add(b|m)*m|addmv|addr|addc(mul|div)|baddbmm|cov|corrcoef|renorm",
        "wide|numpy",
        "differs on purpose, because partial results overflow, and infinities of both signs cancel",
        detail="nan|inf",
    ),
    Difference(
        "multi_dot",
        ".*",
        "differs on purpose, because the order of the products, and of their sums, is chosen by the "
        "work that they take, and partial results overflow",
        detail="nan|inf",
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
