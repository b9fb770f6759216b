# SPDX-License-Identifier: Apache-2.0
"""Tensors in queues, pipes and arguments of processes, and weights of other libraries."""

import gc
import os
import pickle

import numpy as np
import pytest
import tenon
import tenon.multiprocessing as mp
from tenon.utils import dlpack, load_torch_state_dict

LARGE = (600, 500)  # 1.2 MB


def add_one(connection, argument):
    """A process that answers with what it receives, and adds one to it in place."""
    while (received := connection.recv()) is not None:
        connection.send((received, argument.sum().item()))
        received.add_(1.0)
        connection.send(None)


def shared_blocks():
    gc.collect()  # what tests before this one left in cycles
    with open("/proc/self/maps", encoding="ascii") as file:
        return sum("memfd:tenon " in line for line in file)


def converse(context, values, argument):
    """Each value as it came back, and as it is here after the process changed its own."""
    ours, theirs = context.Pipe()
    process = context.Process(target=add_one, args=(theirs, argument), daemon=True)
    process.start()
    answers = []
    for value in values:
        ours.send(value)
        answers.append(ours.recv())
        assert ours.recv() is None
    ours.send(None)
    process.join(20)
    assert process.exitcode == 0
    ours.close(), theirs.close()
    return answers


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_cross_in_shared_memory(method):
    before, large = shared_blocks(), tenon.rand(LARGE)
    transposed = tenon.rand(LARGE, dtype=tenon.float64).permute([1, 0])
    values = [large, transposed, tenon.ones([3]), tenon.empty([0, 2])]
    answers = converse(mp.get_context(method), values, large)
    for sent, (got, total) in zip(values, answers):
        assert got.dtype == sent.dtype and got.shape == sent.shape and (got == sent).all()
        assert total == large.sum().item(), "arguments of a process cross as well"
    assert shared_blocks() == before + 2, "only large tensors take shared memory"
    assert sent.shape == (0, 2) and large.max().item() < 1.0, "a sent tensor is a copy"
    assert [mp.is_shared(each) for each, _ in answers] == [True, True, False, False]
    del answers, got
    assert shared_blocks() == before


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_shared_tensors_stay_shared(method):
    before, files = shared_blocks(), len(os.listdir("/proc/self/fd"))
    shared = mp.share(tenon.zeros([4, 2]))
    assert shared.shape == (4, 2) and not shared.any()
    row = shared[1]
    assert mp.is_shared(row) and not mp.is_shared(tenon.zeros([2]))
    converse(mp.get_context(method), [shared, row], shared)
    assert shared.tolist() == [[1.0, 1.0], [2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
    del shared, row
    assert shared_blocks() == before
    assert len(os.listdir("/proc/self/fd")) <= files + 4, "what spawning keeps for itself"
    assert mp.share(tenon.empty([0])).shape == (0,)


def test_what_cannot_be_shared(monkeypatch):
    with pytest.raises(
        TypeError, match=r"share\(\): expected a tensor in host memory, got one on meta"
    ):
        mp.share(tenon.empty([2], device="meta"))

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(tenon.OutOfMemoryError, match="expected 8 bytes of shared memory, got none"):
        mp.share(tenon.zeros([2]))


def test_a_pickle_for_files_has_the_bytes():
    x = tenon.rand(LARGE)
    assert (pickle.loads(pickle.dumps(x)) == x).all()
    assert len(pickle.dumps(x)) > x.nbytes


# -- weights of other libraries -------------------------------------------------------------------


class Parameter:
    """A parameter as PyTorch has it: it is exported after detach() only."""

    requires_grad = True

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self.array


class TorchLike:
    """A module as PyTorch has it."""

    def __init__(self, state):
        self.state = state

    def state_dict(self):
        return self.state


def weights():
    return {
        "weight": Parameter(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "bias": np.array([1.0, 2.0], np.float32),
    }


def test_weights_of_any_mapping_of_arrays():
    for state in (weights(), TorchLike(weights())):
        layer = tenon.nn.Linear(3, 2)
        report = load_torch_state_dict(layer, state)
        assert not report.missing and not report.unexpected
        assert layer.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and layer.bias.tolist() == [1, 2]
        assert layer.weight.requires_grad
    fewer = {"bias": tenon.zeros([2])}
    assert load_torch_state_dict(layer, fewer, strict=False).missing == ["weight"]


def test_weights_that_are_none():
    layer = tenon.nn.Linear(3, 2)
    with pytest.raises(TypeError, match="expected a mapping .* or a torch.nn.Module, got int"):
        load_torch_state_dict(layer, 3)
    with pytest.raises(TypeError, match="expected an array for 'bias', got object"):
        load_torch_state_dict(layer, {"bias": object()})


def test_dlpack_functions_share_memory():
    x = tenon.arange(4)
    assert dlpack.from_dlpack(dlpack.to_dlpack(x)).data_ptr() == x.data_ptr()
    array = np.arange(3)
    assert dlpack.from_dlpack(array).data_ptr() == array.ctypes.data


def test_weights_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is a peer, not a dependency")
    theirs = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3))
    ours = tenon.nn.Sequential(tenon.nn.Conv2d(2, 3, 3), tenon.nn.BatchNorm2d(3))
    load_torch_state_dict(ours, theirs)
    load_torch_state_dict(ours, dict(theirs.named_parameters()), strict=False)
    image = torch.rand(2, 2, 5, 5)
    expected = theirs.eval()(image).detach()
    got = ours.eval()(tenon.from_dlpack(image)).detach()
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    low = torch.arange(3, dtype=torch.bfloat16)
    assert tenon.from_dlpack(low).dtype == tenon.bfloat16
