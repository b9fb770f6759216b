# SPDX-License-Identifier: Apache-2.0
"""Tenon's plugin for Kunlun's chips. An entry point tells Tenon of it; nothing is to be imported."""
