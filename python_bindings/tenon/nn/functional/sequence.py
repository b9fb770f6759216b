# SPDX-License-Identifier: Apache-2.0
"""Functions of sequences of different length."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


def sequence_mask(lengths: Tensor, maxlen: int | None = None, dtype: Any = None) -> Tensor:
    """[..., maxlen]: 1 before the length of each sequence, 0 from there on; int64 by default."""
    if maxlen is None:
        maxlen = int(tenon.max(lengths).item())
    mask = tenon.arange(maxlen, device=lengths.device) < lengths.unsqueeze(-1)
    return mask.cast(dtype or tenon.int64)
