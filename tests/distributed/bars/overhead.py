# SPDX-License-Identifier: Apache-2.0
"""What sharding costs a call: `x + y` of sharded tensors on a mesh of one rank above that of plain ones, beside PyTorch's
DTensor. The least of the turns; 300 ns is the bar."""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Callable

import tenon
import tenon.distributed as dist
from rows import HAS_TORCH, Rows

COUNT, TURNS = 3000, 15


def nanoseconds(call: Callable[[], object]) -> float:
    for _ in range(100):
        call()
    start = time.perf_counter_ns()
    for _ in range(COUNT):
        call()
    return (time.perf_counter_ns() - start) / COUNT


def calls_of_tenon() -> dict[str, Callable[[], object]]:
    mesh = dist.init_device_mesh("cpu", (1,))
    plain = tenon.ones([16, 16])
    x = dist.distribute_tensor(plain, mesh, [dist.Shard(0)])
    return {"plain": lambda: plain + plain, "sharded": lambda: x + x, "product": lambda: x @ x}


def calls_of_torch() -> dict[str, Callable[[], object]]:
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (1,))
    plain = torch.ones([16, 16])
    x = distribute_tensor(plain, mesh, [Shard(0)])
    return {"plain": lambda: plain + plain, "sharded": lambda: x + x, "product": lambda: x @ x}


def main() -> None:
    rows = Rows()
    dist.init_process_group()
    libraries = {"tenon": calls_of_tenon()}
    if HAS_TORCH:
        libraries["torch"] = calls_of_torch()
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(TURNS):
        for library, calls in libraries.items():
            for name, call in calls.items():
                times.setdefault((library, name), []).append(nanoseconds(call))
    found = {key: min(values) for key, values in times.items()}
    above = {name: found[name, "sharded"] - found[name, "plain"] for name in libraries}
    for (library, name), value in found.items():
        middle = statistics.median(times[library, name])
        rows.add(f"{library}, {name}", f"{value:.0f} ns, median {middle:.0f}")
    rows.add(
        "tenon, sharded x + x above plain",
        f"{above['tenon']:.0f} ns",
        "300 ns",
        above["tenon"] <= 300,
    )
    if HAS_TORCH:
        ratio = above["tenon"] / above["torch"]
        rows.add(
            "torch, the same", f"{above['torch']:.0f} ns", f"ratio {ratio:.2f}, 1.0", ratio <= 1
        )
    rows.end()


if __name__ == "__main__":
    main()
