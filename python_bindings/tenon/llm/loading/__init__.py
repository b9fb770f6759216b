# SPDX-License-Identifier: Apache-2.0
"""Readers of published checkpoints."""

from tenon.llm.loading.folder import read_decoder

__all__ = ["read_decoder"]
