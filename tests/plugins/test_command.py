# SPDX-License-Identifier: Apache-2.0
"""The command `tenon`: what it prints, and its exit codes."""

import json
import os
import subprocess
import sys

import pytest
import tenon as package
from plugin_support import command as tenon
from tenon.cli import COMMANDS, main, output


def test_without_a_command_it_says_which_there_are():
    code, out, _ = tenon()
    assert code == 2
    assert all(name in out for name in COMMANDS)
    code, out, _ = tenon("plugins")
    assert code == 2 and "coverage" in out
    code, _, err = tenon("plugins", "nonsense")
    assert code == 2 and "nonsense" in err


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tenon {package.__version__}\n"


def test_list_is_a_table_and_json():
    code, out, _ = tenon("plugins", "list")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == "NAME VERSION EPOCH LEVEL PROVIDES STATE OVERRIDES LIBRARY".split()
    column = lines[0].index("STATE")
    cpu = next(line for line in lines if line.startswith("cpu "))
    assert cpu[column:].startswith("loaded ") and "device cpu" in cpu
    code, out, _ = tenon("plugins", "list", "--json")
    assert {"cpu", "standard_ops"} <= {entry["name"] for entry in json.loads(out)}


def test_explain():
    code, out, _ = tenon("plugins", "explain", "softmax", "--device", "cpu")
    assert code == 0 and "route        native: a kernel of the device runs it" in out
    code, out, _ = tenon("plugins", "explain", "softmax", "--json", "--dtype", "float64")
    assert json.loads(out)["dtype"] == "float64"
    code, out, err = tenon("plugins", "explain", "nonsense")
    assert (code, out) == (1, "")
    assert err == "tenon: there is no operator named 'nonsense'\n"


def test_coverage():
    code, out, _ = tenon("plugins", "coverage", "cpu", "--dtype", "float32,int64")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["OPERATOR"] == ["float32", "int64"]
    assert rows["tenon::flip"] == ["view", "view"]
    assert rows["tenon::add"] == ["native", "native"]
    code, out, _ = tenon("plugins", "coverage", "cpu", "--json")
    report = json.loads(out)
    assert report["totals"]["float32"]["native"] > 0
    assert sum(report["totals"]["float32"].values()) == len(report["operators"])
    code, _, err = tenon("plugins", "coverage", "cpu", "--dtype", "float31")
    assert code == 1 and "got 'float31'" in err
    code, _, err = tenon("plugins", "coverage", "acme")
    assert code == 1 and "no device kind 'acme'" in err


@pytest.mark.parametrize("command", ["list", "coverage cpu", "explain add --device cpu"])
def test_a_plugin_that_is_not_there_is_one_line(command):
    code, out, err = tenon("plugins", *command.split(), "--plugin", "/nowhere/missing.so")
    assert (code, out) == (1, "")
    assert err.startswith("tenon: no plugin can be read at /nowhere/missing.so")
    assert err.endswith("[NOT_FOUND]\n") and err.count("\n") == 1


def test_a_device_that_is_not_there_is_one_line():
    code, out, err = tenon("plugins", "coverage", "nonesuch")
    assert (code, out) == (1, "")
    assert err.startswith("tenon: no device kind 'nonesuch'") and err.count("\n") == 1


def test_a_file_of_the_current_folder_is_a_path_for_a_command(library, monkeypatch):
    """A shell's user types names of files; a program that says a bare name means no path."""
    monkeypatch.chdir(os.path.dirname(library))
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(package.sdk_path()))
    code, out, err = tenon("plugins", "coverage", "null", "--plugin", os.path.basename(library))
    assert code == 0 and "total host" in out, err


def test_colour_only_for_terminals(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    class Terminal:
        def isatty(self):
            return True

    assert output.colour("x", "red", Terminal()) == "\033[31mx\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.colour("x", "red", Terminal()) == "x"
    monkeypatch.delenv("NO_COLOR")
    output.print_table([("a", "bb"), ("ccc", "d")], {0: lambda _: "red"})
    assert capsys.readouterr().out == "a    bb\nccc  d\n"


def test_a_reader_that_leaves_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "tenon", "plugins", "coverage", "cpu", "--dtype", "all"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_check_is_the_conformance_kit():
    from tenon.cli import conformance

    if not conformance.program().exists():
        pytest.skip("needs tenon-conformance in the package")
    kit = subprocess.run([conformance.program(), "/nowhere.so"], capture_output=True, text=True)
    assert kit.returncode != 0
    assert tenon("plugins", "check", "/nowhere.so") == (kit.returncode, kit.stdout, kit.stderr)
