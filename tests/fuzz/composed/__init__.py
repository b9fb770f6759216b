# SPDX-License-Identifier: Apache-2.0
"""Random programs over composed tensors, beside the same programs over dense ones (see __main__.py)."""
