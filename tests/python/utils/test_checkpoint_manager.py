# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and shards: whole files, in the right order, whatever happens."""

import json
import os
import threading

import kill_checkpoints
import numpy as np
import pytest
import tenon
from tenon import nn, optim
from tenon.io import safetensors
from tenon.utils import CheckpointManager


def state_of(value):
    return {"x": tenon.full((3,), float(value)), "n": value}


def test_the_last_steps_are_kept(tmp_path):
    with CheckpointManager(tmp_path / "run", keep=2) as manager:
        assert manager.latest() is None
        with pytest.raises(FileNotFoundError, match="expected a checkpoint in"):
            manager.load()
        for step in (1, 5, 20, 300):
            manager.save(step, state_of(step), asynchronous=step % 2 == 1)
        assert manager.steps() == [20, 300] and manager.latest() == 300
        step, state = manager.load()
        assert step == 300 and state["n"] == 300 and state["x"].tolist() == [300.0] * 3
        assert manager.load(20)[1]["n"] == 20
        manager.save(300, state_of(301))  # the same step again
        assert manager.load()[1]["n"] == 301
        with pytest.raises(ValueError, match=r"at least 300, .* got 21; discard_after\(21\)"):
            manager.save(21, state_of(21))
        manager.discard_after(20)
        manager.save(21, state_of(21))
        assert manager.steps() == [20, 21]
    with pytest.raises(ValueError, match="keep of at least 1 or None, got 0"):
        CheckpointManager(tmp_path, keep=0)
    everything = CheckpointManager(tmp_path / "all", keep=None)
    for step in range(5):
        everything.save(step, state_of(step))
    assert len(everything.steps()) == 5


def test_a_training_goes_on_where_it_was(tmp_path):
    def parts():
        tenon.manual_seed(0)
        model = nn.Linear(3, 2)
        return model, optim.AdamW(model.parameters(), lr=0.1)

    def train(model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (model(tenon.normal([4, 3])) ** 2).sum().backward()
            optimizer.step()
        return model.weight.detach().numpy().copy()

    model, optimizer = parts()
    train(model, optimizer, 3)
    manager = CheckpointManager(tmp_path)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": tenon.random.get_state(),
    }
    manager.save(3, state, asynchronous=True)
    expected = train(model, optimizer, 4)  # while the file is written
    model, optimizer = parts()
    _, state = manager.load()
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    tenon.random.set_state(state["random"])
    np.testing.assert_array_equal(train(model, optimizer, 4), expected)


def test_an_asynchronous_save_holds_the_values_of_the_call(tmp_path, monkeypatch):
    may_write, write = threading.Event(), safetensors.write

    def late(*arguments):
        assert may_write.wait(10)
        write(*arguments)

    monkeypatch.setattr(safetensors, "write", late)
    manager, x = CheckpointManager(tmp_path), tenon.ones(2)
    manager.save(1, {"x": x, "same": x[0:1]}, asynchronous=True)
    x.fill_(5.0)
    assert manager.latest() is None
    may_write.set()
    _, state = manager.load()  # waits
    assert state["x"].tolist() == [1.0, 1.0] and state["same"].tolist() == [1.0]


def test_errors_of_an_asynchronous_save_are_raised_by_the_next_call(tmp_path):
    manager = CheckpointManager(tmp_path)
    complex_state = {"x": tenon.zeros(1, dtype=tenon.complex128)}
    manager.save(1, complex_state, asynchronous=True)
    with pytest.raises(ValueError, match="complex128"):
        manager.wait()
    manager.save(1, complex_state, asynchronous=True)
    with pytest.raises(ValueError, match="complex128"):
        manager.save(2, state_of(2))
    manager.save(2, state_of(2))
    assert manager.steps() == [2]
    with pytest.raises(TypeError, match="object at 'a'"):  # at once
        manager.save(3, {"a": object()}, asynchronous=True)


def test_damaged_files_are_left_out(tmp_path):
    manager = CheckpointManager(tmp_path)
    for step in (1, 2, 3):
        manager.save(step, state_of(step))
    with open(manager.path(3), "r+b") as file:
        file.truncate(50)
    with pytest.warns(RuntimeWarning, match="left out a checkpoint: .*step-00000003"):
        assert manager.load()[0] == 2
    with pytest.raises(safetensors.FormatError, match="cut short"):
        manager.load(3)
    leftover = tmp_path / "step-00000004.safetensors.77-88.tmp"
    leftover.write_bytes(b"half")
    (tmp_path / "notes.tmp").write_bytes(b"mine")
    CheckpointManager(tmp_path)
    assert not leftover.exists() and (tmp_path / "notes.tmp").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes to kill are forks of this one")
def test_killed_processes_leave_whole_checkpoints(tmp_path):
    # kill_checkpoints.py alone kills 200. How many are written until then depends on how busy the machine is.
    assert kill_checkpoints.run(str(tmp_path), 20) > 0


# -- shards ----------------------------------------------------------------------------------------


def test_shards_and_their_index(tmp_path):
    state = {f"layer{i}.weight": tenon.full((10,), float(i)) for i in range(5)}
    tenon.save(state, tmp_path / "m.safetensors", {"license": "x"}, max_shard_size=100)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [
        "m-00001-of-00003.safetensors",
        "m-00002-of-00003.safetensors",
        "m-00003-of-00003.safetensors",
        "m.safetensors.index.json",
    ]
    index = json.loads((tmp_path / files[-1]).read_text())
    assert index["metadata"] == {"license": "x", "total_size": 200}
    assert index["weight_map"]["layer2.weight"] == files[1]
    assert set(tenon.load(tmp_path / files[1])) == {"layer2.weight", "layer3.weight"}
    for memory_map in (False, True):
        back = tenon.load(tmp_path / files[-1], memory_map=memory_map)
        assert {name: tensor.tolist() for name, tensor in back.items()} == {
            name: tensor.tolist() for name, tensor in state.items()
        }
    lazy = tenon.load(tmp_path / files[-1], memory_map=True)
    (tmp_path / files[0]).unlink()
    assert lazy["layer4.weight"][0].item() == 4.0 and "layer0.weight" in lazy and len(lazy) == 5
    with pytest.raises(FileNotFoundError):
        lazy["layer0.weight"]
    with pytest.raises(KeyError):
        lazy["layer9.weight"]


def test_what_fits_is_one_file_and_structures_survive(tmp_path):
    model = nn.Linear(4, 4)
    tenon.save(model.state_dict(), tmp_path / "m.safetensors", max_shard_size="1KB")
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]
    nested = {"model": model.state_dict(), "epoch": 3, "list": [tenon.ones(40), None]}
    tenon.save(nested, tmp_path / "n.safetensors", max_shard_size="0.1 KB")
    back = tenon.load(tmp_path / "n.safetensors.index.json")
    assert back["epoch"] == 3 and back["list"][1] is None
    assert model.load_state_dict(back["model"]).loaded == ["weight", "bias"]
    for wrong in (0, -1, "5 XB", "GB", None.__class__):
        with pytest.raises(
            ValueError, match='max_shard_size: expected bytes, or text such as "500'
        ):
            tenon.save(nested, tmp_path / "o", max_shard_size=wrong)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", 'expected an index with "weight_map"'),
        ('{"weight_map": []}', 'expected an index with "weight_map"'),
        ('{"weight_map": {"a": "../m.safetensors"}}', "the name of a file beside it, got '../m"),
        ('{"weight_map": {"a": "/etc/passwd"}}', "the name of a file beside it"),
        ('{"weight_map": {"a": 1}}', "the name of a file beside it"),
        ('{"weight_map": {"a": "m.safetensors"}}', "expected 'a' in m.safetensors, which has no"),
    ],
)
def test_hostile_indices_are_refused(tmp_path, content, message):
    tenon.save({"x": tenon.ones(1)}, tmp_path / "m.safetensors")
    (tmp_path / "m.safetensors.index.json").write_text(content)
    with pytest.raises(safetensors.FormatError, match=message):
        tenon.load(tmp_path / "m.safetensors.index.json")


def test_a_report_of_what_was_loaded_is_readable():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    state = model.state_dict()
    state["1.weight"] = tenon.ones(1, 4)
    del state["0.bias"]
    state["0.bais"] = tenon.ones(3)
    report = model.load_state_dict(state, strict=False, mismatched="skip")
    assert report.loaded == ["0.weight", "1.bias"]
    assert str(report).splitlines() == [
        "2 tensors loaded",
        "  missing: 0.bias (3,)",
        "  unexpected: 0.bais (3,)",
        "  mismatched: 1.weight expected (1, 3), got (1, 4)",
        "  perhaps 0.bais is 0.bias",
    ]
