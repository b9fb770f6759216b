# SPDX-License-Identifier: Apache-2.0
"""What PyTorch loads with itself, where Tenon is installed beside it."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]


def autoload(folder, **variables):
    program = "import sys, tenon_torch_autoload as a; a.autoload(); print('tenon' in sys.modules)"
    environment = {k: v for k, v in os.environ.items() if k != "TENON_TORCH_DEVICE"}
    paths = [str(folder), str(ROOT / "python_bindings")]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "PYTHONPATH": os.pathsep.join(paths), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_process_that_names_no_device_does_not_load_tenon(tmp_path):
    assert autoload(tmp_path) == ["False"]
    assert autoload(tmp_path, TENON_TORCH_DEVICE="") == ["False"]


def test_the_variable_names_the_device(tmp_path):
    room = tmp_path / "tenon" / "torch"
    room.mkdir(parents=True)
    (tmp_path / "tenon" / "__init__.py").touch()
    (room / "__init__.py").touch()
    (room / "device.py").write_text("def register(kind):\n    print('registered', kind)\n")
    assert autoload(tmp_path, TENON_TORCH_DEVICE="toy") == ["registered", "toy", "True"]
