# SPDX-License-Identifier: Apache-2.0
"""An oracle: tensors of layouts coo, csr, csc, bsr and ragged in the tensor of dense ones give the dense result, or a refusal
that names the layout or the fix.

What is not stored is a zero that neither NaN nor infinity touches, so that the numbers of the call are made finite first.
"""

from __future__ import annotations

import numpy as np
import tenon

from .arrays import Written, dtype_name, numpy_of
from .call import PRELUDE
from .compare import close_difference, is_inexact, spreads
from .report import mismatch

REFUSED = (NotImplementedError, TypeError, ValueError, IndexError, BufferError)
# Results that are uninitialised, or say how the argument lies in memory.
NOT_COMPARED = {"empty_like", "shares_memory", "stride", "storage_offset"}

# Halves of smaller numbers are rounded.
_TINY = {
    "float64": 1e-307,
    "complex128": 1e-307,
    "float16": 2e-4,
    "float8_e4m3": 0.1,
    "float8_e5m2": 1e-3,
}


def _forms(array):
    """Texts whose values are the tensor in other layouts."""
    text, shape = array.text(), array.shape
    if not shape:
        return
    yield f"{text}.to_sparse()"
    if is_inexact(array.dtype):
        # Each element as the sum of two halves.
        yield (
            f"(lambda x: tenon.sparse.coo(tenon.concat([x.indices()] * 2, 1), tenon.concat([x.values() / 2] * 2), "
            f"x.shape))({text}.to_sparse())"
        )
    if len(shape) == 2:
        yield f"{text}.to_sparse('csr')"
        yield f"{text}.to_sparse('csc')"
        block = tuple(2 if size and size % 2 == 0 else 1 for size in shape)
        yield f"{text}.to_sparse('bsr', {block})"
    if len(shape) > 1 and array.values.size:
        # Rows of one length: nothing is absent.
        rows, length = shape[:2]
        flat = f"{text}.reshape([{', '.join(map(str, (rows * length, *shape[2:])))}])"
        yield f"tenon.sparse.ragged_from_offsets(tenon.arange({rows + 1}) * {length}, {flat}, {length})"


def _thinned(array, rng):
    """Finite numbers whose halves are exact, of which some are zeros."""
    if not is_inexact(array.dtype):
        return array
    size = np.abs(array.values)
    values = np.where(np.isfinite(size) & (size > _TINY.get(array.dtype, 1e-37)), array.values, 1.5)
    return array.with_values(np.where(rng.random(values.shape) < 0.4, 0, values))


def layouts(call, results, rng):
    if call.operator.is_random or call.op in NOT_COMPARED:
        return
    dense = call.map(lambda array: _thinned(array, rng))
    tensors = [tensor for tensor in dense.arrays() if tensor[2].shape]
    if not tensors:
        return
    try:
        want = dense.run()
    except Exception:
        return  # not for these numbers
    chosen = [tensor for tensor in tensors if rng.random() < 1.5 / len(tensors)]
    given = dense
    for name, index, array in chosen or tensors[:1]:
        forms = list(_forms(array))
        given = given.with_array(name, index, Written(array, forms[int(rng.integers(len(forms)))]))
    script = f"{PRELUDE}; print({given.text()}, {dense.text()})"
    try:
        got = given.run()
    except REFUSED as error:
        text = str(error)
        if not any(word in text for word in ("layout", "to_dense()", "compos")):
            yield mismatch("layouts", dense, f"a refusal without a reason: {text[:300]}", script)
        return
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:300]} instead of results or a refusal"
        yield mismatch("layouts", dense, text, script)
        return
    spread = spreads(dense, rng)
    for i, (g, w) in enumerate(zip(got, want)):
        text = _difference(g, w, 0.0 if spread is None else spread[i])
        if text:
            yield mismatch("layouts", dense, f"result {i}: {text}", script)
            return


def _difference(got, want, spread):
    if not isinstance(want, tenon.Tensor):
        return None if got == want else f"{got} instead of {want}"
    got = got.to_dense()
    if dtype_name(got) != dtype_name(want):
        return f"dtype {dtype_name(got)} instead of {dtype_name(want)}"
    return close_difference(numpy_of(got), numpy_of(want), dtype_name(got), spread)
