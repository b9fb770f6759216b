# SPDX-License-Identifier: Apache-2.0
"""The kernels of attention for tensor cores, on the simulated device, which runs their PTX where SIMULATED_TENSOR_CORES says so:
operands and launches are the plugin's, results are compared with float64. How fast they are only a GPU shows."""

import textwrap

import precompile
import pytest

COMMON = """
import ctypes, os
import numpy as np
folder = os.path.dirname(os.environ["TENON_CUDA_DRIVER"])
failures = ctypes.CDLL(os.path.join(folder, "libsimulated_failures.so"))
failures.simulated_calls.restype = ctypes.c_uint64
attention = tenon.nn.functional.scaled_dot_product_attention
rng = np.random.default_rng(0)

def launches(work):
    tenon.synchronize(KIND)
    before = failures.simulated_calls(b"kernel")
    result = work()
    tenon.synchronize(KIND)
    return failures.simulated_calls(b"kernel") - before, result

def tensor(*shape, dtype="float16"):
    return tenon.tensor(rng.standard_normal(shape).astype("float32")).to(getattr(tenon, dtype)).to(KIND)

def host(x):
    return x.detach().cpu().to(tenon.float64).numpy()

def across(x):
    return x.swapaxes(-1, -2)

def reference(query, key, value, grad, causal, scale, mask=None):
    "The result, and the gradients of query, key and value."
    scores = query @ across(key) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        rows, keys = scores.shape[-2:]
        scores = np.where(np.arange(keys) <= np.arange(rows)[:, None], scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)  # a row that sees nothing gives zeros
    dweights = grad @ across(value)
    dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True)) * scale
    return weights @ value, dscores @ key, across(dscores) @ query, across(weights) @ grad

# Weights and their gradients are rounded to the dtype before they are multiplied, and results once more; beside the largest
# result, because sums cancel.
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3}

def check(query, key, value, grad, causal=False, scale=0.125, kernels=4, tolerance=None):
    tolerance = tolerance or TOLERANCE[str(query.dtype).removeprefix("tenon.")]
    leaves = [query, key, value]
    for leaf in leaves:
        leaf.requires_grad = True
    count, out = launches(lambda: attention(*leaves, causal=causal, scale=scale))
    more, _ = launches(lambda: out.backward(grad))
    assert count + more == kernels, (count, more)
    expected = reference(*map(host, leaves), np.broadcast_to(host(grad), out.shape), causal, scale)
    for name, got, wanted in zip(["out", "dquery", "dkey", "dvalue"], [out, *(leaf.grad for leaf in leaves)], expected):
        error = np.abs(host(got) - wanted).max() / max(np.abs(wanted).max(), 1e-2)
        assert error < tolerance, (name, error)
"""


@pytest.fixture
def emulate(run, tmp_path):
    """Runs code with the functions above; returns what it prints."""

    def emulate(code, **environment):
        result = run(
            COMMON + textwrap.dedent(code),
            SIMULATED_TENSOR_CORES="1",
            XDG_CACHE_HOME=str(tmp_path),
            **environment,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return emulate


pytestmark = pytest.mark.parametrize("kind", ["cuda"], indirect=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("features", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_results_and_gradients(emulate, dtype, features, causal):
    # Heads lie behind the rows, as a projection leaves them: the kernels read through strides. The seed has the blocks,
    # warps and lanes run in another order, and some copies arrive at once.
    emulate(
        f"""
        for rows, keys in [(1, 1), (150, 40), (40, 150), (129, 129)]:
            def heads(length):
                return tensor(2, length, 2, {features}, dtype="{dtype}").transpose(1, 2)
            check(heads(rows), heads(keys), heads(keys), heads(rows), {causal})
        """,
        SIMULATED_SEED="3" if causal else "0",
    )


def test_operands_of_any_strides(emulate):
    # Three axes of strides of their own go to the kernels; what has more, or rows at odd addresses, is copied first, by one kernel more
    # for each operand of a call.
    emulate(
        """
        check(tensor(5, 64), tensor(9, 64), tensor(9, 64), tensor(5, 64), kernels=4)
        check(tensor(2, 1, 3, 5, 64), tensor(2, 1, 3, 9, 64), tensor(2, 1, 3, 9, 64), tensor(2, 1, 3, 5, 64), kernels=4)
        packed = tensor(7, 3, 2, 64).permute([1, 2, 0, 3])
        check(packed[0], packed[1], packed[2], tensor(2, 7, 64), kernels=4)
        check(tensor(1, 65)[:, :64], tensor(9, 64), tensor(9, 64), tensor(1, 64), kernels=4)
        odd = tensor(2, 5, 65)[..., 1:]
        check(odd, tensor(2, 9, 64), tensor(2, 9, 64), tensor(2, 5, 64), kernels=6)
        check(tensor(2, 5, 64), tensor(2, 9, 64), tensor(2, 9, 64), tensor(1, 1, 1).expand([2, 5, 64]), kernels=5)
        """
    )


def test_large_scores_and_first_rows(emulate):
    # The exponential of a score alone would overflow. Weights are near 0 and 1, and their gradients near the difference of equal
    # numbers, one of which is a sum over the rounded result.
    emulate(
        """
        query, key = tensor(40, 64) * 10, tensor(40, 64) * 10
        check(query, key, tensor(40, 64), tensor(40, 64), True, tolerance=2e-2)
        """
    )


def test_scores_far_below_zero(emulate):
    # What lies behind the last key has a score of 0, whose weight would be infinite beside the others. Gradients of scores add up to
    # 0 only before they are rounded, and are multiplied with keys that have a mean.
    emulate(
        """
        query, key = tensor(40, 64) + 5, tensor(40, 64) - 5
        check(query, key, tensor(40, 64), tensor(40, 64), tolerance=2e-2)
        """
    )


@pytest.mark.parametrize(
    "dtype, features, causal",
    [
        ("float16", 64, False),
        ("bfloat16", 64, True),
        ("float16", 128, True),
        ("bfloat16", 128, False),
    ],
)
def test_masks(emulate, dtype, features, causal):
    # The mask has the layout of neither operand, and is broadcast over batches, heads or rows. Its rows that hide everything give
    # zeros; numbers near the dtype's largest neither overflow nor lose the others.
    emulate(
        f"""
        def masked(mask, rows, keys, dtype):
            query, key, value = (tensor(2, n, 3, {features}, dtype=dtype).transpose(1, 2) for n in (rows, keys, keys))
            count, out = launches(lambda: attention(query, key, value, mask=mask, causal={causal}, scale=0.125))
            assert count == 1, count
            seen = mask.cpu().numpy() if mask.dtype == tenon.bool else host(mask)
            wanted = reference(host(query), host(key), host(value), np.zeros(out.shape), {causal}, 0.125, seen)[0]
            error = np.abs(host(out) - wanted).max()
            assert error < 4 * TOLERANCE[dtype], (mask.shape, mask.dtype, error)  # results are up to 4

        def hides(*shape):
            some = rng.random(shape) < 0.7
            some[..., 0, :] = False
            return tenon.tensor(some).to(KIND)

        dtype = "{dtype}"
        for shape in [(20, 70), (2, 1, 20, 70), (3, 1, 70), (2, 3, 20, 1)]:
            masked(hides(*shape), 20, 70, dtype)
        masked(hides(1, 3, 130, 33), 130, 33, dtype)
        added = tensor(70, 20, dtype=dtype).T
        masked(added, 20, 70, dtype)
        lowest = tenon.finfo(getattr(tenon, dtype)).min
        masked(tenon.where(added > 0, added, lowest), 20, 70, dtype)
        masked(tenon.full([20, 70], lowest, dtype=dtype, device=KIND), 20, 70, dtype)
        masked(tenon.where(added > 0.5, added, float("-inf")), 20, 70, dtype)
        """
    )


def test_gradients_under_a_mask_are_those_of_the_cpu(emulate):
    emulate(
        """
        arrays = [rng.standard_normal((2, 20, 64)).astype("float32") for _ in range(3)]
        hides = tenon.tensor(rng.random((20, 20)) < 0.7)
        results = []
        for device in ("cpu", KIND):
            leaves = [tenon.tensor(a).to(tenon.float16).to(device) for a in arrays]
            for leaf in leaves:
                leaf.requires_grad = True
            attention(*leaves, mask=hides.to(device)).sum().backward()
            results.append([host(leaf.grad) for leaf in leaves])
        for wanted, got in zip(*results):
            assert np.abs(got - wanted).max() < 2e-3 * np.abs(wanted).max()
        """
    )


def test_grouped_heads_are_not_copied(emulate):
    # Keys and values of fewer heads reach the kernel as they are.
    emulate(
        """
        query, key, value = (tensor(2, heads, 20, 64) for heads in (6, 2, 2))
        mask = tenon.tensor(rng.random((2, 1, 20, 20)) < 0.9).to(KIND)
        mask[..., 0] = True
        behind = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (query, key, value)]
        for operands, given in [((query, key, value), None), ((query, key, value), mask), (behind, mask)]:
            count, out = launches(lambda: attention(*operands, mask=given, enable_gqa=True, scale=0.125))
            assert count == 1, count
            repeated = [np.repeat(host(x), 3, 1) for x in (key, value)]
            seen = None if given is None else given.cpu().numpy()
            wanted = reference(host(query), *repeated, np.zeros(out.shape), False, 0.125, seen)[0]
            assert np.abs(host(out) - wanted).max() < 4 * TOLERANCE["float16"]
        """
    )


def test_results_do_not_depend_on_the_order_of_blocks(emulate):
    code = """
        import hashlib
        q, k, v, g = (tensor(3, 200, 64) for _ in range(4))
        for leaf in (q, k, v):
            leaf.requires_grad = True
        attention(q, k, v).backward(g)
        print(hashlib.sha256(b"".join(host(leaf.grad).tobytes() for leaf in (q, k, v))).hexdigest())
    """
    assert emulate(code) == emulate(code, SIMULATED_SEED="7")


def test_what_the_kernels_do_not_take_is_decomposed(emulate, tmp_path):
    emulate(
        """
        q, k, v = tensor(3, 5, 96), tensor(3, 9, 96), tensor(3, 9, 96)
        q.requires_grad = True
        attention(q, k, v).sum().backward()
        q, k, v = tensor(3, 5, 64), tensor(3, 9, 64), tensor(3, 9, 64)
        q.requires_grad = True
        attention(q, k, v, scale=-1.0).sum().backward()
        q, k, v = (tensor(3, 5, 64, dtype="float32") for _ in range(3))
        q.requires_grad = True
        attention(q, k, v).sum().backward()
        """
    )
    programs = [source for source, _ in precompile.entries(tmp_path / "tenon/cuda")]
    assert programs and not [each for each in programs if b"mma.sync" in each]


def test_without_tensor_cores_attention_is_decomposed(run, tmp_path):
    code = """
        import numpy as np
        q = tenon.ones([3, 5, 64], dtype="float16", device=KIND)
        out = tenon.nn.functional.scaled_dot_product_attention(q, q, q)
        assert (out.cpu().to(tenon.float32).numpy() == 1).all()
    """
    result = run(code, XDG_CACHE_HOME=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "the kernel tenon_attention is not used" in result.stderr
