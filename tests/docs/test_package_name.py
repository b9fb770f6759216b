# SPDX-License-Identifier: Apache-2.0
"""The distribution is `tenon-dl`. On PyPI `tenon` is a package of other authors: nothing in the tree may make
pip install it."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
# History says what was. This file names what it looks for.
EXCEPTED = ("CHANGELOG.md", "docs/decisions/", "tests/docs/test_package_name.py")

# A name of a package that goes on is another package: tenon-dl, tenon-acme, tenon_acme, tenon/.
_NAME = r"[\"']?tenon(?![\w/.*-])"
_FORBIDDEN = (
    # pip install [options and other packages] tenon, also with an extra or a version
    re.compile(
        rf"\bpip3?\b[^\n`;|&#]*?\b(?:install|download|wheel|uninstall)\b[^\n`;|&#]*?[ \t]{_NAME}"
    ),
    # a requirement: requires = [..., "tenon"], dependencies = ["tenon>=1"], requirements=("tenon==$version")
    re.compile(
        rf"\b(?:requires|dependencies|requirements|install_requires)\b[^\n]*[\[(,]\s*{_NAME}"
    ),
)
# In a file of requirements, a line of its own.
_REQUIREMENT = re.compile(r"^\s*tenon\s*(?:$|[\[=<>~!;#@])", re.M)


def tracked():
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no checkout of git")
    return [name for name in listed.stdout.split("\0") if name and not name.startswith(EXCEPTED)]


def mistakes(name, text):
    found = [match for pattern in _FORBIDDEN for match in pattern.finditer(text)]
    if "requirements" in name:
        found += _REQUIREMENT.finditer(text)
    return [f"{name}:{text.count(chr(10), 0, m.start()) + 1}: {m.group().strip()}" for m in found]


def test_nothing_asks_pip_for_another_package():
    found = []
    for name in tracked():
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            found += mistakes(name, path.read_text(encoding="utf-8", errors="ignore"))
    assert found == [], "the distribution is tenon-dl; PyPI's tenon is another package"


@pytest.mark.parametrize(
    "text",
    [
        "pip install tenon",
        "python -m pip install -q tenon scikit-learn",
        "- run: pip install pytest tenon[linalg]",
        "pip install 'tenon>=0.2'",
        'requires = ["scikit-build-core>=0.11,<2", "tenon"]',
        'requirements=("tenon==$version")',
        "`pip install --upgrade tenon`",
    ],
)
def test_the_search_finds_mistakes(text):
    assert len(mistakes("page.md", f"some\n{text}\n")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "pip install tenon-dl",
        "pip install dist/tenon_dl-*.whl",
        "pip install tenon-acme, then `tenon.ones`",
        "pip install . and then tenon.ones((2, 2))",
        'requires = ["scikit-build-core>=0.11,<2", "tenon-dl"]',
        'pip install "$TENON_WHEEL" pytest',
        "`pip install .` builds the command `tenon`",
    ],
)
def test_the_search_leaves_other_names_alone(text):
    assert mistakes("page.md", text) == []


def test_requirements_are_read_line_by_line():
    assert len(mistakes("requirements/dev.txt", "numpy\ntenon==0.1\ntenon-dl\n")) == 1


def test_the_distribution_has_the_name():
    with open(ROOT / "pyproject.toml", encoding="utf-8") as file:
        assert re.search(r'^name = "tenon-dl"$', file.read(), re.M)
