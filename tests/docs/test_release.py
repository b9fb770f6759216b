# SPDX-License-Identifier: Apache-2.0
"""The version stands in the file VERSION, and everything else reads it there."""

import importlib.util
import pathlib
import re

import pytest
import tenon

ROOT = pathlib.Path(__file__).parents[2]
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
# An example that vendors copy; it has a version of its own.
OWN_VERSION = {"null"}


def release_notes():
    path = ROOT / "scripts" / "release_notes.py"
    spec = importlib.util.spec_from_file_location("release_notes", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_package_has_the_version():
    assert tenon.__version__ == VERSION


def test_plugins_have_the_version():
    tenon.tensor([1.0])  # loads those that every program needs
    ours = [each for each in tenon.plugins.list() if each["name"] not in OWN_VERSION]
    ours = [each for each in ours if pathlib.Path(each["path"]).parent.name == "plugins"]
    assert {"cpu", "standard_ops", "autograd"} <= {each["name"] for each in ours}
    assert {each["name"]: each["version"] for each in ours if each["version"] != VERSION} == {}


def test_no_other_file_repeats_the_version():
    files = [ROOT / "CMakeLists.txt", ROOT / "pyproject.toml"]
    files += [
        path
        for pattern in ("*/CMakeLists.txt", "*/*.cpp", "*/src/*.cpp", "*/service/*.cpp")
        for path in (ROOT / "plugins").glob(pattern)
        if path.relative_to(ROOT / "plugins").parts[0] not in OWN_VERSION
    ]
    # A plugin that also builds alone names a project with a version for that case.
    quoted = re.compile(rf'^(?!.*project\().*(VERSION |version *= *"){re.escape(VERSION)}\b', re.M)
    assert [str(path) for path in files if quoted.search(path.read_text(encoding="utf-8"))] == []


def test_the_changelog_has_notes_for_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "### Added" in release_notes().notes(changelog, VERSION)
    assert re.search(r"^## \[Unreleased\]$", changelog, re.M)


def test_notes_of_an_unknown_version_say_what_is_missing():
    with pytest.raises(SystemExit, match=r"expected a heading '## \[9\.9\.9\] - DATE'"):
        release_notes().notes("## [1.0.0] - 2026-01-01\nwords\n", "9.9.9")
