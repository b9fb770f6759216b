# SPDX-License-Identifier: Apache-2.0
"""A small GPT, 50 steps in each way of dividing it over ranks, beside one process: weights, losses, and logged norms.

Data parallel training and ZeRO have the bits of a process that accumulates the parts of each batch; the others differ by
1e-5 of the largest weight at most. Norms are clipped to 0.5 in rows that say so.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gpt_2x2x2 as example
import numpy as np
import tenon
import tenon.distributed as dist
from rows import Rows
from tenon import amp, nn, optim
from tenon.distributed import ColwiseParallel, Replicate, RowwiseParallel, SequenceParallel, Shard
from tenon.utils.checkpoint import checkpoint as recompute

STEPS, WIDTH, DEPTH, HEADS, BATCH, LENGTH = 50, 16, 4, 4, example.BATCH, example.LENGTH
TEXT = Path(find_spec("textwrap").origin).read_text(encoding="utf-8")  # type: ignore[union-attr,arg-type]
LETTERS = sorted(set(TEXT))
DATA = np.array([LETTERS.index(letter) for letter in TEXT])
STARTS = np.random.default_rng(0).integers(0, len(DATA) - LENGTH - 1, (STEPS, BATCH))
CLIP = 0.5
NAMES = ("weight", "bias")  # of parameters, which whole_parameters makes plain tensors


def model_of() -> nn.Module:
    return example.gpt(len(LETTERS), WIDTH, DEPTH, HEADS)


def batch(step: int, part: int = 0, parts: int = 1) -> tuple[tenon.Tensor, tenon.Tensor]:
    starts = STARTS[step][BATCH * part // parts : BATCH * (part + 1) // parts]
    at = starts[:, None] + np.arange(LENGTH)
    return tenon.tensor(DATA[at]), tenon.tensor(DATA[at + 1])


def sgd(parameters: Any) -> optim.Optimizer:
    # Not Adam, which divides by what it sees: the gradient of a bias of keys is 0 but for rounding.
    return optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters: Any) -> optim.Optimizer:
    return optim.AdamW(parameters, lr=1e-3)


def weights(model: Any) -> dict[str, np.ndarray]:
    """Of this rank; with `whole_parameters` of all."""
    found = {}
    with tenon.no_grad():
        for owner, names in named(model):
            for name, last in names:
                p = getattr(owner, last)
                whole = p.full_tensor() if isinstance(p, dist.DTensor) else p
                found[name] = whole.detach().numpy().copy()
    return found


def named(model: Any) -> list[tuple[Any, list[tuple[str, str]]]]:
    """Modules, and of each the names of its parameters, in the model and in itself."""
    if isinstance(model, dist.Pipeline):
        return [
            (
                module,
                [
                    (stage.model_name(f"{path}.{last}" if path else last), last)
                    for last, _ in module.named_parameters(recurse=False)
                ],
            )
            for stage in model.stages.values()
            for path, module in stage.named_modules()
        ]
    return [
        (
            module,
            [
                (f"{path}.{last}" if path else last, last)
                for last in NAMES
                if getattr(module, last, None) is not None
            ],
        )
        for path, module in model.named_modules()
        if isinstance(getattr(module, "weight", None), tenon.Tensor)
    ]


class Result:
    def __init__(self) -> None:
        self.losses: list[float] = []
        self.norms: list[float] = []
        self.weights: dict[str, np.ndarray] = {}


def one_process(parts: int, make: Callable = adam, clip: bool = False, wide: Any = None) -> Result:
    """Adds the gradients of the parts of each batch up, and divides once."""
    result, model = Result(), model_of()
    optimizer = make(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for part in range(parts):
            x, y = batch(step, part, parts)
            with amp.autocast(dtype=tenon.bfloat16) if wide else tenon.enable_grad():
                loss = example.loss_of(model(x), y)
            loss.backward()
            total += loss.item() / parts
        for p in model.parameters():
            p.grad = p.grad / parts
        if clip:
            result.norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        optimizer.step()
        result.losses.append(total)
    result.weights = weights(model)
    return result


def steps_of(
    model: Any,
    called: Any,
    optimizer: Any,
    clip: Callable | None,
    part: int,
    parts: int,
    wide: bool = False,
    mean: Any = None,
) -> Result:
    result = Result()
    for step in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(step, part, parts)
        with amp.autocast(dtype=tenon.bfloat16) if wide else tenon.enable_grad():
            loss = example.loss_of(called(x), y)
        loss.backward()
        if clip:
            result.norms.append(clip(CLIP).item())
        optimizer.step()
        told = loss.detach().to(tenon.float32).reshape([1])
        result.losses.append((mean or dist.world()).all_reduce(told, "mean").item())
    return result


def data_parallel(
    stage: int, clip: bool = False, wide: bool = False, recomputes: bool = False
) -> Callable:
    def work() -> Result:
        rank, size = dist.get_rank(), dist.get_world_size()
        model = model_of()
        called: Any = model
        params = list(model.parameters())
        clips = lambda limit: dist.clip_grad_norm_(model.parameters(), limit)  # noqa: E731
        if stage <= 1:
            called = dist.DistributedDataParallel(model)
        if stage in (1, 2):
            optimizer: Any = dist.ZeroRedundancyOptimizer(params, optim.AdamW, stage=stage, lr=1e-3)
            clips = optimizer.clip_grad_norm_ if stage == 2 else clips
        else:
            if stage == 3:
                for block in model.blocks:
                    dist.fully_shard(block)
                dist.fully_shard(model)
            optimizer = adam(model.parameters())
        if recomputes:
            for block in model.blocks:
                inner = type(block).forward.__get__(block)
                block.forward = lambda x, inner=inner: recompute(inner, x)
        result = steps_of(model, called, optimizer, clips if clip else None, rank, size, wide)
        with dist.whole_parameters(model):
            result.weights = weights(model)
        return result

    return work


def sequence_plan() -> dict[str, Any]:
    """Activations between blocks are cut along the sequence."""
    column: Any = {"input_layouts": Shard(1)}
    row: Any = {"output_layouts": Shard(1), "use_local_output": False}
    return {
        "embed.token": ColwiseParallel(**row),
        "embed.position": ColwiseParallel(output_layouts=Shard(0), use_local_output=False),
        "blocks.*.norm?": SequenceParallel(),
        "norm": SequenceParallel(),
        "blocks.*.[qkv]": ColwiseParallel(**column),
        "blocks.*.up": ColwiseParallel(**column),
        "blocks.*.out": RowwiseParallel(**row),
        "blocks.*.down": RowwiseParallel(**row),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }


def tensor_parallel(plan: Callable, dp: int = 1, shards: bool = False) -> Callable:
    """With `dp` parts of the batch, whose ranks have copies of the parts of weights, or with `shards` rows of them."""

    def work() -> Result:
        mesh = dist.init_device_mesh(
            "cpu", (dp, dist.get_world_size() // dp), mesh_dim_names=("dp", "tp")
        )
        model = dist.parallelize_module(model_of(), mesh["tp"], plan())
        called: Any = model
        if shards:
            for block in model.blocks:
                dist.fully_shard(block, mesh.get_group("dp"))
            dist.fully_shard(model, mesh.get_group("dp"))
        elif dp > 1:
            called = dist.DistributedDataParallel(model, mesh.get_group("dp"))
        optimizer = sgd(model.parameters())
        clips = lambda limit: dist.clip_grad_norm_(model.parameters(), limit)  # noqa: E731
        part = mesh.get_local_rank("dp")
        result = steps_of(model, called, optimizer, clips, part, dp)
        with dist.whole_parameters(model):
            result.weights = weights(model)
        return result

    return work


def pipelined(schedule: str, microbatches: int, clip: bool) -> Callable:
    def work() -> Result:
        result = Result()
        pipe = dist.pipeline(model_of(), schedule=schedule, microbatches=microbatches)
        optimizer = sgd(pipe.parameters())
        for step in range(STEPS):
            optimizer.zero_grad()
            x, y = batch(step)
            loss = pipe.step(x, target=y, loss_fn=example.loss_of)
            if clip:
                result.norms.append(dist.clip_grad_norm_(pipe.parameters(), CLIP).item())
            optimizer.step()
            result.losses.append(loss.item())
        result.weights = weights(pipe)
        return result

    return work


class Attention(nn.Module):
    """One layer of attention to a sequence, cut over ranks where `context` is given."""

    def __init__(self, context: Any = None) -> None:
        super().__init__()
        tenon.manual_seed(0)
        self.context = context
        self.token, self.position = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def forward(self, tokens: tenon.Tensor) -> tenon.Tensor:
        numbers = tenon.arange(LENGTH) if self.context is None else self.context.positions(LENGTH)
        x = self.token(tokens) + self.position(numbers)
        heads = self.qkv(x).reshape([x.shape[0], -1, HEADS, 3, WIDTH // HEADS])
        q, k, v = (part.squeeze(3).transpose(1, 2) for part in tenon.split(heads, [1, 1, 1], 3))
        attention = (
            nn.functional.scaled_dot_product_attention
            if self.context is None
            else self.context.attention
        )
        y = attention(q, k, v, causal=True).transpose(1, 2)
        return self.out(x + y.reshape([x.shape[0], -1, WIDTH]))


def sequences(is_cut: bool) -> Callable:
    def work() -> Result:
        result = Result()
        context = dist.ContextParallel() if is_cut else None
        model = Attention(context)
        called = dist.DistributedDataParallel(model) if is_cut else model
        optimizer = sgd(model.parameters())
        for step in range(STEPS):
            optimizer.zero_grad()
            x, y = batch(step)
            if context is not None:
                x, y = context.split(x, 1), context.split(y, 1)
            loss = example.loss_of(called(x), y)
            if context is not None:
                loss = dist.functional.mean(loss.reshape([1]))
            loss.backward()
            clips = dist.clip_grad_norm_ if is_cut else nn.utils.clip_grad_norm_
            result.norms.append(clips(model.parameters(), CLIP).item())
            optimizer.step()
            result.losses.append(loss.item())
        result.weights = weights(model)
        return result

    return work


class Mixture(nn.Module):
    """A layer of experts, each on one of the ranks where `is_cut`."""

    def __init__(self, is_cut: bool) -> None:
        super().__init__()
        tenon.manual_seed(0)
        self.embed, gate = nn.Embedding(len(LETTERS), WIDTH), nn.Linear(WIDTH, 4, bias=False)
        experts = [
            nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH)) for _ in range(4)
        ]
        self.layer = dist.MoELayer(gate, experts, k=2) if is_cut else None
        if not is_cut:
            self.gate, self.experts = gate, nn.ModuleList(experts)
        self.head = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, tokens: tenon.Tensor) -> tenon.Tensor:
        x = self.embed(tokens).reshape([-1, WIDTH])
        if self.layer is not None:
            return self.head(x + self.layer(x))
        mixed = nn.functional.mixture_of_experts(x, self.gate(x), list(self.experts), 2)
        return self.head(x + mixed)

    def whole_names(self) -> dict[str, np.ndarray]:
        return {name.removeprefix("layer."): value for name, value in weights(self).items()}


def experts(is_cut: bool) -> Callable:
    def work() -> Result:
        model = Mixture(is_cut)
        optimizer = sgd(model.parameters())
        if is_cut:
            called: Any = dist.DistributedDataParallel(model)
            clips = lambda limit: dist.clip_grad_norm_(model.parameters(), limit)  # noqa: E731
            result = steps_of(
                model, called, optimizer, clips, dist.get_rank(), dist.get_world_size()
            )
        else:
            result = Result()
            for step in range(STEPS):
                optimizer.zero_grad()
                x, y = batch(step)
                loss = example.loss_of(model(x), y)
                loss.backward()
                result.norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
                optimizer.step()
                result.losses.append(loss.item())
        result.weights = model.whole_names()
        return result

    return work


def in_ranks(size: int, work: Callable) -> list[Result]:
    with dist.local(size, timeout=120.0) as ranks:
        return ranks.run(work)


def compare(rows: Rows, what: str, results: list[Result], want: Result, bits: bool) -> None:
    differ, scale, found = 0.0, max(np.abs(w).max() for w in want.weights.values()), set()
    are_bits = True
    for result in results:
        for name, value in result.weights.items():
            found.add(name)
            differ = max(differ, float(np.abs(value - want.weights[name]).max()) / scale)
            are_bits &= value.tobytes() == want.weights[name].tobytes()
    losses = max(abs(a - b) for a, b in zip(results[0].losses, want.losses, strict=True))
    norms = max(
        (abs(a - b) / b for a, b in zip(results[0].norms, want.norms, strict=False)), default=0.0
    )
    text = "the same bits" if are_bits else f"weights {differ:.1e}"
    is_met = found == set(want.weights) and losses <= 1e-5 and norms <= 1e-5
    is_met &= are_bits if bits else differ <= 1e-5
    if len(want.norms) and len(results[0].norms) == len(want.norms):
        text += f", norms {norms:.0e}"
    rows.add(what, f"{text}, losses {losses:.0e}", "bits" if bits else "1e-5", is_met)


def main() -> None:
    rows = Rows()
    for size in (2, 4, 8):
        want = one_process(size)
        compare(rows, f"data parallel, {size} ranks", in_ranks(size, data_parallel(0)), want, True)
        for stage in (1, 2, 3) if size < 8 else ():
            got = in_ranks(size, data_parallel(stage))
            compare(rows, f"ZeRO stage {stage}, {size} ranks", got, want, True)
    want = one_process(2, clip=True)
    compare(rows, "data parallel, clipped", in_ranks(2, data_parallel(0, True)), want, False)
    for stage in (1, 2, 3):
        got = in_ranks(2, data_parallel(stage, True))
        compare(rows, f"ZeRO stage {stage}, clipped", got, want, False)
    want = one_process(2, wide=True)
    got = in_ranks(2, data_parallel(0, wide=True))
    compare(rows, "data parallel, bfloat16", got, want, True)
    got = in_ranks(2, data_parallel(3, recomputes=True))
    compare(rows, "ZeRO stage 3, recomputed blocks", got, one_process(2), True)
    want = one_process(1, sgd, clip=True)
    for size in (2, 4):
        got = in_ranks(size, tensor_parallel(lambda: dict(example.PLAN)))
        compare(rows, f"tensor parallel, {size} ranks, clipped", got, want, False)
        got = in_ranks(size, tensor_parallel(sequence_plan))
        compare(rows, f"sequence parallel, {size} ranks, clipped", got, want, False)
    want = one_process(2, sgd, clip=True)
    got = in_ranks(4, tensor_parallel(lambda: dict(example.PLAN), dp=2))
    compare(rows, "tensor x data parallel, 2 x 2, clipped", got, want, False)
    got = in_ranks(4, tensor_parallel(lambda: dict(example.PLAN), dp=2, shards=True))
    compare(rows, "tensor x ZeRO stage 3, 2 x 2, clipped", got, want, False)
    for schedule in ("GPipe", "1F1B", "interleaved", "ZB-H1"):
        got = in_ranks(2, pipelined(schedule, 4, False))
        bits = schedule != "ZB-H1"
        compare(rows, f"pipeline, {schedule}", got, one_process(4, sgd), bits)
        got = in_ranks(2, pipelined(schedule, 4, True))
        compare(rows, f"pipeline, {schedule}, clipped", got, one_process(4, sgd, True), False)
    compare(rows, "experts, 2 ranks, clipped", in_ranks(2, experts(True)), experts(False)(), False)
    want = sequences(False)()
    compare(rows, "sequences cut, 2 ranks, clipped", in_ranks(2, sequences(True)), want, False)
    status = example.main(["--steps", str(STEPS)])
    rows.add("2 x 2 x 2, 8 ranks", "as printed", "1e-4", status == 0)
    rows.end()


if __name__ == "__main__":
    main()
