# SPDX-License-Identifier: Apache-2.0
"""What Model.fit costs beside the same loop written by hand: one epoch of small batches, in turns.

    python fitting.py [--rounds 21]

A step of the small network is the cost of calls alone, so that what fit adds shows most. Both loops
read the losses once an epoch; neither has a progress bar or metrics.
"""

from __future__ import annotations

import argparse
import json

import tenon
from _protocol import interleave
from tenon import nn, optim

BATCHES = 64


def contestants(width: int, batch: int) -> dict[str, object]:
    batches = [(tenon.normal([batch, width]), tenon.normal([batch, width])) for _ in range(BATCHES)]

    def network() -> tuple[nn.Module, optim.Optimizer]:
        net = nn.Sequential(
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
        )
        return net, optim.AdamW(net.parameters(), lr=1e-4)

    loss_of = nn.MSELoss()
    by_hand, optimizer = network()
    fitted, other = network()
    model = tenon.Model(fitted)
    model.prepare(other, loss_of)

    def loop() -> None:
        by_hand.train()
        optimizer.zero_grad()
        losses = []
        for x, y in batches:
            loss = loss_of(by_hand(x), y)
            loss.backward()
            losses.append(loss.detach())
            optimizer.step()
            optimizer.zero_grad()
        sum(loss.item() for loss in losses)

    def fit() -> None:
        model.epoch = 0
        model.fit(batches, epochs=1, progress=False)

    return {"fit": fit, "loop": loop}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--json", help="write the results here")
    options = parser.parse_args()
    results = {}
    print("width  batch  us a step by hand  fit / loop (best rounds)")
    for width, batch in ((16, 8), (128, 32), (512, 64)):
        times = interleave(contestants(width, batch), options.rounds, turn=0.05)
        step = times.median("loop") / BATCHES * 1e6
        ratio, best = times.ratio("loop"), times.best_ratio("loop")
        results[f"width {width}, batch {batch}"] = {"step [us]": step, "fit / loop": ratio}
        print(f"{width:5}  {batch:5}  {step:17.1f}  {ratio:10.3f} ({best:.3f})")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
