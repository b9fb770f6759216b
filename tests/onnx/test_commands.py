# SPDX-License-Identifier: Apache-2.0
"""`tenon convert`, `tenon onnx`, and the commands that run models of ONNX."""

import json
import sys

import numpy as np
import pytest
import standin_runtime
import tenon
import tenon.onnx
from messages import model, node, tensor, value
from tenon.cli import main, plot

F32 = np.float32


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """net.onnx with an open batch, fixed.onnx, and x.npy."""
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["y"])]
    weights = {"w": np.arange(6, dtype=F32).reshape(3, 2) - 2}
    for name, batch in (("net.onnx", "batch"), ("fixed.onnx", 2)):
        inputs = [value("x", "float32", [batch, 3])]
        (tmp_path / name).write_bytes(model(nodes, inputs, ["y"], weights))
    np.save(tmp_path / "x.npy", np.ones((4, 3), F32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", standin_runtime.make())
    return tmp_path


@pytest.fixture
def run(capsys):
    """(exit code, output, errors) of a command."""

    def command(*words):
        try:
            code = main(list(words))
        except SystemExit as error:  # argparse's own
            code = error.code
        out, err = capsys.readouterr()
        return code, out, err

    return command


def test_convert_both_ways(folder, run):
    code, out, err = run("convert", "net.onnx", "net.tenon", "--size", "batch=1:8")
    assert (code, err) == (0, "") and "steps" in out
    program = tenon.jit.load("net.tenon")
    assert program.input_names == ["x"] and program.output_names == ["y"]
    want = tenon.onnx.load("net.onnx", sizes={"batch": 4})(tenon.ones(4, 3)).numpy()
    assert np.array_equal(program(tenon.ones(4, 3)).numpy(), want)
    code, out, _ = run("convert", "net.tenon", "back.onnx", "--opset", "21", "--json", "--verify")
    row = json.loads(out)
    assert code == 0 and row["equal"] and row["steps"] == 2 and row["weights_bytes"] == 24
    described = tenon.onnx.describe("back.onnx")
    assert described["opsets"] == {"": 21} and described["inputs"][0]["shape"] == ["batch", 3]
    assert np.array_equal(
        tenon.onnx.load("back.onnx", sizes={"batch": 4})(tenon.ones(4, 3)).numpy(), want
    )
    assert run("convert", "fixed.onnx", "apart.onnx", "--external-data", "--freeze")[0] == 0
    assert (folder / "apart.onnx.data").exists()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (
            ["net.onnx", "net.txt"],
            2,
            "target: expected a file whose name ends in .tenon, .onnx, .pt2, .json, .pdmodel, got 'net.txt'",
        ),
        (["net.onnx", "net.pt2"], 2, "only PyTorch writes .pt2 files"),
        (
            ["net.onnx", "net.tenon"],
            2,
            "the size of axis 0 of input 'x', `batch`, is open (here: --size batch=8",
        ),
        (
            ["net.onnx", "net.tenon", "--size", "rows=2"],
            2,
            "expected an open size of the model (batch), got 'rows'",
        ),
        (
            ["net.onnx", "net.tenon", "--size", "batch=many"],
            2,
            "--size: expected NAME=8 or NAME=1:64, got 'batch=many'",
        ),
        (["net.onnx", "net.tenon", "--shape", "z=1x3"], 2, "with one of the inputs x, got 'z=1x3'"),
        (
            ["fixed.onnx", "fixed.tenon", "--opset", "20"],
            2,
            "--opset and --external-data are for .onnx files",
        ),
        (["fixed.onnx", "fixed.onnx"], 2, "expected a target other than the source"),
        (["fixed.onnx", "none/fixed.tenon"], 1, "its folder is not there"),
        (["none.onnx", "net.tenon"], 1, "none.onnx: expected a file of a model, there is none"),
        (["fixed.onnx", "other.onnx", "--opset", "7"], 1, "expected an opset from 18 to 23, got 7"),
    ],
)
def test_convert_says_what_is_wrong(folder, run, words, code, text):
    got, _, err = run("convert", *words)
    assert got == code and err.startswith("tenon: ") and text in err


def test_a_file_of_another_kind(folder, run):
    (folder / "odd.onnx").write_bytes(b"nothing of the kind")
    (folder / "odd.tenon").write_bytes(b"nothing of the kind")
    for name in ("odd.onnx", "odd.tenon"):
        code, _, err = run("convert", name, "new.onnx")
        assert code == 1 and err.startswith("tenon: ") and "expected" in err
    assert not (folder / "new.onnx").exists()


def test_predict_takes_sizes_from_the_arrays(folder, run):
    code, out, _ = run("predict", "net.onnx", "--input", "x.npy")
    assert code == 0 and out.startswith("y: ")
    assert run("predict", "net.onnx", "--input", "x=x.npy", "--output", "y=y.npy")[0] == 0
    assert np.load(folder / "y.npy").shape == (4, 2)
    code, _, err = run("predict", "net.onnx", "--input", "z=x.npy")
    assert code == 2 and "the program has the inputs x" in err
    code, _, err = run("predict", "fixed.onnx", "--input", "x.npy")
    assert code == 1 and "expected size 2 of axis 0, got 4" in err


def test_explain(folder, run):
    code, out, _ = run("explain", "net.onnx", "--size", "batch=1:8")
    assert code == 0 and "input x: float32[batch, 3]" in out and "tenon::relu" in out
    assert run("explain", "net.onnx")[0] == 2
    run("convert", "fixed.onnx", "fixed.tenon")
    code, _, err = run("explain", "fixed.tenon", "--size", "batch=2")
    assert code == 2 and "expected with a .onnx model" in err


@pytest.mark.parametrize("name", ["fixed.onnx", "fixed.tenon"])
def test_benchmark_beside_a_runtime(folder, run, name):
    run("convert", "fixed.onnx", "fixed.tenon")
    words = ["benchmark", name, "--runs", "4", "--warmup", "1", "--beside", "onnxruntime"]
    code, out, err = run(*words, "--steps")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].split() == "first result ms median us fastest us 90 % us ratio".split()
    assert lines[2].startswith("tenon ") and lines[3].startswith("onnxruntime standin ")
    assert "times of runs, us" in out and "tenon::relu" in out
    row = json.loads(run(*words, "--json")[1])
    assert row["ratio"] == row["median_us"] / row["beside"]["onnxruntime"]["median_us"]


def test_benchmark_without_the_runtime(folder, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = run("benchmark", "fixed.onnx", "--beside", "onnxruntime")
    assert code == 1 and "expected the package onnxruntime, which is not there" in err
    assert run("benchmark", "fixed.onnx", "--beside", "nothing")[0] == 2


def test_histograms():
    drawn = plot.histograms({"a": [1.0, 1.0, 3.0], "longer": [2.0]}, width=4)
    assert drawn.splitlines() == ["a       |█  ▄|", "longer  |   █|", "         1.0 2.0"]
    assert "|" in plot.histograms({"same": [1.0, 1.0]})


def test_verify_command(folder, run, monkeypatch):
    code, out, _ = run("onnx", "verify", "net.onnx", "--size", "batch=2")
    assert code == 0 and "equal" in out and "beside onnxruntime, rtol 0.001, atol 1e-05" in out
    code, _, err = run("onnx", "verify", "net.onnx")
    assert code == 2 and "--size NAME=8" in err
    monkeypatch.setitem(sys.modules, "onnxruntime", standin_runtime.make("y"))
    code, out, _ = run("onnx", "verify", "net.onnx", "--input", "x.npy")
    assert code == 1 and "different" in out and "8 of 8 elements differ" in out
    code, out, _ = run("onnx", "verify", "net.onnx", "--input", "x.npy", "--json")
    assert code == 1 and json.loads(out)["results"][0]["differing"] == 8
    (folder / "saved").mkdir()
    (folder / "saved/input_0.pb").write_bytes(tensor("x", np.zeros((2, 3), F32)))
    (folder / "saved/output_0.pb").write_bytes(tensor("y", np.zeros((2, 2), F32)))
    assert run("onnx", "verify", "fixed.onnx", "--data", "saved")[0] == 0


def test_bisect_command(folder, run, monkeypatch):
    assert run("onnx", "bisect", "fixed.onnx")[:2] == (0, "no node differs from onnxruntime\n")
    monkeypatch.setitem(sys.modules, "onnxruntime", standin_runtime.make("a"))
    code, out, _ = run("onnx", "bisect", "fixed.onnx")
    assert code == 1 and out.startswith(
        "node 0 (MatMul) differs\n  a: float32[2, 2]: 4 of 4 elements differ"
    )
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = run("onnx", "bisect", "fixed.onnx")
    assert code == 1 and "install it" in err


def test_shapes_and_describe_commands(folder, run):
    code, out, _ = run("onnx", "shapes", "net.onnx", "--size", "batch=2")
    assert code == 1  # the model says that y is a number
    assert "node 1 (Relu), y: expected float32[], got float32[2, 2]" in out
    code, out, _ = run("onnx", "describe", "net.onnx")
    assert code == 0 and "input x: float32[batch, 3]" in out
    assert [line.split() for line in out.splitlines()[-2:]] == [
        ["MatMul", "1", "yes"],
        ["Relu", "1", "yes"],
    ]
    assert json.loads(run("onnx", "describe", "net.onnx", "--json")[1])["operators"] == {
        "MatMul": 1,
        "Relu": 1,
    }
    assert run("onnx", "describe", "x.npy")[0] == 2
    assert run("onnx")[0] == 2


def test_run_says_how_models_are_run(folder, run):
    code, _, err = run("run", "net.onnx")
    assert (
        code == 1
        and "is a model, and this command starts scripts; run it by: tenon predict net.onnx" in err
    )
