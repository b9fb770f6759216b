# SPDX-License-Identifier: Apache-2.0
"""Which operators of ONNX are imported."""

from __future__ import annotations

import json
from typing import Any

from tenon import _core


def table() -> list[dict[str, Any]]:
    """An entry for each version of each operator of ai.onnx: `op`, the opset `since` which it holds, `deprecated`, and `by` (what
    imports it) or `refused` (why nothing does)."""
    result: list[dict[str, Any]] = json.loads(_core.onnx_table())
    return result
