# SPDX-License-Identifier: Apache-2.0
"""Training over a link of 200 Mbit/s between two network namespaces: how much faster a step is as gradients, and the next
unit's weights, travel while the ranks compute; beside PyTorch over Gloo on the same link.

The model takes about as long to compute as its bytes take to travel, so that the best there is is about 2. Bars: data parallel training 1.3
times, ZeRO stage 3 1.2 times as fast as without, and no slower than PyTorch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from network import Network, is_allowed
from rows import HAS_TORCH, Rows

WIDTH, LAYERS = 512, 8
BATCH = int(os.environ.get("OVERLAP_BATCH", "256"))
SECONDS = 0.5  # of computing in a step: two thirds of it backward, as long as 8 MB take on the link
ROUNDS = int(os.environ.get("OVERLAP_ROUNDS", "5"))
RATE = "200mbit"


def steps_of_tenon() -> dict[str, Callable[[], Any]]:
    import tenon
    import tenon.distributed as dist
    from tenon import nn, optim
    from tenon.distributed.prefetch import GatherOrder

    dist.init_process_group()
    ahead = GatherOrder.gather

    def step_of(kind: str) -> Callable[[], Any]:
        tenon.manual_seed(0)
        model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        called: Any = model
        if kind.startswith("data"):
            # All gradients in one bucket travel when the pass is over.
            size = 1.0 if kind == "data parallel" else 1000.0
            called = dist.DistributedDataParallel(model, bucket_cap_mb=size)
        elif kind.startswith("ZeRO"):
            for layer in model:
                dist.fully_shard(layer)
        optimizer = optim.SGD(model.parameters(), lr=1e-4)
        x = tenon.randn([BATCH, WIDTH], requires_grad=True)

        def step() -> None:
            is_ahead = not kind.endswith("not ahead")
            GatherOrder.gather = ahead if is_ahead else lambda order, unit: unit.start()()
            optimizer.zero_grad()
            called(x).square().mean().backward()
            optimizer.step()

        return step

    kinds = (
        "computing alone",
        "data parallel",
        "data parallel, one bucket",
        "ZeRO stage 3",
        "ZeRO stage 3, not ahead",
    )
    return {kind: step_of(kind) for kind in kinds}


def steps_of_torch() -> dict[str, Callable[[], Any]]:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def step_of(kind: str) -> Callable[[], Any]:
        torch.manual_seed(0)
        model: Any = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        called = model
        if kind == "data parallel":
            called = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
        elif kind == "ZeRO stage 3":
            for layer in model:
                fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        x = torch.randn([BATCH, WIDTH], requires_grad=True)

        def step() -> None:
            optimizer.zero_grad()
            called(x).square().mean().backward()
            optimizer.step()

        return step

    return {kind: step_of(kind) for kind in ("computing alone", "data parallel", "ZeRO stage 3")}


def serve(library: str) -> None:
    """One rank: for each line, the name of a step, seconds of one behind one that is not timed."""
    import time

    steps = steps_of_tenon() if library == "tenon" else steps_of_torch()
    print(json.dumps(list(steps)), flush=True)
    for line in sys.stdin:
        step = steps[line.strip()]
        step()
        start = time.perf_counter()
        step()
        step()
        print((time.perf_counter() - start) / 2, flush=True)


class Ranks:
    def __init__(self, library: str, network: Network, port: int) -> None:
        variables = {
            **os.environ,
            "MASTER_ADDR": network.address(0),
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(network.size),
            "TENON_COLLECTIVES_TRANSPORT": "tcp",
            "GLOO_SOCKET_IFNAME": "eth0",
        }
        self.processes = [
            subprocess.Popen(
                network.command(rank, [sys.executable, __file__, library]),
                env={**variables, "RANK": str(rank)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(network.size)
        ]
        self.steps = [json.loads(self._read(process)) for process in self.processes][0]

    @staticmethod
    def _read(process: subprocess.Popen) -> str:
        assert process.stdout is not None
        return process.stdout.readline()

    def seconds(self, name: str) -> float:
        """Of the slowest rank."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(name + "\n")
            process.stdin.flush()
        return max(float(self._read(process)) for process in self.processes)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def main() -> None:
    rows = Rows()
    if not is_allowed():
        print("overlap: not run, as this user may not make network namespaces")
        return
    with Network(2) as network:
        for machine in range(2):
            network.shape(machine, RATE)
        if "OVERLAP_BATCH" not in os.environ:
            probe = Ranks("tenon", network, 29499)
            try:
                taken = min(probe.seconds("computing alone") for _ in range(3))
            finally:
                probe.close()
            os.environ["OVERLAP_BATCH"] = str(int(min(max(BATCH * SECONDS / taken, 16), 16384)))
            rows.add("rows of a batch", os.environ["OVERLAP_BATCH"])
        libraries = ["tenon", *(["torch"] if HAS_TORCH else [])]
        ranks = {each: Ranks(each, network, 29500 + i) for i, each in enumerate(libraries)}
        times: dict[tuple[str, str], list[float]] = {}
        try:
            for each in ranks.values():
                for name in each.steps:
                    each.seconds(name)  # orders are learnt
            for _ in range(ROUNDS):
                for library, each in ranks.items():
                    for name in each.steps:
                        times.setdefault((library, name), []).append(each.seconds(name))
        finally:
            for each in ranks.values():
                each.close()
    # Other work of the machine only adds.
    found = {key: min(values) for key, values in times.items()}
    for (library, name), value in found.items():
        rows.add(f"{library}, {name}", f"{1e3 * value:.0f} ms")
    for kind, other, bar in (
        ("data parallel", "data parallel, one bucket", 1.3),
        ("ZeRO stage 3", "ZeRO stage 3, not ahead", 1.2),
    ):
        ratio = found["tenon", other] / found["tenon", kind]
        rows.add(f"{kind}: overlapped", f"{ratio:.2f} times as fast", f"{bar}", ratio >= bar)
        if HAS_TORCH:
            ratio = found["tenon", kind] / found["torch", kind]
            rows.add(f"{kind} beside PyTorch", f"{ratio:.2f} of its time", "1.0", ratio <= 1.0)
    rows.end()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        main()
