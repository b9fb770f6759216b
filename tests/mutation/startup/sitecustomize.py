# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every interpreter that a test starts: it takes part in the mutation run."""

import os
import sys
from pathlib import Path

if "TENON_PYTHON_MUTANTS" in os.environ:
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    import python_switches

    python_switches.join_run()
    sys.path.pop()
