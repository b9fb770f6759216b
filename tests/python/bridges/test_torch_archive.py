# SPDX-License-Identifier: Apache-2.0
"""`.pt2` files read without PyTorch, beside the same ones read with it. PyTorch writes them; the readers are asked in this process and
in one that cannot import it."""

import json
import random
import subprocess
import sys
import zipfile

import pytest
import tenon

torch = pytest.importorskip("torch", exc_type=ImportError)
from tenon.torch import _archive_walk  # noqa: E402


class Net(torch.nn.Module):  # type: ignore[name-defined]
    """In place, a buffer that is written, one that is not saved with the weights, a constant, tied weights, keywords."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(4, 8)
        self.second.weight = self.first.weight
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("gate", torch.ones(8) * 0.5, persistent=False)
        self.shift = torch.tensor([1.0, 2.0])
        self.norm = torch.nn.BatchNorm1d(8)

    def forward(self, x, *, z):
        self.count.add_(1)
        y = torch.relu_(self.norm(self.first(x) * self.gate))
        y += self.second(x)
        y.mul_(2)
        values, indices = x.reshape(x.shape[0] * 2, 2).max(1)
        return {
            "y": y,
            "rest": [(values, indices), None, 3, self.shift + z, x[:, 1:].chunk(3, 1)[2]],
        }


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("pt2") / "net.pt2")
    torch.manual_seed(0)
    batch = {0: torch.export.Dim("batch", max=64)}
    exported = torch.export.export(
        Net().eval(),
        (torch.randn(3, 4),),
        {"z": torch.randn(2)},
        dynamic_shapes={"x": batch, "z": None},
    )
    torch.export.save(exported, path)
    return path


def flat(tree):
    found = []
    tenon.jit.structures.flatten(tree, found)
    return [each.numpy() for each in found]


def same(one, other):
    return all((a == b).all() and a.dtype == b.dtype for a, b in zip(one, other, strict=True))


def test_results_are_those_of_the_program_through_pytorch(saved):
    own = _archive_walk.load(saved, name=None, gradients=False)
    through = tenon.torch.load(saved)
    (batch,) = own.dimensions
    assert (batch.min, batch.max) == (1, 64)
    assert own._outputs == through._outputs
    for size in (1, 5):
        x, z = tenon.normal([size, 4]), tenon.normal([2])
        assert same(flat(own(x, z)), flat(through(x, z)))
    assert own.leaves["count"].tolist() == [2.0] * 3  # a run writes its buffer
    assert own(x, z)["rest"][1:3] == [None, 3]


def test_a_process_that_has_no_pytorch(saved, tmp_path):
    program = f"""
import sys
sys.modules["torch"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else real(name, *rest)
import tenon
program = tenon.torch.load({saved!r})
result = program(tenon.ones((2, 4)), tenon.zeros((2,)))
assert result["y"].shape == (2, 8)
program.save({str(tmp_path / "net.tenon")!r})
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (tmp_path / "net.tenon").exists()


class Views(torch.nn.Module):  # type: ignore[name-defined]
    def forward(self, x):
        y = x * 2
        y[0].add_(1)
        return y


class Unknown(torch.nn.Module):  # type: ignore[name-defined]
    def forward(self, x):
        return torch.linalg.matrix_exp(x), torch.nonzero(x)


@pytest.mark.parametrize(
    ("net", "text"),
    [
        (Views, "add_.Tensor: it writes into memory that another value shows"),
        (Unknown, "nonzero: the shape of its result depends on data"),
        (Unknown, "matrix_exp: there is no line for it"),
    ],
)
def test_what_is_refused_says_why(net, text, tmp_path):
    path = str(tmp_path / "net.pt2")
    torch.export.save(torch.export.export(net(), (torch.randn(3, 3),)), path)
    with pytest.raises(NotImplementedError) as error:
        _archive_walk.load(path, name=None, gradients=False)
    assert text in str(error.value)
    assert "run_decompositions()" in str(error.value)


def rewritten(source, target, change):
    """The archive with another model.json."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("models/model.json"):
                data = change(data)
            new.writestr(name, data)


def test_other_schemas_and_files_are_refused(saved, tmp_path):
    path = str(tmp_path / "other.pt2")

    def newer(data):
        content = json.loads(data)
        content["schema_version"] = {"major": 9, "minor": 1}
        return json.dumps(content).encode()

    rewritten(saved, path, newer)
    with pytest.raises(ValueError, match="expected schema version 8, got 9.1"):
        _archive_walk.load(path, name=None, gradients=False)
    (tmp_path / "text.pt2").write_text("no archive")
    with pytest.raises(ValueError, match="expected a ZIP archive"):
        _archive_walk.load(str(tmp_path / "text.pt2"), name=None, gradients=False)


def test_a_program_without_its_own_signature_is_refused(saved, tmp_path):
    path = str(tmp_path / "other.pt2")

    def renamed(data):
        content = json.loads(data)
        for call in content["graph_module"]["module_call_graph"]:
            call["fqn"] = call["fqn"] or "other"
        return json.dumps(content).encode()

    rewritten(saved, path, renamed)
    with pytest.raises(ValueError, match="expected the signature of the whole program"):
        _archive_walk.load(path, name=None, gradients=False)


def test_containers_have_a_place_for_each_value(saved, tmp_path):
    path = str(tmp_path / "other.pt2")

    def fewer(data):
        content = json.loads(data)
        (call,) = (
            each for each in content["graph_module"]["module_call_graph"] if each["fqn"] == ""
        )
        version, spec = json.loads(call["signature"]["out_spec"])
        spec["children_spec"].append({"type": None, "context": None, "children_spec": []})
        call["signature"]["out_spec"] = json.dumps([version, spec])
        return json.dumps(content).encode()

    rewritten(saved, path, fewer)
    with pytest.raises(ValueError, match="expected containers of [0-9]+ values, got slots for"):
        _archive_walk.load(path, name=None, gradients=False)


def test_damaged_files_are_refused_or_load(saved, tmp_path):
    draw = random.Random(0)
    path = str(tmp_path / "damaged.pt2")

    def damaged(data):
        data = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(data))
            if draw.random() < 0.5:
                data[at] = draw.randrange(32, 127)
            else:
                del data[at : at + draw.randint(1, 9)]
        return bytes(data)

    refused = 0
    for _ in range(40):
        rewritten(saved, path, damaged)
        try:
            _archive_walk.load(path, name=None, gradients=False)
        except (ValueError, NotImplementedError) as error:
            assert str(error)
            refused += 1
    assert refused > 5
    whole = open(saved, "rb").read()
    for _ in range(40):
        with open(path, "wb") as file:
            file.write(damaged(whole))
        try:
            _archive_walk.load(path, name=None, gradients=False)
        except (ValueError, NotImplementedError) as error:
            assert str(error)
