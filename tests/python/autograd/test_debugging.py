# SPDX-License-Identifier: Apache-2.0
"""Finding what is wrong: NaN with a name and a line, saved calls, reports."""

import re
import subprocess
import sys

import pytest
import tenon
from tenon import nn, utils


def line_of(mark):
    return next(i for i, text in enumerate(open(__file__), 1) if text.endswith(f"# {mark}\n"))


def test_the_first_nan_has_a_name_and_a_line():
    x = tenon.tensor([1.0, -1.0])
    with pytest.raises(FloatingPointError) as error, utils.check_numerics():
        y = tenon.log(x + 0.5)  # log of a negative number
        tenon.sum(y)
    text = str(error.value)
    assert text.startswith("[log] made nan at element 1 of float32 (2,) from finite arguments, at ")
    assert f"test_debugging.py:{line_of('log of a negative number')} in test_the_first" in text
    assert "keep its arguments within the function's domain" in text


def test_lines_within_tenon_are_not_the_users():
    class Layer(nn.Module):
        def forward(self, x):
            return x / tenon.sum(x)  # division by zero

    with pytest.raises(FloatingPointError) as error, utils.check_numerics():
        nn.Sequential(nn.ReLU(), Layer())(tenon.tensor([-1.0]))
    assert "[divide] made nan" in str(error.value)
    assert f"test_debugging.py:{line_of('division by zero')} in forward" in str(error.value)


@pytest.mark.parametrize("detect", [utils.check_numerics, tenon.autograd.detect_anomaly])
def test_a_backward_pass_names_the_forward_line(detect):
    w = tenon.tensor([0.0, 4.0], requires_grad=True)
    with pytest.raises(FloatingPointError) as error, detect():
        root = tenon.sqrt(w)  # the root of zero
        loss = tenon.sum(root)
        loss.backward()  # the backward pass
    text = str(error.value)
    assert f"test_debugging.py:{line_of('the backward pass')} in test_a_backward_pass" in text
    assert "in the gradient of [sqrt], which was called at" in text
    assert text.count(f"test_debugging.py:{line_of('the root of zero')} in") == 1


def test_what_arrives_bad_is_not_blamed():
    bad = tenon.tensor([float("nan"), 1.0])
    texts = []
    with utils.check_numerics(texts.append):
        tenon.exp(bad)
        tenon.full([2], float("inf"))
        bad * float("inf")
        tenon.sum(tenon.tensor([1, 2]))
        assert not texts
        tenon.reciprocal(tenon.zeros([1]))
        tenon.exp(tenon.full([1], 1e9))
    assert [text.split()[0] for text in texts] == ["[reciprocal]", "[exp]"]


def test_a_call_is_saved_and_made_again(tmp_path):
    path = tmp_path / "call.safetensors"
    with pytest.raises(FloatingPointError, match=re.escape(f"tenon.utils.replay({str(path)!r})")):
        with utils.check_numerics(save=path):
            tenon.pow(tenon.tensor([10.0, 2.0]), 60.0)
    assert utils.replay(path).tolist() == [float("inf"), 2.0**60]
    program = f"import tenon\nprint(tenon.utils.replay({str(path)!r}, device='cpu').tolist())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"[inf, {2.0**60}]\n", done.stderr


def test_a_failing_call_is_saved(tmp_path):
    path = tmp_path / "call.safetensors"
    with pytest.raises(ValueError) as first, utils.save_failing(path) as saved:
        tenon.concat([tenon.ones([2, 3]), tenon.ones([3, 2], dtype="int64")], 1)
    assert saved.operator == "concat"
    with pytest.raises(ValueError) as second:
        utils.replay(path)
    assert str(first.value) == str(second.value)
    tenon.save({"a": tenon.ones([1])}, path)
    with pytest.raises(ValueError, match="expected a call saved by save_failing"):
        utils.replay(path)


def test_observers_see_calls_and_nest():
    outer, inner = [], []
    x = tenon.ones([2])

    def note(seen):
        def observe(name, args, results):
            seen.append(name)
            tenon.exp(args[0])  # not seen

        return observe

    with utils.Observer(note(outer)):
        tenon.relu(x)
        with utils.Observer(note(inner)):
            tenon.sin(x)
        tenon.cos(x)
    tenon.tan(x)
    assert (outer, inner) == (["relu", "cos"], ["sin"])


def test_what_an_observer_raises_the_call_raises():
    def refuse(name, args, results):
        raise KeyError(name)

    x = tenon.ones([2])
    with pytest.raises(KeyError, match="relu"), utils.Observer(refuse):
        tenon.relu(x)
    assert tenon.relu(x).tolist() == [1.0, 1.0]


def test_run_check_says_what_works(capsys):
    assert utils.run_check(["cpu"])
    printed = capsys.readouterr().out
    assert (
        re.search(r"^cpu:0 \(.*\): works$", printed, re.M) and "is installed and works" in printed
    )


def test_run_check_says_what_fails(capsys, monkeypatch):
    from tenon.utils import run_check as module

    losses = sys.modules[module.__module__]._losses
    calls = []

    def broken(device):
        calls.append(device)
        if len(calls) == 2:
            raise tenon.DeviceError("the driver is gone")
        return [loss * len(calls) for loss in losses(device)]

    monkeypatch.setattr(sys.modules[module.__module__], "_losses", broken)
    assert not utils.run_check(["cpu", "cpu"])
    printed = capsys.readouterr().out
    assert "DeviceError: the driver is gone" in printed
    assert "its losses differ from the CPU's by" in printed and "`tenon report`" in printed


def test_collect_env():
    text = utils.collect_env()
    for start in ("tenon ", "python ", "processor ", "device cpu:0: ", "plugin standard_ops "):
        assert any(line.startswith(start) for line in text.splitlines()), text
    done = subprocess.run(
        [sys.executable, "-m", "tenon", "report"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout.splitlines()[0] == text.splitlines()[0]
