# SPDX-License-Identifier: Apache-2.0
"""Language models: folders of Hugging Face read, one decoder for their families, text from tokens."""

from tenon.llm.draft import DraftModel, PromptLookup
from tenon.llm.generate import LanguageModel
from tenon.llm.loading import load, save_gguf
from tenon.llm.models import Decoder, DecoderConfig
from tenon.llm.perplexity import Divergence, Perplexity, divergence, perplexity
from tenon.llm.sampling import SamplingOptions
from tenon.llm.template import ChatTemplate, TemplateError
from tenon.llm.tokenizer import AnswerText, StopStrings, TextStream, Tokenizer

__all__ = [
    "AnswerText",
    "ChatTemplate",
    "Decoder",
    "DecoderConfig",
    "Divergence",
    "DraftModel",
    "Engine",
    "LanguageModel",
    "Perplexity",
    "PromptLookup",
    "SamplingOptions",
    "StopStrings",
    "TemplateError",
    "TextStream",
    "Tokenizer",
    "divergence",
    "load",
    "perplexity",
    "save_gguf",
]


def __getattr__(name: str) -> object:
    if name == "Engine":
        from tenon.llm.engine import Engine  # which needs NumPy, as models do not

        return Engine
    raise AttributeError(f"module 'tenon.llm' has no attribute '{name}'")
