# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of published checkpoints."""

from tenon.llm.loading.folder import read_decoder
from tenon.llm.loading.gguf import GgufError, GgufFile
from tenon.llm.loading.language_model import load
from tenon.llm.loading.save import save_gguf

__all__ = ["GgufError", "GgufFile", "load", "read_decoder", "save_gguf"]
