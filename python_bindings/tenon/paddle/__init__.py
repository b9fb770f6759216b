# SPDX-License-Identifier: Apache-2.0
"""Models that Paddle has saved, as programs; Paddle is not needed.

    program = tenon.paddle.load("inference.json")    # Paddle 3; "inference.pdmodel": Paddle 2
    scores = program(image)

docs/paddle_models.md lists what works and what is refused. Functions by Paddle's names are in `tenon.compat.paddle`.
"""

from __future__ import annotations

from tenon.paddle._load import input_names, load

__all__ = ["input_names", "load"]
