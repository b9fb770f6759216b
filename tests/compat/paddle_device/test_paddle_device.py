# SPDX-License-Identifier: Apache-2.0
"""A device plugin written for PaddlePaddle, as a device of Tenon's: what runs in it, and what else."""

import numpy as np
import pytest
import tenon
from paddle_support import LIBRARIES, library, rows_of, run_python
from tenon.compat import paddle

pytestmark = pytest.mark.skipif(
    not LIBRARIES.exists(), reason="TENON_BUILD_DIR has no stand-in plugins"
)


@pytest.fixture(scope="module", autouse=True)
def standin():
    paddle.load_device_plugin(library("standin"))
    with tenon.fallback("allow"):
        yield


def on_device(values):
    return tenon.tensor(np.asarray(values), device="standin")


X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
Y = np.linspace(1, 2, 4, dtype=np.float32)
N = np.array([[3, 1, 2, 1], [9, 8, 7, 9]], dtype=np.int32)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


NATIVE = [
    ("add", lambda d: d(X) + d(X), X + X),
    ("add", lambda d: d(X) + d(Y), X + Y),
    ("add", lambda d: d(N) + d(N), N + N),
    ("add", lambda d: d(X) + 1.5, X + 1.5),
    ("multiply", lambda d: d(X) * d(Y), X * Y),
    ("subtract", lambda d: d(X) - d(Y), X - Y),
    ("less", lambda d: d(X) < d(Y), X < Y),
    ("relu", lambda d: tenon.relu(d(X)), np.maximum(X, 0)),
    ("sum", lambda d: tenon.sum(d(X), -1), X.sum(-1)),
    ("sum", lambda d: tenon.sum(d(X)), X.sum()),
    ("mean", lambda d: tenon.mean(d(X), [0], keepdim=True), X.mean(0, keepdims=True)),
    ("softmax", lambda d: tenon.softmax(d(X), -1), softmax(X, -1)),
    ("softmax", lambda d: tenon.softmax(d(X), 0), softmax(X, 0)),
    ("matmul", lambda d: d(X) @ d(X).permute(), X @ X.T),
    ("linear", lambda d: tenon.linear(d(X), d(X)), X @ X.T),
    ("concat", lambda d: tenon.concat([d(X), d(X[:1])]), np.concatenate([X, X[:1]])),
    ("concat", lambda d: tenon.concat([d(X), d(X)], -1), np.concatenate([X, X], -1)),
    ("full", lambda d: tenon.full([2, 3], 7, device="standin"), np.full([2, 3], 7)),
    ("clone", lambda d: d(X).permute().contiguous(), X.T),
    ("sort_with_indices", lambda d: tenon.argsort(d(N)), N.argsort(-1, kind="stable")),
    (
        "sgd_update",
        lambda d: tenon.sgd_update(d(X), d(X), lr=0.5),
        X * 0.5,
    ),
]


@pytest.mark.parametrize("operator, call, want", NATIVE, ids=[case[0] for case in NATIVE])
def test_kernels_of_the_plugin_run(operator, call, want):
    before = rows_of("standin").get(operator, {"native": 0})["native"]
    got = call(on_device)
    assert str(got.device) == "standin:0"
    np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=1e-5, atol=1e-6)
    assert rows_of("standin")[operator]["native"] == before + 1
    assert "standin" in str(tenon.explain(operator, "standin"))


def test_what_has_no_kernel_runs_on_the_host_and_is_counted():
    before = rows_of("standin").get("add", {"host": 0})["host"]
    x = on_device(np.array([1, 2], np.int16))
    assert (x + x).tolist() == [2, 4]
    assert rows_of("standin")["add"]["host"] == before + 1
    with tenon.fallback("deny"), pytest.raises(tenon.PolicyError, match="add.*standin"):
        x + x


@pytest.mark.parametrize(
    "call, want",
    [
        (lambda d: tenon.sum(d(np.float32(3))), np.float32(3)),  # crashes in existing plugins
        (lambda d: tenon.softmax(d(np.float32(3)), -1), np.float32(1)),
        (lambda d: tenon.sort(d(np.int32(3)), 0), np.int32(3)),
        (lambda d: d(X).permute(1, 0)[1], X.T[1]),
        (lambda d: d(Y)[1:3], Y[1:3]),
        (lambda d: d(np.float32(3)).reshape([1]), np.array([3.0])),
        (lambda d: d(np.ones([2, 2, 2, 2])) @ d(np.ones([2, 2, 2, 2])), np.full([2, 2, 2, 2], 2.0)),
        (lambda d: d(np.ones([2, 3, 4])) @ d(np.ones([4])), np.full([2, 3], 4.0)),
        (lambda d: d(X[:0]) + d(Y), X[:0] + Y),
        (lambda d: d(X).flip(0).contiguous(), X[::-1]),
        (lambda d: d(X).to(tenon.float64), X.astype(np.float64)),
    ],
)
def test_what_kernels_are_known_not_to_do_is_not_asked_of_them(call, want):
    np.testing.assert_allclose(call(on_device).to("cpu").numpy(), want)


def test_outputs_may_be_given_inputs_and_strided():
    x = on_device(X)
    x += on_device(Y)
    np.testing.assert_allclose(x.to("cpu").numpy(), X + Y)
    # This kernel clears its output first, so it is given memory of its own.
    tenon.subtract(x, on_device(Y), out=x)
    np.testing.assert_allclose(x.to("cpu").numpy(), X, rtol=1e-6)
    table = tenon.zeros([4, 6], device="standin")
    table[:, :3] = on_device(X).permute()
    want = np.zeros([4, 6])
    want[:, :3] = X.T
    np.testing.assert_allclose(table.to("cpu").numpy(), want)


def test_random_numbers_follow_the_seed():
    tenon.manual_seed(7)
    first, second = (tenon.uniform([50], 2.0, 3.0, device="standin").tolist() for _ in range(2))
    tenon.manual_seed(7)
    assert tenon.uniform([50], 2.0, 3.0, device="standin").tolist() == first != second
    assert all(2 <= value < 3 for value in first)


def test_devices_are_two_and_copies_go_between_them():
    assert {"standin:0", "standin:1"} <= {str(device) for device in tenon.devices()}
    x = on_device(X).to("standin:1")
    np.testing.assert_allclose((x + x).to("standin:0").to("cpu").numpy(), X + X)
    assert "v0" in str(tenon.device_properties("standin:1"))


def test_memory_that_is_not_there_is_an_error():
    with pytest.raises(tenon.OutOfMemoryError, match="standin: out of memory"):
        tenon.empty([1 << 41], device="standin")
    assert tenon.full([1 << 8], 1.0, device="standin").sum().item() == 256


def wrong(values):
    """On the device whose kernels do wrong."""
    paddle.load_device_plugin(library("standin_wrong"))
    return tenon.tensor(np.asarray(values), device="standin_wrong")


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tenon.sin(wrong(X)), r"kernel sin \(float32\): the device is on fire"),
        (
            lambda: tenon.sin(wrong(X.astype(np.float64))),
            r"kernel sin \(float64\): it returned without requesting the memory of output 0",
        ),
        (
            lambda: tenon.sin(wrong(X.astype(np.float16))),
            r"expected output 0 with 12 elements of float16, got 12 of float32",
        ),
        (lambda: tenon.cos(wrong(X)), r"the tensor has no memory; call Alloc before data\(\)"),
    ],
)
def test_kernels_that_do_wrong_are_errors(call, text):
    with pytest.raises(tenon.InternalError, match=text):
        call()
    assert (on_device(Y) + on_device(Y)).tolist() == (Y + Y).tolist()


def test_a_network_learns():
    random = np.random.default_rng(0)
    inputs = random.normal(size=(64, 8)).astype(np.float32)
    labels = (inputs @ random.normal(size=(8, 3))).argmax(1)
    tenon.manual_seed(0)
    nn = tenon.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to("standin")
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.5)
    x, y = on_device(inputs), on_device(labels)
    losses = []
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    ran = rows_of("standin")
    for operator in ("matmul", "relu", "relu_grad", "sgd_update", "softmax"):
        assert ran[operator]["native"] > 0, operator


def test_gradients_are_those_of_the_host():
    def gradient(device):
        x = tenon.tensor(X, device=device, requires_grad=True)
        (tenon.softmax(tenon.relu(x), -1) * tenon.tensor(Y, device=device)).sum().backward()
        return x.grad.to("cpu").numpy()

    np.testing.assert_allclose(gradient("standin"), gradient("cpu"), rtol=1e-5, atol=1e-7)


def test_what_became_of_each_kernel_can_be_asked():
    (plugin,) = (p for p in paddle.device_plugins() if p["device"] == "standin")
    kernels = {kernel["name"]: kernel for kernel in plugin["kernels"]}
    assert plugin["registrations"] == 97 and len(kernels) == 47
    assert plugin["version"] == "0.1.1" and not plugin["streams"] and not plugin["refusals"]
    assert kernels["matmul"]["operator"] == "tenon::matmul, tenon::linear"
    assert kernels["argsort"]["state"] == "partly" and kernels["argsort"]["dtypes"] == ["int32"]
    assert kernels["accuracy"]["state"] == "unused"
    assert kernels["accuracy"]["text"] == "Tenon's table has no row for this kernel"
    assert any(p["name"] == "paddle_standin" for p in tenon.plugins.list())


def test_streams_keep_their_order():
    paddle.load_device_plugin(library("standin_lazy"))
    assert [p["streams"] for p in paddle.device_plugins() if p["device"] == "standin_lazy"] == [
        True
    ]
    with tenon.Stream("standin_lazy:0") as stream:
        x = tenon.tensor(X, device="standin_lazy")
        y = x.clone()  # waits in the stream's queue
        event = tenon.Event("standin_lazy:0")
        event.record(stream)
    event.synchronize()
    np.testing.assert_allclose((y + y).to("cpu").numpy(), X + X)
    stream.synchronize()


def test_threads_may_call_at_the_same_time():
    program = """
import threading, numpy as np, tenon
from tenon.compat import paddle
from paddle_support import library
paddle.load_device_plugin(library("standin"))
def work(index):
    x = tenon.tensor(np.full([64], index, np.float32), device=f"standin:{index % 2}")
    for _ in range(200):
        assert (x + x).mean().item() == 2 * index
threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done")
"""
    code, out, err = run_python(program)
    assert (code, out.strip()) == (0, "done"), err


@pytest.mark.parametrize(
    "call, text",
    [
        (tenon.exp, "left 12 of 12 elements of result `out` unwritten"),
        (tenon.log, "left 1 of 12 elements of result `out` unwritten, first element 11"),
        (tenon.sqrt, "left 12 of 12 elements of result `out` unwritten"),
        (tenon.sum, "wrote 44 bytes past the end of result `out`"),
        (lambda x: tenon.exp(x, out=tenon.empty_like(x)), "left 12 of 12 elements"),
        (lambda x: tenon.exp(x, out=x), "left 12 of 12 elements"),
        (lambda x: tenon.exp(x, out=tenon.zeros([4, 3], device=x.device).mT), "left 12 of 12 elem"),
    ],
)
def test_validation_tells_what_kernels_leave_unwritten(call, text):
    x = wrong(np.abs(X))
    with tenon.validation(), pytest.raises(tenon.InternalError, match=text) as caught:
        call(x)
    assert "standin_wrong" in str(caught.value)
