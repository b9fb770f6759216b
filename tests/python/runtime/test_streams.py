# SPDX-License-Identifier: Apache-2.0
"""Streams and events."""

import threading

import numpy as np
import pytest
import reference_plugin
import tenon

pytestmark = reference_plugin.needs_reference
DEVICE = "reference"


@pytest.fixture(scope="module", autouse=True)
def plugin():
    reference_plugin.load()


def test_events_of_streams_have_no_times():
    begin, end = tenon.Event(DEVICE), tenon.Event(DEVICE)
    begin.record()
    end.record()
    with pytest.raises(
        NotImplementedError, match="the events of reference:0 have no times; measure"
    ):
        begin.elapsed_time(end)


def test_work_goes_to_the_current_stream():
    outer, inner = tenon.Stream(DEVICE), tenon.Stream(DEVICE, priority=1)
    assert outer != inner and outer.device == DEVICE
    assert repr(outer).startswith("tenon.Stream('reference:0') at 0x")
    with outer:
        assert tenon.current_stream(DEVICE) == outer
        with inner as entered:
            assert entered is inner
            assert tenon.current_stream(DEVICE) == inner
            assert tenon.current_stream("reference:1") is None
        assert tenon.current_stream(DEVICE) == outer
        seen = []
        thread = threading.Thread(target=lambda: seen.append(tenon.current_stream(DEVICE)))
        thread.start()
        thread.join()
        assert seen == [None], "another thread's stream is its own affair"
    assert tenon.current_stream(DEVICE) is None


def test_an_exception_leaves_the_stream():
    with pytest.raises(KeyError), tenon.Stream(DEVICE):
        raise KeyError
    assert tenon.current_stream(DEVICE) is None


def test_kernels_on_streams_can_be_validated():
    x = tenon.tensor(np.arange(1000, dtype=np.float32)).to(DEVICE)
    with tenon.Stream(DEVICE), tenon.validation(compare="cpu") as watched:
        assert ((x + 1.0) * 2.0).sum().item() == 1001000.0
    assert watched.calls >= 3


def test_a_stream_waits_for_another():
    array = np.arange(100_000, dtype=np.float32)
    first, second = tenon.Stream(DEVICE), tenon.Stream(DEVICE)
    for way in ("stream", "event", "event of the current stream"):
        x = tenon.tensor(array).to(DEVICE)
        with first:
            for _ in range(20):
                x = x + 1
            event = tenon.Event(DEVICE)
            event.record()
        with second:
            if way == "stream":
                second.wait(first)
            elif way == "event":
                second.wait(event)
            else:
                event.wait()
            y = x * 2
        second.synchronize()
        assert second.query() and first.query() and event.query()
        np.testing.assert_array_equal(y.cpu().numpy(), (array + 20) * 2, err_msg=way)


def test_events_pass_once_the_work_is_done():
    stream = tenon.Stream(DEVICE)
    never = tenon.Event(DEVICE)
    assert never.query(), "an event that was never recorded has nothing to wait for"
    with stream:
        x = tenon.ones([100_000], device=DEVICE)
        for _ in range(20):
            x = x * 1.5
    event = stream.record()
    event.synchronize()
    assert event.query()
    event.record(stream)
    stream.synchronize()
    assert event.query()


def test_devices_do_not_share_streams():
    event = tenon.Event("reference:1")
    with pytest.raises(
        ValueError, match="expected a stream of reference:1, got one of reference:0"
    ):
        event.record(tenon.Stream(DEVICE))


def test_memory_waits_for_the_stream_that_uses_it():
    # Freed on the host while the stream still has to read it: no other tensor may get it before.
    stream = tenon.Stream(DEVICE)
    for _ in range(20):
        x = tenon.tensor(np.full(100_000, 3, np.float32)).to(DEVICE)
        with stream:
            y = x
            for _ in range(5):
                y = y + 1
            y = y + x
        del x
        others = [tenon.tensor(np.full(100_000, -1, np.float32)).to(DEVICE) for _ in range(3)]
        stream.synchronize()
        assert (y.cpu().numpy() == 11).all()
        del others


def test_threads_with_a_stream_each():
    wrong = []

    def work(number):
        with tenon.Stream(DEVICE) as stream:
            for step in range(30):
                array = np.full(500, number * 100 + step, np.float32)
                y = tenon.tensor(array).to(DEVICE) * 2 + 1
                stream.synchronize()
                if (y.cpu().numpy() != array * 2 + 1).any():
                    wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_live_stream_keeps_the_plugin():
    stream, event = tenon.Stream("reference:1"), tenon.Event("reference:1")
    with pytest.raises(RuntimeError, match="reference:1 has .*1 stream, 1 event"):
        tenon.plugins.unload("reference")
    del stream, event
