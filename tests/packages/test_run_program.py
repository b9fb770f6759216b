# SPDX-License-Identifier: Apache-2.0
"""examples/run_program: a C++ program that runs an exported model, built out of tree as its author would."""

import os
import subprocess
import sys

import building
import pytest
import tenon

pytestmark = pytest.mark.skipif(not building.BUILD, reason="needs TENON_BUILD_DIR")
SOURCE = os.path.join(building.HERE, "../../examples/run_program")


@pytest.fixture(scope="module")
def program():
    return os.path.join(building.build("run_program", source=SOURCE), "run_program")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("model") / "model.tenon")
    subprocess.run([sys.executable, os.path.join(SOURCE, "export.py"), path], check=True)
    return path


class Sharpened(tenon.nn.Module):
    """Branches and loops over tensors, as written in Python."""

    def __init__(self):
        super().__init__()
        self.layer = tenon.nn.Linear(784, 10)

    def forward(self, x):
        scores = self.layer(x)
        turns = 0
        while scores.abs().max() < 50:
            if scores.sum() > 0:
                scores = scores * 2 - turns
            else:
                scores = scores * -3
            turns += 1
            if turns > 20:
                break
        return scores


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def test_it_gives_what_python_gives(program, model):
    loaded = tenon.jit.load(model)
    done = run(program, model)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for line, count in zip(lines, (1, 5), strict=False):
        pixels = (tenon.arange(count * 784) % 17).to(tenon.float32) / 16
        classes = loaded(pixels.reshape(count, 784)).argmax(1).tolist()
        assert line == f"{count} images: " + " ".join(str(c) for c in classes)
    assert "input 0: expected float32[3, 784] cpu:0, got float32[3, 100] cpu:0" in lines[2]


def test_branches_and_loops_run_without_python(program, tmp_path):
    tenon.manual_seed(0)
    model, path = Sharpened(), str(tmp_path / "sharpened.tenon")
    sizes = [{0: tenon.Dim("batch", max=8)}]
    exported = tenon.export(model, tenon.rand(4, 784), dynamic_shapes=sizes)
    assert " while(" in str(exported) and " cond(" in str(exported)
    exported.save(path)
    done = run(program, path)
    assert done.returncode == 0, done.stderr
    for line, count in zip(done.stdout.splitlines(), (1, 5), strict=False):
        pixels = (tenon.arange(count * 784) % 17).to(tenon.float32) / 16
        classes = model(pixels.reshape(count, 784)).argmax(1).tolist()
        assert line == f"{count} images: " + " ".join(str(c) for c in classes)


def test_errors_are_texts(program, tmp_path):
    done = run(program, str(tmp_path / "missing.tenon"))
    assert done.returncode == 1 and "missing.tenon: No such file" in done.stderr
    broken = tmp_path / "broken.tenon"
    broken.write_bytes(b"\0" * 100)
    done = run(program, str(broken))
    assert done.returncode == 1 and "broken.tenon" in done.stderr
    assert run(program).returncode == 2
