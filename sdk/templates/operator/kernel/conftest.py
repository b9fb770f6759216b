# SPDX-License-Identifier: Apache-2.0
"""Tests run against the installed package or, where there is none, against the build folder."""

import pathlib

import tenon

if "acme" not in dir(tenon.ops):
    tenon.plugins.load(pathlib.Path(__file__).parent / "build" / "libtenon_acme.so")
