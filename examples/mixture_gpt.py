# SPDX-License-Identifier: Apache-2.0
"""Train a small GPT with a mixture of experts on several ranks, each of which keeps a part of the experts.

    tenon run -n 2 mixture_gpt.py
    tenon run -n 2 mixture_gpt.py --quick
    python mixture_gpt.py --quick --ranks 2       # ranks that are threads of one process

The text are modules that every Python contains. Every rank draws its own part of each batch; the gradients, the
norms and the loss that is printed are those of one process with all experts and the whole batch. The exit
status is 1 if the loss on code it has not seen stays above 2.2 nats per character (3.4 with --quick;
guessing evenly has about 4.6).
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import tenon
import tenon.distributed as dist
from tenon import Tensor, nn
from tenon.optim import AdamW
from tenon.text import CharacterTokenizer, Vocabulary

MODULES = "argparse ast calendar decimal difflib inspect pickle tarfile tempfile textwrap typing"
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class Expert(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    """Causal attention, and two of the experts for each token."""

    def __init__(self, width: int, heads: int, experts: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        gate = nn.Linear(width, experts, bias=False)
        self.mixture = dist.MoELayer(gate, [Expert(width) for _ in range(experts)], k=2)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).reshape([batch, length, 3, self.heads, -1])
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        y = nn.functional.scaled_dot_product_attention(q, k, v, causal=True)
        x = x + self.out(y.transpose(1, 2).reshape([batch, length, width]))
        return x + self.mixture(self.norm2(x))


class MixtureGPT(nn.Module):
    """Scores [batch, length, tokens] of the next token behind each of `index` [batch, length]."""

    def __init__(
        self, tokens: int, length: int, width: int, depth: int, heads: int, experts: int
    ) -> None:
        super().__init__()
        self.length = length
        self.token, self.position = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, experts) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, 0.0, 0.02)

    def forward(self, index: Tensor) -> Tensor:
        x = self.token(index) + self.position(tenon.arange(index.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    def balance_loss(self) -> Tensor:
        losses = [block.mixture.balance_loss() for block in self.blocks]
        return tenon.stack(losses).mean()


def loss_of(model: nn.Module, index: Tensor, target: Tensor) -> Tensor:
    """Nats per character of this rank's part of the batch."""
    scores = model(index)
    return nn.functional.cross_entropy(scores.reshape([-1, scores.shape[-1]]), target.reshape([-1]))


def batch_of(data: Tensor, count: int, length: int) -> tuple[Tensor, Tensor]:
    start = tenon.randint(0, data.shape[0] - length, [count, 1])
    at = start + tenon.arange(length)
    return data[at], data[at + 1]


def train(options: argparse.Namespace) -> float:
    """The loss of all ranks on text that the model has not seen."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    names = "textwrap" if options.quick else MODULES
    paths = [Path(find_spec(name).origin) for name in names.split()]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    tokenizer = CharacterTokenizer()
    vocabulary = Vocabulary.build([tokenizer(text)], min_count=5, unknown=UNKNOWN)
    data = tenon.tensor(vocabulary.encode(tokenizer(text)), dtype=tenon.int64)
    cut = data.shape[0] * 9 // 10

    tenon.manual_seed(options.seed)  # the same model on all ranks
    width, depth = (32, 1) if options.quick else (96, 2)
    model = MixtureGPT(len(vocabulary), 32, width, depth, heads=4, experts=8)
    optimizer = AdamW(model.parameters(), lr=1e-2 if options.quick else 3e-3)
    wrapped = dist.DistributedDataParallel(model)
    own = sum(p.size for p in model.parameters())
    print(
        f"rank {rank} of {ranks}: {own} parameters, experts {list(model.blocks[0].mixture.experts.own)}"
    )

    tenon.manual_seed(options.seed + 1 + rank)  # other parts of the batch
    for step in range(40 if options.quick else options.steps):
        optimizer.zero_grad()
        index, target = batch_of(data[:cut], 32 // ranks, model.length)
        loss = loss_of(wrapped, index, target)
        (loss + 0.01 * model.balance_loss()).backward()
        dist.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            mean = dist.all_reduce(loss.detach().reshape([1]), "mean").item()
            if rank == 0:
                print(f"step {step}: {mean:.3f}")
    model.eval()
    with tenon.no_grad():
        losses = [
            loss_of(model, *batch_of(data[cut:], 32 // ranks, model.length)) for _ in range(8)
        ]
        return dist.all_reduce(tenon.stack(losses).mean().reshape([1]), "mean").item()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="40 steps of a narrow model")
    parser.add_argument("--ranks", type=int, help="as threads of this process")
    options = parser.parse_args(arguments)
    if options.ranks is not None:
        with dist.local(options.ranks) as ranks:
            loss = ranks.run(train, options)[0]
    else:
        dist.init_process_group()
        loss = train(options)
        dist.barrier()
    limit = 3.4 if options.quick else 2.2
    if options.ranks is not None or dist.get_rank() == 0:
        print(f"{loss:.3f} nats per character on code that it has not seen")
    return 0 if loss <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
