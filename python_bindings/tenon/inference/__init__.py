# SPDX-License-Identifier: Apache-2.0
"""Exported programs for serving: named inputs and outputs, checks at loading, clones for threads.

    p = tenon.inference.Predictor("model.tenon", fallback="deny", warmup="recorded")
    scores = p.run({"x": x})["scores"]

It is libtenon_predictor.so.1, which C, C++ and other languages use as well (docs/inference.md).
"""

from tenon.inference.predictor import ConfigKey, Predictor, Value, config_keys

__all__ = ["ConfigKey", "Predictor", "Value", "config_keys"]
