# SPDX-License-Identifier: Apache-2.0
"""Whether an installation works: a small training run on each device."""

from __future__ import annotations

from typing import Any

import tenon


def run_check(devices: list[Any] | None = None) -> bool:
    """Train a small model on each device (default: those of `tenon.devices()`, of plugins that
    are loaded; name others), and say what works; whether everything does.

    A device is right if its losses agree with the CPU's. What fails is printed with its reason.
    """
    expected = _losses(tenon.device("cpu"))
    works = True
    for device in map(tenon.device, devices or [d for d in tenon.devices() if d.type != "meta"]):
        name = tenon.device_properties(device)["name"]
        try:
            losses = _losses(device)
        except Exception as error:  # whatever it is, it is the answer
            works = False
            print(f"{device} ({name}): {type(error).__name__}: {error}")
            continue
        distance = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        is_right = losses[-1] < losses[0] and distance < 1e-3 * max(expected)
        works = works and is_right
        print(
            f"{device} ({name}): works"
            if is_right
            else f"{device} ({name}): its losses differ from the CPU's by {distance:.3g}; "
            "tenon.validation(compare='cpu') finds the operator"
        )
    print(
        f"tenon {tenon.__version__} is installed and works"
        if works
        else "something does not work; `tenon plugins doctor` and `tenon report` say more"
    )
    return works


def _losses(device: tenon.device) -> list[float]:
    from tenon import nn, optim  # much of the package

    def spread(*shape: int) -> tenon.Tensor:
        """The same numbers on every device."""
        count = 1
        for size in shape:
            count *= size
        return tenon.sin(tenon.arange(0, count).cast(tenon.float32) * 1.7).reshape(list(shape))

    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    for parameter in model.parameters():
        parameter.data = spread(*parameter.shape) * 0.3
    model.to(device)
    x = spread(12, 6).to(device)
    target = (tenon.arange(0, 12) % 3).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = tenon.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
