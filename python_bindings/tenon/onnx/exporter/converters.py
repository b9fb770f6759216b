# SPDX-License-Identifier: Apache-2.0
"""Functions that write steps as nodes, by the operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenon.onnx.exporter.program_text import Step
from tenon.onnx.exporter.writer import Writer

Converter = Callable[[Writer, Step], Any]
CONVERTERS: dict[str, Converter] = {}


def exports(*names: str) -> Callable[[Converter], Converter]:
    """The function is given the steps of these operators, and returns the name of the result, or a list of names, of which
    None stands for one that ONNX has nothing for."""

    def add(function: Converter) -> Converter:
        for name in names:
            CONVERTERS[f"tenon::{name}"] = function
        return function

    return add
