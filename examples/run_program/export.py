# SPDX-License-Identifier: Apache-2.0
"""Writes model.tenon: a classifier with its weights, for batches of 1 to 64 images."""

import sys

import tenon
from tenon import nn

path = sys.argv[1] if len(sys.argv) > 1 else "model.tenon"
tenon.manual_seed(0)
model = nn.Sequential(
    nn.Linear(784, 128), nn.ReLU(), nn.BatchNorm1d(128), nn.Linear(128, 10)
).eval()
with tenon.no_grad():
    program = tenon.export(
        model, tenon.rand(4, 784), dynamic_shapes=[{0: tenon.Dim("batch", max=64)}]
    )
program.freeze(numerics="fast").save(path)
print(f"wrote {path}")
