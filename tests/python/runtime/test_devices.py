# SPDX-License-Identifier: Apache-2.0
"""The device of what names none, streams and events of devices that have none, and what devices can do."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import tenon

DEVICE = "null"


@pytest.fixture(autouse=True)
def host_again():
    yield
    tenon.set_device(None)


def makers():
    return {
        "zeros": tenon.zeros([2, 3]),
        "zeros of sizes": tenon.zeros(2, 3),
        "ones with a dtype": tenon.ones([2], dtype=tenon.int32),
        "arange": tenon.arange(4),
        "full": tenon.full([2], 7.0),
        "rand": tenon.rand(3),
        "randn": tenon.randn([3]),
        "eye": tenon.eye(2),
        "linspace": tenon.linspace(0, 1, 3),
        "tensor of a list": tenon.tensor([1.0, 2.0]),
        "tensor of a number": tenon.tensor(3, dtype=tenon.float32),
        "tensor of an array": tenon.tensor(np.arange(3)),
        "Tensor": tenon.Tensor([1.0]),
        "a layer": tenon.nn.Linear(2, 3).weight,
        "a buffer": tenon.nn.BatchNorm1d(2).running_mean,
    }


def devices_of(tensors):
    return {name: str(tensor.device) for name, tensor in tensors.items()}


def test_tensors_are_made_on_the_chosen_device():
    names = list(devices_of(makers()))
    assert tenon.get_device() == tenon.device("cpu")
    with tenon.device(DEVICE) as entered:
        assert entered == tenon.device(DEVICE) == tenon.get_device()
        assert devices_of(makers()) == dict.fromkeys(names, "null:0")
        with tenon.device("cpu"):
            assert set(devices_of(makers()).values()) == {"cpu:0"}
        assert tenon.get_device() == DEVICE
    assert devices_of(makers()) == dict.fromkeys(names, "cpu:0")
    tenon.set_device(DEVICE)
    assert devices_of(makers()) == dict.fromkeys(names, "null:0")
    tenon.set_device(None)
    assert tenon.get_device() == "cpu"


def test_what_names_a_device_or_has_one_stays_there():
    x = tenon.ones([2])
    with tenon.device(DEVICE):
        assert tenon.zeros([2], device="cpu").device == "cpu"
        assert tenon.tensor([1.0], device="cpu").device == "cpu"
        assert tenon.zeros_like(x).device == "cpu"
        assert (x + 1).device == "cpu" and tenon.tensor(x).device == "cpu"
        out = tenon.empty([3], device="cpu")
        assert tenon.arange(3.0, out=out) is out and out.device == "cpu"
        assert tenon.from_numpy(np.ones(2)).device == "cpu"
        assert tenon.zeros([2]).tolist() == [0.0, 0.0]


def test_an_exception_leaves_the_device():
    with pytest.raises(KeyError), tenon.device(DEVICE):
        raise KeyError
    assert tenon.get_device() == "cpu"


def test_each_thread_chooses_its_own():
    seen = []
    with tenon.device(DEVICE):
        thread = threading.Thread(target=lambda: seen.append(str(tenon.zeros([1]).device)))
        thread.start()
        thread.join()
    assert seen == ["cpu:0"]


def test_a_device_that_is_not_there():
    with pytest.raises(LookupError, match="no_such_device"):
        tenon.set_device("no_such_device")
    assert tenon.get_device() == "cpu"


def test_the_namespace_of_pytorch_has_it():
    from tenon.compat.torch._alias import names

    names.set_default_device(DEVICE)
    assert names.get_default_device() == DEVICE and tenon.ones([1]).device == DEVICE
    names.set_default_device(None)
    assert tenon.ones([1]).device == "cpu"


def test_compiled_functions_know_the_device():
    @tenon.compile
    def function(x):
        return x + 1, tenon.ones([2])

    x = tenon.ones([2])
    for _ in range(4):
        assert str(function(x)[1].device) == "cpu:0"
    with tenon.device(DEVICE):
        for _ in range(4):
            assert str(function(x)[1].device) == "null:0"
    assert str(function(x)[1].device) == "cpu:0"


def test_streams_and_events_of_a_device_without_them():
    """A program that orders its work runs anywhere: here the order of the program is that of the work."""
    with tenon.Stream("cpu") as stream:
        begin, end = tenon.Event("cpu"), tenon.Event("cpu")
        begin.record()
        x = tenon.ones([4]) * 2
        end.record(stream)
    other = tenon.Stream("cpu", priority=1)
    other.wait(stream)
    other.wait(end)
    end.wait(other)
    stream.synchronize()
    end.synchronize()
    assert stream.query() and end.query() and stream.record().query()
    assert x.tolist() == [2.0] * 4
    assert stream == other and stream.handle == 0 and stream.device == "cpu"
    assert stream != tenon.Stream(DEVICE)
    assert tenon.current_stream("cpu") is None
    assert begin.elapsed_time(end) >= 0.0 and begin.elapsed_time(begin) == 0.0
    assert end.elapsed_time(begin) <= 0.0


def test_times_that_cannot_be_told():
    recorded = tenon.Event("cpu")
    recorded.record()
    with pytest.raises(
        RuntimeError, match="expected two events that were recorded, got one that was not"
    ):
        recorded.elapsed_time(tenon.Event("cpu"))
    with pytest.raises(ValueError, match="expected an event of cpu:0, got one of null:0"):
        recorded.elapsed_time(tenon.Event(DEVICE))


def test_capabilities():
    cpu = tenon.runtime.capabilities("cpu")
    assert cpu.host_memory and not cpu.streams and not cpu.work_graphs
    assert tenon.float32 in cpu.dtypes and tenon.float16 in cpu.dtypes
    null = tenon.runtime.capabilities(DEVICE)
    assert null.dtypes == () and not null.collective
    assert str(null).endswith("computes in no dtype itself")
    with tenon.device(DEVICE):
        assert tenon.runtime.capabilities() == null


def test_kinds_that_are_not_loaded():
    code = """
import tenon
assert [str(each) for each in tenon.devices()] == ["meta:0", "cpu:0"], tenon.devices()
kinds = tenon.runtime.device_kinds()
assert kinds["cpu"] == "loaded" and kinds["null"] == "not loaded", kinds
assert "null" not in {each.type for each in tenon.devices()}
assert "null" in {each.type for each in tenon.devices(all=True)}
assert tenon.runtime.device_kinds()["null"] == "loaded"
print("right")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "right\n", done.stderr
