# SPDX-License-Identifier: Apache-2.0
"""Graphs: a device's work, recorded once and run again as one piece."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tenon import _core


class WorkGraph:
    """Work of one device, captured once and replayed at a fraction of its launch cost.

        graph = tenon.runtime.WorkGraph("acme")
        with graph.capture():
            y = model(x)
        x.copy_(batch)
        graph.replay()      # y holds the new result

    A replay reads and writes the same memory as the capture did: give it new input by writing into
    the tensors that were captured. The graph keeps that memory until it is reset or dropped, even if
    the tensors are gone. Numbers given as arguments are part of the recording: every replay uses the same. Random
    numbers would be, too, so that each replay had the same dropout: drawing some inside `capture` is an error. Draw
    them outside, into a tensor that was captured. Nothing inside `capture` may wait for the device: no printing of
    its tensors, no .item(), no operator that runs on the host.
    """

    def __init__(self, device: _core.device | str | None = None) -> None:
        self._graph = _core.Graph(device)

    @property
    def device(self) -> _core.device:
        """The device whose work is captured."""
        return self._graph.device

    @contextlib.contextmanager
    def capture(self) -> Iterator[WorkGraph]:
        """Record what this thread has the device do inside the block; nothing runs yet. An exception
        drops the recording. RuntimeError: random numbers of the device were drawn meanwhile, by
        the block or, as threads share the device's stream, by another thread."""
        self._graph.begin()
        try:
            before = _core.random_state(self.device)
            yield self
            if _core.random_state(self.device) != before:
                raise RuntimeError(
                    "Graph: expected no random numbers to be drawn inside capture(), because every replay "
                    f"would repeat the same ones, got some of {self.device} (dropout, uniform, normal); draw "
                    "them outside, into a tensor that the captured work reads"
                )
        except BaseException:
            self._graph.abandon()
            raise
        self._graph.end()

    def replay(self, stream: _core.Stream | None = None) -> None:
        """Queue the captured work on `stream`; None: the current stream."""
        self._graph.replay(stream)

    def reset(self) -> None:
        """Wait for the last replay, then forget the work and free its memory; capture anew if you
        like."""
        self._graph.reset()

    def __repr__(self) -> str:
        state = "empty" if self._graph.is_empty else "captured"
        return f"<tenon.runtime.WorkGraph on {self.device}, {state}>"
