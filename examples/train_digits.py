# SPDX-License-Identifier: Apache-2.0
"""Train two networks on handwritten digits: a perceptron and a small convolutional net.

    python train_digits.py
    python train_digits.py --device toy --plugin custom_device/build/libtenon_toy.so

The data are scikit-learn's 1,797 images of 8 x 8 pixels, four fifths for training. Each network is
trained, saved, loaded again into a fresh copy and tested. The exit status is 1 if one of them stays
below 97 % on the images it has not seen.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import tenon
from tenon import nn
from tenon.data import DataLoader, TensorDataset, random_split
from tenon.optim import AdamW
from tenon.optim.lr_scheduler import CosineAnnealingLR
from tenon.utils import progress

REQUIRED_ACCURACY = 0.97


def perceptron() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.BatchNorm1d(256),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.Linear(128, 10),
    )


def convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * 4 * 4, 10),
    )


MODELS = {"mlp": (perceptron, 30, 3e-3), "conv": (convnet, 10, 5e-3)}  # builder, epochs, rate


def load_data(seed: int) -> tuple:
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = tenon.tensor(digits.images / 16.0, dtype=tenon.float32).unsqueeze(1)  # [n, 1, 8, 8]
    labels = tenon.tensor(digits.target, dtype=tenon.int64)
    return random_split(TensorDataset(images, labels), [0.8, 0.2], seed=seed)


def train(model: nn.Module, dataset, *, epochs: int, rate: float, device: str, seed: int) -> None:
    loader = DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True, seed=seed)
    optimizer = AdamW(model.parameters(), lr=rate)
    scheduler = CosineAnnealingLR(optimizer, epochs * len(loader))
    loss_function = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(epochs):
        bar = progress(loader, f"epoch {epoch + 1:2}/{epochs}")
        for images, labels in bar:
            loss = loss_function(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            bar.update(loss=loss.item())


def predict(model: nn.Module, dataset, device: str) -> tuple[list[int], list[int]]:
    model.eval()
    predicted: list[int] = []
    expected: list[int] = []
    with tenon.no_grad():
        for images, labels in DataLoader(dataset, batch_size=256):
            predicted += model(images.to(device)).to("cpu").argmax(axis=1).tolist()
            expected += labels.tolist()
    return predicted, expected


def report(predicted: list[int], expected: list[int]) -> float:
    """Print what was confused with what, and a few predictions; return the accuracy."""
    wrong: dict[tuple[int, int], int] = {}
    for guess, truth in zip(predicted, expected):
        if guess != truth:
            wrong[truth, guess] = wrong.get((truth, guess), 0) + 1
    worst = sorted(wrong.items(), key=lambda item: -item[1])[:8]
    confusion = ", ".join(f"{truth} as {guess}: {count}" for (truth, guess), count in worst)
    print(f"  confused: {confusion or 'nothing'}")
    print("  samples:  " + "  ".join(f"{e}->{p}" for p, e in zip(predicted[:12], expected[:12])))
    return 1.0 - sum(wrong.values()) / len(expected)


def run(name: str, options: argparse.Namespace, folder: Path) -> float:
    build, epochs, rate = MODELS[name]
    tenon.manual_seed(options.seed)
    training, test = load_data(options.seed)
    model = build().to(options.device)
    print(
        f"{name} on {options.device}: {sum(p.numel() for p in model.parameters()):,} parameters, "
        f"{len(training)} images to train, {len(test)} to test"
    )
    train(
        model,
        training,
        epochs=options.epochs or epochs,
        rate=rate,
        device=options.device,
        seed=options.seed,
    )

    file = folder / f"digits_{name}.safetensors"
    tenon.save(model.state_dict(), file)
    restored = build()
    restored.load_state_dict(tenon.load(file))
    predicted, expected = predict(restored.to(options.device), test, options.device)
    if predicted != predict(model, test, options.device)[0]:
        raise SystemExit(f"{file} does not predict what the trained model predicts")
    accuracy = report(predicted, expected)
    print(f"  accuracy: {accuracy:.2%} ({file.stat().st_size:,} bytes in {file.name})")
    return accuracy


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or a device of a plugin")
    parser.add_argument("--plugin", type=Path, help="a device plugin to load first")
    parser.add_argument("--model", choices=[*MODELS, "both"], default="both")
    parser.add_argument("--epochs", type=int, default=0, help="default: 30 for mlp, 10 for conv")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="keep the trained models in this folder")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.plugin:
        tenon.load_plugin(options.plugin.resolve())
    names = list(MODELS) if options.model == "both" else [options.model]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.save or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        accuracies = [run(name, options, folder) for name in names]
    print("\nwhere the operators ran:")
    print(tenon.fallback_report())
    return 0 if min(accuracies) >= REQUIRED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
