# SPDX-License-Identifier: Apache-2.0
"""Algorithms of the vendors' libraries: the first of the list without autotuning, the fastest with it."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# The simulated heuristics of convolutions list algorithm 0, which adds in any order, 1 with a workspace, 2 with more workspace
# than there may be, and 3; those of products list 0, 1 and 2. The times make the last one the fastest. They are so long that no
# noise makes one of two equal algorithms 3 % faster, as MIOpen lists 1 and 3 once more where it may add in any order.
TIMES = "20000:15000:0:5000"
DNN = {"cuda": "TENON_CUDA_DNN", "hip": "TENON_ROCM_DNN"}
REFUSED = {"cuda": (3000, "CUDNN_STATUS_NOT_SUPPORTED"), "hip": (6, "miopenStatusNotImplemented")}

COMMON = """
import ctypes, json, os
import numpy as np
folder = os.path.dirname(os.environ[f"TENON_{'ROCM' if KIND == 'hip' else 'CUDA'}_DRIVER"])
failures = ctypes.CDLL(os.path.join(folder, "libsimulated_failures.so"))
failures.simulated_calls.restype = ctypes.c_uint64
calls = lambda name: failures.simulated_calls(name.encode())
PLUGIN = "rocm" if KIND == "hip" else "cuda"
rng = np.random.default_rng(0)

def pair(*shape):
    host = tenon.tensor(rng.standard_normal(shape).astype("float32"))
    return host, host.to(KIND)

def check(got, expected):
    # Algorithms add up in orders of their own; sums of some hundred products cancel, so that an absolute part is needed.
    np.testing.assert_allclose(got.cpu().numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)

x, w = pair(2, 3, 8, 8), pair(4, 3, 3, 3)
a, b = pair(5, 7), pair(7, 6)

def convolve():
    check(tenon.conv2d(x[1], w[1]), tenon.conv2d(x[0], w[0]))

def decision(op="conv2d"):
    return next(d for d in tenon.autotune.report()["decisions"] if d["op"] == f"tenon::{op}" and d["device"].startswith(KIND))

"""


@pytest.fixture
def tuned(run, tmp_path):
    """Runs COMMON and more in a process of its own; choices are kept in tmp_path."""

    def run_more(code, **environment):
        settings = {
            "TENON_AUTOTUNE_CACHE": str(tmp_path),
            "SIMULATED_ALGORITHM_US": TIMES,
            "TENON_FALLBACK": "deny",
        }
        result = run(COMMON + textwrap.dedent(code), **{**settings, **environment})
        assert result.returncode == 0, result.stderr
        return result.stdout.split()

    return run_more


def test_without_autotuning_the_first_algorithm_runs_and_no_other_is_asked_for(tuned):
    tuned(
        """
        for _ in range(3):
            convolve()
            check(a[1] @ b[1], a[0] @ b[0])
        assert calls("DnnFindAlgorithm") == calls("BlasLtMatmulAlgoGetHeuristic") == 1
        assert calls("DnnAlgorithm1") == calls("DnnConvolution") == 3
        assert calls("BlasLtAlgorithm0") == calls("BlasLtMatmul") == 3
        """
    )


def test_the_fastest_algorithm_runs_while_autotuning_is_on(tuned, kind):
    tuned(
        """
        with tenon.autotune():
            convolve()
            before = calls("DnnConvolution"), calls("DnnAlgorithm3")
            convolve()
        assert (calls("DnnConvolution"), calls("DnnAlgorithm3")) == (before[0] + 1, before[1] + 1)
        convolve()
        assert calls("DnnAlgorithm3") == before[1] + 1, "off again"
        assert calls("DnnAlgorithm2") == 0, "it wants too much memory"
        found = decision()
        assert found["chosen"] == f"{PLUGIN}/1", found
        times = found["microseconds"]
        assert times[PLUGIN] > 15000 > times[f"{PLUGIN}/1"] > 5000, times
        assert found["why"].endswith(f"of the time of {PLUGIN}, which runs without autotuning")
        assert found["failed"] == {} and found["declined"] == []
        names = found["algorithms"]
        number = {"cuda": "cuDNN's algorithm", "hip": "MIOpen's solution"}[KIND]
        first = {"cuda": 1, "hip": 86}[KIND]
        assert names[PLUGIN] == f"{number} {first}, 4096 bytes of workspace", names
        assert names[f"{PLUGIN}/1"] == f"{number} {first + 2}", names
        assert names[f"{PLUGIN}/8"] == f"{number} {first - 1}, which adds in any order", names
        """
    )


def test_gradients_are_tuned_as_well(tuned):
    tuned(
        """
        def step(i):
            x[i].requires_grad = w[i].requires_grad = True
            tenon.conv2d(x[i], w[i]).square().sum().backward()
        step(0)
        with tenon.autotune():
            step(1)
        for operand in (x, w):
            check(operand[1].grad, operand[0].grad)
        for op in ("conv2d", "conv2d_input_grad", "conv2d_weight_grad"):
            assert decision(op)["chosen"] == f"{PLUGIN}/1", decision(op)
        """
    )


def test_products_are_tuned_among_the_algorithms_of_their_list(tuned):
    tuned(
        """
        with tenon.autotune():
            check(a[1] @ b[1], a[0] @ b[0])
            check(tenon.linear(a[1], b[1].T), tenon.linear(a[0], b[0].T))
            check(a[1] @ b[1], a[0] @ b[0])
        for op in ("matmul", "linear"):
            found = decision(op)
            times = found["microseconds"]
            # The kernel from source may be the fastest of all.
            assert {PLUGIN, f"{PLUGIN}/1", f"{PLUGIN}/2"} <= set(times), found
            assert times[PLUGIN] > times[f"{PLUGIN}/1"] > times[f"{PLUGIN}/2"], times
            assert found["chosen"] in (f"{PLUGIN}/2", "kernel_c"), found
            place = {"cuda": "cuBLASLt", "hip": "hipBLASLt"}[KIND]
            assert found["algorithms"][f"{PLUGIN}/2"] == f"place 3 in the list of {place}"
        # The library knows one product behind both, and is asked once for its first algorithm and once for all.
        assert calls("BlasLtMatmulAlgoGetHeuristic") == 2
        """
    )


def test_another_process_uses_the_remembered_algorithm(tuned):
    tuned("with tenon.autotune(): convolve()")
    tuned(
        """
        with tenon.autotune(measure=False):
            convolve()
        assert calls("DnnAlgorithm3") == calls("DnnConvolution") == 1
        assert decision()["source"] == "file"
        assert decision()["algorithms"][f"{PLUGIN}/1"]
        """
    )


def test_another_file_of_the_library_is_measured_again(tuned, simulated, kind, tmp_path):
    tuned("with tenon.autotune(): convolve()")
    library = Path(simulated[DNN[kind]])
    folder = tmp_path / "other"
    folder.mkdir()
    for file in library.parent.iterdir():  # its own dependencies lie beside it
        (folder / file.name).symlink_to(file)
    shutil.copy(library, folder / "libother.so.2")
    tuned(
        """
        with tenon.autotune(measure=False):
            convolve()
        assert calls("DnnAlgorithm1") == calls("DnnConvolution") == 1
        with tenon.autotune():
            convolve()
        assert "(libother.so.2)" in decision()["versions"]
        """,
        **{DNN[kind]: str(folder / "libother.so.2")},
    )


def test_an_algorithm_that_adds_in_any_order_must_be_worth_it(tuned):
    program = """
        with tenon.autotune():
            convolve()
        print(decision()["chosen"].removeprefix(PLUGIN))
    """
    # 0 adds in any order. MIOpen lists the others once more for callers who do not care.
    assert tuned(program, SIMULATED_ALGORITHM_US="0:20000:0:15000") == ["/8"]
    assert tuned(
        program + "\n", SIMULATED_ALGORITHM_US="15000:20000:0:15000", TENON_AUTOTUNE_CACHE="off"
    ) == ["/1"]


def test_deterministic_programs_get_deterministic_algorithms(tuned):
    times = "0:20000:0:15000"
    program = """
        tenon.use_deterministic_algorithms(True)
        with tenon.autotune(measure=MEASURE):
            convolve()
        assert calls("DnnAlgorithm0") == 0
        assert decision()["chosen"] == f"{PLUGIN}/1", decision()
        assert f"{PLUGIN}/8" not in decision()["algorithms"]
    """
    tuned(
        "MEASURE = True" + textwrap.dedent(program),
        SIMULATED_ALGORITHM_US=times,
        TENON_AUTOTUNE_CACHE="off",
    )
    tuned(
        "with tenon.autotune(): convolve()\nassert decision()['chosen'] == f'{PLUGIN}/8'",
        SIMULATED_ALGORITHM_US=times,
    )
    # What is remembered is not deterministic: the best of the others that were measured with it runs.
    tuned("MEASURE = False" + textwrap.dedent(program), SIMULATED_ALGORITHM_US=times)


def test_an_algorithm_that_fails_while_it_is_measured_is_left_out(tuned, kind):
    error, text = REFUSED[kind]
    tuned(
        f"""
        with tenon.autotune():
            convolve()
        assert decision()["chosen"] == PLUGIN, decision()
        assert "{text} ({error})" in decision()["failed"][f"{{PLUGIN}}/1"], decision()
        """,
        SIMULATED_FAIL=f"DnnAlgorithm3:1:{error}:1000",
    )


def test_a_remembered_algorithm_that_is_refused_gives_way_to_the_first(tuned, kind):
    tuned("with tenon.autotune(): convolve()")
    error, text = REFUSED[kind]
    tuned(
        f"""
        with tenon.autotune():
            convolve()
            convolve()
            assert calls("DnnAlgorithm3") == 1 and calls("DnnAlgorithm1") == 2
        found = decision()
        assert found["chosen"] == PLUGIN
        assert found["why"].startswith(f"{{PLUGIN}}/1, which was chosen, refuses the call: "), found
        assert "{text} ({error})" in found["why"]
        """,
        SIMULATED_FAIL=f"DnnAlgorithm3:1:{error}:1000",
    )


def test_explain_names_the_algorithms_and_what_is_missing(tuned, run, kind):
    out = tuned(
        """
        from tenon.cli.plugins.explain import describe
        with tenon.autotune():
            convolve()
        text = "\\n".join(describe(tenon.explain("conv2d", KIND)))
        assert f"of {PLUGIN}: up to 11 other algorithms, where tenon.autotune chooses one" in text, text
        assert f": {PLUGIN}/1, {decision()['algorithms'][f'{PLUGIN}/1']}, of " in text, text
        states = [kernel["state"] for kernel in tenon.explain("conv2d", KIND)["kernels"]]
        assert states[0] == "asked at every call; runs unless it declines"
        assert set(states[1:]) == {"optional: runs where tenon.autotune chooses it"}, states
        print(json.dumps(states[0]).replace(" ", "~"))
        """
    )
    assert json.loads(out[0].replace("~", " ")).startswith("asked")
    result = run(
        COMMON
        + textwrap.dedent(
            """
            convolve()
            print(tenon.explain("conv2d", KIND)["kernels"][0]["state"])
            print(tenon.explain("matmul", KIND)["kernels"][0]["state"])
            tenon.plugins.doctor()
            """
        ),
        **{DNN[kind]: "libabsent_dnn.so"},
    )
    assert result.returncode == 0, result.stderr
    name = {"cuda": "cuDNN", "hip": "MIOpen"}[kind]
    convolution, product, *doctor = result.stdout.splitlines()
    assert convolution.startswith(f"declines every call: {name} was not found (libabsent_dnn.so: ")
    assert convolution.endswith(f"name the file in {DNN[kind]}")
    assert product == "asked at every call; runs unless it declines"
    assert sum(f"{name} was not found (libabsent_dnn.so: " in line for line in doctor) == 1


def test_the_doctor_of_the_command_line_names_a_missing_library(simulated, kind):
    plugin = "rocm" if kind == "hip" else "cuda"
    path = Path(os.environ["TENON_BUILD_DIR"]) / f"python/tenon/plugins/libtenon_{plugin}.so"
    result = subprocess.run(
        [sys.executable, "-m", "tenon", "plugins", "doctor", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **simulated, DNN[kind]: "libabsent_dnn.so"},
    )
    name = {"cuda": "cuDNN", "hip": "MIOpen"}[kind]
    assert f"warning: {name} was not found (libabsent_dnn.so: " in result.stdout, result.stdout


def test_every_family_of_kernels_names_its_own_library(run, kind):
    prefix = "ROCM" if kind == "hip" else "CUDA"
    result = run(
        """
        print(tenon.explain("fft_c2c", KIND, "complex64")["kernels"][0]["state"])
        print(tenon.explain("cholesky", KIND)["kernels"][0]["state"])
        print(tenon.explain("conv2d", KIND)["kernels"][0]["state"])
        """,
        **{
            f"TENON_{prefix}_FFT": "libabsent_fft.so",
            f"TENON_{prefix}_SOLVER": "libabsent_solver.so",
        },
    )
    assert result.returncode == 0, result.stderr
    transform, factorization, convolution = result.stdout.splitlines()
    names = {"cuda": ("cuFFT", "cuSOLVER"), "hip": ("hipFFT", "hipSOLVER")}[kind]
    assert transform.startswith(
        f"declines every call: {names[0]} was not found (libabsent_fft.so: "
    )
    assert factorization.startswith(
        f"declines every call: {names[1]} was not found (libabsent_solver.so: "
    )
    assert convolution == "asked at every call; runs unless it declines"
