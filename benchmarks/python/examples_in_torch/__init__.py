# SPDX-License-Identifier: Apache-2.0
"""The models and losses of examples/, written for PyTorch: same names, same parameters."""
