# SPDX-License-Identifier: Apache-2.0
"""The plugin's declarations of oneDNN agree with the headers of oneDNN that are installed."""

import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
# TENON_ONEDNN_INCLUDE names folders with headers of other versions, separated by colons.
FOLDERS = ["/usr/include", *filter(None, os.environ.get("TENON_ONEDNN_INCLUDE", "").split(":"))]


@pytest.mark.parametrize("folder", FOLDERS)
def test_declarations_agree_with_the_header(folder):
    compiler = shutil.which("g++")
    if not compiler or not os.path.exists(os.path.join(folder, "dnnl.h")):
        pytest.skip(f"needs g++ and {folder}/dnnl.h (Debian: libdnnl-dev)")
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{folder}", HERE / "header_check.cpp"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
