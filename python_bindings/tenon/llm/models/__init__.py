# SPDX-License-Identifier: Apache-2.0
"""One decoder and the families of models that it covers."""

from tenon.llm.models.config import DecoderConfig, Experts, LayerOptions, Rotary
from tenon.llm.models.decoder import Decoder

__all__ = ["Decoder", "DecoderConfig", "Experts", "LayerOptions", "Rotary"]
