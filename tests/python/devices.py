# SPDX-License-Identifier: Apache-2.0
"""DEVICES: kinds to test, from TENON_TEST_DEVICES; TENON_TEST_PLUGINS are loaded first."""

import os

import tenon

DEVICES = os.environ.get("TENON_TEST_DEVICES", "cpu").split(",")

for library in filter(None, os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep)):
    tenon.load_plugin(library)
