# SPDX-License-Identifier: Apache-2.0
"""Train a small GPT on the source code of Python's standard library, character by character.

    python character_gpt.py
    python character_gpt.py --quick

The text are modules that every Python contains, so that nothing is downloaded. At the end the model
writes some code of its own. The exit status is 1 if the loss on code it has not seen stays above
1.6 nats per character (3.4 with --quick, which takes seconds; guessing evenly has about 4.6).
"""

from __future__ import annotations

import argparse
import math
import sys
from importlib.util import find_spec
from pathlib import Path

import tenon
from tenon import Tensor, nn
from tenon.optim import AdamW
from tenon.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from tenon.text import CharacterTokenizer, Vocabulary
from tenon.utils import progress

MODULES = "argparse ast calendar decimal difflib inspect pickle tarfile tempfile textwrap typing"
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class Block(nn.Module):
    """Causal attention and a perceptron, each behind a norm and beside a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).reshape([batch, length, 3, self.heads, -1])
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        y = nn.functional.scaled_dot_product_attention(q, k, v, causal=True)
        x = x + self.out(y.transpose(1, 2).reshape([batch, length, width]))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """Scores [batch, length, tokens] of the next token behind each of `index` [batch, length]."""

    def __init__(
        self, tokens: int, length: int = 64, width: int = 128, depth: int = 3, heads: int = 4
    ) -> None:
        super().__init__()
        self.length = length
        self.token = nn.Embedding(tokens, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                shrunk = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * depth if shrunk else 1))

    def forward(self, index: Tensor) -> Tensor:
        where = tenon.arange(index.shape[1], device=index.device)
        x = self.token(index) + self.position(where)
        return self.head(self.norm(self.blocks(x)))

    def write(self, start: list[int], count: int, temperature: float = 0.7) -> list[int]:
        """`count` tokens behind those of `start`, drawn by their probabilities."""
        written = list(start)
        device = self.head.weight.device
        with tenon.no_grad():
            for _ in range(count):
                index = tenon.tensor([written[-self.length :]], device=device)
                scores = self(index)[0, -1] / temperature
                drawn = tenon.multinomial(nn.functional.softmax(scores, -1), 1)
                written.append(int(drawn.item()))
        return written


def loss_of(model: nn.Module, index: Tensor, target: Tensor) -> Tensor:
    """Nats per character."""
    scores = model(index)
    return nn.functional.cross_entropy(scores.reshape([-1, scores.shape[-1]]), target.reshape([-1]))


def load_text(names: str) -> str:
    paths = [Path(find_spec(name).origin) for name in names.split()]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def batch_of(data: Tensor, count: int, length: int) -> tuple[Tensor, Tensor]:
    """`count` random pieces of `length` tokens, and each moved by one."""
    start = tenon.randint(0, data.shape[0] - length, [count, 1])
    at = start + tenon.arange(length)
    return data[at], data[at + 1]


def evaluate(model: GPT, data: Tensor, device: str, batches: int = 20) -> float:
    tenon.manual_seed(1)
    with tenon.no_grad():
        losses = [
            loss_of(model, *(part.to(device) for part in batch_of(data, 32, model.length)))
            for _ in range(batches)
        ]
    return float(tenon.stack(losses).mean())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or a device of a plugin")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="40 steps of a narrow model")
    options = parser.parse_args(arguments)
    if options.quick:
        options.steps = 40
    tenon.manual_seed(options.seed)

    text = load_text("textwrap" if options.quick else MODULES)
    tokenizer = CharacterTokenizer()
    vocabulary = Vocabulary.build([tokenizer(text)], min_count=5, unknown=UNKNOWN)
    data = tenon.tensor(vocabulary.encode(tokenizer(text)), dtype=tenon.int64)
    training, held_out = data[: len(data) * 9 // 10], data[len(data) * 9 // 10 :]
    size = {"length": 32, "width": 32, "depth": 2} if options.quick else {}
    model = GPT(len(vocabulary), **size).to(options.device)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(text):,} characters, {len(vocabulary)} different ones; {count:,} parameters")

    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
    optimizer = AdamW(groups, lr=1e-2 if options.quick else 2e-3, weight_decay=0.1)
    warm = max(options.steps // 20, 1)
    schedule = SequentialLR(
        optimizer,
        [
            LinearLR(optimizer, 0.1, total_iters=warm),
            CosineAnnealingLR(optimizer, options.steps - warm),
        ],
        milestones=[warm],
    )
    bar = progress(range(options.steps), "training")
    for step in bar:
        index, target = batch_of(training, 32, model.length)
        loss = loss_of(model, index.to(options.device), target.to(options.device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 10 == 0:
            bar.update(loss=loss.item())

    loss = evaluate(model, held_out, options.device)
    start = "def "
    written = model.write(vocabulary.encode(start), 60 if options.quick else 400)
    print(f"loss on code that was not seen: {loss:.3f} nats per character")
    print(tokenizer.join(vocabulary.decode(written)))
    return 0 if loss <= (3.4 if options.quick else 1.6) else 1


if __name__ == "__main__":
    sys.exit(main())
