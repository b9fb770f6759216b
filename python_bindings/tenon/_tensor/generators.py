# SPDX-License-Identifier: Apache-2.0
"""Streams of random numbers of their own, and the keyword `generator` of all that draws."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tenon import _core
from tenon._core import Tensor


def get_state(device: Any = None) -> tuple[int, int]:
    """Seed and position of a device's stream."""
    return _core.random_state(device, is_result=True)


def set_state(state: tuple[int, int], device: Any = None) -> None:
    """Continue a device's stream from what get_state returned."""
    seed, offset = state
    if not (0 <= seed < 2**64 and 0 <= offset < 2**64):
        raise ValueError(
            f"set_state(): expected a seed and a position from get_state(), got {seed} and {offset}"
        )
    _core.set_random_state(seed, offset, device)


class Generator:
    """A stream of random numbers of its own.

    In a block `with generator:` the device's random operators take their numbers from it, on every
    thread; after the block the device goes on where it was.
    """

    def __init__(self, device: Any = None, seed: int | None = None) -> None:
        self.device = _core.tensor(0, device=device).device
        self._outer: list[tuple[int, int]] = []
        self._seed = 0
        self._offset = 0
        self.manual_seed(int.from_bytes(os.urandom(8), "little") if seed is None else seed)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream from `seed`, a whole number, of which 64 bits count."""
        self.set_state((seed % 2**64, 0))
        return self

    def seed(self) -> int:
        """Start the stream from a number of the operating system, and return it."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self.get_state()[0]

    def get_state(self) -> tuple[int, int]:
        """Seed and position."""
        return get_state(self.device) if self._outer else (self._seed, self._offset)

    def set_state(self, state: tuple[int, int]) -> None:
        """Continue from what get_state returned."""
        self._seed, self._offset = state
        if self._outer:
            set_state(state, self.device)

    def __enter__(self) -> Generator:
        state = self.get_state()
        self._outer.append(_core.random_state(self.device))
        set_state(state, self.device)
        return self

    def __exit__(self, *exception: object) -> None:
        self._seed, self._offset = _core.random_state(self.device)
        set_state(self._outer.pop(), self.device)

    def __repr__(self) -> str:
        return f"Generator(device={str(self.device)!r}, seed={self.initial_seed()})"


# Calls of several threads that each have a generator follow one another: one that ended inside of another's block would give its
# generator, and then the device, the other's stream. A process that forks meanwhile begins with a lock of its own.
_lock = threading.RLock()


def _new_lock() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_new_lock)


@contextlib.contextmanager
def _alone(generator: Generator) -> Iterator[Generator]:
    with _lock, generator:
        yield generator


def _expect_generator(generator: Any, caller: str) -> None:
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{caller}: expected a tenon.random.Generator as generator, got {type(generator).__name__}"
        )


def stream_of(generator: Generator | None, device: Any, caller: str) -> Any:
    """A block in which the numbers of `device` are those of `generator`, and if there is none its own. `caller` begins
    the error about a generator of another device."""
    if generator is None:
        return contextlib.nullcontext()
    _expect_generator(generator, caller)
    if generator.device != device:
        raise ValueError(
            f"{caller}: expected a generator of the device {device} that draws, got one of "
            f"{generator.device}"
        )
    return _alone(generator)


def draw_from(
    generator: Any, function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> Any:
    """The call of `function`, whose numbers are those of `generator`. It draws on the device of the keyword
    `device`, on that of the first tensor among its arguments, or else on the generator's, where it makes its result."""
    caller = f"{function.__name__}()"
    _expect_generator(generator, caller)
    device = keywords.get("device")
    if device is None:
        given = (*arguments, *keywords.values())
        device = next((each.device for each in given if isinstance(each, Tensor)), None)
    if device is None:
        device = keywords["device"] = generator.device
    with stream_of(generator, _core.device(device), caller):
        return function(*arguments, **keywords)
