# SPDX-License-Identifier: Apache-2.0
"""Random numbers: each device counts through one stream of random bits, given by a seed.

Equal seeds give the same bits on every device. Uniform numbers, integers and permutations are the same,
too; normal numbers, and what is made of functions of numbers, may differ in the last digits between devices.

A Generator is a stream of its own, which takes the place of the device's stream in a `with` block.
The samplers take their numbers from the stream that is in place; `tenon.uniform`, `tenon.normal`
and `tenon.randint` are operators, and do so as well.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from tenon import _core
from tenon._tensor.samplers import (
    beta,
    binomial,
    cauchy,
    chi_square,
    dirichlet,
    exponential,
    gamma,
    geometric,
    log_normal,
    poisson,
    student_t,
    truncated_normal,
    von_mises,
)

manual_seed = _core.manual_seed


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


def seed() -> int:
    """Start the streams of all devices from a number of the operating system, and return it."""
    number = int.from_bytes(os.urandom(8), "little")
    manual_seed(number)
    return number


def initial_seed(device: Any = None) -> int:
    """The seed of a device's stream."""
    return get_state(device)[0]


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


def stream_of(generator: Generator | None, device: Any, caller: str) -> Any:
    """A block in which the numbers of `device` are those of `generator`, and if there is none its own. `caller` begins
    the error about a generator of another device."""
    if generator is None:
        return contextlib.nullcontext()
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{caller}: expected a tenon.random.Generator as generator, got {type(generator).__name__}"
        )
    if generator.device != device:
        raise ValueError(
            f"{caller}: expected a generator of the device {device} that draws, got one of "
            f"{generator.device}"
        )
    return generator


class fork_rng:
    """A block after which the streams of `devices` (by default those of `tenon.devices()` when it
    begins) go on as if it had drawn nothing."""

    def __init__(self, devices: Any = None) -> None:
        self._devices = list(_core.devices() if devices is None else devices)

    def __enter__(self) -> fork_rng:
        self._states = [_core.random_state(device) for device in self._devices]
        return self

    def __exit__(self, *exception: object) -> None:
        for device, state in zip(self._devices, self._states, strict=True):
            set_state(state, device)


__all__ = [
    "Generator",
    "beta",
    "binomial",
    "cauchy",
    "chi_square",
    "dirichlet",
    "exponential",
    "fork_rng",
    "gamma",
    "geometric",
    "get_state",
    "initial_seed",
    "log_normal",
    "manual_seed",
    "poisson",
    "seed",
    "set_state",
    "student_t",
    "truncated_normal",
    "von_mises",
]
