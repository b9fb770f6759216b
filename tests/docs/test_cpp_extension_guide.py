# SPDX-License-Identifier: Apache-2.0
"""docs/cpp_extension.md: its programs, in order, in one folder."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from tenon.utils import cpp_extension

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "cpp_extension.md"
BUILD = os.environ.get("TENON_BUILD_DIR")


@pytest.mark.skipif(not BUILD, reason="plugins may not lie in /tmp; TENON_BUILD_DIR is missing")
@pytest.mark.skipif(not cpp_extension.is_build_available(), reason="no C++ compiler, or no ninja")
def test_the_guide_runs(monkeypatch):
    folder = pathlib.Path(BUILD, "cpp_extension_guide")
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TENON_EXTENSIONS_DIR", str(folder / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv(
        "PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    )
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 4
    names = {}
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(GUIDE), "exec"), names)
        else:
            done = subprocess.run(["bash", "-euc", block], capture_output=True, text=True)
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
