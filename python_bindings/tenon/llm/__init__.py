# SPDX-License-Identifier: Apache-2.0
"""Language models: folders of Hugging Face read, one decoder for their families, text from tokens."""

from tenon.llm.models import Decoder, DecoderConfig

__all__ = ["Decoder", "DecoderConfig", "Engine"]


def __getattr__(name: str) -> object:
    if name == "Engine":  # it needs NumPy, which the models do not
        from tenon.llm.engine import Engine

        return Engine
    raise AttributeError(f"module 'tenon.llm' has no attribute '{name}'")
