# SPDX-License-Identifier: Apache-2.0
"""Tests run against the installed package or, where there is none, against the file itself."""

import pathlib

import tenon

if "acme" not in dir(tenon.ops):
    tenon.ops.load(pathlib.Path(__file__).parent / "tenon_acme" / "acme.yaml")
