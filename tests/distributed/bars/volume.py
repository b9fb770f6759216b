# SPDX-License-Identifier: Apache-2.0
"""Bytes that each rank sends in a step of training, counted by its groups, beside what they have to be: to the byte.

All cuts are exact. W are the bytes of the weights, and of their gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tenon
import tenon.distributed as dist
from rows import Rows
from tenon import nn, optim
from tenon.distributed import ColwiseParallel, RowwiseParallel

WIDTH, LAYERS, ROWS = (
    32,
    4,
    128,
)  # calls of 4 KiB and less send all of it to all ranks, in one exchange
W = 4 * LAYERS * WIDTH * WIDTH


def model_of() -> nn.Sequential:
    tenon.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)])


def sent(groups: list[dist.ProcessGroup]) -> int:
    return sum(group.counters()["bytes_sent"] for group in groups)


def counted(step: Callable[[], Any], groups: list[dist.ProcessGroup]) -> int:
    """Of the third step: the first ones agree on orders and shapes."""
    step()
    step()
    before = sent(groups)
    step()
    return sent(groups) - before


def data_parallel(stage: int) -> Callable:
    def work() -> int:
        model = model_of()
        called: Any = dist.DistributedDataParallel(model) if stage <= 1 else model
        if stage in (1, 2):
            optimizer: Any = dist.ZeroRedundancyOptimizer(
                model.parameters(), optim.AdamW, stage=stage, lr=1e-3
            )
        else:
            if stage == 3:
                for layer in model:
                    dist.fully_shard(layer)
            optimizer = optim.AdamW(model.parameters(), lr=1e-3)
        x = tenon.ones([ROWS, WIDTH], requires_grad=True)  # so that every unit is needed backward

        def step() -> None:
            optimizer.zero_grad()
            called(x).square().mean().backward()
            optimizer.step()

        return counted(step, [dist.world()])

    return work


def tensor_parallel() -> int:
    """A block of two layers with a hidden part that is cut."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    model = nn.Sequential(
        {
            "up": nn.Linear(WIDTH, 4 * WIDTH, bias=False),
            "down": nn.Linear(4 * WIDTH, WIDTH, bias=False),
        }
    )
    dist.parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    x = tenon.ones([ROWS, WIDTH], requires_grad=True)

    def step() -> None:
        model(x).square().mean().backward()

    return counted(step, [dist.world()])


def pipelined() -> int:
    pipe = dist.pipeline(model_of(), microbatches=4, split=[str(LAYERS // 2)])
    x, y = tenon.ones([ROWS, WIDTH]), tenon.zeros([ROWS, WIDTH])

    def step() -> None:
        pipe.step(x, target=y, loss_fn=lambda out, target: (out - target).square().mean())

    return counted(step, [dist.world()])


def experts() -> int:
    """Every token goes to both ranks' experts."""
    layer = dist.MoELayer(
        nn.Linear(WIDTH, 2, bias=False), [nn.Linear(WIDTH, WIDTH) for _ in range(2)], k=2
    )
    x = tenon.ones([ROWS, WIDTH], requires_grad=True)

    def step() -> None:
        layer(x).square().mean().backward()

    return counted(step, [dist.world()])


def sequences(method: str) -> Callable:
    def work() -> int:
        context = dist.ContextParallel(method=method, layout="contiguous")
        shape = [1, 4, ROWS // dist.get_world_size(), 8]
        q, k, v = (tenon.ones(shape, requires_grad=True) for _ in range(3))

        def step() -> None:
            context.attention(q, k, v).sum().backward()

        return counted(step, [dist.world()])

    return work


def main() -> None:
    rows = Rows()

    def compare(what: str, size: int, work: Callable, want: int, by: str) -> None:
        with dist.local(size, timeout=60.0) as ranks:
            got = ranks.run(work)
        rows.add(
            f"{what}, {size} ranks", f"{sorted(set(got))}", f"{by} = {want}", set(got) == {want}
        )

    for n in (2, 4):
        compare("data parallel", n, data_parallel(0), 2 * (n - 1) * W // n, "2 (n-1)/n W")
        compare("ZeRO stage 1", n, data_parallel(1), 3 * (n - 1) * W // n, "3 (n-1)/n W")
        # Stage 2 tells every other rank with a byte whether each parameter had a gradient.
        used = (n - 1) * LAYERS
        want = 2 * (n - 1) * W // n + used
        compare("ZeRO stage 2", n, data_parallel(2), want, f"2 (n-1)/n W + {used}")
        compare("ZeRO stage 3", n, data_parallel(3), 3 * (n - 1) * W // n, "3 (n-1)/n W")
        block = 4 * ROWS * WIDTH  # bytes of activations
        want = 2 * 2 * (n - 1) * block // n
        compare("tensor parallel, a block", n, tensor_parallel, want, "2 all_reduces")
        part = 4 * ROWS // n * 4 * 8  # of queries, keys or values
        want = 4 * (n - 1) * part // n * 2
        compare("sequences, by heads", n, sequences("heads"), want, "4 all_to_alls, twice")
        # Gradients of keys and values go around with them, and one step more, home.
        want = 2 * (2 * (n - 1) + n) * part
        compare("sequences, ring", n, sequences("ring"), want, "(4 (n-1) + 2 n) parts")
    with dist.local(2, timeout=60.0) as ranks:
        first, last = ranks.run(pipelined)
    boundary = 4 * ROWS * WIDTH
    # The first rank says what shape the batch has, in 25 numbers, and the last one what the loss is, in two.
    rows.add(
        "pipeline, rank 0",
        str(first),
        f"activations + 200 = {boundary + 200}",
        first == boundary + 200,
    )
    rows.add(
        "pipeline, last rank", str(last), f"gradients + 16 = {boundary + 16}", last == boundary + 16
    )
    with dist.local(2, timeout=60.0) as ranks:
        got = ranks.run(experts)
    tokens = 4 * ROWS * WIDTH
    rows.add(
        "experts, 2 ranks",
        str(got),
        f"4 all_to_alls = {4 * tokens} + counts",
        all(4 * tokens <= each <= 4 * tokens + 256 for each in got),
    )
    rows.end()


if __name__ == "__main__":
    main()
