# SPDX-License-Identifier: Apache-2.0
"""What only a real GPU can show: tensor cores, and other libraries' tensors on the same device. Skipped where there
is no GPU; tests/gpu/run runs it where there is one."""

import os

import numpy as np
import pytest
import tenon


@pytest.fixture(scope="module", autouse=True)
def gpu():
    try:
        tenon.device("cuda")
    except tenon.DeviceError as error:
        pytest.skip(f"needs an NVIDIA GPU: {str(error)[:200]}")
    if "simulated" in os.environ.get("TENON_CUDA_DRIVER", ""):
        pytest.skip("needs a GPU; the simulated device has no tensor cores")


def reference(query, key, value, causal, scale):
    scores = query @ key.swapaxes(-1, -2) * scale
    if causal:
        rows, keys = scores.shape[-2:]
        scores = np.where(np.arange(keys) <= np.arange(rows)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("features", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "rows, keys", [(1, 1), (1, 300), (17, 64), (128, 128), (129, 63), (300, 300)]
)
def test_attention_on_tensor_cores(dtype, features, causal, rows, keys):
    rng = np.random.default_rng(rows * keys + features)
    # Heads behind the rows, as a projection leaves them: the kernel reads through strides.
    shapes = [(2, rows, 3, features), (2, keys, 3, features), (2, keys, 3, features)]
    tensors = [
        tenon.tensor(rng.standard_normal(shape).astype("float32"))
        .to(getattr(tenon, dtype))
        .to("cuda")
        for shape in shapes
    ]
    expected = reference(
        *(each.cpu().to(tenon.float64).numpy().swapaxes(1, 2) for each in tensors), causal, 0.125
    )
    out = tenon.nn.functional.scaled_dot_product_attention(
        *(each.transpose(1, 2) for each in tensors), causal=causal, scale=0.125
    )
    # Weights are rounded to the dtype before they are multiplied.
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2}[dtype]
    np.testing.assert_allclose(
        out.cpu().to(tenon.float64).numpy(), expected, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("features", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "rows, keys", [(1, 1), (1, 300), (17, 64), (128, 128), (129, 63), (300, 300)]
)
def test_gradients_of_attention_on_tensor_cores(dtype, features, causal, rows, keys):
    rng = np.random.default_rng(rows * keys + features)
    query, key, value, grad = (
        tenon.tensor(rng.standard_normal((2, length, 3, features)).astype("float32"))
        .to(getattr(tenon, dtype))
        .to("cuda")
        for length in (rows, keys, keys, rows)
    )
    leaves = [query, key, value]
    for leaf in leaves:
        leaf.requires_grad = True

    def gradients():
        out = tenon.nn.functional.scaled_dot_product_attention(
            *(each.transpose(1, 2) for each in leaves), causal=causal, scale=0.125
        )
        found = tenon.autograd.grad(out, leaves, grad.transpose(1, 2))
        return [each.cpu().to(tenon.float64).numpy().swapaxes(1, 2) for each in found]

    got = gradients()
    q, k, v, dout = (
        each.detach().cpu().to(tenon.float64).numpy().swapaxes(1, 2)
        for each in (query, key, value, grad)
    )
    scores = q @ k.swapaxes(-1, -2) * 0.125
    if causal:
        scores = np.where(np.arange(keys) <= np.arange(rows)[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    dweights = dout @ v.swapaxes(-1, -2)
    dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True)) * 0.125
    expected = (
        dscores @ k,
        dscores.swapaxes(-1, -2) @ q,
        weights.swapaxes(-1, -2) @ dout,
    )
    # Weights and their gradients are rounded to the dtype before they are multiplied; beside the largest result, because sums cancel.
    tolerance = {"float16": 2e-3, "bfloat16": 1.5e-2}[dtype]
    for name, one, other in zip(("dquery", "dkey", "dvalue"), got, expected):
        assert np.abs(one - other).max() < tolerance * max(np.abs(other).max(), 1e-2), name
    # No sum depends on the order in which blocks run.
    for one, again in zip(got, gradients()):
        np.testing.assert_array_equal(one, again)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("is_added", [False, True])
def test_attention_under_a_mask_on_tensor_cores(dtype, is_added):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 6, 150, 64)).astype("float32") for _ in range(3)]
    hides = rng.random((2, 1, 150, 150)) < 0.7
    hides[:, :, 0] = False  # a row that sees nothing gives zeros
    added = np.where(hides, rng.standard_normal(hides.shape), -np.inf).astype("float32")
    results = []
    for device in ("cpu", "cuda"):
        query, key, value = (tenon.tensor(a).to(getattr(tenon, dtype)).to(device) for a in arrays)
        mask = tenon.tensor(added).to(query.dtype) if is_added else tenon.tensor(hides)
        out = tenon.nn.functional.scaled_dot_product_attention(
            query, key[:, :2], value[:, :2], mask=mask.to(device), enable_gqa=True
        )
        results.append(out.cpu().to(tenon.float64).numpy())
    # Weights are rounded to the dtype before they are multiplied.
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2}[dtype]
    np.testing.assert_allclose(*results, rtol=tolerance, atol=tolerance)


def test_attention_in_training_is_that_of_the_cpu():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 2, 96, 64)).astype("float32") for _ in range(3)]
    results = []
    for device in ("cpu", "cuda"):
        tensors = [tenon.tensor(a).to(tenon.bfloat16).to(device) for a in arrays]
        for tensor in tensors:
            tensor.requires_grad = True
        out = tenon.nn.functional.scaled_dot_product_attention(*tensors, causal=True)
        (out * out).sum().backward()
        results.append([t.grad.cpu().to(tenon.float64).numpy() for t in tensors])
    for got, expected in zip(*reversed(results)):
        scale = np.abs(expected).max()
        # bfloat16 has eight bits, and the sums go over 96 products of them.
        assert np.abs(got - expected).max() < 0.04 * scale


def test_tensors_of_pytorch_are_shared_in_both_directions():
    torch = pytest.importorskip("torch", reason="PyTorch's tensors are what is exchanged")
    theirs = torch.arange(12.0, device="cuda").reshape(3, 4)
    ours = tenon.from_dlpack(theirs)
    assert ours.device.type == "cuda"
    tenon.add(ours, 1.0, out=ours)
    tenon.synchronize("cuda")
    assert theirs.cpu().tolist() == (np.arange(12.0).reshape(3, 4) + 1).tolist()
    back = torch.from_dlpack(ours * 2)
    assert back.device.type == "cuda"
    assert (back + 0).cpu().tolist() == ((np.arange(12.0).reshape(3, 4) + 1) * 2).tolist()


def test_work_on_a_stream_runs_in_order():
    stream = tenon.Stream("cuda")
    x = tenon.ones([1000], device="cuda")
    with stream:
        y = x * 2 + 1
        for _ in range(20):
            y = y + x
        total = y.sum()
    stream.synchronize()
    assert total.item() == 1000 * 23


def test_large_tensors_are_indexed_beyond_31_bits():
    count = 2**31 + 64
    x = tenon.zeros([count], dtype=tenon.uint8, device="cuda")
    x[count - 3 :] = 7
    assert x[count - 4 :].cpu().numpy().tolist() == [0, 7, 7, 7]
    assert int((x > 0).sum().item()) == 3
    assert int(x.argmax().item()) == count - 3


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("deterministic", [False, True])
def test_tuned_algorithms_give_the_results_of_the_first(dtype, deterministic, monkeypatch):
    rng = np.random.default_rng(1)

    def make(*shape):
        host = tenon.tensor(rng.standard_normal(shape).astype("float32") / 16)
        return host.to(getattr(tenon, dtype)).to("cuda")

    x, w, grad = make(8, 64, 28, 28), make(64, 64, 3, 3), make(8, 64, 28, 28)
    a, b = make(512, 256), make(256, 384)

    def run():
        return (
            tenon.conv2d(x, w, None, 1, 1),
            tenon.conv2d_input_grad(grad, w, [8, 64, 28, 28], [1, 1], [1, 1], [1, 1], 1),
            tenon.conv2d_weight_grad(grad, x, [64, 64, 3, 3], [1, 1], [1, 1], [1, 1], 1),
            a @ b,
        )

    expected = run()
    monkeypatch.setenv("TENON_AUTOTUNE_CACHE", "off")
    tenon.autotune.clear()
    tenon.use_deterministic_algorithms(deterministic)
    try:
        with tenon.autotune():
            run()
            got = run()
        decisions = tenon.autotune.report()["decisions"]
    finally:
        tenon.use_deterministic_algorithms(False)
    # Sums of thousands of products in another order; 16 bits are rounded once on either side.
    tolerance = {"float32": 1e-3, "float16": 1e-2, "bfloat16": 6e-2}[dtype]
    for tuned, first in zip(got, expected):
        tuned, first = (each.cpu().to(tenon.float64).numpy() for each in (tuned, first))
        largest = np.abs(first).max()
        np.testing.assert_allclose(tuned / largest, first / largest, rtol=0, atol=tolerance)
    own = [d for d in decisions if d["device"].startswith("cuda") and d["dtype"] == dtype]
    assert any(d["op"] == "tenon::conv2d" for d in own), decisions
    for decision in own:
        print(decision["op"], decision["chosen"], decision["microseconds"], decision["algorithms"])
        assert not (deterministic and "any order" in str(decision["algorithms"])), decision
