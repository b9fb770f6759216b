# SPDX-License-Identifier: Apache-2.0
"""Tenon's plugin for Huawei's Ascend NPUs. An entry point tells Tenon of it; nothing is to be imported."""
