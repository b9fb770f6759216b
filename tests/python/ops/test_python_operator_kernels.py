# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python: for operators defined in Python and for others; code of other languages; threads."""

import ctypes
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import reference_plugin
import tenon
from devices import DEVICES

X = tenon.tensor([[1.0, -2.0], [0.5, 3.0]])


def define(name, results="Tensor", body=None, shape=lambda x: x):
    op = tenon.op(f"pykernel::{name}(Tensor x) -> {results}")(body)
    op.shape(shape)
    return op


# -- results ----------------------------------------------------------------------------------------


def write_by_operator(x, out):
    tenon.add(x, x, out=out)


def write_by_numpy(x, *, out):
    np.multiply(x.numpy(), 2, out=out.numpy())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2,
        lambda x: x.numpy() * 2,
        lambda x: (x.numpy() * 2).T.copy().T,
        write_by_operator,
        write_by_numpy,
        lambda x, out: write_by_operator(x, out) or out,
    ],
    ids=["tensor", "array", "strided array", "out", "out by keyword", "out returned"],
)
def test_what_a_kernel_may_return(function):
    op = define("results")
    op.kernel("cpu")(function)
    assert op(X).tolist() == (X * 2).tolist()
    assert op(X.T).tolist() == (X.T * 2).tolist()
    out = tenon.zeros((2, 4))
    op(X, out=out[:, ::2])
    assert out[:, ::2].tolist() == (X * 2).tolist() and out[:, 1::2].sum().item() == 0


def test_several_results():
    op = define(
        "several",
        "(Tensor low, Tensor index)",
        shape=lambda x: [x.shape[:1], (x.shape[:1], "int64")],
    )
    op.kernel("cpu")(lambda x: [x.numpy().min(1), x.numpy().argmin(1)])
    assert op(X).low.tolist() == [-2.0, 0.5] and op(X).index.tolist() == [1, 0]

    @op.kernel("cpu")
    def _(x, out):
        low, index = out
        low[:] = x.numpy().max(1)
        index[:] = x.numpy().argmax(1)

    assert op(X).low.tolist() == [1.0, 3.0] and op(X).index.tolist() == [0, 1]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_no_axes_and_no_elements(shape):
    op = define("shapes")
    op.kernel("cpu")(lambda x: x.numpy() + 1)
    assert op(tenon.ones(shape)).shape == shape


def test_numpy_scalars_are_0d_arrays():
    op = define("total", shape=lambda x: ())
    op.kernel("cpu")(lambda x: x.numpy().sum())
    assert op(X).item() == 2.5
    assert op(X.to("float64")).dtype == tenon.float64


@pytest.mark.parametrize(
    "result, error, text",
    [
        (None, TypeError, "returned NoneType; expected a Tensor or an array"),
        (3.0, TypeError, "returned float; expected a Tensor or an array"),
        ([[1.0, 2.0]], TypeError, "returned list; expected a Tensor or an array"),
        (
            tenon.ones(3),
            ValueError,
            r"returned float32 of shape \(3,\) on cpu:0; expected float32 of shape \(2, 2\) on cpu:0",
        ),
        (
            np.ones((2, 2)),
            ValueError,
            r"returned float64 of shape \(2, 2\) on cpu:0; expected float32 of shape \(2, 2\)",
        ),
        (
            tenon.ones((2, 2), device="meta"),
            ValueError,
            r"returned float32 of shape \(2, 2\) on meta:0; expected",
        ),
    ],
)
def test_what_a_kernel_may_not_return(result, error, text):
    op = define("wrong")
    op.kernel("cpu")(lambda x: result)
    with pytest.raises(error, match="pykernel::wrong: its kernel for cpu " + text):
        op(X)


def test_what_several_results_may_not_be():
    op = define("wrong_several", "(Tensor a, Tensor b)", shape=lambda x: [x, x])
    for result, error, text in [
        (X, TypeError, "returned tenon.Tensor; expected a list of 2 results"),
        ([X], ValueError, "returned 1 results; expected 2"),
        ([X, None], TypeError, "returned NoneType; expected a Tensor or an array for each result"),
    ]:
        op.kernel("cpu")(lambda x, result=result: result)
        with pytest.raises(error, match=text):
            op(X)


def test_a_kernel_that_takes_out_returns_nothing():
    op = define("with_out")
    op.kernel("cpu")(lambda x, out: x + 1)
    with pytest.raises(
        TypeError, match="takes `out` and returned tenon.Tensor; expected None: write into"
    ):
        op(X)


def test_kernels_must_take_the_operators_parameters():
    with pytest.raises(
        TypeError, match=r"expected a kernel with the parameters \(x\), got \(x, y\)"
    ):
        define("parameters").kernel("cpu")(lambda x, y: x)


# -- which kernel is called -------------------------------------------------------------------------


def test_dtypes_and_the_body_for_others():
    op = define("typed", body=lambda x: x * 0 + 1)
    op.kernel("cpu", dtypes=["float32", tenon.int64])(lambda x: x.numpy() * 0 + 2)
    got = {
        dtype: op(X.to(dtype)).numpy().max() for dtype in ("float32", "int64", "float64", "int8")
    }
    assert got == {"float32": 2, "int64": 2, "float64": 1, "int8": 1}
    with pytest.raises(ValueError, match="dtypes: expected at least one dtype, got none"):
        op.kernel("cpu", dtypes=[])
    with pytest.raises(ValueError, match="expected the name of a dtype"):
        op.kernel("cpu", dtypes="float99")


def test_the_highest_score_wins_and_the_latest_by_default():
    op = define("scores")
    first = op.kernel("cpu")(lambda x: x.numpy() * 0 + 1)
    second = op.kernel("cpu")(lambda x: x.numpy() * 0 + 2)
    low = op.kernel("cpu", score=-5)(lambda x: x.numpy() * 0 + 3)
    kernels = tenon.explain(op)["kernels"]
    assert [entry["score"] for entry in kernels] == [1, 0, -5]
    assert all(entry["plugin"].startswith("python_scores_") for entry in kernels)
    got = []
    for handle in (second, first, low):
        got.append(op(X)[0, 0].item())
        handle.remove()
    assert got == [2.0, 1.0, 3.0]
    with pytest.raises(NotImplementedError, match="no kernel"):
        op(X)


def test_tensors_arrive_contiguous_unless_asked_otherwise():
    strides = []

    def function(x):
        strides.append(x.strides)
        return x.numpy()

    op = define("strided")
    op.kernel("cpu")(function)
    op.kernel("cpu", dtypes="float64", strided=True)(function)
    for dtype in ("float32", "float64"):
        x = X.to(dtype)
        assert op(x.T).tolist() == X.T.tolist()
    assert strides == [(2, 1), (1, 2)]


def test_kernels_of_elementwise_operators_may_write_over_their_argument():
    op = tenon.op("pykernel::doubled(Tensor x, Tensor y) -> Tensor", elementwise=True)(None)

    @op.kernel("cpu")
    def _(x, y, out):
        assert x.shape == y.shape and x.dtype == y.dtype
        out[...] = x.numpy() + y.numpy()

    assert op(X, 1).tolist() == (X + 1).tolist()
    x = X.clone()
    tenon.ops.pykernel.doubled_(x, tenon.tensor([1, 2]))
    assert x.tolist() == (X + tenon.tensor([1.0, 2.0])).tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_a_kernel_for_each_device(device):
    op = define("for_device", body=lambda x: x + 1)
    x = X.to(device)
    assert op(x).cpu().tolist() == (X + 1).tolist()
    seen = []

    @op.kernel(device)
    def _(x):
        seen.append(str(x.device))
        return (x.cpu() + 2).to(x.device)

    assert op(x).cpu().tolist() == (X + 2).tolist()
    assert seen == [str(x.device)]
    op.kernel(device)(lambda x: x.cpu().numpy() + 3)
    if device == "cpu":
        assert op(x).tolist() == (X + 3).tolist()
    else:
        with pytest.raises(ValueError, match=rf"on cpu:0; expected .* on {device}:0"):
            op(x)


@pytest.mark.skipif(DEVICES == ["cpu"], reason="needs a second device: TENON_TEST_DEVICES")
def test_calls_on_other_devices_are_counted():
    device = next(name for name in DEVICES if name != "cpu")
    op = define("counted")
    op.kernel("cpu")(lambda x: x.numpy() + 1)
    tenon.fallback_report(reset=True)
    with tenon.fallback("allow"):
        assert op(X.to(device)).cpu().tolist() == (X + 1).tolist()
    assert "pykernel::counted" in str(tenon.fallback_report())


def test_unknown_devices_are_errors():
    op = define("nowhere")
    with pytest.raises(tenon.NotFoundError, match="nowhere"):
        op.kernel("nowhere")
    with pytest.raises(ValueError, match="expected a name like 'cpu', got 'cpu:1'"):
        op.kernel("cpu:1")


# -- operators of others ----------------------------------------------------------------------------


def test_a_kernel_for_an_operator_of_tenon():
    calls = []

    @tenon.kernel("tenon::relu", "cpu", dtypes=["float32"], score=10)
    def handle(x):
        calls.append(x.dtype)
        return np.maximum(x.numpy(), 0)

    try:
        assert "test_a_kernel_for_an_operator_of_tenon" in repr(handle) and "in place" in repr(
            handle
        )
        assert tenon.relu(X).tolist() == [[1.0, 0.0], [0.5, 3.0]]
        assert X.to("float64").relu().tolist() == [[1.0, 0.0], [0.5, 3.0]]
        x = X.clone().requires_grad_()
        tenon.relu(x).sum().backward()
        assert x.grad.tolist() == [[1.0, 0.0], [1.0, 1.0]]
        assert calls == [tenon.float32] * 2
        best = tenon.explain("relu")["kernels"][0]
        assert best["plugin"].startswith("python_relu_") and best["score"] == 10
        plugin = next(p for p in tenon.plugins.list() if p["name"] == best["plugin"])
        assert plugin["path"].startswith("test_python_operator_kernels.py:")
    finally:
        handle.remove()
    handle.remove()
    assert "removed" in repr(handle)
    tenon.relu(X)
    assert len(calls) == 2


def test_a_kernel_for_a_block():
    with tenon.exp.kernel("cpu")(lambda x: x.numpy() * 0 + 7):
        assert tenon.exp(X).numpy().min() == 7
    assert tenon.exp(tenon.zeros(1)).tolist() == [1.0]


@pytest.mark.parametrize(
    "name, text",
    [
        ("permute", "would never run: the operator is a view, which no kernel computes"),
        ("nonzero", "shapes depend on data, which Python kernels cannot be"),
        ("stack", "made of other operators alone; give them kernels"),
    ],
)
def test_kernels_that_would_never_run_are_refused(name, text):
    with pytest.raises(ValueError, match=text):
        getattr(tenon, name).kernel("cpu")(lambda *args, **kwargs: None)


def test_there_is_no_kernel_for_what_is_no_operator():
    with pytest.raises(AttributeError, match="pykernel_nothing"):
        tenon.kernel("tenon::pykernel_nothing", "cpu")


# -- inside a kernel --------------------------------------------------------------------------------


def test_kernels_run_below_gradients():
    seen = []
    op = define("below")
    op.grad(lambda dout: dout * 5)

    @op.kernel("cpu")
    def _(x):
        y = x.exp() * 2
        seen.append((x.requires_grad, y.requires_grad, tenon.is_grad_enabled()))
        return y

    x = X.clone().requires_grad_()
    y = op(x)
    assert seen == [(False, False, False)] and tenon.is_grad_enabled()
    y.sum().backward()
    assert x.grad.numpy().min() == x.grad.numpy().max() == 5


class Unlucky(Exception):
    pass


def test_exceptions_come_out_as_themselves_and_leave_nothing():
    raised = Unlucky("in the kernel")

    def fail(x):
        raise raised

    op = define("fails")
    op.kernel("cpu")(fail)
    outer = tenon.op("pykernel::outer(Tensor x) -> Tensor")(lambda x: op(x) * 2)
    for call in (op, outer, lambda x: op(x, out=tenon.zeros((2, 2)))):
        with pytest.raises(Unlucky) as caught:
            call(X)
        assert caught.value is raised
        assert tenon.is_grad_enabled()
    large = tenon.ones((300, 300))  # the GIL is released around it
    with pytest.raises(Unlucky) as caught:
        op(large)
    assert caught.value is raised


def test_a_kernel_cannot_be_removed_from_inside():
    op = define("removes")
    handle = op.kernel("cpu")(lambda x: handle.remove())
    with pytest.raises(
        RuntimeError, match="for cpu is being called; remove it once the call is over"
    ):
        op(X)
    handle.remove()


def test_a_kernel_may_keep_its_tensors():
    kept = []
    op = define("keeps")
    op.kernel("cpu")(lambda x: kept.append(x) or x + 1)
    op(tenon.tensor([1.0, 2.0]))
    op(tenon.tensor([1.0, 2.0, 3.0, 4.0])[::2])
    assert [x.tolist() for x in kept] == [[1.0, 2.0], [1.0, 3.0]]


def test_more_kernels_than_places_are_refused():
    op = define("many")
    handles = []
    with pytest.raises(
        RuntimeError, match=r"expected at most 512 Python kernels at a time; remove\(\) some"
    ):
        for _ in range(513):
            handles.append(op.kernel("cpu", score=0)(lambda x: x))
    for handle in handles:
        handle.remove()
    op.kernel("cpu")(lambda x: x + 1)
    assert op(X).tolist() == (X + 1).tolist()


# -- other languages, other threads -----------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("needs a C compiler")
    source = pathlib.Path(__file__).with_name("call_from_thread.c")
    include = pathlib.Path(__file__).parents[3] / "sdk" / "include"
    path = tmp_path_factory.mktemp("library") / "library.so"
    command = [
        compiler,
        "-std=c11",
        "-O1",
        "-shared",
        "-fPIC",
        f"-I{include}",
        source,
        "-o",
        path,
        "-lpthread",
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


def test_a_compiled_function_as_a_kernel(library):
    library.scale.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p,
    ]  # fmt: skip

    op = tenon.op("pykernel::scale(Tensor x, *, float factor) -> Tensor")(None)
    op.shape(lambda x, factor: x)

    @op.kernel("cpu", dtypes="float32")
    def _(x, *, factor, out):
        stream = tenon.current_stream(x.device)
        handle = stream.handle if stream else None
        library.scale(x.data_ptr(), out.data_ptr(), x.size, factor, handle)

    assert op(X, factor=3).tolist() == (X * 3).tolist()
    assert op(X.T, factor=0.5).tolist() == (X.T * 0.5).tolist()


@reference_plugin.needs_reference
def test_the_current_stream_has_a_handle():
    reference_plugin.load()
    op = define("streamed")
    handles = []

    @op.kernel("reference")
    def _(x, out):
        stream = tenon.current_stream(x.device)
        handles.append(stream.handle if stream else None)
        out.copy_(x)

    x = X.to("reference")
    with tenon.Stream("reference") as stream:
        op(x)
    op(x)
    assert stream.handle != 0 and handles[0] == stream.handle and handles[1] != stream.handle


def test_calls_from_threads_that_python_does_not_know(library):
    host = ctypes.CDLL(str(next(pathlib.Path(tenon.__file__).parent.glob("lib/libtenon.so*"))))
    host.tenon_host_get.restype = ctypes.c_void_p
    table = ctypes.c_void_p(host.tenon_host_get(1))
    library.call_on_new_thread.restype = ctypes.c_float
    library.call_on_new_thread.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p,
    ]  # fmt: skip
    error = ctypes.create_string_buffer(256)

    def call(name, value):
        result = library.call_on_new_thread(table, f"pykernel::{name}".encode(), value, error)
        return result, error.value.decode()

    body = tenon.op("pykernel::foreign_body(Tensor x) -> Tensor")(lambda x: x + 1)
    kernel = define("foreign_kernel")
    kernel.kernel("cpu")(lambda x: x.numpy() * 2)
    assert call("foreign_body", 3.0) == (4.0, "")
    assert call("foreign_kernel", 3.0) == (6.0, "")

    @kernel.kernel("cpu")
    def _(x):
        raise Unlucky("far away")

    assert call("foreign_kernel", 3.0)[1].endswith("far away")
    assert body(X).tolist() == (X + 1).tolist()


def test_threads_share_operators():
    op = define("shared")
    op.grad(lambda dout, x: dout * 2)
    op.kernel("cpu")(lambda x: x.numpy() * 2)
    errors = []

    def work(seed):
        try:
            for i in range(50):
                x = tenon.full((300, 300) if i % 10 == 0 else (3,), seed + i, dtype="float64")
                x.requires_grad_()
                y = op(x)
                assert y.reshape(-1)[0].item() == 2 * (seed + i)
                y.sum().backward()
                assert x.grad.reshape(-1)[0].item() == 2
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_operators_may_be_defined_anew_while_threads_call_them():
    signature = "pykernel::moving(Tensor x, int[] n=[1], str s='abc') -> Tensor"

    def define_anew(i):
        op = tenon.op(signature)(lambda x, n, s: x + i)
        if i % 2:
            op.shape(lambda x, n, s: x)
            op.kernel("cpu")(lambda x, n, s: x + i)
            op.grad(lambda dout: dout)
        return op

    op = define_anew(0)
    counts, unexpected, done = {"answered": 0, "redefined": 0}, [], threading.Event()

    def work(size):
        x = tenon.ones(size).requires_grad_()
        while not done.is_set():
            try:
                y = op(x)
                counts["answered"] += y[0].item() >= 1
                y.sum().backward()
            except (LookupError, NotImplementedError):
                pass  # taken out at this moment, or there without its gradient yet
            except BaseException as error:
                unexpected.append(error)

    threads = [threading.Thread(target=work, args=(size,)) for size in (4, 60_000)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for i in range(2000):
            try:
                define_anew(i)
                counts["redefined"] += 1
            except RuntimeError as error:
                assert "is being called; define it anew once the call is over" in str(error)
            if counts["redefined"] > 20 and counts["answered"] > 20:
                break
    finally:
        sys.setswitchinterval(interval)
        done.set()
        for thread in threads:
            thread.join()
    assert not unexpected and counts["redefined"] > 0 and counts["answered"] > 0, counts


# -- references -------------------------------------------------------------------------------------

COUNTED = tenon.op("pykernel::counted_body(Tensor x, Tensor[] ts, str s='a') -> Tensor")(
    lambda x, ts, s: x + ts[0]
)
OWN = define("counted_own", body=lambda x: x * 2)
OWN.grad(lambda dout, x, out: {"x": dout * x * out})
KERNEL = define(
    "counted_kernel", "(Tensor a, Tensor b)", shape=lambda x: [x.shape, (x.shape, x.dtype)]
)
KERNEL.kernel("cpu")(lambda x: [x + 1, x.numpy() * 2])
OUT = define("counted_out")
OUT.kernel("cpu")(lambda x, out: out.numpy().fill(1))
FAILING = define("counted_failing")
FAILING.kernel("cpu")(lambda x: None)


def raises(function):
    try:
        function()
    except (TypeError, ValueError):
        return
    raise AssertionError("expected an error")


CASES = {
    "body": lambda: COUNTED(X, [X, X], "text"),
    "own": lambda: OWN(X),
    "backward": lambda: OWN(X.clone().requires_grad_()).sum().backward(),
    "meta": lambda: OWN(X.to("meta")),
    "kernel": lambda: KERNEL(X),
    "out": lambda: OUT(X),
    "failing": lambda: raises(lambda: FAILING(X)),
}


@pytest.mark.parametrize("name", CASES)
def test_reference_counts_return(name, frozen_heap):
    call = CASES[name]
    for _ in range(20):
        call()
    gc.collect()
    watched = [X, tenon.float32, tenon.Tensor, OWN]
    objects = len(gc.get_objects())
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(200):
        call()
    gc.collect()
    after = [sys.getrefcount(item) for item in watched]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 20
    assert len(gc.get_objects()) - objects < 100


def test_what_is_replaced_is_given_back():
    def make():
        def body(x):
            return x + 1

        def shape(x):
            return x.shape

        def kernel(x):
            return x

        op = tenon.op("pykernel::replaced(Tensor x) -> Tensor")(body)
        op.shape(shape)
        op.kernel("cpu")(kernel)
        return [weakref.ref(function) for function in (body, shape, kernel)]

    first = make()
    make()
    gc.collect()
    assert [reference() for reference in first] == [None] * 3
