# SPDX-License-Identifier: Apache-2.0
"""Run a case on a device, and compare results with NumPy's."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tenon
from case import as_dtype, map_arrays, results_of

# How much wider than in float64 a comparison is.
TOLERANCE = {"float64": 0.0, "float32": 3e-5, "float16": 2e-2, "bfloat16": 1e-1}


def skip_unserved(device, dtype, op="add"):
    """A dtype for which the device has nothing, where the host may not stand in."""
    plan = tenon.explain(op, device, dtype)
    if plan["route"] == "none" or (plan["route"] == "host" and plan["policy"] == "deny"):
        pytest.skip(f"{device} serves no {dtype}")


def to_tensor(array, device, **options):
    """With `dtype` the host converts: the device may have nothing for the array's own."""
    return tenon.tensor(np.ascontiguousarray(array).reshape(array.shape), device=device, **options)


def arguments(case, device, dtype="float64", place=to_tensor):
    dtype = case.only or dtype

    def place_as(array):
        if dtype == "bfloat16" and array.dtype.kind == "f":  # which NumPy does not have
            return place(array, device, dtype=tenon.bfloat16)
        return place(array, device)

    array_dtype = "float32" if dtype == "bfloat16" else dtype
    args = [map_arrays(place_as, as_dtype(value, array_dtype)) for value in case.args]
    kwargs = {
        name: map_arrays(lambda a: place(a, device), value) for name, value in case.kwargs.items()
    }
    if not any(has_tensors(value) for value in args):
        kwargs["device"] = device  # a new tensor, then
    return (
        [named(value, device) for value in args],
        named_keywords(kwargs, device),
    )


def has_tensors(value):
    return isinstance(value, tenon.Tensor) or (
        isinstance(value, list) and any(map(has_tensors, value))
    )


def named(value, device):
    """dtype names are text in the table."""
    if isinstance(value, str) and hasattr(np, value) and hasattr(tenon, value):
        if isinstance(getattr(tenon, value), tenon.dtype):
            skip_unserved(device, value)
            return getattr(tenon, value)
    return value


def named_keywords(kwargs, device):
    """Of keywords, those called dtype; others may mean something else by such a text."""
    return {
        name: named(value, device) if name.endswith("dtype") else value
        for name, value in kwargs.items()
    }


def run(case, device, dtype="float64", place=to_tensor):
    args, kwargs = arguments(case, device, dtype, place)
    return results_of(getattr(tenon, case.op)(*args, **kwargs))


def reference(case, dtype="float64"):
    return results_of(
        case.reference(*(as_dtype(value, dtype) for value in case.args), **case.kwargs)
    )


def expected_dtype(case, result, dtype):
    """NumPy's, with float32 where integers become floating."""
    if case.dtype:
        return case.dtype
    floating_inputs = any(
        array.dtype.kind == "f"
        for value in (*case.args, *case.kwargs.values())
        for array in (value if isinstance(value, list) else [value])
        if isinstance(array, np.ndarray)
    )
    if result.dtype.kind != "f" or case.kwargs.get("dtype"):
        return str(result.dtype)
    if floating_inputs:
        return dtype
    return "float32"


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("tenon.")


def to_numpy(tensor):
    """The values of a tensor; those of bfloat16, which NumPy does not have, as float32."""
    tensor = tensor.to("cpu")
    return (tensor.to(tenon.float32) if tensor.dtype == tenon.bfloat16 else tensor).numpy()


def assert_close(case, got, want):
    assert tuple(got.shape) == want.shape, f"expected shape {want.shape}, got {tuple(got.shape)}"
    values = to_numpy(got)
    slack = TOLERANCE.get(dtype_name(got), 0.0)
    np.testing.assert_allclose(
        values.astype(np.float64) if values.dtype.kind == "f" else values,
        want.astype(np.float64) if want.dtype.kind == "f" else want,
        rtol=max(case.rtol, slack),
        atol=max(case.atol, slack),
        equal_nan=True,
    )


INSTRUCTION_SETS = ["baseline", "avx2", "avx512", "amx"]


def run_with_instruction_set(isa, file, chosen):
    """The chosen tests of a file in a process whose kernels are those of an instruction set."""
    if os.environ.get("TENON_CPU_ISA"):
        pytest.skip("this is such a process")
    environment = {**os.environ, "TENON_CPU_ISA": isa, "TENON_TEST_DEVICES": "cpu"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-k", chosen, file]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode and "TENON_CPU_ISA" in done.stdout + done.stderr:
        pytest.skip(f"this processor has no {isa}")
    assert done.returncode == 0, done.stdout


def assert_equal_sums(got, want, device, scale=None):
    """cuDNN may transform images and filters (Winograd, FFT), which rounds in float32 as other sums of so many
    products do; other kernels add whole numbers exactly."""
    if device.startswith("cuda"):
        largest = np.abs(want).max(initial=1) if scale is None else scale
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * largest)
    else:
        np.testing.assert_array_equal(got, want)
