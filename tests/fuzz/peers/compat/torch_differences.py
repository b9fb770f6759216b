# SPDX-License-Identifier: Apache-2.0
"""Where tenon.compat.torch differs from PyTorch on purpose. docs/compat_namespaces.md lists the same."""

from .signature_calls import Difference

DIFFERENCES: tuple[Difference, ...] = ()
