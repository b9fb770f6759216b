# SPDX-License-Identifier: Apache-2.0
"""DEVICES: kinds to test, from TENON_TEST_DEVICES; TENON_TEST_PLUGINS are loaded first, in processes of
their own if TENON_TEST_ISOLATED is set."""

import os

import tenon

DEVICES = os.environ.get("TENON_TEST_DEVICES", "cpu").split(",")

for library in filter(None, os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep)):
    tenon.plugins.load(library, isolated=bool(os.environ.get("TENON_TEST_ISOLATED")))
