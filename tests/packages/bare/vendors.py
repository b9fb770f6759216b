# SPDX-License-Identifier: Apache-2.0
"""Plugins of vendors as packages: each is found where it was installed, and says what is missing on a machine without its device.

python vendors.py FOLDER   installs the wheels tenon_dl_VENDOR-*.whl of the folder into this environment first
"""

import glob
import os
import subprocess
import sys

# Package, device, and a part of what its plugin says where no driver is.
VENDORS = [
    ("cuda", "cuda", "libcuda.so.1"),
    ("rocm", "hip", "libamdhip64.so"),
    ("ascend", "ascend", "libascendcl.so"),
    ("kunlun", "kunlun", "libxpurt.so"),
]


def install(folder):
    for vendor, _, _ in VENDORS:
        (wheel,) = glob.glob(os.path.join(folder, f"tenon_dl_{vendor}-*-py3-none-*.whl"))
        # Without what it depends on: libraries of NVIDIA have gigabytes.
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel]
        subprocess.run([*command, "--disable-pip-version-check", "--force-reinstall"], check=True)


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True)


def check():
    for vendor, device, driver in VENDORS:
        program = f"import tenon; tenon.ones(2).to({device!r})"
        without = run(sys.executable, "-c", program)
        assert without.returncode == 1, without
        assert driver in without.stderr, (driver, without.stderr)
        print(f"{vendor}: {without.stderr.strip().splitlines()[-1]}")
    listed = run(sys.executable, "-m", "tenon", "plugins", "list").stdout
    for vendor, _, _ in VENDORS:
        assert f"tenon_{vendor}/plugins/libtenon_{vendor}.so" in listed, listed


# A device without its package: the error says where the packages are named.
for _, device, _ in VENDORS:
    missing = run(sys.executable, "-c", f"import tenon; tenon.ones(2).to({device!r})")
    assert "install a package with one: docs/support.md" in missing.stderr, missing.stderr
install(sys.argv[1])
check()
print("vendors' plugins: all right")
