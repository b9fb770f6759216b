# SPDX-License-Identifier: Apache-2.0
"""For modules that hold nothing but other modules."""
