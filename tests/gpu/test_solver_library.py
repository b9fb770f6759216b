# SPDX-License-Identifier: Apache-2.0
"""Linear algebra by the vendor's libraries: which calls they get, their order, and what goes wrong. Results for every dtype,
shape and layout are compared in tests/ops/test_linalg.py."""

import textwrap

import pytest

COMMON = """
import ctypes, os
import numpy as np
folder = os.path.dirname(os.environ[f"TENON_{'ROCM' if KIND == 'hip' else 'CUDA'}_DRIVER"])
failures = ctypes.CDLL(os.path.join(folder, "libsimulated_failures.so"))
failures.simulated_calls.restype = ctypes.c_uint64
calls = lambda name: failures.simulated_calls(name.encode())
rng = np.random.default_rng(0)
normal = lambda *shape: rng.standard_normal(shape)

def positive(*shape):
    x = normal(*shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1])

def device(x):
    return tenon.tensor(x, device=KIND)

def check(got, expected, tolerance=1e-9):
    np.testing.assert_allclose(got.cpu().numpy(), expected, rtol=tolerance, atol=tolerance)
"""


def program(code):
    return COMMON + textwrap.dedent(code)


def passes(result):
    assert result.returncode == 0, result.stderr


def test_small_matrices_are_one_call_and_large_ones_one_each(run):
    code = """
        def count(name, call):
            before = calls(name)
            call().cpu()
            return calls(name) - before

        small, large = positive(7, 5, 5), positive(2, 260, 260)
        assert count("SolverPotrfBatched", lambda: tenon.cholesky(device(small))) == 1
        assert count("SolverPotrf", lambda: tenon.cholesky(device(small))) == 0
        assert count("SolverPotrf", lambda: tenon.cholesky(device(small[0]))) == 1
        assert count("SolverPotrf", lambda: tenon.cholesky(device(large))) == 2
        assert count("BlasGetrfBatched", lambda: tenon.inv(device(small))) == 1
        assert count("BlasGetrsBatched", lambda: tenon.inv(device(small))) == 1
        assert count("SolverGetrf", lambda: tenon.lu_factor(device(normal(3, 4, 2))).lu) == 3
        assert count("BlasTrsmBatched", lambda: tenon.triangular_solve(device(small), device(small))) == 1
        assert count("BlasGeqrfBatched", lambda: tenon.qr(device(small)).r) == 1
        assert count("SolverOrgqr", lambda: tenon.qr(device(small)).q) == 0
        assert count("SolverSyevjBatched", lambda: tenon.eigvalsh(device(small))) == 1
        assert count("SolverGesvdjBatched", lambda: tenon.svd(device(small)).u) == 1
        for shape in [(2, 40, 34), (2, 34, 40), (2, 33, 33), (2, 20, 33)]:
            x = normal(*shape)
            for full in (False, True):
                before = calls("SolverGesvd")
                u, s, vh = tenon.svd(device(x), full_matrices=full)
                assert calls("SolverGesvd") == before + 2
                k = min(shape[1:])
                check((u[..., :k] * s.unsqueeze(-2)) @ vh[:, :k], x)
                check(u.mT @ u, np.broadcast_to(np.eye(u.shape[-1]), u.shape[:1] + (u.shape[-1],) * 2))
            check(tenon.svdvals(device(x)), np.linalg.svd(x, compute_uv=False))
        x = normal(2, 36, 36)
        before = calls("SolverSyevd")
        w, v = tenon.eigh(device(x), upper=True)
        assert calls("SolverSyevd") == before + 2
        check((v * w.unsqueeze(-2)) @ v.mT, np.triu(x) + np.triu(x, 1).swapaxes(-1, -2))
        x = normal(2, 258, 3)
        before = calls("SolverGeqrf"), calls("SolverOrgqr")
        q, r = tenon.qr(device(x))
        assert (calls("SolverGeqrf"), calls("SolverOrgqr")) == (before[0] + 2, before[1] + 2)
        check(q @ r, x)
        check(tenon.cholesky(device(large)), np.linalg.cholesky(large))
        check(tenon.inv(device(large)) @ device(large), np.broadcast_to(np.eye(260), large.shape), 1e-6)
        check(tenon.solve(device(large), device(large[:, :, :3])), np.linalg.solve(large, large[:, :, :3]), 1e-6)
        low = np.linalg.cholesky(large)
        check(tenon.triangular_solve(device(low), device(large[:, :, :3]), upper=False),
              np.linalg.solve(low, large[:, :, :3]), 1e-6)
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_one_matrix_for_a_batch_is_factored_once(run):
    code = """
        a, b = normal(4, 4), normal(5, 2, 4, 3)
        before = calls("SolverGetrf"), calls("SolverGetrs")
        check(tenon.solve(device(a), device(b)), np.linalg.solve(a, b))
        assert (calls("SolverGetrf"), calls("SolverGetrs")) == (before[0] + 1, before[1] + 1)
        before = calls("BlasTrsm")
        x = tenon.triangular_solve(device(a), device(b.swapaxes(-1, -2)), left=False)
        check(x @ device(np.triu(a)), b.swapaxes(-1, -2))
        assert calls("BlasTrsm") == before + 1
        a = normal(5, 1, 4, 4)
        check(tenon.solve(device(a), device(b)), np.linalg.solve(a, b))
        check(tenon.triangular_solve(device(a), device(b)), np.linalg.solve(np.triu(a), b))
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_batches_of_more_axes_than_a_kernel_takes(run):
    code = """
        shape = [1] * 12
        for axis in (0, 2, 4, 6, 8, 10):
            shape[axis] = 2
        other = [3 - extent for extent in shape]  # 2 where the other one has 1
        a, b = positive(*shape, 2, 2), normal(*other, 2, 1)
        check(tenon.solve(device(a), device(b)), np.linalg.solve(a, b))
        check(tenon.triangular_solve(device(a), device(b)), np.linalg.solve(np.triu(a), b))
        order = list(range(11, -1, -1)) + [12, 13]
        x = positive(*([2] * 9), 2, 2)
        t = device(x).permute([8, 6, 4, 2, 0, 1, 3, 5, 7, 9, 10])
        check(tenon.inv(t), np.linalg.inv(x.transpose(8, 6, 4, 2, 0, 1, 3, 5, 7, 9, 10)))
        x[1, 0, 1, 0, 1, 0, 1, 0, 1] = np.nan
        try:
            tenon.svdvals(device(x).permute([8, 6, 4, 2, 0, 1, 3, 5, 7, 9, 10]))
        except ValueError as error:
            print(error)
    """
    result = run(program(code), TENON_FALLBACK="deny")
    passes(result)
    assert "in matrix (1, 1, 1, 1, 1, 0, 0, 0, 0) of the batch" in result.stdout, result.stdout


def test_each_matrix_of_an_exponential_is_squared_as_often_as_it_needs(run):
    code = """
        x = normal(6, 4, 4) * np.array([0.1, 30, 1, 300, 0, 8])[:, None, None] / 4
        x[3] -= 300 * np.eye(4)  # so that nothing overflows
        single = [tenon.matrix_exp(tenon.tensor(each)).numpy() for each in x]
        before = calls("BlasGemmBatched")
        got = tenon.matrix_exp(device(x)).cpu().numpy()
        assert calls("BlasGemmBatched") > before
        for one, expected in zip(got, single):
            np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
        x[2, 1, 1] = np.inf
        got = tenon.matrix_exp(device(x)).cpu().numpy()
        assert np.isnan(got[2]).all() and np.isfinite(got[[0, 1, 3, 4, 5]]).all()
        assert (got[4] == np.eye(4)).all()
    """
    passes(run(program(code), TENON_FALLBACK="deny"))


def test_eigenvalues_of_general_matrices(run):
    code = """
        x = normal(3, 5, 5)
        before = calls("SolverGeev")
        w, v = tenon.eig(device(x))
        assert calls("SolverGeev") == before + 3
        w, v = w.cpu().numpy(), v.cpu().numpy()
        np.testing.assert_allclose(x @ v, v * w[:, None, :], atol=1e-10)
        values = tenon.eigvals(device(x)).cpu().numpy()
        np.testing.assert_allclose(np.sort_complex(values.round(9)), np.sort_complex(np.linalg.eigvals(x).round(9)))
    """
    passes(run(program(code), TENON_FALLBACK="deny", SIMULATED_DELAY_US="300", SIMULATED_SEED="2"))


def test_streams_have_handles_of_their_own(run):
    code = """
        import threading
        problems = []

        def work(seed):
            try:
                own = np.random.default_rng(seed)
                for _ in range(3):
                    with tenon.Stream(KIND):
                        x = own.standard_normal((3, 6, 6)) + 4 * np.eye(6)
                        t = device(x)
                        check(tenon.inv(t), np.linalg.inv(x))
                        q, r = tenon.qr(t)
                        check(q @ r, x)
                        w, v = tenon.eigh(t + t.mT)
                        check((v * w.unsqueeze(-2)) @ v.mT, x + x.swapaxes(-1, -2))
                        u, s, vh = tenon.svd(t)
                        check((u * s.unsqueeze(-2)) @ vh, x)
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not problems, problems
        assert calls("SolverCreate") > 1
        for _ in range(40):
            with tenon.Stream(KIND):
                tenon.qr(device(normal(3, 3)))
    """
    passes(run(program(code), TENON_FALLBACK="deny", SIMULATED_DELAY_US="200", SIMULATED_SEED="3"))


def test_what_does_not_wait_can_be_recorded_and_the_rest_says_so(run):
    code = """
        a, b = positive(2, 4, 4), normal(2, 4, 3)
        t, sides = device(a), device(b)
        tenon.triangular_solve(t, sides), tenon.qr(t), tenon.lu_factor(t)
        graph = tenon.Graph(KIND)
        with graph.capture():
            x = tenon.triangular_solve(t, sides)
            r = tenon.qr(t, mode="r").r
            lu = tenon.lu_factor(t).lu
        fresh = positive(2, 4, 4)
        t.copy_(device(fresh))
        graph.replay()
        check(x, np.linalg.solve(np.triu(fresh), b))
        check(r.mT @ r, fresh.swapaxes(-1, -2) @ fresh)
        check(lu, tenon.lu_factor(tenon.tensor(fresh)).lu.numpy())
        graph = tenon.Graph(KIND)
        try:
            with graph.capture():
                tenon.cholesky(t)
        except Exception as error:
            print(error)
        check(tenon.cholesky(t), np.linalg.cholesky(fresh))
    """
    result = run(program(code), TENON_FALLBACK="deny")
    passes(result)
    assert "cholesky: expected a call outside of a recording" in result.stdout, result.stdout


def test_the_first_matrix_without_a_result_is_named(run):
    code = """
        x = np.stack([np.eye(3)] * 6).reshape(2, 3, 3, 3)
        x[1, 0, 2, 2] = x[1, 2, 0, 0] = 0
        for call in (tenon.inv, tenon.cholesky, lambda t: tenon.solve(t[1, :1], t), lambda t: tenon.solve(t[1, 0], t)):
            try:
                call(device(x))
            except ValueError as error:
                print(error)
        try:
            tenon.lu_permutation(device(np.array([[0, 1], [-4, 1]])), 2)
        except IndexError as error:
            print(error)
    """
    result = run(program(code), TENON_FALLBACK="deny")
    passes(result)
    lines = result.stdout.splitlines()
    name = "hipSOLVER" if "hipSOLVER" in result.stdout else "cuSOLVER"
    singular = "expected invertible matrices, got a singular one in matrix"
    assert lines[0] == f"[inv] {singular} (1, 0) of the batch ({name}: info 3); use pinv"
    assert "positive definite matrices, got a leading minor" in lines[1] and "(1, 0)" in lines[1]
    assert (
        lines[2]
        == lines[3]
        == f"[solve] {singular} (0, 0) of the batch ({name}: info 3); use lstsq"
    )
    assert lines[4] == "[lu_permutation] expected pivots in [0, 2), got -4"


@pytest.mark.parametrize("library", ["SOLVER", "DENSE_BLAS"])
def test_an_absent_library_leaves_linear_algebra_to_the_host(run, kind, library):
    code = """
        a = positive(3, 4, 4)
        check(tenon.cholesky(device(a)), np.linalg.cholesky(a))
        check(tenon.triangular_solve(device(a), device(a)), np.linalg.solve(np.triu(a), a))
        assert calls("SolverPotrfBatched") == calls("BlasTrsmBatched") == 0
    """
    name = f"TENON_{'ROCM' if kind == 'hip' else 'CUDA'}_{library}"
    environment = {name: "libabsent_solver.so", "TENON_FALLBACK": "allow", "TENON_LOG": "warning"}
    result = run(program(code), **environment)
    passes(result)
    assert result.stderr.count("was not found (libabsent_solver.so: cannot open") == 1
    assert f"or name the file in {name}" in result.stderr


@pytest.mark.parametrize("failure", ["SolverCreate:1:1", "SolverBufferSize:1:2", "SolverGeqrf:1:6"])
def test_failures_of_the_libraries_are_errors(run, failure):
    code = """
        x = normal(4, 3)
        try:
            tenon.qr(device(x))
        except tenon.InternalError as error:
            print(error)
        q, r = tenon.qr(device(x))
        check(q @ r, x)
    """
    result = run(program(code), TENON_FALLBACK="deny", SIMULATED_FAIL=failure)
    passes(result)
    assert "qr: " in result.stdout and f"status {failure[-1]}" in result.stdout, result.stdout
