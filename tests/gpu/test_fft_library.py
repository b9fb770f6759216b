# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms by the vendor's library: which calls it gets, its plans, and what goes wrong. Results for every
length, axis and layout are compared in tests/ops/test_fft.py."""

import textwrap

COMMON = """
import ctypes, os
import numpy as np
folder = os.path.dirname(os.environ[f"TENON_{'ROCM' if KIND == 'hip' else 'CUDA'}_DRIVER"])
failures = ctypes.CDLL(os.path.join(folder, "libsimulated_failures.so"))
failures.simulated_calls.restype = ctypes.c_uint64
calls = lambda name: failures.simulated_calls(name.encode())
rng = np.random.default_rng(0)

def array(*shape, dtype="complex64"):
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return (x if dtype.startswith("complex") else x.real).astype(dtype)

def device(x):
    return tenon.tensor(x, device=KIND)

def check(got, expected, tolerance=1e-4):
    np.testing.assert_allclose(got.cpu().numpy(), expected, rtol=tolerance, atol=tolerance)
"""


def program(code):
    return COMMON + textwrap.dedent(code)


def passes(result):
    assert result.returncode == 0, result.stderr


def test_three_axes_are_one_transform_and_layouts_that_nest_need_no_copy(run):
    code = """
        def launches(call):
            before = calls("FftExec"), calls("kernel")
            result = call()
            result.cpu()
            return result, calls("FftExec") - before[0], calls("kernel") - before[1]

        x = array(4, 3, 5, 6)
        t = device(x)
        launches(lambda: tenon.fft.fft(t, axis=1))  # compiles what surrounds the transforms
        for axes in [(3,), (2, 3), (1, 2, 3), (0,), (0, 1), (0, 1, 2)]:
            got, transforms, kernels = launches(lambda: tenon.fft.fftn(t, axes=axes))
            check(got, np.fft.fftn(x, axes=axes))
            assert (transforms, kernels) == (1, 0), (axes, transforms, kernels)
        for axes in [(1,), (0, 2), (0, 3), (1, 3)]:  # packed before, unpacked behind
            got, transforms, kernels = launches(lambda: tenon.fft.fftn(t, axes=axes))
            check(got, np.fft.fftn(x, axes=axes))
            assert (transforms, kernels) == (1, 2), (axes, transforms, kernels)
        got, transforms, kernels = launches(lambda: tenon.fft.fftn(t))
        check(got, np.fft.fftn(x), 1e-3)
        assert transforms == 2
        real = array(4, 5, 6, dtype="float64")
        got, transforms, kernels = launches(lambda: tenon.fft.rfftn(device(real)))
        check(got, np.fft.rfftn(real))
        assert (transforms, kernels) == (1, 0)
        got, transforms, kernels = launches(lambda: tenon.fft.fft(device(real)))
        check(got, np.fft.fft(real))
        assert (transforms, kernels) == (1, 1)  # the other half
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_five_axes_with_halves_anywhere(run):
    code = """
        x = array(3, 2, 4, 3, 5, dtype="float64")
        for axes in [(0, 1, 2, 3, 4), (4, 2, 0), (1, 4, 0, 3), (2,)]:
            check(tenon.fft.rfftn(device(x), axes=axes), np.fft.rfftn(x, axes=axes))
            half = np.fft.rfftn(x, axes=axes)
            lengths = [x.shape[axis] for axis in axes]
            check(tenon.fft.irfftn(device(half), s=lengths, axes=axes), x)
            check(tenon.fft.fftn(device(x), axes=axes), np.fft.fftn(x, axes=axes))
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_real_numbers_at_any_address(run):
    code = """
        x = array(40, dtype="float32")
        storage = device(x)
        for offset in range(4):
            part = storage[offset : offset + 30].reshape([5, 6])
            check(tenon.fft.rfft(part), np.fft.rfft(x[offset : offset + 30].reshape(5, 6)))
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_plans_are_made_once_for_each_shape_and_bounded(run):
    code = """
        t = device(array(3, 8))
        tenon.fft.fft(t)
        made = calls("FftMakePlan")
        for _ in range(3):
            tenon.fft.fft(t)
            tenon.fft.ifft(t)
        assert calls("FftMakePlan") == made
        tenon.fft.fft(t[:2].clone())
        assert calls("FftMakePlan") == made + 1
        assert calls("FftDestroy") == 0
        graph = tenon.Graph(KIND)
        with graph.capture():
            recorded = tenon.fft.fft(t)
        for n in range(1, 300):
            tenon.fft.fft(device(array(n)))
        assert 200 < calls("FftDestroy") < 300
        fresh = array(3, 8)
        t.copy_(device(fresh))
        graph.replay()
        check(recorded, np.fft.fft(fresh))
        tenon.fft.fft(t)  # by another plan than the recorded one
        graph.replay()
        check(recorded, np.fft.fft(fresh))
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_streams_and_threads_share_plans(run):
    code = """
        import threading
        problems = []

        def work(seed):
            try:
                own = np.random.default_rng(seed)
                with tenon.Stream(KIND):
                    for _ in range(10):
                        x = own.standard_normal((4, 3, 10)).astype("float32")
                        t = device(x)
                        check(tenon.fft.rfft(t), np.fft.rfft(x))
                        check(tenon.fft.irfft(tenon.fft.rfft(t)), x)
                        check(tenon.fft.fft(t, axis=1), np.fft.fft(x, axis=1))
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not problems, problems
    """
    passes(run(program(code), TENON_FALLBACK="deny", SIMULATED_DELAY_US="200", SIMULATED_SEED="3"))


def test_an_absent_library_leaves_transforms_to_the_host(run, kind):
    code = """
        x = array(3, 8)
        check(tenon.fft.fft(device(x)), np.fft.fft(x))
        assert calls("FftExec") == 0
    """
    name = "TENON_ROCM_FFT" if kind == "hip" else "TENON_CUDA_FFT"
    environment = {name: "libabsent_fft.so", "TENON_FALLBACK": "allow", "TENON_LOG": "warning"}
    result = run(program(code), **environment)
    passes(result)
    assert result.stderr.count("was not found (libabsent_fft.so: cannot open") == 1, result.stderr
    assert f"or name the file in {name}" in result.stderr


def test_failures_of_the_library_are_errors(run):
    code = """
        t = device(array(3, 8))
        for _ in range(2):
            try:
                tenon.fft.fft(t)
            except Exception as error:
                print(type(error).__name__, error)
        check(tenon.fft.fft(t), np.fft.fft(t.cpu().numpy()))
    """
    result = run(program(code), TENON_FALLBACK="deny", SIMULATED_FAIL="FftMakePlan:1:2,FftExec:1:6")
    passes(result)
    assert "makes no plan for this shape (status 2)" in result.stdout, result.stdout
    assert "returned status 6" in result.stdout, result.stdout
