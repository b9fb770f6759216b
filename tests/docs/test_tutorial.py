# SPDX-License-Identifier: Apache-2.0
"""The tutorial and the guides for users of other libraries: their programs run, and their names exist."""

import os
import re
import subprocess
import sys

import pytest
import tenon
from guide import ROOT, Reader, needs_build, read

TUTORIAL = ("tensors", "gradients", "digits", "operator", "kernel", "device")


@pytest.fixture(scope="module")
def reader():
    return Reader("tutorial")


@needs_build
@pytest.mark.parametrize("page", TUTORIAL)
def test_the_tutorial_holds(reader, page):
    reader.follow(f"tutorial/{page}.md", one_program=True)


@pytest.mark.parametrize("page", ["index.md", "from_pytorch.md", "from_paddle.md"])
def test_a_page_of_programs(page, tmp_path):
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", read(page), re.M | re.S))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", ["from_pytorch.md", "from_paddle.md"])
def test_names_in_tables_exist(page):
    missing = []
    for name in re.findall(r"`(tenon(?:\.\w+)+)", read(page)):
        thing = tenon
        for part in name.split(".")[1:]:
            if part == "utils" or part == "compat":  # a package that is imported by its full name
                break
            thing = getattr(thing, part, None)
        if thing is None:
            missing.append(name)
    assert missing == []


def test_the_tutorial_links_its_pages():
    index = read("tutorial/index.md")
    assert [page for page in TUTORIAL if f"({page}.md)" not in index] == []
    folder = os.path.join(ROOT, "docs", "tutorial")
    assert sorted(os.listdir(folder)) == sorted([f"{page}.md" for page in (*TUTORIAL, "index")])
