# SPDX-License-Identifier: Apache-2.0
"""Names that modules had before they moved: imports of them, and pickles that hold them."""

import pickle
import subprocess
import sys

import pytest
import tenon

MODULES = {
    "tenon.graph": "tenon.jit.rewrites",
    "tenon.ipc": "tenon.runtime.ipc",
    "tenon.memory": "tenon.runtime.memory",
    "tenon.optim.clip": "tenon.nn.utils.clip_grad",
    "tenon.safetensors": "tenon.io.safetensors",
    "tenon.training.formulas": "tenon.ops._flop_formulas",
    "tenon.utils.foreign_weights": "tenon.nn.utils.foreign_weights",
}


@pytest.mark.parametrize(
    "program",
    [
        "import {old}; import {new}; found = {old}",
        "import {new}; import {old}; found = {old}",
        "import importlib; found = importlib.import_module('{old}')",
        "from {package} import {name} as found",
    ],
)
def test_modules_have_their_old_names(program):
    """The module itself, with its own name and specification."""
    lines = ["import sys"]
    for old, new in MODULES.items():
        package, _, name = old.rpartition(".")
        lines += [
            program.format(old=old, new=new, package=package, name=name),
            f"assert found is sys.modules[{new!r}], found",
            f"assert found.__name__ == found.__spec__.name == {new!r}, found.__spec__",
        ]
        if package == "tenon":
            lines.append(f"assert {name!r} in dir(sys.modules['tenon'])")
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_names_in_modules_of_old_names():
    from tenon.graph import rewrite
    from tenon.memory import stats
    from tenon.safetensors import FormatError

    assert rewrite is tenon.jit.rewrites.rewrite
    assert stats is tenon.runtime.memory.stats
    assert FormatError is tenon.io.safetensors.FormatError
    assert tenon.Graph is tenon.runtime.WorkGraph
    assert tenon.profile is tenon.profiler.device_profile


@pytest.mark.parametrize(
    ("thing", "new", "old"),
    [
        (tenon.tensor([1.0, 2.0]), "tenon._tensor.pickling", "tenon._pickling"),
        (tenon.add, "tenon._tensor.pickling", "tenon._pickling"),
        (tenon.vstack, "tenon._tensor.everyday", "tenon._everyday"),
        (tenon.unique, "tenon._tensor.counting", "tenon._counting"),
        (tenon.block_diag, "tenon._tensor.joining", "tenon._joining"),
        (tenon.moveaxis, "tenon._tensor.array_api", "tenon._array_api"),
        (tenon.TensorArray, "tenon._tensor.tensor_array", "tenon._tensor_array"),
        (tenon.Dim, "tenon.jit.dynamic_shapes", "tenon._sizes"),
        (tenon.jit.rewrites.Rewrite, "tenon.jit.rewrites", "tenon.graph"),
        (tenon.optim.ClipGradByValue, "tenon.optim", "tenon.optim.clip"),
    ],
)
def test_pickles_with_old_names_load(thing, new, old):
    text = pickle.dumps(thing, protocol=0)  # in which names are lines
    assert new.encode() in text
    found = pickle.loads(text.replace(b"c" + new.encode() + b"\n", b"c" + old.encode() + b"\n"))
    if isinstance(thing, tenon.Tensor):
        assert found.tolist() == thing.tolist()
    else:
        assert found is thing


def test_classes_have_the_module_under_which_they_are_known():
    for name, module in {
        "jit.Program": "tenon.jit",
        "autograd.Function": "tenon.autograd",
        "no_grad": "tenon.autograd",
        "safetensors.FormatError": "tenon.safetensors",
        "optim.ClipGradByNorm": "tenon.optim",
    }.items():
        found = tenon
        for part in name.split("."):
            found = getattr(found, part)
        assert found.__module__ == module
        assert pickle.loads(pickle.dumps(found)) is found


def test_an_unknown_module_is_unknown():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tenon\.no_such_module'"):
        __import__("tenon.no_such_module")
