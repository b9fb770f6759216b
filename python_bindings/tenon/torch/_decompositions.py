# SPDX-License-Identifier: Apache-2.0
"""Which calls PyTorch takes apart before a graph becomes a program: those that have no line."""

from __future__ import annotations

from typing import Any, Final

from tenon.torch import _lines
from tenon.torch._walk import op_name

# Calls whose lines give the first result alone; a backward pass needs the others.
_OF_INFERENCE: Final = ("native_layer_norm", "native_group_norm")


def kept_whole(torch: Any, *, training: bool = False) -> dict[Any, Any]:
    """How PyTorch takes calls apart, without those that have a line. `training`: without those whose lines give all results."""
    from torch._decomp import decomposition_table

    table = dict(torch.export.default_decompositions())
    for each, decomposition in decomposition_table.items():  # more than export takes apart
        if not isinstance(each, torch._ops.OpOverload) or each.namespace != "aten":
            continue
        is_of_training = training and op_name(each) in _OF_INFERENCE
        is_plain = decomposition.__module__ == "torch._decomp.decompositions"
        if is_of_training or (is_plain and not each._schema.is_mutable):
            table.setdefault(each, decomposition)
    table[torch.ops.aten.addbmm.default] = _addbmm
    # A constant of the code is no tensor of the trace until this call has been made, as a whole.
    table.pop(torch.ops.aten.lift_fresh.default, None)
    for each in list(table):
        if isinstance(each, torch._ops.OpOverload) and each.namespace == "aten":
            name = op_name(each)
            if _lines.has_line(name) and not (training and name in _OF_INFERENCE):
                table.pop(each)
    return table


def _addbmm(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Nothing of `self` counts where beta is zero, NaN neither."""
    product = (batch1 @ batch2).sum(0)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * beta)
