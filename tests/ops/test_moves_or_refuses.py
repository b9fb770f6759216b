# SPDX-License-Identifier: Apache-2.0
"""Every operator, with tensors of a dtype that is stored only: it moves elements, or refuses the dtype by name."""

import numpy as np
import pytest
import tenon
from running import arguments
from samples import CASES
from tenon._tensor.dtypes import names_of

STORAGE = names_of("storage")

# What takes the dtype: it moves elements or makes views. index_put and scatter do, too, of elements of one dtype.
MOVES = set(
    """as_strided broadcast_tensors channel_shuffle clone concat contiguous crop diagonal expand flatten flip gather
    gather_nd index index_select masked_select meshgrid movedim multiplex narrow partial_concat permute pixel_shuffle
    pixel_unshuffle repeat reshape roll rot90 select slice sliding_window split squeeze stack stop_gradient take_along_axis tile
    transpose unbind unflatten unsqueeze view""".split()
)


def replaced(args, position, name):
    """`args` with a tensor of dtype `name` at `position`; None where there is no tensor."""
    args = list(args)
    value = args[position]

    def stored(x):
        bits = np.random.default_rng(position).integers(0, 256, x.shape, np.uint8)
        return tenon.tensor(bits).bitcast(name)

    if isinstance(value, tenon.Tensor):
        args[position] = stored(value)
    elif isinstance(value, list) and value and isinstance(value[0], tenon.Tensor):
        args[position] = [stored(each) for each in value]
    else:
        return None
    return args


@pytest.mark.parametrize("name", STORAGE)
def test_every_operator_moves_or_refuses(name, device):
    if device != "cpu":
        pytest.skip("the rules are the same on every device")
    wrong, moved = [], set()
    for case in CASES:
        if case.op == "cast":  # tests/python/tensor/test_storage_dtypes.py
            continue
        args, kwargs = arguments(case, device)
        for position in range(len(args)):
            changed = replaced(args, position, name)
            if changed is None:
                continue
            label = f"{case} with {name} as argument {position}"
            try:
                results = getattr(tenon, case.op)(*changed, **kwargs)
            except (TypeError, ValueError, IndexError, RuntimeError) as error:
                if name not in str(error):
                    wrong.append(f"{label}: {error}")
                continue
            results = results if isinstance(results, (tuple, list)) else (results,)
            moved.add(case.op)
            if case.op not in MOVES:
                wrong.append(
                    f"{label}: returned {[getattr(each, 'dtype', each) for each in results]}"
                )
            elif any(each.dtype != name for each in results):
                wrong.append(f"{label}: expected {name}, got {[each.dtype for each in results]}")
    assert not wrong, "\n".join(wrong)
    assert moved == MOVES
