# SPDX-License-Identifier: Apache-2.0
"""Where tenon.compat.numpy differs from NumPy on purpose. docs/compat_namespaces.md lists the same."""

from .signature_calls import Difference

DIFFERENCES = (
    Difference(
        "fft\\..*", "NumPy leaves `out` of these as it was", parameter="out", detail="arguments"
    ),
    Difference(
        "trim_zeros", "results are tensors, also of a list", detail="a Tensor, NumPy gives a list"
    ),
    Difference("unique_values", "in ascending order; NumPy's has none", detail="at "),
    Difference("where", "None is a value that is left out", parameter="y", detail="a tuple"),
    Difference(
        "intersect1d",
        "`assume_unique` is a promise; of elements that are not, each counts once",
        parameter="assume_unique",
    ),
    Difference(
        "reciprocal|floor_divide|remainder|mod|divmod|fmod",
        "a division of whole numbers by 0 has no meaning",
        detail="NumPy gives -?(9223372036854775808|2147483648|32768|128|0)$",
    ),
    Difference(
        "linalg.multi_dot",
        "factors take their dtype together first; NumPy multiplies narrow whole numbers, which wrap",
        detail="values|at ",
    ),
    Difference(
        "median|nanmedian|quantile|nanquantile|percentile|nanpercentile",
        "`overwrite_input` is a permission, which is not used",
        parameter="overwrite_input",
    ),
    Difference(
        "array_split",
        "NumPy takes the length of a nested list for that of its last axis",
        detail="shape",
    ),
    Difference("diff", "results are tensors, also of a list", parameter="n", detail="a list"),
    Difference("corrcoef|cov", "of nothing", parameter="dtype", detail="dtype"),
    Difference(
        "divide|true_divide",
        "a number that the other's dtype does not hold does not widen a quotient",
        detail="dtype float16",
    ),
    Difference("round|around", "rounded beyond what the dtype holds", parameter="decimals"),
    Difference("divide|true_divide", "a complex number over 0 is infinite or NaN", detail="inf"),
    Difference("nanvar|nanstd", "NumPy rounds to the array's dtype first", parameter="dtype"),
    Difference(
        "trapezoid|unwrap", "sums are of floats; NumPy's unsigned numbers wrap", detail="at "
    ),
    Difference("linalg.cond", "the condition of a singular matrix has no meaning", detail="at "),
    Difference(
        "fft\\..*", "NumPy scales in float16 where that is the array's dtype", detail="at |dtype"
    ),
)
