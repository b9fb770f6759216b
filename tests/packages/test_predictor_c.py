# SPDX-License-Identifier: Apache-2.0
"""examples/predictor_c: a C program on the predictor, built out of tree as its author would."""

import os
import subprocess
import sys

import building
import pytest
import tenon

pytestmark = pytest.mark.skipif(not building.BUILD, reason="needs TENON_BUILD_DIR")
EXAMPLES = os.path.join(building.HERE, "../../examples")


@pytest.fixture(scope="module")
def program():
    source = os.path.join(EXAMPLES, "predictor_c")
    return os.path.join(building.build("predictor_c", source=source), "predictor_c")


def test_it_gives_what_python_gives(program, tmp_path):
    path = str(tmp_path / "model.tenon")
    export = os.path.join(EXAMPLES, "run_program", "export.py")
    subprocess.run([sys.executable, export, path], check=True)
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pixels = (tenon.arange(784) % 17).to(tenon.float32) / 16
    best = tenon.jit.load(path)(pixels.reshape(1, 784)).argmax(1).item()
    assert done.stdout == f"class {best} of 10\n"


def test_errors_are_texts(program, tmp_path):
    missing = str(tmp_path / "missing.tenon")
    done = subprocess.run([program, missing], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "load: load: " in done.stderr and missing in done.stderr


@pytest.fixture(scope="module")
def resnet(program, tmp_path_factory):
    """(the C program, a folder with resnet.tenon and resnet.onnx)."""
    folder = tmp_path_factory.mktemp("resnet")
    writer = os.path.join(EXAMPLES, "predictor_c", "resnet.py")
    subprocess.run([sys.executable, writer, str(folder)], check=True)
    return os.path.join(os.path.dirname(program), "resnet"), folder


@pytest.mark.parametrize(
    "words",
    [
        ["resnet.tenon"],
        ["resnet.onnx", "sizes", "batch=2"],
        ["resnet.onnx", "sizes", "batch=1:8", "numerics", "fast"],
        ["resnet.onnx", "shapes", "image=2x3x16x16"],
    ],
)
def test_a_network_from_either_kind_of_file(resnet, words):
    command, folder = resnet
    done = subprocess.run(
        [command, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    images = (tenon.arange(2 * 3 * 16 * 16) % 23).to(tenon.float32) / 22
    wanted = tenon.jit.load(folder / "resnet.tenon")(images.reshape(2, 3, 16, 16))["scores"]
    got = [float(line) for line in done.stdout.split()]
    assert got == pytest.approx(wanted.reshape(-1).tolist(), abs=2e-5) and len(got) == 8


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["resnet.onnx"],
            "input 'image': the size of axis 0, 'batch', is open; set the key `sizes`, to 'batch=8', or to "
            "'batch=1:64' for a size that each run chooses",
        ),
        (["resnet.onnx", "sizes", "bach=2"], "no open size 'bach'; did you mean `batch`?"),
        (["resnet.onnx", "sizes", "batch=1"], "expected float32[1, 3, 16, 16], got float32[2,"),
        (["resnet.onnx", "sizes", "batch=4:2"], "`sizes`: expected sizes such as 'batch=8'"),
        (["resnet.tenon", "sizes", "batch=2"], "`sizes`: expected with a file whose name ends in"),
        (["none.onnx"], "[onnx] none.onnx: none.onnx: No such file"),
    ],
)
def test_what_is_wrong_with_sizes(resnet, words, text):
    command, folder = resnet
    done = subprocess.run(
        [command, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and text in done.stderr, done.stderr
