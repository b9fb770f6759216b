# SPDX-License-Identifier: Apache-2.0
"""Train a diffusion model (Ho et al., 2020) on handwritten digits, and let it draw some.

    python diffusion_digits.py
    python diffusion_digits.py --quick

A small U-net learns to tell the noise in images of 8 x 8 pixels from what is under it, for every
amount of noise, given which digit it is. Drawing begins with noise alone and takes a little of it
away in each of 100 steps. A linear classifier, fitted to the real images, reads what was drawn: the
exit status is 1 if it finds fewer than 80 % of the digits that were ordered (with --quick, which
takes seconds: if the loss stays above 0.6).
"""

from __future__ import annotations

import argparse
import math
import sys

import tenon
from tenon import Tensor, nn
from tenon.data import DataLoader, TensorDataset
from tenon.optim import AdamW
from tenon.optim.lr_scheduler import CosineAnnealingLR
from tenon.optim.swa_utils import AveragedModel, get_ema_avg_fn
from tenon.utils import progress
from tenon.vision.datasets import Digits

STEPS = 100
SHADES = " .:-=+*#%@"


class Block(nn.Module):
    """Two convolutions beside a shortcut; what the condition says is added between them."""

    def __init__(self, channels: int, width: int, condition: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, channels), nn.GroupNorm(8, width)
        self.conv1 = nn.Conv2d(channels, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.condition = nn.Linear(condition, width)
        same = channels == width
        self.shortcut = nn.Identity() if same else nn.Conv2d(channels, width, 1)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        y = self.conv1(nn.functional.silu(self.norm1(x)))
        y = y + self.condition(condition).unsqueeze(-1).unsqueeze(-1)
        return self.conv2(nn.functional.silu(self.norm2(y))) + self.shortcut(x)


class UNet(nn.Module):
    """The noise in images [n, 1, 8, 8] at times [n] from 0 to 1, of digits [n]."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.digit = nn.Embedding(10, width)
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.down1 = Block(width, width, width)
        self.shrink = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.down2 = Block(2 * width, 2 * width, width)
        self.middle = Block(2 * width, 2 * width, width)
        self.grow = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.up = Block(2 * width, width, width)
        self.norm = nn.GroupNorm(8, width)
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor, digit: Tensor) -> Tensor:
        frequencies = tenon.exp(
            tenon.linspace(0.0, math.log(1000.0), self.width // 2, device=x.device)
        )
        angles = time.unsqueeze(-1) * frequencies
        condition = self.time(tenon.concat([tenon.sin(angles), tenon.cos(angles)], 1))
        condition = nn.functional.silu(condition + self.digit(digit))
        first = self.down1(self.enter(x), condition)
        second = self.middle(self.down2(self.shrink(first), condition), condition)
        merged = tenon.concat([first, self.grow(second)], 1)
        return self.leave(nn.functional.silu(self.norm(self.up(merged, condition))))


def signal_share(time: Tensor) -> Tensor:
    """How much of the variance is image at a time from 0 to 1 (Nichol and Dhariwal, 2021)."""
    return tenon.square(tenon.cos((time + 0.008) / 1.008 * (math.pi / 2)))


def loss_of(model: nn.Module, images: Tensor, digit: Tensor, time: Tensor, noise: Tensor) -> Tensor:
    """The mean square of what is wrong with the noise that the model finds."""
    share = signal_share(time).reshape([-1, 1, 1, 1])
    noisy = tenon.sqrt(share) * images + tenon.sqrt(1 - share) * noise
    return nn.functional.mse_loss(model(noisy, time, digit), noise)


def draw(model: nn.Module, digit: Tensor, steps: int) -> Tensor:
    """Images [n, 1, 8, 8] of digits [n], made of noise."""
    x = tenon.normal([digit.shape[0], 1, 8, 8], device=digit.device)
    with tenon.no_grad():
        for step in range(steps, 0, -1):
            time = tenon.full([digit.shape[0]], step / steps, device=digit.device)
            # At time 1 nothing of the image is left, which a quotient cannot bring back.
            share = max(signal_share(time)[0].item(), 1e-4)
            before = signal_share(time - 1 / steps)[0].item()
            noise = model(x, time, digit)
            image = (x - math.sqrt(1 - share) * noise) / math.sqrt(share)
            image = tenon.clip(image, -1.0, 1.0)
            # Mean and variance of the step before, given the image (Ho et al., equation 7).
            kept = share / before
            mean = (math.sqrt(before) * (1 - kept) * image + math.sqrt(kept) * (1 - before) * x) / (
                1 - share
            )
            variance = (1 - kept) * (1 - before) / (1 - share)
            x = mean + math.sqrt(max(variance, 0.0)) * tenon.normal(x.shape, device=x.device)
    return x


def read(images: Tensor, labels: Tensor, drawn: Tensor) -> Tensor:
    """Which digits a linear classifier, fitted to images and labels by least squares, sees in
    others."""

    def rows(x: Tensor) -> Tensor:
        return tenon.pad(x.flatten(1), [0, 0, 0, 1], "constant", 1.0)  # and a constant

    x = rows(images)
    target = tenon.one_hot(labels, 10).to(x.dtype)
    weight = tenon.solve(x.mT @ x + tenon.eye(x.shape[1]), x.mT @ target)
    return (rows(drawn) @ weight).argmax(axis=1)


def picture(rows: list[list[float]]) -> str:
    top = len(SHADES) - 1
    return "\n".join(
        "".join(2 * SHADES[min(max(round((v + 1) / 2 * top), 0), top)] for v in row) for row in rows
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or a device of a plugin")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two epochs of a narrow network")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs = 2
    tenon.manual_seed(options.seed)
    digits = Digits()
    images = digits.data * 2 - 1  # from -1 to 1
    loader = DataLoader(
        TensorDataset(images, digits.targets), batch_size=64, shuffle=True, seed=options.seed
    )
    model = UNet(8 if options.quick else 32).to(options.device)
    average = AveragedModel(model, avg_fn=get_ema_avg_fn(0.99))
    optimizer = AdamW(model.parameters(), lr=5e-3 if options.quick else 2e-3)
    schedule = CosineAnnealingLR(optimizer, options.epochs * len(loader))
    mean = 1.0
    bar = progress(range(options.epochs), "training")
    for _ in bar:
        for batch, digit in loader:
            batch, digit = batch.to(options.device), digit.to(options.device)
            time = tenon.uniform([batch.shape[0]], device=options.device)
            noise = tenon.normal(batch.shape, device=options.device)
            loss = loss_of(model, batch, digit, time, noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            average.update_parameters(model)
            mean += (loss.item() - mean) * 0.05
        bar.update(loss=mean)
    print(f"loss: {mean:.3f}")
    average.eval()
    ordered = tenon.arange(10 if options.quick else 200) % 10
    drawn = draw(average, ordered.to(options.device), 5 if options.quick else STEPS).cpu()
    found = (read(images, digits.targets, drawn) == ordered).to(tenon.float32).mean().item()
    print(picture(tenon.concat(list(drawn[:8, 0]), 1).tolist()))
    print(f"digits that a linear classifier finds as they were ordered: {found:.1%}")
    return 0 if (mean <= 0.6 if options.quick else found >= 0.8) else 1


if __name__ == "__main__":
    sys.exit(main())
