# SPDX-License-Identifier: Apache-2.0
"""paddle.sparse: tensors of layouts 'coo' and 'csr' (docs/sparse.md) by Paddle's names and parameters."""

from __future__ import annotations

from tenon.compat.paddle.sparse import nn
from tenon.compat.paddle.sparse._functions import *  # noqa: F403
from tenon.compat.paddle.sparse._functions import __all__ as _FUNCTIONS

__all__ = [*_FUNCTIONS, "nn"]
