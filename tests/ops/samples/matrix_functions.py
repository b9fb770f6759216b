# SPDX-License-Identifier: Apache-2.0
"""Functions of matrices that products and reductions are enough for. Those that need LAPACK are in
test_linalg.py, as they have no decomposition and take no small floats."""

import numpy as np
from case import Case, normal

CASES = [
    Case("cross", (normal(4, 3), normal(3)), reference=np.cross),
    Case(
        "cross",
        (normal(3, 2), normal(3, 2), 0),
        reference=lambda x, y, axis: np.cross(x, y, axis=axis),
    ),
    Case("kron", (normal(2, 3), normal(2)), reference=np.kron),
    Case("kron", (normal(2, 1, 3), normal(2, 2)), reference=np.kron, label="batch"),
    Case(
        "cdist",
        (normal(2, 3, 4), normal(5, 4)),
        reference=lambda x, y: np.linalg.norm(x[:, :, None] - y, axis=-1),
    ),
    Case(
        "cdist",
        (normal(3, 4), normal(2, 4), 1.0),
        reference=lambda x, y, p: np.abs(x[:, None] - y).sum(-1),
        label="1",
    ),
    Case(
        "multi_dot",
        ([normal(2, 5), normal(5, 3), normal(3, 4)],),
        reference=np.linalg.multi_dot,
    ),
    Case("matrix_power", (normal(2, 3, 3), 3), reference=np.linalg.matrix_power),
    Case(
        "matrix_power",
        (normal(3, 3), 0),
        reference=np.linalg.matrix_power,
        grad=(),
        why="a constant",
        label="0",
    ),
    Case("vander", (normal(3),), reference=np.vander),
    Case(
        "vander",
        (normal(2, 3), 4),
        {"increasing": True},
        reference=lambda x, n, increasing: x[..., None] ** np.arange(n),
        label="batch",
    ),
    *[
        Case(
            "matrix_norm",
            (normal(2, 3, 4), ord),
            reference=lambda x, ord: np.linalg.matrix_norm(
                x, ord=ord if ord == "fro" else float(ord)
            ),
            label=ord,
        )
        for ord in ("fro", "1", "-inf")
    ],
]
