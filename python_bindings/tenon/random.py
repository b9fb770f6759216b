# SPDX-License-Identifier: Apache-2.0
"""Random numbers: each device counts through one stream of random bits, given by a seed.

Equal seeds give the same bits on every device. Uniform numbers, integers and permutations are the same, too; docs/random.md says
where normal numbers are, and what is made of functions of numbers may differ in the last digits between devices.

A Generator is a stream of its own, which takes the place of the device's stream in a `with` block.
The samplers take their numbers from the stream that is in place; `tenon.uniform`, `tenon.normal`
and `tenon.randint` are operators, and do so as well.
"""

from __future__ import annotations

import os
from typing import Any

from tenon import _core
from tenon._tensor.generators import Generator, get_state, set_state
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


def seed() -> int:
    """Start the streams of all devices from a number of the operating system, and return it."""
    number = int.from_bytes(os.urandom(8), "little")
    manual_seed(number)
    return number


def initial_seed(device: Any = None) -> int:
    """The seed of a device's stream."""
    return get_state(device)[0]


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
