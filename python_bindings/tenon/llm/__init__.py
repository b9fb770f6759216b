# SPDX-License-Identifier: Apache-2.0
"""Language models: folders of Hugging Face read, one decoder for their families, text from tokens."""

from tenon.llm.models import Decoder, DecoderConfig

__all__ = ["Decoder", "DecoderConfig"]
