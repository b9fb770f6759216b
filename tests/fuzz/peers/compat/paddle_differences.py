# SPDX-License-Identifier: Apache-2.0
"""Where tenon.compat.paddle differs from Paddle on purpose. docs/compat_namespaces.md lists the same."""

from .signature_calls import Difference

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "as_strided",
        "`offset` counts elements; Paddle's reads beside the tensor",
        parameter="offset",
    ),
    Difference("bucketize|searchsorted", "of edges that do not ascend", detail="at "),
    Difference(
        "copysign|deg2rad|rad2deg|div|divide|true_divide|mean|reduce_as",
        "of bools the result is of floats, a sum of bools whether one holds",
        detail="Paddle gives (bool|int64)",
    ),
    Difference(
        "histogram|histogramdd",
        "edges are rounded otherwise, which moves what lies on one",
        detail="at ",
    ),
    Difference(
        "nn.functional.softmax_",
        "Paddle leaves the tensor as it was beside a dtype",
        parameter="dtype",
        detail="arguments",
    ),
    Difference(
        "nn.functional.hsigmoid_loss",
        "Paddle adds log(2) for each node that a short path lacks",
        detail="at ",
    ),
    Difference("mean", "of whole numbers the mean has fractions", detail="Paddle gives int(32|64)"),
    Difference("multigammaln", "outside of its domain the result is NaN", detail="nan"),
    Difference("create_parameter", "names are labels", parameter="name", form="nonsense"),
    Difference(
        "linalg.cholesky_inverse|linalg.cholesky_solve",
        "the other triangle is not read",
        detail="at ",
    ),
    Difference(
        "nn.functional.label_smooth",
        "in double precision; Paddle's epsilon is of single",
        detail="at ",
    ),
    Difference(
        "nn.functional.max_pool.d",
        "of a window in the margin -inf; Paddle the lowest number",
        detail="-inf",
    ),
)
