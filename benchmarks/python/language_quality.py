# SPDX-License-Identifier: Apache-2.0
"""What few bits cost a language model: perplexity and divergence of a small Llama for each format of GGUF, and for recipes.

    python language_quality.py [--quick] [--steps 400] [--model FOLDER] [--only iq4] [--windows 60] [--json results.json]

The network of examples/serve_small_llama.py, 4 layers of width 256, is trained here on the texts of CPython's standard
library, nine tenths of its modules; the rest is what it must foretell. With `--model` the trained network is kept in a
folder, and found there again. "int8" beside a format rounds what meets the weights to 8 bits, and keys and values of
int8 have a scale for each token and head. "gptq" and "awq" choose the codes of q4_0, and the weights before they are rounded, for
some texts of those it was trained on; "float8" has a scale for each row. The table in docs/quantization.md is of this network after
100 steps.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import tenon
from _report import row_parser, write_rows
from tenon import nn
from tenon import quantization as q
from tenon.llm import Decoder, LanguageModel
from tenon.llm.models.blocks import BlockWeight
from tenon.llm.models.float8 import Float8Weight
from tenon.llm.quantize import quantize
from tenon.optim import AdamW
from tenon.optim.lr_scheduler import CosineAnnealingLR
from tenon.quantization.float8 import float8_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONTEXT = 256
FORMATS = "f16 bf16 q8_0 q6_K q5_1 q5_K q5_0 q4_1 q4_K q4_0 iq4_nl iq4_xs q3_K q2_K".split()
RECIPES = ("gptq, q4_0", "awq, q4_0", "awq and gptq, q4_0", "float8", "float8, activations too")
# Shares by which perplexity may rise.
BARS = {"q8_0": 0.001, "q4_K": 0.02, "f32, keys and values in int8": 0.005}


def texts() -> tuple[list[str], list[str]]:
    """Sources of the standard library's modules, to train on and to test with."""
    paths = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    random.Random(0).shuffle(paths)
    found = [path.read_text("utf-8", errors="ignore") for path in paths]
    found = [text for text in found if text.isascii() and len(text) > 2000]
    cut = len(found) * 9 // 10
    return found[:cut], found[cut:]


def train(example, model, tokens: list[int], steps: int, batch: int, length: int) -> float:
    data = tenon.tensor(tokens, dtype=tenon.int64)
    optimizer = AdamW(list(model.parameters()), lr=2e-3, weight_decay=0.01)
    schedule = CosineAnnealingLR(optimizer, steps, 1e-4)
    numbers = random.Random(0)
    recent, began = [], time.monotonic()
    for step in range(steps):
        starts = [numbers.randrange(len(tokens) - length - 1) for _ in range(batch)]
        rows = tenon.stack([data[start : start + length + 1] for start in starts])
        scores = model(rows[:, :-1])
        loss = nn.functional.cross_entropy(
            scores.reshape([-1, scores.shape[-1]]), rows[:, 1:].reshape([-1])
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent = [*recent[-19:], loss.item()]
        if step % 50 == 49:
            taken = time.monotonic() - began
            print(
                f"step {step + 1}: {sum(recent) / len(recent):.3f} nats, {taken:.0f} s", flush=True
            )
    return sum(recent) / len(recent)


def trained(folder: Path, steps: int, quick: bool) -> None:
    """Writes model.gguf, in float32, and the text to test with."""
    import serve_small_llama as example

    tenon.manual_seed(0)
    learned, kept = texts()
    if quick:
        learned = learned[:20]
    width, layers = (64, 2) if quick else (256, 4)
    tokenizer = example.trained_tokenizer(learned, 400 if quick else 2000)
    tokens = [token for text in learned for token in tokenizer.encode(text)]
    model = example.Llama(example.config_of(len(tokenizer), width, layers, CONTEXT))
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"{len(tokens):,} tokens to train on, {count:,} parameters", flush=True)
    train(example, model, tokens, steps, 8, 64 if quick else CONTEXT // 2)
    whole = LanguageModel(model.decoder(), tokenizer)
    tenon.llm.save_gguf(whole, folder / "model.gguf", "f32")
    (folder / "test.txt").write_text("\n".join(kept))


def as_layers(example, decoder):
    """The network of a decoder with Linear and RMSNorm layers, which recipes look for."""

    class Layers(example.Llama):
        def __init__(self) -> None:
            super().__init__(decoder.config)
            self.layers = nn.ModuleDict()
            for name, weight in decoder.weights.items():
                self.get_parameter(name.replace(".", "_")).detach().copy_(weight)
                if not name.startswith("layers."):
                    continue
                layer: nn.Module
                if weight.ndim == 1:
                    layer = nn.RMSNorm(weight.shape[0], decoder.config.norm_eps)
                else:
                    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
                layer.weight.detach().copy_(weight)
                self.layers[self.key(name.removesuffix(".weight"))] = layer

        @staticmethod
        def key(name: str) -> str:
            return name.replace(".", "_")

        def linear(self, x, name):
            key = self.key(name)
            return self.layers[key](x) if key in self.layers else super().linear(x, name)

        def norm(self, x, name):
            key = self.key(name)
            return self.layers[key](x) if key in self.layers else super().norm(x, name)

    return Layers()


def by_recipe(name: str, example, whole, batches):
    """A language model whose matrices a recipe has rounded; its embeddings are rounded to the same format."""
    decoder = whole.decoder
    model = as_layers(example, decoder)
    if "awq" in name:
        pairs = {}
        for layer in range(decoder.config.layers):
            at = f"layers.layers_{layer}_"
            pairs[f"{at}attention_norm"] = [f"{at}{each}" for each in ("query", "key", "value")]
            pairs[f"{at}mlp_norm"] = [f"{at}mlp_{each}" for each in ("gate", "up")]
            pairs[f"{at}mlp_up"] = [f"{at}mlp_down"]
        model = q.awq(model, pairs, batches, "q4_0")
    if "gptq" in name:
        model = q.gptq(model, batches, "q4_0")
    elif "float8" in name:
        model = q.quantize_float8(model)
    weights = dict(decoder.weights)
    for key, weight in decoder.weights.items():
        if key.startswith("layers."):
            made = model.layers[model.key(key.removesuffix(".weight"))]
            weight = made.weight.detach()
            if isinstance(made, q.BlockLinear):
                weights[key] = BlockWeight(weight, made.format)
                continue
            if isinstance(made, q.Float8Linear):
                weights[key] = Float8Weight(weight, made.weight_scale)
                continue
            weights[key] = weight
        if weight.ndim == 2:
            if "float8" in name:
                weights[key] = Float8Weight(*float8_of(weight, "float8_e4m3", "row"))
            else:
                weights[key] = quantize(weight, "q4_0")
    rounds = "float8" if "activations" in name else "float" if "float8" in name else "int8"
    return LanguageModel(Decoder(decoder.config, weights, rounds), whole.tokenizer)


def error_of_weights(model, whole) -> float:
    """Of all matrices, the root of the mean square of what rounding changed, by that of the matrices."""
    squares = [0.0, 0.0]
    for name, weight in whole.decoder.weights.items():
        if weight.ndim == 2:
            made = model.decoder.weights[name]
            plain = made if isinstance(made, tenon.Tensor) else made.dequantized()
            error = plain.to(tenon.float32) - weight
            squares[0] += float((error * error).sum())
            squares[1] += float((weight * weight).sum())
    return (squares[0] / squares[1]) ** 0.5


def measure(folder: Path, quick: bool, windows: int, only: str) -> list[dict]:
    import serve_small_llama as example

    whole = tenon.llm.load(folder / "model.gguf")
    tokens = whole.tokenizer.encode((folder / "test.txt").read_text())
    tokens = tokens[: (4 if quick else windows) * CONTEXT]
    plain = tenon.llm.perplexity(whole, tokens, context=CONTEXT)
    rows = [{"weights": "f32", "bytes": (folder / "model.gguf").stat().st_size}]
    rows[0] |= {"perplexity": plain.value, "rise": 0.0, "divergence": 0.0, "same likeliest": 1.0}
    print(f"f32: {plain.value:.4f} over {plain.tokens} tokens", flush=True)

    def add(name: str, model, size: int | None = None, kv_dtype: str = "float32") -> None:
        far = tenon.llm.divergence(model, whole, tokens, context=CONTEXT, kv_dtype=kv_dtype)
        # awq multiplies features of matrices by numbers, so that they are not those of the whole model.
        rise, lost = far.ratio - 1, None if "awq" in name else error_of_weights(model, whole)
        row = {"weights": name, "bytes": size, "perplexity": plain.value * far.ratio, "rise": rise}
        row |= {"error of rise": far.ratio_error, "error of weights": lost}
        rows.append(row | {"divergence": far.mean, "same likeliest": far.same_top})
        bar = BARS.get(name)
        verdict = "" if bar is None else f"  (bar {bar:+.2%}: {'met' if rise <= bar else 'MISSED'})"
        print(
            f"{name:30} {rise:+8.3%} +- {far.ratio_error:.3%}  KL {far.mean:.6f}  "
            f"same {far.same_top:6.2%}  weights {'-' if lost is None else f'{lost:.4f}'}{verdict}",
            flush=True,
        )

    for kept in ("float16", "bfloat16", "int8"):
        if only in (name := f"f32, keys and values in {kept}"):
            add(name, whole, rows[0]["bytes"], kept)
    for form in ("q8_0", "q4_K") if quick else FORMATS:
        names = (form,) if form in ("f16", "bf16") else (form, f"{form}, int8")
        if not any(only in name for name in names):
            continue
        with tempfile.TemporaryDirectory() as made:
            path = Path(made) / "small.gguf"
            tenon.llm.save_gguf(whole, path, form)
            size = path.stat().st_size
            for name in names:
                if only in name:
                    rounds = "int8" if name.endswith("int8") else "float"
                    add(name, tenon.llm.load(path, activations=rounds), size)
    learned = [token for text in texts()[0][:20] for token in whole.tokenizer.encode(text)]
    length, count = CONTEXT // 2, 2 if quick else 16
    data = tenon.tensor(learned[: count * length], dtype=tenon.int64).reshape([count, length])
    for name in RECIPES[:1] if quick else RECIPES:
        if only in name:
            add(name, by_recipe(name, example, whole, list(tenon.split(data, 4, 0))))
    return rows


def main() -> None:
    parser = row_parser(__doc__, "a tiny network, two formats")
    parser.add_argument("--steps", type=int, help="of training (600)")
    parser.add_argument("--model", type=Path, help="a folder that keeps the trained network")
    parser.add_argument("--windows", type=int, default=60, help="of the text to test with (60)")
    parser.add_argument("--only", default="", help="lines whose name has this in it")
    options = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "model.gguf").exists():
            trained(folder, options.steps or (60 if options.quick else 600), options.quick)
        rows = measure(folder, options.quick, options.windows, options.only)
    write_rows(options, rows)


if __name__ == "__main__":
    main()
