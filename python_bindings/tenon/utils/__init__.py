# SPDX-License-Identifier: Apache-2.0
"""Small helpers that training scripts need."""

from .progress import Progress, progress

__all__ = ["Progress", "progress"]
