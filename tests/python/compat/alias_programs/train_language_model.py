# SPDX-License-Identifier: Apache-2.0
"""A small language model: attention by hand, masks in buffers, groups of parameters, sampling, torch.compile."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class Config:
    vocab: int = 12
    block: int = 8
    heads: int = 2
    width: int = 16
    layers: int = 2


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)
        mask = torch.tril(torch.ones(config.block, config.block)).view(
            1, 1, config.block, config.block
        )
        self.register_buffer("mask", mask, persistent=False)
        self.heads, self.width = config.heads, config.width

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(self.width, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab, config.width)
        self.wpe = nn.Embedding(config.block, config.width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"norm": nn.LayerNorm(config.width), "attn": Attention(config)})
            for _ in range(config.layers)
        )
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        self.wte.weight = self.head.weight
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.1)
            if isinstance(module, nn.Linear) and module.bias is not None:
                torch.nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.blocks:
            x = x + block["attn"](block["norm"](x))
        logits = self.head(x)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(
            logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
        )

    def optimizer(self):
        decay = [p for p in self.parameters() if p.dim() >= 2]
        rest = [p for p in self.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=2e-2, betas=(0.9, 0.95))

    @torch.no_grad()
    def generate(self, idx, count, top_k=3):
        for _ in range(count):
            logits, _ = self(idx[:, -self.config.block :])
            logits = logits[:, -1, :]
            v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
            logits[logits < v[:, [-1]]] = -float("Inf")
            idx = torch.cat(
                (idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1
            )
        return idx


torch.manual_seed(1337)
config = Config()
model = Model(config)
optimizer = model.optimizer()
compiled = torch.compile(model)
data = torch.arange(400) % config.vocab  # each token follows the one before it
for _ in range(60):
    ix = torch.randint(len(data) - config.block, (8,))
    x = torch.stack([data[i : i + config.block] for i in ix])
    y = torch.stack([data[i + 1 : i + 1 + config.block] for i in ix])
    _, loss = compiled(x, y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
compiled.eval()
tokens = compiled.generate(torch.zeros((1, 1), dtype=torch.long), 6, top_k=1)[0].tolist()
print("loss", loss.item(), "tokens", tokens)
assert tokens == [0, 1, 2, 3, 4, 5, 6], tokens
