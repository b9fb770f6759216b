# SPDX-License-Identifier: Apache-2.0
"""Tests run against the installed package or, where there is none, against this folder."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent))
