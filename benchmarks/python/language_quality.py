# SPDX-License-Identifier: Apache-2.0
"""What few bits cost a language model: perplexity and divergence of a small Llama for each format of GGUF.

    python language_quality.py [--quick] [--steps 400] [--model FOLDER] [--json results.json]

The network of examples/serve_small_llama.py, 4 layers of width 256, is trained here on the texts of CPython's standard
library, nine tenths of its modules; the rest is what it must foretell. With `--model` the trained network is kept in a
folder, and found there again. "int8" beside a format rounds what meets the weights to 8 bits, and keys and values of
int8 have a scale for each token and head. The table in docs/quantization.md is of this network after 100 steps, with activations of int8;
its standard errors of rises and errors of weights were computed beside this command, which does not print them.
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

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CONTEXT = 256
FORMATS = "f16 bf16 q8_0 q6_K q5_1 q5_K q5_0 q4_1 q4_K q4_0 q3_K q2_K".split()
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
    from tenon import nn
    from tenon.optim import AdamW
    from tenon.optim.lr_scheduler import CosineAnnealingLR

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
    from tenon.llm import LanguageModel

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


def measure(folder: Path, quick: bool) -> list[dict]:
    whole = tenon.llm.load(folder / "model.gguf")
    tokens = whole.tokenizer.encode((folder / "test.txt").read_text())
    tokens = tokens[: (4 if quick else 60) * CONTEXT]
    plain = tenon.llm.perplexity(whole, tokens, context=CONTEXT)
    rows = [{"weights": "f32", "bytes": (folder / "model.gguf").stat().st_size}]
    rows[0] |= {"perplexity": plain.value, "rise": 0.0, "divergence": 0.0, "same likeliest": 1.0}
    print(f"f32: {plain.value:.4f} over {plain.tokens} tokens", flush=True)

    def add(name: str, model, size: int, kv_dtype: str = "float32") -> None:
        found = tenon.llm.perplexity(model, tokens, context=CONTEXT, kv_dtype=kv_dtype)
        far = tenon.llm.divergence(model, whole, tokens, context=CONTEXT, kv_dtype=kv_dtype)
        rise = found.value / plain.value - 1
        row = {"weights": name, "bytes": size, "perplexity": found.value, "rise": rise}
        rows.append(row | {"divergence": far.mean, "same likeliest": far.same_top})
        bar = BARS.get(name)
        verdict = "" if bar is None else f"  (bar {bar:+.2%}: {'met' if rise <= bar else 'MISSED'})"
        print(
            f"{name:30} {found.value:9.4f} {rise:+8.3%}  KL {far.mean:.6f}  "
            f"same {far.same_top:6.2%}{verdict}",
            flush=True,
        )

    for kept in ("float16", "bfloat16", "int8"):
        add(f"f32, keys and values in {kept}", whole, rows[0]["bytes"], kept)
    for form in ("q8_0", "q4_K") if quick else FORMATS:
        with tempfile.TemporaryDirectory() as made:
            path = Path(made) / "small.gguf"
            tenon.llm.save_gguf(whole, path, form)
            size = path.stat().st_size
            add(form, tenon.llm.load(path), size)
            if form not in ("f16", "bf16"):
                add(f"{form}, int8", tenon.llm.load(path, activations="int8"), size)
    return rows


def main() -> None:
    parser = row_parser(__doc__, "a tiny network, two formats")
    parser.add_argument("--steps", type=int, help="of training (600)")
    parser.add_argument("--model", type=Path, help="a folder that keeps the trained network")
    options = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "model.gguf").exists():
            trained(folder, options.steps or (60 if options.quick else 600), options.quick)
        rows = measure(folder, options.quick)
    write_rows(options, rows)


if __name__ == "__main__":
    main()
