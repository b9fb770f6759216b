# SPDX-License-Identifier: Apache-2.0
"""Models that Paddle has saved, without Paddle. The files were written by tests/bridges/paddle_models.py, those of v2_ by Paddle
2.6.2, the others by Paddle 3.3.1, with Paddle's own results beside them."""

import json
import random
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

KEPT = Path(__file__).parent / "paddle_models"
MODELS = sorted([*KEPT.glob("*.json"), *KEPT.glob("*.pdmodel")])


def arrays(path, kind):
    with np.load(path.with_suffix(".npz")) as held:
        return [held[f"{kind}{i}"] for i in range(len(held.files)) if f"{kind}{i}" in held.files]


def loaded(path):
    """`writes` and `temporal` have code for the size of the batch that they were saved with."""
    shapes = None
    if path.stem in ("writes", "v2_temporal"):
        shapes = {f"x{i}": x.shape for i, x in enumerate(arrays(path, "in"))}
    return tenon.paddle.load(path, shapes=shapes)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_a_saved_model_gives_paddles_results(path):
    program = loaded(path)
    results = program(*map(tenon.tensor, arrays(path, "in")))
    results = results if isinstance(results, tuple) else (results,)
    wanted = arrays(path, "out")
    assert len(results) == len(wanted)
    for found, expected in zip(results, wanted, strict=True):
        assert found.numpy().dtype == expected.dtype
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_there_are_models_of_both_formats():
    assert len(MODELS) == 12
    assert {path.suffix for path in MODELS} == {".json", ".pdmodel"}


def test_a_batch_is_open_and_names_are_the_models():
    program = tenon.paddle.load(KEPT / "litenet.json")
    (batch,) = program.dimensions
    assert batch.name == "batch"
    assert program.input_names == ["x0"]
    assert program(tenon.zeros((5, 3, 24, 24))).shape == (5, 5)
    assert all("." in name or "_" in name for name in program.leaves)


def test_weights_can_be_elsewhere_and_are_looked_for_beside_the_model(tmp_path):
    shutil.copy(KEPT / "branch.json", tmp_path)
    with pytest.raises(
        ValueError, match=r"branch.pdiparams: expected the file of the model's 4 weights"
    ):
        tenon.paddle.load(tmp_path / "branch.json")
    program = tenon.paddle.load(tmp_path / "branch.json", params=KEPT / "branch.pdiparams")
    assert program(tenon.ones((3, 4))).shape == (3, 4)


def test_weights_of_another_model_are_refused():
    with pytest.raises(ValueError, match="is it of another model"):
        tenon.paddle.load(KEPT / "litenet.json", params=KEPT / "v2_classifier.pdiparams")
    with pytest.raises(ValueError, match="expected .* bytes, as the model's 2 weights have"):
        tenon.paddle.load(KEPT / "loop.json", params=KEPT / "branch.pdiparams")


def test_a_model_is_loaded_until_an_operator():
    whole = tenon.paddle.load(KEPT / "yolo.json")
    head = tenon.paddle.load(KEPT / "yolo.json", until="yolo_box")
    assert head.output_names == ["x", "img_size"]
    inputs = [*map(tenon.tensor, arrays(KEPT / "yolo.json", "in"))]
    settings = {"clip_bbox": True, "scale_x_y": 1.05}
    boxes, scores = tenon.vision.ops.yolo_box(
        *head(*inputs), [10, 13, 16, 30], 3, 0.01, 8, **settings
    )
    for found, expected in zip((boxes, scores), whole(*inputs), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    with pytest.raises(ValueError, match=r"as until=, .*conv2d.*; got 'multiclass_nms3'"):
        tenon.paddle.load(KEPT / "yolo.json", until="multiclass_nms3")


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"expected shapes of the inputs x0, got 'x'"):
        tenon.paddle.load(KEPT / "branch.json", shapes={"x": (3, 4)})
    with pytest.raises(ValueError, match=r"expected a shape that fits \[-1, 4\]"):
        tenon.paddle.load(KEPT / "branch.json", shapes={"x0": (3, 5)})


def test_sizes_inside_of_a_shape_have_to_be_given(tmp_path):
    content = json.loads((KEPT / "branch.json").read_text())
    text = json.dumps(content).replace("[-1, 4]", "[-1, -1]")
    (tmp_path / "open.json").write_text(text)
    with pytest.raises(ValueError, match=r"give its open sizes, shapes=\{'x0': \[1, 1\]\}"):
        tenon.paddle.load(tmp_path / "open.json", params=KEPT / "branch.pdiparams")
    program = tenon.paddle.load(
        tmp_path / "open.json", params=KEPT / "branch.pdiparams", shapes={"x0": (3, 4)}
    )
    assert program(tenon.ones((3, 4))).shape == (3, 4)


def test_all_unknown_operators_are_named_at_once(tmp_path):
    text = (KEPT / "litenet.json").read_text()
    text = text.replace('"1.relu"', '"1.acme_relu"').replace('"1.flatten"', '"1.acme_flatten"')
    (tmp_path / "unknown.json").write_text(text)
    with pytest.raises(NotImplementedError) as error:
        tenon.paddle.load(tmp_path / "unknown.json", params=KEPT / "litenet.pdiparams")
    assert "2 of " in str(error.value)
    assert "acme_relu: there is no line for it" in str(error.value)
    assert "acme_flatten: there is no line for it" in str(error.value)


def test_an_attribute_that_no_line_names_is_refused(tmp_path):
    text = (KEPT / "litenet.json").read_text()
    added = '"A":[{"AT":{"#":"0.a_i32","D":2},"N":"twice"},'
    at = text.index('"#":"1.conv2d"')
    text = text[:at] + text[at:].replace('"A":[', added, 1)
    (tmp_path / "more.json").write_text(text)
    with pytest.raises(NotImplementedError, match="it has no parameter `twice`"):
        tenon.paddle.load(tmp_path / "more.json", params=KEPT / "litenet.pdiparams")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "expected JSON"),
        ("{}", 'expected "base_code"'),
        (
            '{"base_code": {"magic": "pir", "version": 5}}',
            "expected version 4 of PIR's format, got 5",
        ),
        ('{"base_code": {"magic": "pir", "version": 4}}', "expected a program of PIR"),
        ('{"a": ' * 100_000, "paddle.load: bad.json: expected JSON"),
        ("", "expected a ProgramDesc with operators, found none"),
        ("\x0b\x0b\x0b", "paddle.load: bad.json: expected a protocol buffer"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path, content, text):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(ValueError, match=text):
        tenon.paddle.load(tmp_path / "bad.json")


def mutated(data, draw):
    """The file with some bytes changed, cut out, or repeated."""
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data))
        kind = draw.randrange(4)
        if kind == 0:
            data[at] = draw.randrange(256)
        elif kind == 1:
            del data[at : at + draw.randint(1, 20)]
        elif kind == 2:
            data[at:at] = data[at : at + draw.randint(1, 20)]
        else:
            data[at] ^= 1 << draw.randrange(8)
        if not data:
            return b"\0"
    return bytes(data)


@pytest.mark.parametrize("name", ["loop.json", "v2_loop.pdmodel", "branch.json", "v2_rnn.pdmodel"])
def test_damaged_models_are_refused_or_load(tmp_path, name):
    """Nothing but a refusal that says so, or a program."""
    draw = random.Random(name)
    source = KEPT / name
    data = source.read_bytes()
    path = tmp_path / name
    refused = 0
    for _ in range(60):
        path.write_bytes(mutated(data, draw))
        try:
            tenon.paddle.load(path, params=source.with_suffix(".pdiparams"))
        except (ValueError, NotImplementedError) as error:
            assert str(error)
            refused += 1
    assert refused > 5


def test_damaged_weights_are_refused_or_load(tmp_path):
    draw = random.Random(1)
    data = (KEPT / "branch.pdiparams").read_bytes()
    path = tmp_path / "weights.pdiparams"
    for _ in range(100):
        path.write_bytes(mutated(data, draw))
        try:
            tenon.paddle.load(KEPT / "branch.json", params=path)
        except ValueError as error:
            assert str(error)
    huge = data[:12] + struct.pack("<Ii", 0, 8) + b"\x08\x05" + b"\x10\xff\xff\xff\xff\x7f"
    path.write_bytes(huge)
    with pytest.raises(ValueError, match="is it of another model"):
        tenon.paddle.load(KEPT / "branch.json", params=path)


def test_convert_writes_a_program(tmp_path):
    target = tmp_path / "model.tenon"
    command = [sys.executable, "-m", "tenon", "convert", str(KEPT / "litenet.json"), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    (x,) = arrays(KEPT / "litenet.json", "in")
    (wanted,) = arrays(KEPT / "litenet.json", "out")
    program = tenon.jit.load(str(target))
    np.testing.assert_allclose(program(tenon.tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_sizes_that_no_tensor_has(tmp_path):
    text = (KEPT / "yolo.json").read_text()
    assert "[1,3,32,32]" in text
    (tmp_path / "yolo.json").write_text(text.replace("[1,3,32,32]", f"[1,3,{2**63},32]"))
    shutil.copy(KEPT / "yolo.pdiparams", tmp_path)
    with pytest.raises(
        ValueError, match=rf"yolo.json: expected a shape, got \(1, 3, {2**63}, 32\)"
    ):
        tenon.paddle.load(tmp_path / "yolo.json")
