# SPDX-License-Identifier: Apache-2.0
"""Auto parallel: placements chosen by what they cost."""

from .plan import Plan, auto

__all__ = ["Plan", "auto"]
