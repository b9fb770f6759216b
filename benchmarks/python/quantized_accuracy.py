# SPDX-License-Identifier: Apache-2.0
"""What few bits cost: accuracy of the convolutional network of examples/train_digits.py on scikit-learn's digits.

    python quantized_accuracy.py [--quick] [--json results.json]

It is trained here for several seeds. The table of accuracies in docs/quantization.md is this command's.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tenon
from _report import row_parser, write_rows
from tenon import nn
from tenon import quantization as q

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


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
        # What it costs to train on at all, which a float network tells.
        for part in (5, 50):
            trained, plain = q.prepare_training(model), builder()
            plain.load_state_dict(model.state_dict())
            for each in (trained, plain):
                example.train(each, training, epochs=2, rate=rate / part, **settings)
            made[f"8 bits, trained on at rate / {part}"] = q.convert(trained.eval())
            made[f"floats, trained on at rate / {part}"] = plain
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


def main() -> None:
    parser = row_parser(__doc__, "one seed")
    options = parser.parse_args()
    sys.path.insert(0, str(EXAMPLES))
    results = {"digits": digits(1 if options.quick else 8)}
    write_rows(options, results)


if __name__ == "__main__":
    main()
