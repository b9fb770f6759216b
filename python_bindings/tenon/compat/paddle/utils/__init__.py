# SPDX-License-Identifier: Apache-2.0
"""Building of custom operators: see cpp_extension."""

from tenon.compat.paddle.utils import cpp_extension

__all__ = ["cpp_extension"]
