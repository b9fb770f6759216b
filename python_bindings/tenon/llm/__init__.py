# SPDX-License-Identifier: Apache-2.0
"""Language models: folders of Hugging Face read, one decoder for their families, text from tokens."""

from tenon.llm.generate import LanguageModel
from tenon.llm.loading import load
from tenon.llm.models import Decoder, DecoderConfig
from tenon.llm.sample import Sampling
from tenon.llm.template import ChatTemplate, TemplateError
from tenon.llm.tokenizer import StopStrings, TextStream, Tokenizer

__all__ = [
    "ChatTemplate",
    "Decoder",
    "DecoderConfig",
    "Engine",
    "LanguageModel",
    "Sampling",
    "StopStrings",
    "TemplateError",
    "TextStream",
    "Tokenizer",
    "load",
]


def __getattr__(name: str) -> object:
    if name == "Engine":
        from tenon.llm.engine import Engine  # which needs NumPy, as models do not

        return Engine
    raise AttributeError(f"module 'tenon.llm' has no attribute '{name}'")
