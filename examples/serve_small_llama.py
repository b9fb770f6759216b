# SPDX-License-Identifier: Apache-2.0
"""Train a small Llama on questions about Python's standard library, quantise it, serve it, ask it.

    python serve_small_llama.py
    python serve_small_llama.py --quick

Questions are "What does textwrap.fill do?", answers the first lines of docstrings, which every Python
has. The model learns them by heart: a tokenizer and a network are trained, written as one GGUF file in
blocks of 8 bits, and served by `tenon serve`, whose clients here speak OpenAI's API. The exit status is 1
if fewer than nine of ten answers over HTTP are those of the docstrings (four of five with --quick, which
takes seconds). Needs `pip install 'tenon-dl[llm,serve]'`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import math
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import tenon
import tokenizers
from tenon import Tensor, nn
from tenon.llm import ChatTemplate, Decoder, DecoderConfig, LanguageModel, Tokenizer
from tenon.llm.models import LayerOptions, Rotary
from tenon.optim import AdamW
from tenon.optim.lr_scheduler import CosineAnnealingLR
from tenon.utils import progress

MODULES = """argparse ast bisect calendar copy csv datetime decimal difflib dis fnmatch fractions functools
    glob gzip heapq html inspect json keyword linecache locale math operator os pathlib pickle pprint
    random re secrets shlex shutil statistics string struct tempfile textwrap token urllib.parse"""
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>")
END = 0  # the first of them


class Llama(nn.Module):
    """A decoder that is trained: its weights have the names and shapes that tenon.llm.Decoder takes."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.names = list(config.weight_shapes())
        for name, shape in config.weight_shapes().items():
            first = tenon.ones(shape) if len(shape) == 1 else 0.02 * tenon.randn(shape)
            if name.endswith(("output.weight", "down.weight")):
                first = first / math.sqrt(2 * config.layers)
            self.register_parameter(name.replace(".", "_"), nn.Parameter(first))

    def weight(self, name: str) -> Tensor:
        return getattr(self, f"{name}.weight".replace(".", "_"))

    def forward(self, index: Tensor) -> Tensor:
        """Scores [batch, length, tokens] of the next token behind each of `index` [batch, length]."""
        x = nn.functional.embedding(index, self.weight("embedding"))
        angles = tenon.arange(index.shape[1]).unsqueeze(1) * tenon.tensor(
            self.config.layer_options[0].rotary.frequencies
        )
        cos, sin = tenon.cos(angles), tenon.sin(angles)
        for layer in range(self.config.layers):
            x = x + self.attention(self.norm(x, f"layers.{layer}.attention_norm"), layer, cos, sin)
            y = self.norm(x, f"layers.{layer}.mlp_norm")
            gate, up = (self.linear(y, f"layers.{layer}.mlp.{each}") for each in ("gate", "up"))
            x = x + self.linear(tenon.silu(gate) * up, f"layers.{layer}.mlp.down")
        return self.linear(self.norm(x, "final_norm"), "embedding")

    def attention(self, x: Tensor, layer: int, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = [batch, length, -1, self.config.head_dim]
        parts = [
            self.linear(x, f"layers.{layer}.{each}").reshape(shape).transpose(1, 2)
            for each in ("query", "key", "value")
        ]
        query, key = (tenon.rotary_embedding(each, cos, sin) for each in parts[:2])
        seen = tenon.scaled_dot_product_attention(
            query, key, parts[2], causal=True, enable_gqa=True
        )
        return self.linear(
            seen.transpose(1, 2).reshape([batch, length, -1]), f"layers.{layer}.output"
        )

    def linear(self, x: Tensor, name: str) -> Tensor:
        return nn.functional.linear(x, self.weight(name))

    def norm(self, x: Tensor, name: str) -> Tensor:
        return tenon.rms_norm(x, self.weight(name), self.config.norm_eps)

    def decoder(self) -> Decoder:
        return Decoder(
            self.config,
            {name: getattr(self, name.replace(".", "_")).detach() for name in self.names},
        )


def questions(modules: str, most: int) -> dict[str, str]:
    """Questions and answers about functions of modules."""
    found = {}
    for name in modules.split():
        module = importlib.import_module(name)
        for each in getattr(module, "__all__", None) or sorted(vars(module)):
            function = getattr(module, each, None)
            line = (inspect.getdoc(function) or "").strip().split("\n")[0]
            if inspect.isroutine(function) and 16 <= len(line) <= 100 and line.isascii():
                found[f"What does {name}.{each} do?"] = line
    step = max(1, len(found) // most)
    return dict(list(found.items())[::step][:most])


def trained_tokenizer(texts: list[str], size: int) -> Tokenizer:
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        special_tokens=list(SPECIAL),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    made.train_from_iterator(texts, trainer)
    return Tokenizer(text=made.to_str())


def config_of(tokens: int, width: int, layers: int, length: int) -> DecoderConfig:
    heads = width // 32
    rotary = Rotary(tuple(10000.0 ** (-2 * pair / 32) for pair in range(16)))
    return DecoderConfig(
        vocab_size=tokens,
        hidden_size=width,
        intermediate_size=4 * width,
        layers=layers,
        heads=heads,
        kv_heads=max(1, heads // 2),
        head_dim=32,
        max_positions=length,
        layer_options=(LayerOptions(rotary=rotary),) * layers,
        eos_token_ids=(END,),
        tied_head=True,
    )


def train(model: Llama, rows: list[list[int]], steps: int, batch: int) -> float:
    """The last loss. Ends are padded with END, of which the first alone counts."""
    length = max(map(len, rows))
    padded = [row + [END] * (length - len(row)) for row in rows]
    data = tenon.tensor(padded, dtype=tenon.int64)
    counts = tenon.tensor([[place < len(row) for place in range(length)] for row in rows])
    optimizer = AdamW(list(model.parameters()), lr=3e-3, weight_decay=0.0)
    schedule = CosineAnnealingLR(optimizer, steps, 1e-4)
    bar = progress(range(steps), "training")
    for step in bar:
        which = tenon.randint(0, len(rows), [batch])
        index, kept = data[which], counts[which][:, 1:].to(tenon.float32)
        scores = model(index[:, :-1])
        losses = nn.functional.cross_entropy(
            scores.reshape([-1, scores.shape[-1]]), index[:, 1:].reshape([-1]), reduction="none"
        )
        loss = (losses * kept.reshape([-1])).sum() / kept.sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 10 == 0:
            bar.update(loss=loss.item())
    return loss.item()


class Server:
    """`tenon serve` as a process of its own, for the time of a `with`."""

    def __init__(self, path: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tenon", "serve", str(path), "--port", str(port)]
            + ["--kv-cache", "64MiB", "--name", "small"],
            stdout=subprocess.DEVNULL,
        )

    def __enter__(self) -> Server:
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError("the server ended; its message is above")
            try:
                urllib.request.urlopen(f"{self.address}/ready", timeout=5).close()
                return self
            except urllib.error.URLError:
                time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def __exit__(self, *exception: object) -> None:
        self.process.terminate()
        self.process.wait(30)

    def ask(self, question: str) -> str:
        body = {
            "model": "small",
            "messages": [{"role": "user", "content": question}],
            "temperature": 0,
        }
        request = urllib.request.Request(
            f"{self.address}/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--width", type=int, default=192, help="of the network, a multiple of 64")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--format", default="q8_0", help="of the weights: q8_0, q4_0, f16 or f32")
    parser.add_argument("--output", type=Path, help="a folder that keeps the model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="20 questions and a narrow network")
    options = parser.parse_args(arguments)
    if options.quick:
        options.steps, options.questions, options.width, options.layers = 150, 20, 64, 2
    tenon.manual_seed(options.seed)

    pairs = questions(MODULES, options.questions)
    template = ChatTemplate(TEMPLATE)
    texts = [
        template.render([{"role": "user", "content": question}]) + answer
        for question, answer in pairs.items()
    ]
    tokenizer = trained_tokenizer(texts, 400 if options.quick else 1500)
    rows = [[*tokenizer.encode(text), END] for text in texts]
    config = config_of(len(tokenizer), options.width, options.layers, max(map(len, rows)) + 16)
    model = Llama(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(pairs)} questions, {len(tokenizer)} tokens, {count:,} parameters")
    loss = train(model, rows, options.steps, 16 if options.quick else 32)
    print(f"loss: {loss:.3f} nats per token")

    with tempfile.TemporaryDirectory() as folder:
        path = (options.output or Path(folder)) / "small.gguf"
        whole = LanguageModel(model.decoder(), tokenizer, template)
        kinds = tenon.llm.save_gguf(whole, path, options.format)
        text = "".join(texts)
        small = tenon.llm.load(path)
        lost = [
            tenon.llm.perplexity(each, text, context=config.max_positions).value
            for each in (whole, small)
        ]
        print(f"{path.name}: {path.stat().st_size:,} bytes, tensors {kinds}")
        print(f"perplexity of the questions: {lost[0]:.4f}, quantised {lost[1]:.4f}")
        right = 0
        with Server(path) as server:
            for question, answer in pairs.items():
                answered = server.ask(question)
                right += answered == answer
                if right <= 3 or answered != answer:
                    print(f"{question} {answered}")
    print(f"{right} of {len(pairs)} answers over HTTP are those of the docstrings")
    return 0 if right >= (0.8 if options.quick else 0.9) * len(pairs) else 1


if __name__ == "__main__":
    sys.exit(main())
