# SPDX-License-Identifier: Apache-2.0
"""Writes models/, which the tests of the C functions run. They are kept, so that files of this version go on loading.

Run in this folder, so that programs name this file without a path:

    python -c "exec(compile(open('make_models.py').read(), 'make_models.py', 'exec'))"
"""

import pathlib

import tenon
import tenon.onnx
from tenon import nn

FOLDER = pathlib.Path("models")


def classifier():
    """float32[batch, 8] -> hidden float32[batch, 4] and scores float32[batch, 3], with batch from 1 to 16."""
    tenon.manual_seed(0)
    first, second = nn.Linear(8, 4), nn.Linear(4, 3)

    def forward(x):
        hidden = first(x).relu()
        return {"scores": tenon.softmax(second(hidden), -1), "hidden": hidden}

    return tenon.export(
        forward, tenon.rand(4, 8), dynamic_shapes=[{0: tenon.Dim("batch", max=16)}]
    ).freeze()


def pair():
    """Two inputs of two dtypes; a sum, and an input as it came."""
    return tenon.export(
        lambda a, b: (a * 2.0 + b.to(tenon.float32), a),
        (tenon.ones(2, 3), tenon.ones([2, 3], dtype=tenon.int64)),
    )


def loop():
    """Counts to `limit` by ones: a run takes as long as the caller wants."""

    def count(limit):
        n = tenon.zeros([])
        while n < limit:
            n = n + 1
        return {"n": n}

    return tenon.export(count, tenon.tensor(3.0))


def filters():
    """Convolutions whose filters are packed and divided among threads: float32[1, 8, 16, 16] -> y float32[1, 5]."""
    tenon.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(8, 48, 3, padding=1), nn.ReLU(), nn.Conv2d(48, 16, 1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, groups=16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    ).eval()  # fmt: skip
    return tenon.export(lambda x: {"y": layers(x)}, tenon.rand(1, 8, 16, 16)).freeze()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with tenon.no_grad():
        for make in (classifier, filters, pair, loop):
            make().save(FOLDER / f"{make.__name__}.tenon")
        tenon.onnx.export(classifier(), FOLDER / "classifier.onnx")
