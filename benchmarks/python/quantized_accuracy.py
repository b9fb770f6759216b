# SPDX-License-Identifier: Apache-2.0
"""What few bits cost: accuracy of a convolutional network on digits, and perplexity of a small Llama, by format.

    python quantized_accuracy.py [--quick] [--only digits|llama] [--json results.json]

Both networks are trained here, in minutes: that of examples/train_digits.py on scikit-learn's digits, for several seeds,
and that of examples/serve_small_llama.py on bytes of the sources of Python's library, whose last tenth is held out. The table of
accuracies in docs/quantization.md is this command's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from pathlib import Path

import tenon
from tenon import nn
from tenon import quantization as q

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FORMATS = "f16 q8_0 q6_K q5_K q5_1 q5_0 q4_K q4_1 q4_0 q3_K q2_K".split()
MODULES = (
    "argparse ast calendar csv datetime decimal difflib dis functools heapq inspect json.decoder"
)
MODULES += " pickle random shutil statistics string tarfile textwrap typing unittest.mock zipfile"


def accuracy(model: nn.Module, images, labels) -> float:
    with tenon.no_grad():
        found = model(images).argmax(1)
    return 100 * float((found == labels).to(tenon.float32).mean())


def whole(dataset) -> tuple:
    pairs = [dataset[i] for i in range(len(dataset))]
    return tenon.stack([x for x, _ in pairs]), tenon.stack([tenon.asarray(y) for _, y in pairs])


def digits(seeds: int) -> list[dict]:
    """Accuracy on images that no network has seen, of the mean over seeds."""
    import train_digits as example

    builder, epochs, rate = example.MODELS["conv"]
    sums: dict[str, list[float]] = {}
    for seed in range(seeds):
        tenon.manual_seed(seed)
        training, test = example.load_data(seed)
        model = builder()
        settings = {"device": "cpu", "seed": seed}
        example.train(model, training, epochs=epochs, rate=rate, **settings)
        model.eval()
        images, labels = whole(test)
        seen_images = whole(training)[0]
        batches = [seen_images[i : i + 64] for i in range(0, 512, 64)]
        made = {"floats": model}
        for observer in ("minmax", "moving_average", "percentile", "mse"):
            seen = q.observe(model, q.Int8(observer))
            with tenon.no_grad():
                for x in batches:
                    seen(x)
            made[f"8 bits after training, {observer}"] = q.convert(seen)
        program = q.observe(tenon.export(model, (batches[0],)))
        with tenon.no_grad():
            for x in batches:
                program(x)
        rest = 64 - len(images) % 64
        padded = tenon.concat([images, images[:rest]], 0)
        run = q.convert(program).program()
        with tenon.no_grad():
            found = tenon.concat([run(padded[i : i + 64]) for i in range(0, len(padded), 64)], 0)
        hits = (found[: len(images)].argmax(1) == labels).to(tenon.float32).mean()
        sums.setdefault("8 bits after training, of the program", []).append(100 * float(hits))
        trained = q.prepare_training(model)
        example.train(trained, training, epochs=2, rate=rate / 5, **settings)
        made["8 bits, trained on with rounded numbers"] = q.convert(trained.eval())
        made["Linear in float8"] = q.quantize_float8(model, activations="dynamic")
        made["Linear in q4_0"] = q.quantize_weights(model, "q4_0")
        for name, each in made.items():
            sums.setdefault(name, []).append(accuracy(each.eval(), images, labels))
    rows = []
    for name, found in sums.items():
        mean = sum(found) / len(found)
        rows.append({"network": name, "accuracy": mean, "worst": min(found)})
        print(f"{name:48} {mean:6.2f} %   worst of {seeds} seeds {min(found):6.2f} %", flush=True)
    return rows


def library_text() -> bytes:
    return b"".join(
        Path(importlib.import_module(name).__file__).read_bytes() for name in MODULES.split()
    )


def byte_tokenizer():
    """A token a byte."""
    from tenon.llm import Tokenizer

    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in shown]
    symbols = {byte: chr(byte) for byte in shown}
    symbols |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    made = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": {symbols[b]: b for b in range(256)}, "merges": []},
    }
    return Tokenizer(text=json.dumps(made))


def llama(steps: int) -> list[dict]:
    """Perplexity of a byte on text that the model has not seen."""
    import serve_small_llama as example
    from tenon.llm import LanguageModel

    tenon.manual_seed(0)
    text = library_text()
    length, end = 128, len(text) * 9 // 10
    data = tenon.tensor(list(text[:end]), dtype=tenon.int64)
    config = example.config_of(256, 256, 4, 256)
    model = example.Llama(config)
    optimizer = example.AdamW(list(model.parameters()), lr=2e-3, weight_decay=0.0)
    schedule = example.CosineAnnealingLR(optimizer, steps, 1e-4)
    for _ in range(steps):
        first = tenon.randint(0, end - length - 1, [16]).unsqueeze(1)
        rows = data[first + tenon.arange(length + 1)]
        scores = model(rows[:, :-1])
        loss = nn.functional.cross_entropy(scores.reshape([-1, 256]), rows[:, 1:].reshape([-1]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    held_out = text[end:][:40_000].decode("ascii", "replace").replace("\ufffd", "?")
    plain = LanguageModel(model.decoder(), byte_tokenizer())

    def perplexity(each) -> float:
        return tenon.llm.perplexity(each, held_out, context=128).value

    base = perplexity(plain)
    rows = [{"format": "f32", "perplexity": base}]
    print(f"f32 {base:.4f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMATS:
            path = Path(folder) / f"{form}.gguf"
            tenon.llm.save_gguf(plain, path, form)
            row = {"format": form, "perplexity": perplexity(tenon.llm.load(path))}
            line = f"{form} {row['perplexity']:.4f} {100 * (row['perplexity'] / base - 1):+.2f} %"
            if form != "f16":
                row["int8"] = perplexity(tenon.llm.load(path, activations="int8"))
                line += (
                    f"   activations int8 {row['int8']:.4f} {100 * (row['int8'] / base - 1):+.2f} %"
                )
            print(line, flush=True)
            rows.append(row)
    rows += float8_rows(plain, perplexity, base)
    return rows


def float8_rows(plain, perplexity, base: float) -> list[dict]:
    from tenon.llm import Decoder, LanguageModel
    from tenon.llm.models.float8 import Float8Weight
    from tenon.quantization.float8 import BLOCK, float8_of

    rows = []
    for scales in ("tensor", "row", "block"):
        weights = {}
        for name, weight in plain.decoder.weights.items():
            is_matrix = len(weight.shape) == 2 and "embedding" not in name
            block = BLOCK if scales == "block" else None
            weights[name] = (
                Float8Weight(*float8_of(weight, "float8_e4m3", scales), block)
                if is_matrix
                else weight
            )
        found = [
            perplexity(LanguageModel(Decoder(plain.decoder.config, weights, kind), plain.tokenizer))
            for kind in ("float", "float8")
        ]
        rows.append(
            {"format": f"float8_e4m3 by {scales}", "perplexity": found[0], "float8": found[1]}
        )
        print(
            f"float8_e4m3 by {scales} {found[0]:.4f} {100 * (found[0] / base - 1):+.2f} %   activations "
            f"float8 {found[1]:.4f} {100 * (found[1] / base - 1):+.2f} %",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 30 steps")
    parser.add_argument("--only", default="", help="digits or llama")
    parser.add_argument("--steps", type=int, default=600, help="of training the Llama (600)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    results = {}
    if options.only in ("", "digits"):
        results["digits"] = digits(1 if options.quick else 3)
    if options.only in ("", "llama"):
        results["llama"] = llama(30 if options.quick else options.steps)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
