# SPDX-License-Identifier: Apache-2.0
"""Convolutions by cuDNN or MIOpen: which calls it gets, and their results."""

import textwrap

COMMON = """
import ctypes, os
import numpy as np
folder = os.path.dirname(os.environ[f"TENON_{'ROCM' if KIND == 'hip' else 'CUDA'}_DRIVER"])
failures = ctypes.CDLL(os.path.join(folder, "libsimulated_failures.so"))
failures.simulated_calls.restype = ctypes.c_uint64
calls = lambda: failures.simulated_calls(b"DnnConvolution")
rng = np.random.default_rng(0)

def pair(*shape, dtype="float32"):
    host = tenon.tensor(rng.standard_normal(shape).astype("float32")).to(getattr(tenon, dtype))
    return host, host.to(KIND)

def check(got, expected, tolerance):
    got, expected = (each.cpu().to(tenon.float64).numpy() for each in (got, expected))
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
"""


# The variable, the name, and a failed call.
LIBRARY = {
    "cuda": (
        "TENON_CUDA_DNN",
        "cuDNN",
        5000,
        "CUDNN_STATUS_EXECUTION_FAILED",
        1001,
        "CUDNN_STATUS_NOT_INITIALIZED",
    ),
    "hip": (
        "TENON_ROCM_DNN",
        "MIOpen",
        5,
        "miopenStatusInternalError",
        1,
        "miopenStatusNotInitialized",
    ),
}


def program(code):
    return COMMON + textwrap.dedent(code)


def passes(result):
    assert result.returncode == 0, result.stderr


def test_convolutions_and_their_gradients_are_those_of_the_cpu(run):
    code = """
        # A few roundings of the dtype; the gradients are products of results that were rounded before.
        tolerances = {"float32": 1e-4, "float64": 1e-10, "float16": 3e-2, "bfloat16": 2e-1}
        calls_of = [
            dict(x=(2, 3, 7, 6), w=(4, 3, 3, 2)),
            dict(x=(2, 3, 7, 6), w=(4, 3, 3, 3), bias=4, args=([2, 1], [1, 2])),
            dict(x=(2, 3, 9, 8), w=(4, 3, 3, 3), args=(1, 1, [2, 3])),
            dict(x=(2, 4, 5, 6), w=(6, 2, 3, 3), bias=6, args=(2, 1, 1, 2)),
            dict(x=(1, 3, 5, 5), w=(3, 1, 3, 3), args=(1, 1, 1, 3)),
            dict(x=(2, 3, 4, 4), w=(5, 3, 1, 1)),
        ]
        for dtype, tolerance in tolerances.items():
            for call in calls_of:
                x, w = pair(*call["x"], dtype=dtype), pair(*call["w"], dtype=dtype)
                bias = pair(call["bias"], dtype=dtype) if "bias" in call else (None, None)
                results = []
                before = calls()
                for i in range(2):
                    operands = [t for t in (x[i], w[i], bias[i]) if t is not None]
                    for operand in operands:
                        operand.requires_grad = True
                    y = tenon.conv2d(x[i], w[i], bias[i], *call.get("args", ()))
                    y.sum().backward() if dtype == "bfloat16" else (y * y).sum().backward()
                    results.append([y.detach(), *(operand.grad for operand in operands)])
                # MIOpen's documents promise no convolution in float64.
                expected_calls = 0 if (KIND, dtype) == ("hip", "float64") else 3
                assert calls() == before + expected_calls, (dtype, call, calls() - before)
                for got, expected in zip(results[1], results[0]):
                    check(got, expected, tolerance * max(1, float(expected.abs().max().item())))
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_a_bias_is_added_to_the_rounded_convolution(run):
    code = """
        integers = lambda *shape: tenon.tensor(rng.integers(-4, 5, shape).astype("float32"))
        # Convolutions of small whole numbers are exact in every dtype, so that both sides round the sums alone.
        for dtype in (tenon.float32, tenon.float16, tenon.bfloat16):
            x, w = integers(3, 3, 6, 5).to(dtype), integers(5, 3, 3, 2).to(dtype)
            bias = tenon.tensor([0.3, -7.1, 1e3, float("nan"), float("inf")]).to(dtype)
            expected = tenon.conv2d(x, w) + bias.reshape([1, 5, 1, 1])
            got = tenon.conv2d(x.to(KIND), w.to(KIND), bias.to(KIND))
            check(got, expected, 0)
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_the_algorithm_is_a_deterministic_one_and_chosen_once_for_each_shape(run):
    code = """
        failures.simulated_calls.restype = ctypes.c_uint64
        x, w = pair(2, 3, 8, 8)[1], pair(4, 3, 3, 3)[1]
        tenon.conv2d(x, w)
        before = failures.simulated_calls(b"DnnFindAlgorithm")
        for _ in range(3):
            tenon.conv2d(x, w)
        assert failures.simulated_calls(b"DnnFindAlgorithm") == before
        tenon.conv2d(x[:1], w)
        assert failures.simulated_calls(b"DnnFindAlgorithm") == before + 1
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_what_the_operator_refuses_is_refused_in_its_own_words(run):
    code = """
        x, w = pair(2, 3, 4, 4)[1], pair(4, 2, 3, 3)[1]
        try:
            tenon.conv2d(x, w)
        except Exception as error:
            print(error)
    """
    result = run(program(code))
    passes(result)
    assert "conv2d" in result.stdout and "channels" in result.stdout


def test_without_the_library_convolutions_are_matrix_products(run, kind):
    variable, name, *_ = LIBRARY[kind]
    code = """
        x, w = pair(2, 3, 7, 6), pair(4, 3, 3, 2)
        check(tenon.conv2d(x[1], w[1]), tenon.conv2d(x[0], w[0]), 1e-4)
        assert calls() == 0
    """
    result = run(program(code), **{variable: "libabsent_dnn.so", "TENON_FALLBACK": "deny"})
    passes(result)
    assert f"{name} was not found (libabsent_dnn.so: cannot open" in result.stderr
    assert f"name the file in {variable}" in result.stderr


def test_a_library_that_does_not_start_is_named_and_left_out(run, kind):
    _, name, _, _, error, text = LIBRARY[kind]
    code = """
        x, w = pair(2, 3, 7, 6), pair(4, 3, 3, 2)
        check(tenon.conv2d(x[1], w[1]), tenon.conv2d(x[0], w[0]), 1e-4)
        assert calls() == 0
    """
    result = run(program(code), SIMULATED_FAIL=f"DnnCreate:1:{error}", TENON_FALLBACK="deny")
    passes(result)
    assert f"{name} does not start on this device ({text})" in result.stderr


def test_a_failed_convolution_is_an_error_that_names_it(run, kind):
    _, name, error, text, *_ = LIBRARY[kind]
    code = """
        x, w = pair(2, 3, 7, 6)[1], pair(4, 3, 3, 2)[1]
        try:
            tenon.conv2d(x, w)
        except RuntimeError as error:
            print(error)
        tenon.conv2d(x, w).cpu()
    """
    result = run(program(code), SIMULATED_FAIL=f"DnnConvolution:1:{error}")
    passes(result)
    assert f"conv2d: {name}: {text} ({error})" in result.stdout
