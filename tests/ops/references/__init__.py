# SPDX-License-Identifier: Apache-2.0
"""References longer than one expression: a function named like its operator, over NumPy arrays, with
the operator's parameters in their order. A name that Python or NumPy has, too, ends in `_`."""

from . import (
    convolutions,
    detection,
    functions,
    fused,
    geometric,
    indexing,
    losses,
    normalization,
    pooling,
    quantization,
    recommender,
    recurrent,
    reductions,
    resampling,
    sequence,
    shapes,
    special,
    updates,
)

_FAMILIES = (
    convolutions,
    detection,
    functions,
    fused,
    geometric,
    indexing,
    losses,
    normalization,
    pooling,
    quantization,
    recommender,
    recurrent,
    reductions,
    resampling,
    sequence,
    shapes,
    special,
    updates,
)
FUNCTIONS = {
    name: function
    for family in _FAMILIES
    for name, function in vars(family).items()
    if callable(function) and not name.startswith("_")
}


def find(operator):
    """The function for an operator, or None."""
    return FUNCTIONS.get(operator) or FUNCTIONS.get(operator + "_")
