# SPDX-License-Identifier: Apache-2.0
"""Predicted times of steps beside measured ones, on 2 and 4 ranks over links of 200 Mbit/s between network namespaces: data
parallel, ZeRO stage 3 and tensor parallel. The machine is calibrated on the same ranks. Bubbles of pipelines beside formulas.

Ranks compute for as long as bytes travel, or so; SIMULATOR_RANKS says how many there are. Bar: 10 %.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import tenon
import tenon.distributed as dist
from network import Network, is_allowed
from rows import Rows
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, RowwiseParallel
from tenon.distributed.pipelines.schedules import schedule_of
from tenon.distributed.planning import play_schedule

WIDTH, LAYERS = 512, 4
BATCH = int(os.environ.get("SIMULATOR_BATCH", "1024"))
RANKS = tuple(map(int, os.environ.get("SIMULATOR_RANKS", "2 4").split()))
RATE = "200mbit"
ROUNDS = 9


def model_of() -> nn.Sequential:
    tenon.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


def data_parallel() -> Callable[[], Any]:
    model = dist.DistributedDataParallel(model_of(), bucket_cap_mb=1.0)
    return _step(model, optim.SGD(model.parameters(), lr=1e-4), BATCH)


def zero_3() -> Callable[[], Any]:
    model = model_of()
    for layer in model:
        dist.fully_shard(layer)
    return _step(model, optim.SGD(model.parameters(), lr=1e-4), BATCH)


def tensor_parallel() -> Callable[[], Any]:
    model = model_of()
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    ways = (ColwiseParallel(), RowwiseParallel())
    dist.parallelize_module(model, mesh, {str(i): ways[i % 2] for i in range(LAYERS)})
    return _step(model, optim.SGD(model.parameters(), lr=1e-4), BATCH)


def _step(model: Any, optimizer: Any, rows: int) -> Callable[[], Any]:
    x = tenon.ones([rows, WIDTH], requires_grad=True)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


STEPS = {"data parallel": data_parallel, "ZeRO stage 3": zero_3, "tensor parallel": tensor_parallel}


def serve() -> None:
    """One rank: predicts, calibrates and measures, and the first one says what came of it."""
    dist.init_process_group(timeout=300.0)
    ranks, rank = dist.get_world_size(), dist.get_rank()
    traces = {
        name: dist.trace_step(build, ranks, rank, device="cpu") for name, build in STEPS.items()
    }
    mesh = dist.init_device_mesh("cpu", (ranks,), mesh_dim_names=("tp",))
    sizes = (1 << 14, 1 << 18, 1 << 20, 1 << 22)
    machine = dist.calibrate(mesh, traces=traces.values(), sizes=sizes, patience=0.1)
    machine.links["world"] = machine.links["tp"]
    steps = {name: build() for name, build in STEPS.items()}
    told = {}
    for name, step in steps.items():
        step(), step()
        times = []
        for _ in range(ROUNDS):
            dist.barrier()
            start = time.perf_counter()
            step()
            dist.barrier()
            times.append(time.perf_counter() - start)
        predicted = dist.predict(traces[name], machine)
        told[name] = [predicted.seconds, sorted(times)[ROUNDS // 2], min(times)]
    if rank == 0:
        print(json.dumps(told), flush=True)
        print(machine, file=sys.stderr)
    dist.destroy_process_group()


def measured(ranks: int) -> dict[str, list[float]]:
    with Network(ranks) as network:
        for machine in range(ranks):
            network.shape(machine, RATE)
        variables = {
            **os.environ,
            "MASTER_ADDR": network.address(0),
            "MASTER_PORT": "29600",
            "WORLD_SIZE": str(ranks),
            "TENON_COLLECTIVES_TRANSPORT": "tcp",
        }
        processes = [
            subprocess.Popen(
                network.command(rank, [sys.executable, __file__, "serve"]),
                env={**variables, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        try:
            found = [process.communicate(timeout=540)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
    return json.loads(found[0])


def main() -> None:
    rows = Rows()
    for name, chunks, formula in (
        ("GPipe", None, lambda p, m: (p - 1) / m),
        ("1F1B", None, lambda p, m: (p - 1) / m),
        ("interleaved", 2, lambda p, m: (p - 1) / (2 * m)),
        ("ZB-H1", None, lambda p, m: (p - 1) / (3 * m)),
    ):
        wrong = [
            (p, m)
            for p in (2, 4, 8)
            for m in (8, 16, 64)
            if abs(play_schedule(schedule_of(name, p, m, chunks)).bubble - formula(p, m)) > 1e-9
        ]
        rows.add(f"bubbles of {name}, 9 pipelines", f"{9 - len(wrong)} exact", "9", not wrong)
    if not is_allowed():
        print("simulator: links not run, as this user may not make network namespaces")
        rows.end()
        return
    for ranks in RANKS:
        for name, (predicted, median, least) in measured(ranks).items():
            off = predicted / median - 1
            text = f"{1e3 * predicted:.0f} ms predicted, {1e3 * median:.0f} ms measured (least {1e3 * least:.0f}): {off:+.1%}"
            rows.add(f"{name}, {ranks} ranks", text, "10 %", abs(off) <= 0.1)
    rows.end()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve()
    else:
        main()
