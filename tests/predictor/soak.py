# SPDX-License-Identifier: Apache-2.0
"""Clones of predictors at work for a long time: right results, and memory that does not grow.

    PYTHONPATH=build/release/python python tests/predictor/soak.py [--minutes 10] [--seed 1]

Threads run clones with pools of their own on inputs of many sizes, clone, shrink memory, cancel, make mistakes, load the models anew,
from a `.tenon` and a `.onnx` file. Every result is compared. Memory (RSS) is looked at from a quarter of the time on: the line
through it may rise by 2 percent in the time that is left, which allocators' own ups and downs stay below.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import tenon
import tenon.onnx
from tenon import inference, nn

WORKERS, LARGEST = 4, 8


def model() -> nn.Module:
    tenon.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    ).eval()  # fmt: skip


def write_models(folder: Path) -> list[Path]:
    made = model()
    sizes = [{0: tenon.Dim("batch", max=LARGEST)}]
    x = tenon.rand(2, 3, 16, 16)
    paths = [folder / "net.tenon", folder / "net.onnx"]
    with tenon.no_grad():
        program = tenon.export(lambda x: {"scores": made(x)}, (x,), dynamic_shapes=sizes)
        program.freeze().save(paths[0])
        tenon.onnx.export(program, paths[1])
    return paths


def rss_kilobytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Soak:
    def __init__(self, folder: Path, seed: int):
        self.paths = write_models(folder)
        self.seed = seed
        self.end = threading.Event()
        self.failures: list[str] = []
        self.counts = {"runs": 0, "loads": 0, "clones": 0, "cancelled": 0, "refused": 0}
        self.lock = threading.Lock()
        numbers = np.random.default_rng(seed)
        self.inputs = [numbers.random((n + 1, 3, 16, 16)).astype("float32") for n in range(LARGEST)]
        net = model()
        with tenon.no_grad():
            self.expected = [net(tenon.from_numpy(x)).numpy() for x in self.inputs]

    def load(self, draw: random.Random) -> inference.Predictor:
        path = draw.choice(self.paths)
        settings = {"sizes": f"batch=1:{LARGEST}"} if path.suffix == ".onnx" else {}
        if draw.random() < 0.7:
            settings["threads"] = str(draw.randint(1, 3))
        self.count("loads")
        return inference.Predictor(path, **settings)

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def work(self, index: int) -> None:
        draw = random.Random(self.seed * 100 + index)
        try:
            predictor = self.load(draw)
            while not self.end.is_set():
                predictor = self.step(draw, predictor)
        except Exception as error:
            self.failures.append(f"worker {index}: {type(error).__name__}: {error}")
            self.end.set()

    def step(self, draw: random.Random, predictor: inference.Predictor) -> inference.Predictor:
        choice = draw.random()
        if choice < 0.005:
            return self.load(draw)
        if choice < 0.03:
            self.count("clones")
            return predictor.clone()
        if choice < 0.05:
            predictor.cancel()  # of nothing: the next run ends as ever
            self.count("cancelled")
        elif choice < 0.07:
            self.refuse(predictor)
        elif choice < 0.08:
            predictor.shrink_memory()
        n = draw.randrange(LARGEST)
        got = predictor.run({"x": self.inputs[n]})["scores"].numpy()
        if not np.allclose(got, self.expected[n], rtol=1e-4, atol=1e-5):
            raise AssertionError(f"batch {n + 1}: results differ")
        self.count("runs")
        return predictor

    def refuse(self, predictor: inference.Predictor) -> None:
        try:
            predictor.run({"x": np.zeros((1, 4, 16, 16), "float32")})
        except ValueError:
            return self.count("refused")
        raise AssertionError("a wrong shape was taken")

    def run(self, minutes: float) -> float:
        """Kilobytes that memory rises by in the time that is measured, and its mean there."""
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        begin, seconds = time.monotonic(), 60 * minutes
        samples = []
        while (now := time.monotonic() - begin) < seconds and not self.end.is_set():
            if now > seconds / 4:
                samples.append((now, rss_kilobytes()))
            self.end.wait(min(1.0, seconds / 100))
        self.end.set()
        for thread in threads:
            thread.join()
        if len(samples) < 2:
            return 0.0
        at, memory = np.array(samples).T
        slope = np.polyfit(at, memory, 1)[0]
        rise = slope * (at[-1] - at[0]) / memory.mean()
        print(
            f"{self.counts}; RSS {memory[0] / 1024:.1f} MiB, then {memory[-1] / 1024:.1f}, rise {rise:+.2%}"
        )
        return float(rise)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seed)
        rise = soak.run(options.minutes)
    for failure in soak.failures:
        print(failure)
    return bool(soak.failures) or rise > 0.02


if __name__ == "__main__":
    sys.exit(main())
