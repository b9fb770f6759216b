# SPDX-License-Identifier: Apache-2.0
"""Train a small GPT on eight ranks in three ways at once: 2 stages of a pipeline, 2 parts of the batch, 2 parts of each weight.

    python gpt_2x2x2.py                           # ranks that are threads of one process
    python gpt_2x2x2.py --quick
    tenon run -n 8 gpt_2x2x2.py --processes

The text is a module that every Python contains. At the end the ranks save a checkpoint, from which one process loads the
whole model. It trains by itself, too, with the same batches, and compares losses and weights. The exit status is 1 if they
differ by more than 1e-4.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import tenon
import tenon.distributed as dist
from tenon import Tensor, nn
from tenon.distributed import ColwiseParallel, RowwiseParallel, checkpoint
from tenon.optim import AdamW
from tenon.text import CharacterTokenizer, Vocabulary

LENGTH, BATCH, MICROBATCHES = 16, 16, 4
# How the weights of a block are cut: each rank has some of the heads, and some of the hidden units.
PLAN = {
    "blocks.*.[qkv]": ColwiseParallel(),
    "blocks.*.out": RowwiseParallel(),
    "blocks.*.up": ColwiseParallel(),
    "blocks.*.down": RowwiseParallel(),
}


class Embed(nn.Module):
    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(tokens, width), nn.Embedding(LENGTH, width)

    def forward(self, index: Tensor) -> Tensor:
        return self.token(index) + self.position(tenon.arange(LENGTH))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.features = width // heads  # of a head
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        # -1: of the heads, this rank has some.
        q, k, v = (
            layer(y).reshape([x.shape[0], LENGTH, -1, self.features]).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        seen = nn.functional.scaled_dot_product_attention(q, k, v, causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape([x.shape[0], LENGTH, -1]))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def gpt(tokens: int, width: int, depth: int, heads: int) -> nn.Sequential:
    """Scores [batch, length, tokens] of the next token; the same weights wherever it is made."""
    tenon.manual_seed(0)
    model = nn.Sequential(
        {
            "embed": Embed(tokens, width),
            "blocks": nn.Sequential(*(Block(width, heads) for _ in range(depth))),
            "norm": nn.LayerNorm(width),
            "head": nn.Linear(width, tokens),
        }
    )
    for parameter in model.parameters():
        if parameter.ndim == 2:
            nn.init.normal_(parameter, 0.0, 0.02)
    return model


def loss_of(scores: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(scores.reshape([-1, scores.shape[-1]]), target.reshape([-1]))


def batches(data: Tensor, count: int) -> list[tuple[Tensor, Tensor]]:
    """The same for all."""
    tenon.manual_seed(1)
    starts = [tenon.randint(0, data.shape[0] - LENGTH, [BATCH, 1]) for _ in range(count)]
    indices = [start + tenon.arange(LENGTH) for start in starts]
    return [(data[at], data[at + 1]) for at in indices]


def part_of(tensor: Tensor) -> Tensor:
    """What this rank has."""
    return tensor.to_local() if isinstance(tensor, dist.DTensor) else tensor


def train_in_parts(
    sizes: tuple[int, int, int], data: Tensor, steps: int, folder: str
) -> list[float]:
    """The loss of each step, of the whole batch."""
    mesh = dist.init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
    data_parallel, part = mesh.get_group("dp"), mesh.get_local_rank("dp")
    model = gpt(len_of(data), *sizes)
    dist.parallelize_module(model, mesh["tp"], PLAN)
    pipe = dist.pipeline(
        model, mesh.get_group("pp"), split=[f"blocks.{sizes[1] // 2}"], microbatches=MICROBATCHES
    )
    own = sum(part_of(p).numel() for p in pipe.parameters())
    print(f"rank {dist.get_rank()} at {mesh.get_coordinate()}: {own} numbers of the model")
    optimizer = AdamW(pipe.parameters(), lr=1e-3)
    rows = slice(part * BATCH // 2, (part + 1) * BATCH // 2)
    losses = []
    for index, target in batches(data, steps):
        optimizer.zero_grad()
        loss = pipe.step(index[rows], target=target[rows], loss_fn=loss_of).detach().reshape([1])
        for parameter in pipe.parameters():
            gradient = part_of(parameter.grad)
            data_parallel.all_reduce(gradient, "mean", out=gradient)
        dist.clip_grad_norm_(pipe.parameters(), 1.0, pipeline=pipe)
        optimizer.step()
        losses.append(data_parallel.all_reduce(loss, "mean").item())
    checkpoint.save({"model": pipe}, folder)
    return losses


def train_whole(model: nn.Module, data: Tensor, steps: int) -> list[float]:
    optimizer = AdamW(model.parameters(), lr=1e-3)
    losses = []
    for index, target in batches(data, steps):
        optimizer.zero_grad()
        loss = loss_of(model(index), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def len_of(data: Tensor) -> int:
    """How many tokens there are."""
    return int(data.max().item()) + 1


def compare(sizes: tuple[int, int, int], data: Tensor, losses: list[float], folder: str) -> float:
    """The greatest difference between losses, and between weights, of the ranks and of one process."""
    model, loaded = gpt(len_of(data), *sizes), gpt(len_of(data), *sizes)
    expected = train_whole(model, data, len(losses))
    checkpoint.load({"model": loaded}, folder)
    differences = [abs(a - b) for a, b in zip(losses, expected, strict=True)]
    for one, other in zip(model.parameters(), loaded.parameters(), strict=True):
        differences.append((one - other).detach().abs().max().item())
    for step in range(0, len(losses), max(1, len(losses) // 5)):
        print(f"step {step}: {losses[step]:.5f} on eight ranks, {expected[step]:.5f} on one")
    return max(differences)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="4 steps of a narrow model")
    parser.add_argument("--processes", action="store_true", help="started by tenon run -n 8")
    options = parser.parse_args(arguments)
    text = Path(find_spec("textwrap").origin).read_text(encoding="utf-8")
    tokenizer = CharacterTokenizer()
    vocabulary = Vocabulary.build([tokenizer(text)])
    data = tenon.tensor(vocabulary.encode(tokenizer(text)), dtype=tenon.int64)
    sizes, steps = ((16, 2, 4), 4) if options.quick else ((64, 4, 4), options.steps)
    with tempfile.TemporaryDirectory() as folder:
        if options.processes:
            dist.init_process_group()
            folder_of_all = dist.broadcast_object(folder)  # the first rank's
            losses = train_in_parts(sizes, data, steps, folder_of_all)
            rank = dist.get_rank()
            dist.destroy_process_group()
            if rank > 0:
                return 0
        else:
            with dist.local(8) as ranks:
                losses = ranks.run(train_in_parts, sizes, data, steps, folder)[0]
        difference = compare(sizes, data, losses, folder)
    print(f"losses and weights differ by {difference:.1e} at most")
    return 0 if difference <= 1e-4 else 1


if __name__ == "__main__":
    sys.exit(main())
