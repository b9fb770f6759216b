# SPDX-License-Identifier: Apache-2.0
"""The folders in which plugins' build files look for the framework, as they stood over the years."""

import os
import pathlib
import shutil
import subprocess

import pytest
from paddle_support import run_python
from tenon.compat import paddle

ROOT = pathlib.Path(os.path.dirname(paddle.get_include()))
PLUGIN = pathlib.Path(__file__).parent / "plugin"
PROGRAM = """
import tenon
from tenon.compat import paddle
paddle.load_device_plugin({library!r})
x = tenon.tensor([1.0, -2.0], device="standin")
print((x + x).tolist(), {{r["op"]: r["native"] for r in tenon.fallback_report()}}["add"])
"""


@pytest.mark.parametrize("folder", ["base", "fluid"])
def test_a_plugin_linked_to_the_library_of_that_folder_loads(folder, tmp_path):
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("no C++ compiler")
    assert (ROOT / folder / "libpaddle.so").is_file()
    library = tmp_path / "libstandin_old.so"
    subprocess.run(
        [
            *(compiler, "-std=c++14", "-O0", "-fPIC", "-shared", "-DSTANDIN=standin"),
            *(f"-I{ROOT / 'include'}", PLUGIN / "runtime.cc", PLUGIN / "kernels/elementwise.cc"),
            *(ROOT / folder / "libpaddle.so", "-o", library),
        ],
        check=True,
    )
    code, out, err = run_python(PROGRAM.format(library=str(library)))
    assert (code, out.strip()) == (0, "[2.0, -4.0] 1"), err
