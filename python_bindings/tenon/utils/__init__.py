# SPDX-License-Identifier: Apache-2.0
"""Small helpers that training scripts need."""

from .numerics import check_numerics
from .observation import Observer
from .progress import Progress, progress

__all__ = ["Observer", "Progress", "check_numerics", "progress"]
