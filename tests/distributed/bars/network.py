# SPDX-License-Identifier: Apache-2.0
"""Several machines on one: network namespaces on a bridge, whose links are shaped, cut and mended. Needs root."""

from __future__ import annotations

import os
import subprocess


def is_allowed() -> bool:
    """Whether this process may make network namespaces."""
    name = f"tenon-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made.returncode == 0


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


class Network:
    """`size` machines, of which machine r has the address 10.77.0.(r + 1). Use as a context."""

    def __init__(self, size: int) -> None:
        self.size, self._tag = size, f"tn{os.getpid() % 100000}"

    def name(self, machine: int) -> str:
        return f"{self._tag}-{machine}"

    @staticmethod
    def address(machine: int) -> str:
        return f"10.77.0.{machine + 1}"

    def __enter__(self) -> Network:
        bridge = f"{self._tag}-b"
        _run("ip", "netns", "add", bridge)
        _run("ip", "-n", bridge, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", bridge, "link", "set", "bridge", "up")
        for machine in range(self.size):
            name, port = self.name(machine), f"port{machine}"
            _run("ip", "netns", "add", name)
            _run(
                *("ip", "-n", name, "link", "add", "eth0", "type", "veth"),
                *("peer", "name", port, "netns", bridge),
            )
            _run("ip", "-n", bridge, "link", "set", port, "master", "bridge", "up")
            _run("ip", "-n", name, "addr", "add", f"{self.address(machine)}/24", "dev", "eth0")
            _run("ip", "-n", name, "link", "set", "eth0", "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in [self.name(machine) for machine in range(self.size)] + [f"{self._tag}-b"]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def shape(self, machine: int, rate: str) -> None:
        """What the machine sends, and gets, goes at `rate`, such as "200mbit"."""
        burst = "256kb" if rate.endswith("mbit") else "1600"
        for where, device in ((self.name(machine), "eth0"), (f"{self._tag}-b", f"port{machine}")):
            _run(
                *("ip", "netns", "exec", where, "tc", "qdisc", "replace", "dev", device, "root"),
                *("tbf", "rate", rate, "burst", burst, "latency", "200ms"),
            )

    def cut(self, machine: int) -> None:
        """Nothing passes any longer, and neither end is told."""
        _run("ip", "-n", f"{self._tag}-b", "link", "set", f"port{machine}", "down")

    def command(self, machine: int, words: list[str]) -> list[str]:
        """Words, as a process of that machine."""
        return ["ip", "netns", "exec", self.name(machine), *words]
