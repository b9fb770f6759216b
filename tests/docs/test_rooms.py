# SPDX-License-Identifier: Apache-2.0
"""scripts/rooms.py: the Python package keeps its rooms, and the check notices what leaves them."""

import pathlib
import runpy
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
faults_of = runpy.run_path(str(ROOT / "scripts" / "rooms.py"))["faults_of"]
FACE = '"""A room."""\n'


@pytest.fixture
def package(tmp_path):
    """A package of two rooms that is in order, and a function that adds modules to it."""
    for room in ("ops", "jit"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text(FACE)
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "ops" / "schema.py").write_text("import json\n")
    (tmp_path / "jit" / "program.py").write_text("from tenon.ops import schema\n")

    def add(name, text):
        (tmp_path / name).write_text(text)
        return faults_of(tmp_path)

    assert faults_of(tmp_path) == []
    return add


def test_the_package_is_in_order():
    assert faults_of(ROOT / "python_bindings" / "tenon") == []


def test_private_modules_and_unknown_rooms(package):
    (fault,) = package("_helpers.py", "")
    assert fault.startswith("_helpers: a private module outside of the rooms")
    (_, fault) = package("helpers.py", "")
    assert fault == "helpers: a room without a floor; add it to FLOORS in scripts/rooms.py"


@pytest.mark.parametrize(
    "back",
    [
        "from tenon.jit.program import Program\n",
        "from tenon.jit import program\n",
        "from .program import Program\n",
        "def f():\n    from tenon.jit import program  # for a reason\n",
        "class A:\n    def f(self):\n        import tenon.jit.program  # for a reason\n",
    ],
)
def test_circles_are_noticed_wherever_the_import_stands(package, back):
    package("jit/program.py", "from tenon.jit import compiled\n")
    (fault,) = package("jit/compiled.py", back)
    assert fault.startswith("a circle of imports")
    assert "jit.compiled -> jit.program (line" in fault
    assert "jit.program -> jit.compiled (line 1)" in fault


def test_circles_through_the_face_of_another_room(package):
    """Importing a module of another room runs that room's own module first."""
    package("jit/__init__.py", "from tenon.jit import program\n")
    package("jit/structures.py", "")
    faults = package("ops/schema.py", "from tenon.jit import structures\n")
    assert any("circle" in fault and "ops.schema -> jit (line 1)" in fault for fault in faults)


def test_what_is_for_type_checkers_counts_for_nothing(package):
    text = (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from tenon.jit import program\n"
    )
    assert package("ops/schema.py", text) == []


def test_arrows_upward(package):
    package("jit/program.py", "")
    faults = package("ops/schema.py", "\nfrom tenon.jit import program\n")
    assert "ops.schema:2: imports jit.program, which is no floor below" in faults[-1]


def test_imports_inside_functions_say_why(package):
    text = "def f():\n    from tenon.ops import schema{}\n"
    (fault,) = package("jit/program.py", text.format(""))
    assert fault.startswith("jit.program:2: an import inside a function; expected it at the top")
    assert package("jit/program.py", text.format("  # for errors only")) == []


@pytest.fixture
def package_of_names(package, tmp_path):
    """A package whose `tenon.grad` lies in a room above."""
    (tmp_path / "__init__.py").write_text("_ALIASES = {'graph': 'jit.program'}\n"
                                          "_PLACES = {'jit.program': 'export load'}\n")  # fmt: skip
    package("jit/program.py", "")
    return package


@pytest.mark.parametrize(
    "body",
    [
        "import tenon\n\ndef f(x):\n    return tenon.export(x)\n",
        "import tenon\n\ndef f(x):\n    return tenon.graph\n",
        "import tenon as t\n\ndef f(x):\n    return t.jit.program\n",
        "def f(x):\n    import tenon\n\n    return tenon.load(x)\n",
        "import importlib\n\ndef f():\n    importlib.import_module('tenon.jit.program')\n",
        "from importlib import import_module\nABOVE = {'a': 'tenon.jit.program'}\nimport_module(ABOVE['a'])\n",
    ],
)
def test_ways_upward_without_a_statement(package_of_names, body):
    (fault,) = package_of_names("ops/schema.py", body)
    assert fault.startswith("ops.schema:") and ", which is no floor below" in fault


def test_operators_and_types_lead_nowhere(package_of_names):
    text = (
        "from __future__ import annotations\nimport tenon\n\n"
        "def f(x: tenon.jit.Program) -> tenon.Tensor:\n    return tenon.exp(x)\n"
    )
    assert package_of_names("ops/schema.py", text) == []


def test_the_pictures_have_every_room_and_no_unexplained_arrow_upward(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts" / "room_pictures.py", tmp_path], check=True)
    python, graph = ((tmp_path / f"rooms_{each}.svg").read_text() for each in ("python", "graph"))
    for room in ("_tensor", "nn", "jit", "torch"):
        assert f">{room}</text>" in python
    for folder in (ROOT / "plugins" / "graph").iterdir():
        if folder.is_dir() and folder.name != "tests":
            assert f">{folder.name}</text>" in graph
    assert ", 0 upward" in graph
