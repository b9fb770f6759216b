# SPDX-License-Identifier: Apache-2.0
"""The namespaces of tenon.compat, held against the libraries whose names they have, parameter by parameter."""
