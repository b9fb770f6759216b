# SPDX-License-Identifier: Apache-2.0
"""Matrix products by the vendor's BLAS library: which calls it gets, and their results."""

import textwrap

COMMON = """
import ctypes, os
import numpy as np
folder = os.path.dirname(os.environ[f"TENON_{'ROCM' if KIND == 'hip' else 'CUDA'}_DRIVER"])
failures = ctypes.CDLL(os.path.join(folder, "libsimulated_failures.so"))
failures.simulated_calls.restype = ctypes.c_uint64
calls = lambda: failures.simulated_calls(b"BlasLtMatmul")
rng = np.random.default_rng(0)

def tensor(*shape, dtype="float32"):
    return tenon.tensor(rng.standard_normal(shape).astype("float32")).to(KIND).to(getattr(tenon, dtype))

def host(x):
    return x.cpu().to(tenon.float64).numpy()

def check(got, expected, tolerance=1e-5):
    np.testing.assert_allclose(host(got), expected, rtol=tolerance, atol=tolerance)
"""


def program(code):
    return COMMON + textwrap.dedent(code)


def passes(result):
    assert result.returncode == 0, result.stderr


def test_layouts_batches_and_dtypes(run):
    code = """
        tolerance = {"float32": 1e-5, "float64": 1e-12, "float16": 1e-2, "bfloat16": 6e-2}
        for dtype in tolerance:
            x, y, w = (tensor(*s, dtype=dtype) for s in [(5, 3), (3, 4), (4, 3)])
            batch, vector = tensor(2, 6, 5, 3, dtype=dtype), tensor(3, dtype=dtype)
            bias = tensor(4, dtype=dtype)
            row = tensor(2, 6, 1, 3, dtype=dtype)
            pairs = {
                "plain": (x, y), "right transposed": (x, w.T), "left transposed": (tensor(3, 5, dtype=dtype).T, y),
                "both": (tensor(3, 5, dtype=dtype).T, w.T), "shared right": (batch, y),
                "shared left": (x, tensor(7, 3, 4, dtype=dtype)), "batches": (batch, tensor(2, 6, 3, 4, dtype=dtype)),
                "rows": (row, y), "column": (x, vector), "row": (vector, y), "dot": (vector, vector),
                "slice": (tensor(9, 8, dtype=dtype)[2:7, 1:4], y), "one": (tensor(1, 1, dtype=dtype), tensor(1, 1, dtype=dtype)),
                "every second row": (tensor(10, 3, dtype=dtype)[::2], y),
            }
            for name, (a, b) in pairs.items():
                before = calls()
                got = a @ b
                assert calls() == before + 1, (dtype, name)
                check(got, host(a) @ host(b), tolerance[dtype])
            before = calls()
            check(tenon.linear(batch, w, bias), host(batch) @ host(w).T + host(bias), tolerance[dtype])
            check(tenon.linear(x, w), host(x) @ host(w).T, tolerance[dtype])
            check(tenon.linear(vector, w, bias), host(vector) @ host(w).T + host(bias), tolerance[dtype])
            assert calls() == before + 3, dtype
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_complex_matrices(run, kind):
    code = """
        for dtype, tolerance in {"complex64": 1e-5, "complex128": 1e-12}.items():
            make = lambda *s: (rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(dtype)
            for a, b in [((5, 3), (3, 4)), ((2, 5, 3), (2, 3, 4)), ((2, 5, 3), (3, 4)), ((5, 3), (3,))]:
                x, y = make(*a), make(*b)
                before = calls()
                got = tenon.tensor(x).to(KIND) @ tenon.tensor(y).to(KIND)
                assert calls() == before + (KIND == "cuda")
                np.testing.assert_allclose(got.cpu().numpy(), x @ y, rtol=tolerance, atol=tolerance)
                if x.ndim == 2:
                    left = tenon.tensor(x.T.copy()).to(KIND).mT
                    np.testing.assert_allclose((left @ tenon.tensor(y).to(KIND)).cpu().numpy(), x @ y, rtol=tolerance, atol=tolerance)
    """
    passes(run(program(code), TENON_FALLBACK="deny" if kind == "cuda" else "allow"))


def test_batches_that_no_stride_joins_are_several_products(run):
    code = """
        x, y = tensor(2, 5, 3, 4).transpose(1, 2), tensor(2, 6, 3, 4).transpose(1, 2)
        for a, b in [(x, y.transpose(2, 3)), (x[:, ::2], y.transpose(2, 3)[:, ::2]), (x, tensor(4, 7))]:
            before = calls()
            check(a @ b, host(a) @ host(b))
            assert calls() == before + 2, calls() - before
        z = tensor(70, 5, 3, 4).transpose(1, 2)  # more launches than one kernel that reads any strides
        before = calls()
        check(z @ z.transpose(2, 3), host(z) @ host(z.transpose(2, 3)), 1e-4)
        assert calls() == before
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_what_the_library_does_not_multiply_runs_by_other_kernels(run):
    code = """
        x, y = tensor(4, 3), tensor(3, 5)
        pairs = {
            "reversed": (x.flip(0), x[::-1], y), "integers": None, "no elements": None,
            "reversed batches": (None, tensor(3, 4, 3)[::-1], tensor(3, 3, 5)),
            "columns apart": (None, tensor(4, 6)[:, ::2], y),
            "repeated rows": (None, tensor(1, 3).expand([4, 3]), y),
        }
        for name, pair in pairs.items():
            if pair is None:
                continue
            before = calls()
            a, b = pair[1], pair[2]
            got = a @ b
            assert calls() == before, name
            check(got, host(a) @ host(b))
        integers = x.to(tenon.int32) @ y.to(tenon.int32)
        check(integers, host(x.to(tenon.int32)) @ host(y.to(tenon.int32)))
        assert (tensor(0, 3) @ y).shape == (0, 5)
        assert host(tensor(4, 0) @ tensor(0, 5)).tolist() == [[0.0] * 5] * 4
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_unaligned_addresses(run):
    code = """
        storage = tensor(64)
        before = calls()
        for offset in range(8):
            x = storage[offset : offset + 12].reshape([4, 3])
            y = storage[offset + 13 : offset + 25].reshape([3, 4])
            out = tenon.zeros([40], device=KIND)
            view = out[offset : offset + 16].reshape([4, 4])
            tenon.matmul(x, y, out=view)
            check(view, host(x) @ host(y))
            assert host(out).nonzero()[0].min() >= offset
        assert calls() == before + 8
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_an_address_that_no_algorithm_writes_to_gets_a_copy(run):
    # The kernel is chosen by the first question to the library, which knows nothing of the result's address.
    code = """
        x, y, out = tensor(4, 3), tensor(3, 4), tenon.zeros([40], device=KIND)
        view = out[1:17].reshape([4, 4])
        before = calls()
        tenon.matmul(x, y, out=view)
        assert calls() == before + 1
        check(view, host(x) @ host(y))
        assert host(out)[17:].tolist() == [0.0] * 23
    """
    result = run(
        program(code),
        TENON_FALLBACK="deny",
        SIMULATED_FAIL="BlasLtMatmulAlgoGetHeuristic:2:15",
    )
    passes(result)


def test_gradients_streams_and_threads(run):
    code = """
        import threading
        x, w, b = (tensor(*s) for s in [(6, 5), (4, 5), (4,)])
        for each in (x, w, b):
            each.requires_grad = True
        tenon.linear(x, w, b).square().sum().backward()
        residual = 2 * (host(x.detach()) @ host(w.detach()).T + host(b.detach()))
        check(x.grad, residual @ host(w.detach()))
        check(w.grad, residual.T @ host(x.detach()))
        check(b.grad, residual.sum(0))
        problems = []

        # Both biases share one plan, whose description holds the address of the bias.
        def work(seed):
            try:
                with tenon.Stream(KIND):
                    own = tensor(4)
                    for _ in range(20):
                        check(tenon.linear(x.detach(), w.detach(), own),
                              host(x.detach()) @ host(w.detach()).T + host(own))
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not problems, problems
    """
    passes(run(program(code), TENON_FALLBACK="deny", SIMULATED_DELAY_US="200", SIMULATED_SEED="3"))


def test_graphs_replay_products(run):
    code = """
        x, y = tensor(4, 3), tensor(3, 5)
        x @ y
        graph = tenon.Graph(KIND)
        with graph.capture():
            z = x @ y
        fresh = tensor(4, 3)
        x.copy_(fresh)
        graph.replay()
        check(z, host(fresh) @ host(y))
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_an_absent_library_changes_no_result(run, kind):
    code = """
        x, y = tensor(4, 3), tensor(3, 5)
        check(x @ y, host(x) @ host(y))
        assert calls() == 0
    """
    name = "TENON_ROCM_BLAS" if kind == "hip" else "TENON_CUDA_BLAS"
    environment = {name: "libabsent_blas.so", "TENON_FALLBACK": "deny", "TENON_LOG": "warning"}
    result = run(program(code), **environment)
    passes(result)
    assert result.stderr.count("was not found (libabsent_blas.so: cannot open") == 1, result.stderr
    assert f"or name the file in {name}" in result.stderr


def test_a_library_that_does_not_start_is_named_once(run):
    code = """
        x, y = tensor(4, 3), tensor(3, 5)
        check(x @ y, host(x) @ host(y))
        check(x @ y, host(x) @ host(y))
    """
    result = run(
        program(code),
        TENON_FALLBACK="deny",
        TENON_LOG="warning",
        SIMULATED_FAIL="BlasLtCreate:1:1:9",
    )
    passes(result)
    assert result.stderr.count("does not start on this device (status 1)") == 1, result.stderr


def test_a_failure_of_the_library_is_an_error(run):
    code = """
        x, y = tensor(4, 3), tensor(3, 5)
        try:
            x @ y
        except tenon.InternalError as error:
            print(error)
        check(x @ y, host(x) @ host(y))
    """
    result = run(program(code), TENON_FALLBACK="deny", SIMULATED_FAIL="BlasLtMatmul:1:13")
    passes(result)
    assert "matmul: " in result.stdout and "returned status 13" in result.stdout
