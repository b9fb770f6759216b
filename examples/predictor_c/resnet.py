# SPDX-License-Identifier: Apache-2.0
"""Writes a small residual network as resnet.tenon and resnet.onnx, for resnet.c."""

import sys
from pathlib import Path

import tenon
import tenon.onnx
from tenon import nn


class Block(nn.Module):
    """Two convolutions, and what went into them."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        y = tenon.relu(self.norm(self.first(x)))
        return tenon.relu(self.second(y) + x)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 4)

    def forward(self, image):
        x = self.blocks(tenon.relu(self.stem(image)))
        return {"scores": tenon.softmax(self.head(x.mean((2, 3))), -1)}


def main(folder):
    tenon.manual_seed(0)
    model = ResNet().eval()
    with tenon.no_grad():
        program = tenon.export(
            model, tenon.rand(2, 3, 16, 16), dynamic_shapes=[{0: tenon.Dim("batch", min=1, max=8)}]
        )
    program.save(folder / "resnet.tenon")
    tenon.onnx.export(program, folder / "resnet.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
