# SPDX-License-Identifier: Apache-2.0
"""Samples of all operators on the device ascend, forward and backward: prints the functions of the arguments that none called,
or with --digest a digest of what each sample gave.
"""

import contextlib
import ctypes
import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import tenon

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))
from case import differentiable
from running import arguments, results_of
from samples import CASES


def with_gradients(case, array, device, **options):
    return tenon.tensor(
        np.ascontiguousarray(array).reshape(array.shape),
        device=device,
        requires_grad=array.dtype.kind == "f",
        **options,
    )


def run(case):
    """The results and gradients."""
    found = []
    for dtype in ("float32", "float16"):
        args, kwargs = arguments(case, "ascend", dtype)
        try:
            found += results_of(getattr(tenon, case.op)(*args, **kwargs))
        except (TypeError, ValueError):  # the operator does not take this dtype
            continue
    if not differentiable(case):
        return found
    leaves = []

    def place(array, device, **options):
        leaves.append(with_gradients(case, array, device, **options))
        return leaves[-1]

    args, kwargs = arguments(case, "ascend", "float32", place)
    for result in results_of(getattr(tenon, case.op)(*args, **kwargs)):
        if not result.requires_grad:
            continue
        with contextlib.suppress(NotImplementedError):  # one of the gradients is not defined
            result.sum().backward()
        break
    return found + [leaf.grad for leaf in leaves if leaf.grad is not None]


def digest(results):
    text = hashlib.sha256()
    for result in results:
        text.update(np.ascontiguousarray(result.detach().to("cpu").numpy()).tobytes())
    return text.hexdigest()


if sys.argv[1:] == ["--digest"]:
    for case in CASES:
        tenon.manual_seed(0)
        if not case.op.startswith("empty"):  # whose elements may be anything
            print(case.op, digest(run(case)))
    sys.exit()
for case in CASES:
    run(case)
matrix = tenon.tensor([[2.0, 1.0], [0.0, 4.0]]).to("ascend")
tenon.triangular_solve(matrix, matrix)
heads = tenon.ones((2, 4, 16), device="ascend", dtype="float16")
tenon.scaled_dot_product_attention(heads, heads, heads)
positions = tenon.tensor([1, 3, 3, 7]).to("ascend")
tenon.searchsorted(positions, positions)

calls = ctypes.CDLL(os.environ["TENON_ASCEND_OPERATORS"]).simulated_calls
calls.restype = ctypes.c_uint64
print("never called:", *(name for name in sys.argv[1:] if not calls(name.encode())))
