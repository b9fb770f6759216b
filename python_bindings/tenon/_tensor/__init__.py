# SPDX-License-Identifier: Apache-2.0
"""Functions and methods of tensors that are made of operators, and what tensors are to Python: printed, pickled, batched.

Users meet them as `tenon.NAME` and as methods of `tenon.Tensor`. The package's first floor: it imports `tenon._core` alone.
"""
