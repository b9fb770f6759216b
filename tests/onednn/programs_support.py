# SPDX-License-Identifier: Apache-2.0
"""Programs that run in a process of their own, with or without oneDNN. Not in conftest.py: other folders
have modules of that name."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
VERBOSE = {"DNNL_VERBOSE": "1", "ONEDNN_VERBOSE": "1"}  # the names in 2.x and 3.x


def run_python(*arguments, **environment):
    """(standard output, standard error) of a Python that must end well."""
    result = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TENON_AUTOTUNE_CACHE": "off", **environment},
        timeout=580,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout, result.stderr


def executed(output):
    """Names of the primitives that oneDNN reports as executed; pooling_v2 of 2.x is pooling."""
    names = re.findall(r"^\.*onednn_verbose,(?:v1,primitive,)?exec,cpu,(\w+),", output, re.M)
    return {name.removesuffix("_v2") for name in names}
