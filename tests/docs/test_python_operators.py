# SPDX-License-Identifier: Apache-2.0
"""docs/python_operators.md: its programs, in order, in a process that knows no other operators."""

import pathlib
import re
import subprocess
import sys

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "python_operators.md"


def test_the_guide_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) > 4
    program = "\n".join(blocks)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
