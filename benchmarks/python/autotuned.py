# SPDX-License-Identifier: Apache-2.0
"""Tenon's own kernels, those of plugins/onednn, and what autotuning chooses, in turns in one process.

    python autotuned.py [--only convolution] [--threads 1] [--rounds 11] [--json results.json]

TENON_ONEDNN names another library of oneDNN than that of the system. A ratio below 1 is faster than
Tenon's own kernels.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable

os.environ.setdefault("TENON_AUTOTUNE_CACHE", "off")  # each run measures anew

import tenon
from _protocol import Turns, interleave

MATMULS = {
    "float32": "16x16x16 64x64x64 256x256x256 1024x1024x1024 64x784x256T 256x3072x768T 8x1024x4096T",
    "bfloat16": "64x64x64 256x256x256 1024x1024x1024 256x3072x768T 8x1024x4096T",
    "int8": "64x64x64 256x256x256 1024x1024x1024 256x3072x768T 8x1024x4096T",
}
# channels, filters, height and width, kernel, stride, groups; batch 8
CONVOLUTIONS = {
    "7x7 s2 3-64": (3, 64, 224, 7, 2, 1),
    "3x3 64": (64, 64, 56, 3, 1, 1),
    "3x3 256": (256, 256, 14, 3, 1, 1),
    "1x1 256-64": (256, 64, 56, 1, 1, 1),
    "depthwise 3x3": (64, 64, 56, 3, 1, 64),
}
CHOICES = ("onednn", "autotuned")


class Choice(Turns):
    """Calls whose kernels are chosen in one of three ways."""

    def __init__(self, call: Callable, choice: str):
        super().__init__(call)
        self.choice = choice

    def run(self, count: int) -> tuple[float, float]:
        if self.choice == "autotuned":
            with tenon.autotune():
                return super().run(count)
        if self.choice == "own":
            return super().run(count)
        tenon.plugins.allow_overrides("onednn")
        try:
            return super().run(count)
        finally:
            tenon.plugins.forbid_overrides("onednn")


def draw(*shape: int, dtype: str = "float32") -> tenon.Tensor:
    if dtype == "int8":
        return tenon.randint(-8, 8, shape).to(tenon.int8)
    return tenon.randn(shape).to(getattr(tenon, dtype))


def matmul(shape: str, dtype: str) -> Callable:
    m, n, k = map(int, shape.rstrip("T").split("x"))
    x = draw(m, k, dtype=dtype)
    y = draw(n, k, dtype=dtype).mT if shape.endswith("T") else draw(k, n, dtype=dtype)
    return lambda: tenon.matmul_integer(x, y) if dtype == "int8" else x @ y


def convolutions(name: str, dtype: str) -> Iterable[tuple[str, Callable]]:
    channels, filters, size, kernel, stride, groups = CONVOLUTIONS[name]
    x = draw(8, channels, size, size, dtype=dtype)
    w = draw(filters, channels // groups, kernel, kernel, dtype=dtype)
    last = tenon.clone(x.permute((0, 2, 3, 1))).permute((0, 3, 1, 2))
    rest = (stride, kernel // 2, 1, groups)
    g = tenon.conv2d(x, w, None, *rest)
    yield name, lambda: tenon.conv2d(x, w, None, *rest)
    yield f"{name}, channels last", lambda: tenon.conv2d(last, w, None, *rest)
    yield f"{name}, input grad", lambda: tenon.conv2d_input_grad(g, w, x.shape, *rest)
    yield f"{name}, weight grad", lambda: tenon.conv2d_weight_grad(g, x, w.shape, *rest)


def cases() -> Iterable[tuple[str, Callable]]:
    for dtype, shapes in MATMULS.items():
        for shape in shapes.split():
            yield f"matmul {dtype} {shape}", matmul(shape, dtype)
    for dtype in ("float32", "bfloat16"):
        for name in CONVOLUTIONS:
            for label, call in convolutions(name, dtype):
                yield f"convolution {dtype} {label}", call
    images, rows = draw(8, 64, 56, 56), draw(512, 1024)
    yield "avg_pool2d 3x3 s2", lambda: tenon.avg_pool2d(images, 3, 2, 1)
    yield "softmax 512x1024", lambda: tenon.softmax(rows)
    yield "layer_norm 512x1024", lambda: tenon.layer_norm(rows)
    yield "batch_norm 8x64x56x56", lambda: tenon.batch_norm(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="cases whose name contains this text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    tenon.set_num_threads(options.threads)
    results = []
    print(
        "| call | own | oneDNN / own | autotuned / own | chosen |\n| --- | --- | --- | --- | --- |"
    )
    for name, call in cases():
        if options.only not in name:
            continue
        tenon.autotune.clear()
        # In pairs: oneDNN's turn changes caches and the heap for the turn after it.
        pairs = [
            interleave({c: Choice(call, c) for c in ("own", choice)}, options.rounds)
            for choice in CHOICES
        ]
        times = pairs[-1]
        chosen = [each["chosen"] for each in tenon.autotune.report()["decisions"]]
        ratios = [1 / pair.ratio(choice) for pair, choice in zip(pairs, CHOICES)]
        results.append({"case": name, "own": times.median(), "foreign": times.foreign})
        results[-1].update(onednn=ratios[0], autotuned=ratios[1], chosen=chosen)
        print(
            f"| {name} | {times.median() * 1e6:.1f} us | {ratios[0]:.2f} | {ratios[1]:.2f} "
            f"| {', '.join(chosen) or 'own'} |{'' if all(p.clean for p in pairs) else ' *'}",
            flush=True,
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"threads": options.threads, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
