# SPDX-License-Identifier: Apache-2.0
"""Sample calls of every operator, by family as in opdefs/."""

from . import (
    arithmetic,
    indexing,
    matrix_functions,
    nn,
    products,
    recurrent,
    reductions,
    shapes,
    updates,
)

CASES = [
    case
    for family in (
        arithmetic,
        reductions,
        shapes,
        indexing,
        products,
        matrix_functions,
        nn,
        recurrent,
        updates,
    )
    for case in family.CASES
]
