# SPDX-License-Identifier: Apache-2.0
"""What was written for other frameworks, running on Tenon: one package for each of them."""
