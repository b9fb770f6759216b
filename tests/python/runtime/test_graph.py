# SPDX-License-Identifier: Apache-2.0
"""Graphs: capture, replay, and the memory between."""

import gc
import os

import numpy as np
import pytest
import reference_plugin
import tenon

pytestmark = reference_plugin.needs_reference
DEVICE = "reference"


@pytest.fixture(scope="module", autouse=True)
def plugin():
    reference_plugin.load()


def on_device(values):
    return tenon.tensor(np.asarray(values, np.float32)).to(DEVICE)


def test_a_device_without_graphs_says_so():
    with pytest.raises(
        NotImplementedError, match="cpu:0 has no `graph` group; its plugin does not provide it"
    ):
        tenon.Graph("cpu")


def test_a_replay_computes_anew():
    x = on_device([1, 2, 3])
    graph = tenon.Graph(DEVICE)
    assert repr(graph) == "<tenon.runtime.WorkGraph on reference:0, empty>"
    with graph.capture():
        y = x * x + 1
    assert repr(graph) == "<tenon.runtime.WorkGraph on reference:0, captured>"
    graph.replay()
    assert y.tolist() == [2, 5, 10]
    x.copy_(tenon.tensor([4.0, 5.0, 6.0]))
    graph.replay()
    assert y.tolist() == [17, 26, 37]
    stream = tenon.Stream(DEVICE)
    x.copy_(tenon.tensor([0.0, 1.0, 2.0]))
    graph.replay(stream)
    stream.synchronize()
    assert y.tolist() == [1, 2, 5]


def test_nothing_runs_during_capture():
    x = on_device([1, 2])
    y = on_device([7, 7])
    with tenon.Graph(DEVICE).capture():
        y.copy_(x)
    assert y.tolist() == [7, 7]


def test_memory_of_a_graph_is_nobody_elses():
    # All that the graph uses is dropped by its owner: temporaries in the capture, inputs and results
    # after it. New tensors of the same size must not lie where a replay writes.
    x = on_device(range(1000))
    graph = tenon.Graph(DEVICE)
    with graph.capture():
        y = x
        for _ in range(8):
            y = y + 1
    del x, y
    gc.collect()
    for _ in range(2):
        fresh = [on_device(np.full(1000, i)) for i in range(40)]
        graph.replay()
        for i, tensor in enumerate(fresh):
            assert (tensor.cpu().numpy() == i).all()
        del fresh


def test_the_memory_comes_back_with_the_graph():
    tenon.memory.trim(DEVICE)
    before = tenon.memory.stats(DEVICE)
    x = on_device(range(1000))
    graph = tenon.Graph(DEVICE)
    with graph.capture():
        y = (x + 1) * 2
    del x, y
    held = tenon.memory.stats(DEVICE)
    assert held["live"] == before["live"], "no tensor is alive"
    assert held["pending"] - before["pending"] >= 12000, "the graph holds x, x + 1 and the result"
    graph.replay()
    graph.reset()
    assert tenon.memory.stats(DEVICE)["pending"] == before["pending"]
    with pytest.raises(RuntimeError, match="the graph is empty"):
        graph.replay()


def test_waiting_inside_a_capture_is_an_error():
    x = on_device([1, 2, 3])
    graph = tenon.Graph(DEVICE)
    with pytest.raises(RuntimeError, match="captured"), graph.capture():
        (x + 1).tolist()
    # The stream is usable again, and so is the graph.
    assert tenon.current_stream(DEVICE) is None
    with graph.capture():
        y = x + 1
    graph.replay()
    assert y.tolist() == [2, 3, 4]


def test_an_exception_drops_the_capture():
    x = on_device([1, 2, 3])
    graph = tenon.Graph(DEVICE)
    with pytest.raises(KeyError), graph.capture():
        x + 1
        raise KeyError
    with pytest.raises(RuntimeError, match="the graph is empty; capture something"):
        graph.replay()


def test_a_graph_is_captured_once():
    x = on_device([1, 2, 3])
    graph = tenon.Graph(DEVICE)
    with graph.capture():
        x + 1
    with pytest.raises(RuntimeError, match=r"captured already.*call reset\(\)"), graph.capture():
        pass
    graph.reset()
    with graph.capture():
        y = x * 3
    graph.replay()
    assert y.tolist() == [3, 6, 9]


def test_two_graphs_share_an_input():
    x = on_device([1, 2, 3])
    first, second = tenon.Graph(DEVICE), tenon.Graph(DEVICE)
    with first.capture():
        y = x + 1
    with second.capture():
        z = y * 10
    first.replay()
    second.replay()
    assert z.tolist() == [20, 30, 40]
    del x, y, first
    gc.collect()
    second.replay()
    assert z.tolist() == [20, 30, 40]


def test_a_training_step_with_its_gradients():
    w = on_device([1, 2, 3]).requires_grad_()
    x = on_device([1, 1, 1])

    def step():
        y = x * w
        loss = (y * y).sum()
        loss.backward()
        return loss

    with tenon.fallback("allow"):
        graph = tenon.Graph(DEVICE)
        with graph.capture():
            loss = step()
        for scale in (1, 2, 5):
            x.copy_(tenon.full([3], float(scale)))
            graph.replay()
            assert loss.item() == 14 * scale**2
            assert w.grad.tolist() == [2 * scale**2, 4 * scale**2, 6 * scale**2]


def test_a_forked_child_leaves_the_graph_alone():
    graph = tenon.Graph(DEVICE)
    x = on_device([1, 2, 3])
    with graph.capture():
        y = x + 1
    child = os.fork()
    if child == 0:
        try:
            del graph
            gc.collect()
            with pytest.raises(
                tenon.DeviceError, match="was opened before this process was forked"
            ):
                x.cpu()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    graph.replay()
    assert y.tolist() == [2, 3, 4]


def test_a_live_graph_keeps_the_plugin():
    graph = tenon.Graph(DEVICE)
    with pytest.raises(RuntimeError, match="1 user of its `graph` group"):
        tenon.plugins.unload("reference")
    del graph


@pytest.mark.parametrize(
    "draw", [lambda x: tenon.nn.functional.dropout(x), lambda x: x + tenon.rand(3, device=DEVICE)]
)
def test_random_numbers_are_not_captured(draw):
    # Every replay would repeat the same mask.
    x = on_device([1, 2, 3])
    graph = tenon.Graph(DEVICE)
    with pytest.raises(RuntimeError, match="expected no random numbers to be drawn inside capture"):
        with graph.capture():
            draw(x)
    assert repr(graph) == "<tenon.runtime.WorkGraph on reference:0, empty>"
    noise = tenon.rand(3, device=DEVICE)
    with graph.capture():
        y = x + noise
    graph.replay()
    assert y.tolist() == (x + noise).tolist()
