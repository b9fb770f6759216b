# SPDX-License-Identifier: Apache-2.0
"""A differential fuzzer: draws calls from the operator definitions and compares every result."""
