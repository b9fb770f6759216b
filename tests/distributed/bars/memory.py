# SPDX-License-Identifier: Apache-2.0
"""Bytes that a rank keeps for each parameter of a float32 model that Adam trains, gradients included, and, without a bar,
at the peak of a step: ranks are processes, and count what their allocators gave out. Within 3 % of the table in docs/distributed.md.
"""

from __future__ import annotations

from ranks import Processes
from rows import Rows

WIDTH, LAYERS, SIZE = 512, 8, 2
PROGRAM = f"""
    from tenon import nn, optim
    import gc
    from tenon.runtime import memory
    dist.init_process_group(timeout=60)
    total = {LAYERS} * {WIDTH} ** 2

    def measure(kind):
        gc.collect()
        before = memory.stats()["current"]
        model = nn.Sequential(*[nn.Linear({WIDTH}, {WIDTH}, bias=False) for _ in range({LAYERS})])
        called = model
        if kind == "ZeRO stage 3":
            for layer in model:
                dist.fully_shard(layer)
        if kind in ("data parallel", "ZeRO stage 1"):
            called = dist.DistributedDataParallel(model)
        if kind in ("ZeRO stage 1", "ZeRO stage 2"):
            stage = int(kind[-1])
            optimizer = dist.ZeroRedundancyOptimizer(model.parameters(), optim.Adam, stage=stage, lr=1e-3)
        else:
            optimizer = optim.Adam(model.parameters(), lr=1e-3)
        x = tenon.ones([2, {WIDTH}])
        for step in range(3):
            optimizer.zero_grad()
            if step == 2:
                memory.reset_peak()
            called(x).sum().backward()
            optimizer.step()
        stats = memory.stats()
        print(kind, (stats["current"] - before) / total, (stats["peak"] - before) / total, sep=";")

    for kind in ("data parallel", "ZeRO stage 1", "ZeRO stage 2", "ZeRO stage 3"):
        measure(kind)
"""


def main() -> None:
    rows = Rows()
    n = SIZE
    want = {
        "data parallel": 16.0,
        "ZeRO stage 1": 8 + 8 / n,
        "ZeRO stage 2": 4 + 12 / n,
        "ZeRO stage 3": 16 / n,
    }
    with Processes(SIZE, PROGRAM) as processes:
        for rank, (output, errors) in enumerate(processes.finish()):
            told = {
                line.split(";")[0]: list(map(float, line.split(";")[1:]))
                for line in output.splitlines()
            }
            if set(told) != set(want):
                print(errors)
            for kind, bytes_kept in want.items():
                kept, peak = told.get(kind, (0.0, 0.0))
                rows.add(
                    f"{kind}, rank {rank}",
                    f"{kept:.3f} bytes a parameter",
                    f"{bytes_kept} within 3 %",
                    abs(kept / bytes_kept - 1) <= 0.03,
                )
                rows.add("  at the peak of a step", f"{peak:.3f}")
    rows.end()


if __name__ == "__main__":
    main()
