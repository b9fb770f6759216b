# SPDX-License-Identifier: Apache-2.0
"""torch.signal: the windows of signals."""

from tenon.compat.torch.signal import windows as windows

__all__ = ["windows"]
