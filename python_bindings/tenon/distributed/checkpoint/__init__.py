# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several ranks, which any number of ranks loads: `save`, `load`, and `Steps` for a run.

    checkpoint.save({"model": model, "optimizer": optimizer, "epoch": 3}, "run/step-100")
    state = checkpoint.load({"model": model, "optimizer": optimizer, "epoch": 0}, "run/step-100")

A checkpoint is a folder of safetensors files with parts of tensors, and a manifest that says which part of which tensor
lies where (`manifest`). It is there whole or not at all, whenever a process ends.
"""

from .boxes import Box, Piece
from .reader import Reader
from .saving import load, save
from .steps import Steps
from .writer import Pending

__all__ = ["Box", "Pending", "Piece", "Reader", "Steps", "load", "save"]
