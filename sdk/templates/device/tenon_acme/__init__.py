# SPDX-License-Identifier: Apache-2.0
"""Acme devices for Tenon. Nothing to import: `tenon.ones((2, 2), device="acme")` finds the plugin."""
