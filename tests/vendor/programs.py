# SPDX-License-Identifier: Apache-2.0
"""Programs in processes of their own, on a device whose vendor's libraries are simulated."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

LIBRARIES = Path(os.environ["TENON_BUILD_DIR"]) / "tests/simulated/lib"


def run(libraries: dict[str, Path], code: str, **environment: object) -> str:
    """The output of `code`, errors of Tenon included; the libraries are named by environment variables."""
    code = "import tenon\nimport numpy as np\ntry:\n" + textwrap.indent(
        textwrap.dedent(code), "    "
    )
    code += (
        "\nexcept (RuntimeError, MemoryError) as error:\n    print(type(error).__name__, error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **{k: str(v) for k, v in (libraries | environment).items()}},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
