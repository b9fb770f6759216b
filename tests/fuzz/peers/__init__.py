# SPDX-License-Identifier: Apache-2.0
"""What NumPy, SciPy and PyTorch say to the same calls."""
