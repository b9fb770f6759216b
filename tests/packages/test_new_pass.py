# SPDX-License-Identifier: Apache-2.0
"""`tenon new-pass`: what it writes builds, and its tests pass; what it refuses."""

import os
import pathlib
import subprocess
import sys

import building
import pytest


def new_pass(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tenon", "new-pass", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments, text",
    [
        ("Bad", "expected a pass's name like [a-z][a-z0-9_]*, at most 32 characters, got 'Bad'"),
        ("f --package tenon", "'tenon' is taken; choose another name"),
        (
            "graph",
            "'graph' is taken by a plugin of Tenon's own; choose another name with --package",
        ),
        ("f --vendor <b>", "expected a vendor's name of at most 40 letters"),
    ],
)
def test_names_that_cannot_be(tmp_path, arguments, text):
    code, printed = new_pass(tmp_path, *arguments.split())
    assert code == 1 and text in printed
    assert not list(tmp_path.iterdir())


def test_a_package_beside_one_of_the_same_name(tmp_path):
    """Two plugins of one name do not load together, whatever folders they lie in."""
    device = [sys.executable, "-m", "tenon", "new-device", "bolt"]
    subprocess.run(device, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    code, printed = new_pass(tmp_path, "fold", "--package", "bolt")
    assert code == 1
    assert "tenon_bolt exists and is not empty; choose another name with --package" in printed
    code, printed = new_pass(tmp_path, "fold", "--package", "bolt", "--folder", "fold")
    assert code == 1 and "tenon_bolt holds a plugin 'bolt' already" in printed
    assert "choose another name with --package" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["tenon_bolt"]
    assert new_pass(tmp_path, "fold")[0] == 0


@pytest.mark.parametrize("name", ["cuda", "hip", "opencl", "null", "reference", "policy", "lapack"])
def test_devices_are_not_named_as_plugins_of_tenon(tmp_path, name):
    """Loaded or not: a program could not load both."""
    command = [sys.executable, "-m", "tenon", "new-device", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert f"'{name}' is taken by a plugin of Tenon's own; choose another name" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not building.BUILD, reason="needs TENON_BUILD_DIR")
def test_what_is_written_builds_and_its_tests_pass():
    around = pathlib.Path(building.folder("new_pass"))
    code, printed = new_pass(around, "merge_factors", "--package", "bolt", "--vendor", "Bolt")
    assert code == 0 and "tenon_bolt: the pass merge_factors" in printed
    folder = around / "tenon_bolt"
    texts = [path.read_text() for path in folder.rglob("*") if path.is_file()]
    assert not any(word in text for text in texts for word in ("acme", "Acme", "fold_scales"))
    for code, text in (
        building.configure(str(folder), str(folder / "build")),
        building.make(str(folder / "build")),
    ):
        assert code == 0, text
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env={k: v for k, v in os.environ.items() if not k.startswith(("TENON_TEST", "PYTEST"))},
    )
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr
