# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/onnx.md, beside models that are what the page calls them, and its table."""

import pathlib
import re
import runpy
import subprocess
import sys

import numpy as np
import tenon

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "onnx.md"


def write_models(folder):
    messages = runpy.run_path(str(ROOT / "tests" / "onnx" / "messages.py"))
    model, node, value = messages["model"], messages["node"], messages["value"]
    weights = {"w": np.zeros((2, 3, 7, 7), np.float32)}
    nodes = [node("Conv", ["x", "w"], ["y"]), node("GlobalAveragePool", ["y"], ["scores"])]
    for name, batch in (("resnet50.onnx", 1), ("net.onnx", "batch")):
        inputs = [value("x", "float32", [batch, 3, 224, 224])]
        (folder / name).write_bytes(model(nodes, inputs, ["scores"], weights))
    inputs = [value("x", "float32", [6]), value("shape", "int64", [2])]
    data = model([node("Reshape", ["x", "shape"], ["y"])], inputs, ["y"])
    words = [node("StringNormalizer", ["words"], ["upper"], case_change_action="UPPER")]
    (folder / "words.onnx").write_bytes(model(words, [value("words", "text", ["n"])], ["upper"]))
    (folder / "resnet50_data").mkdir()
    saved = {"input_0.pb": (1, 3, 224, 224), "output_0.pb": (1, 2, 1, 1)}
    for name, shape in saved.items():
        tensor = messages["tensor"]("any", np.zeros(shape, np.float32))
        (folder / "resnet50_data" / name).write_bytes(tensor)
    (folder / "reshape.onnx").write_bytes(data)


def test_the_programs_run(tmp_path, monkeypatch):
    write_models(tmp_path)
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(programs) == 6
    scope = {"image": tenon.zeros([1, 3, 224, 224])}
    for program in programs:
        exec(program, scope)
    assert scope["scores"].shape == (1, 2, 1, 1)
    assert scope["upper"] == ["A", "LIST", "OF WORDS"]
    assert tenon.onnx.describe("resnet.onnx")["outputs"] == ["scores"]
    assert tenon.onnx.describe("linear.onnx")["inputs"][0]["shape"] == ["batch", 4]
    assert tenon.jit.load("resnet50.tenon")(scope["image"]).shape == (1, 2, 1, 1)


def test_the_table_is_what_is_imported():
    subprocess.run([sys.executable, ROOT / "scripts" / "onnx_page.py", "--check"], check=True)
