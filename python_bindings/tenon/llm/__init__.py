# SPDX-License-Identifier: Apache-2.0
"""Language models."""

from .engine import Engine

__all__ = ["Engine"]
