# SPDX-License-Identifier: Apache-2.0
"""Programs on disk: program.save and tenon.jit.load."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tenon
from test_programs import mlp, rand, same


def test_saved_programs_run_in_another_process(tmp_path):
    model, x = mlp(), rand(2, 4)
    program = tenon.export(model, x)
    path = tmp_path / "model.tenon"
    program.save(path)
    tenon.save({"x": x, "y": model(x).detach()}, tmp_path / "data.safetensors")
    code = (
        "import sys, tenon, numpy as np; program = tenon.jit.load(sys.argv[1]);"
        "data = tenon.load(sys.argv[2]); got = program(data['x']);"
        "assert np.array_equal(got.numpy(), data['y'].numpy()); print(repr(program))"
    )
    arguments = [sys.executable, "-c", code, str(path), str(tmp_path / "data.safetensors")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "4 leaves" in done.stdout or "4 leaves" in repr(program)
    tensors, _ = tenon.safetensors.read(path)  # as any reader of the format
    assert set(tensors) == {f"leaf.{i}" for i in range(4)}
    assert str(tenon.jit.load(path)) == str(program)


def test_a_saved_training_step_goes_on(tmp_path):
    weight = tenon.ones(2)

    def step(x):
        tenon.subtract(weight, x * 0.5, out=weight)
        return {"weight": weight * 1.0}

    x = tenon.ones(2)
    program = tenon.export(step, x)
    program.save(tmp_path / "step.tenon")
    loaded = tenon.jit.load(tmp_path / "step.tenon")
    first, second = loaded(x)["weight"], loaded(x)["weight"]
    assert same(first - second, tenon.full([2], 0.5))
    assert same(
        tenon.jit.load(tmp_path / "step.tenon")(x)["weight"], first
    )  # the file is as it was


def test_files_that_are_no_programs(tmp_path):
    path = tmp_path / "x.tenon"
    tenon.save({"a": rand(2)}, path)
    with pytest.raises(ValueError, match="holds tensors and no program"):
        tenon.jit.load(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="no file with a program"):
        tenon.jit.load(path)
    with pytest.raises(tenon.NotFoundError, match="No such file"):
        tenon.jit.load(tmp_path / "none")
    tenon.export(lambda x: x + 1, rand(2)).save(path)
    contents = path.read_bytes()
    length = int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8 : 8 + length])
    for broken in ('[["tuple", []], ["tensor"]]', '[["tuple", [["tensor"]]], ["what"]]', "[]", "7"):
        header["__metadata__"]["tenon.structure"] = broken
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + contents[8 + length :])
        with pytest.raises(ValueError, match="structure of arguments is not valid"):
            tenon.jit.load(path)


def test_files_with_a_damaged_byte(tmp_path):
    path, whole = tmp_path / "damaged.tenon", tmp_path / "whole.tenon"
    tenon.export(lambda x: x * 2 + 1, rand(2)).save(whole)
    contents = whole.read_bytes()
    refused = 0
    for index in range(8, 8 + int.from_bytes(contents[:8], "little"), 6):
        path.write_bytes(contents[:index] + b"\xff" + contents[index + 1 :])
        with pytest.raises(ValueError) as caught:
            tenon.jit.load(path)
        assert type(caught.value) is ValueError
        refused += "expected a header of JSON in UTF-8, got" in str(caught.value)
    assert refused > 5


def test_errors_quote_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "x.tenon"
    tenon.export(lambda x: x + 1, rand(2)).save(path)
    path.write_bytes(path.read_bytes().replace(b"float32[2]", b"float32[\xb1]", 1))
    with pytest.raises(ValueError, match=r"\\xb1"):
        tenon.jit.load(path)


KEPT_Y = [[0.54822654, 0.45177346], [0.5794228, 0.4205772]]
KEPT_ROW = [0.22115947, 0.02765176]


def test_kept_programs_run():
    """Files of every version, which tests/python/jit/kept/make_program.py wrote."""
    folder = pathlib.Path(__file__).parent / "kept"
    files = sorted(folder.glob("*.tenon"))
    assert files
    x, n = tenon.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]]), tenon.tensor(3)
    for file in files:
        got = tenon.jit.load(file)(x, n)
        np.testing.assert_allclose(got["y"].numpy(), KEPT_Y, 1e-5)
        np.testing.assert_allclose(got["row"].numpy(), KEPT_ROW, 1e-5)


def test_what_json_cannot_hold_is_not_saved(tmp_path):
    program = tenon.export(lambda x, c: x, (rand(1), 1 + 2j))
    with pytest.raises(TypeError, match="what JSON can hold"):
        program.save(tmp_path / "x.tenon")
