# SPDX-License-Identifier: Apache-2.0
"""Draws calls of operators: shapes, layouts, dtypes, values and attributes."""

from .calls import draw_call, small_call

__all__ = ["draw_call", "small_call"]
