# SPDX-License-Identifier: Apache-2.0
"""Train a residual network on handwritten digits that are shifted and rotated at random.

    python classify_digits.py
    python classify_digits.py --quick

The data are scikit-learn's 1,797 images of 8 x 8 pixels, four fifths for training. Every batch is
changed anew: each image is turned, scaled and moved a little, which a network of this size needs in
order not to learn its 1,437 images by heart. The exit status is 1 if accuracy on the others stays
below 98 % (85 % with --quick, which takes seconds).
"""

from __future__ import annotations

import argparse
import math
import sys

import tenon
from tenon import Tensor, metrics, nn
from tenon.data import DataLoader, TensorDataset, random_split
from tenon.optim import AdamW
from tenon.optim.lr_scheduler import OneCycleLR
from tenon.utils import progress
from tenon.vision.datasets import Digits


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Conv2d(channels, width, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.relu(self.norm1(self.conv1(x)))
        return nn.functional.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResidualNetwork(nn.Module):
    """Scores [n, 10] of images [n, 1, 8, 8]."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, 1, 1)
        self.blocks = nn.Sequential(
            Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1)
        )
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean(axis=[2, 3]))


def loss_of(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(images), labels, label_smoothing=0.05)


def augmented(images: Tensor) -> Tensor:
    """Each image [n, 1, 8, 8] rotated by up to 12 degrees, scaled by up to a tenth, and moved by up
    to one pixel."""
    n = images.shape[0]

    def draw(limit: float) -> Tensor:
        return tenon.uniform([n], -limit, limit, device=images.device)

    angle, scale = draw(math.radians(12)), 1 + draw(0.1)
    cos, sin = tenon.cos(angle) * scale, tenon.sin(angle) * scale
    rows = [[cos, -sin, draw(2 / 8)], [sin, cos, draw(2 / 8)]]  # the image is 2 wide
    theta = tenon.stack([tenon.stack(row, -1) for row in rows], 1)
    grid = nn.functional.affine_grid(theta, images.shape)
    return nn.functional.grid_sample(images, grid)


def train(model: nn.Module, dataset, options: argparse.Namespace) -> None:
    loader = DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True, seed=options.seed)
    optimizer = AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
    schedule = OneCycleLR(optimizer, 1e-2, total_steps=options.epochs * len(loader))
    model.train()
    for epoch in range(options.epochs):
        bar = progress(loader, f"epoch {epoch + 1:2}/{options.epochs}")
        for images, labels in bar:
            loss = loss_of(model, augmented(images.to(options.device)), labels.to(options.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            bar.update(loss=loss.item())


def test(model: nn.Module, dataset, device: str) -> float:
    accuracy = metrics.Accuracy()
    model.eval()
    with tenon.no_grad():
        for images, labels in DataLoader(dataset, batch_size=256):
            accuracy.update(model(images.to(device)).cpu(), labels)
    return float(accuracy.compute())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or a device of a plugin")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="four epochs of a narrow network")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs = 4
    tenon.manual_seed(options.seed)
    digits = Digits()
    dataset = TensorDataset(digits.data, digits.targets)
    training, held_out = random_split(dataset, [0.8, 0.2], seed=options.seed)
    model = ResidualNetwork(16 if options.quick else 32).to(options.device)
    train(model, training, options)
    accuracy = test(model, held_out, options.device)
    print(f"accuracy on {len(held_out)} images: {accuracy:.2%}")
    return 0 if accuracy >= (0.85 if options.quick else 0.98) else 1


if __name__ == "__main__":
    sys.exit(main())
