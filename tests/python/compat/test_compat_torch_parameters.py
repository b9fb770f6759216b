# SPDX-License-Identifier: Apache-2.0
"""No keyword of another library overwrites a second one, and no parameter of tenon.compat.torch is accepted and ignored."""

import ast
import re
from pathlib import Path

import pytest
import tenon
from tenon.compat import paddle, torch


def test_two_keywords_of_an_operator_for_one_parameter():
    x = tenon.ones(2)
    with pytest.raises(
        TypeError, match=r"maximum\(\): expected one value for 'input', got two; 'x1' is another"
    ):
        torch.maximum(input=x, x1=x, other=x)
    with pytest.raises(
        TypeError, match=r"maximum\(\): expected one value for 'x', got two; 'input' is another"
    ):
        paddle.maximum(x=x, input=x, y=x)
    matrix = tenon.arange(6).reshape((2, 3))
    turned = torch.diagonal(matrix, 1, dim1=1, dim2=0)
    assert turned.tolist() == [3] and torch.diagonal(matrix, 1).tolist() == [1, 5]


# Parameters that no line reads, as every value of theirs is served by the same result.
WITHOUT_EFFECT = {
    "cls",  # of a property of a class
    "sorted",  # elements are in order, also where any order would do
    "stable",  # orders are stable, also where any would do
    "_stacklevel",  # of PyTorch's warnings
    "check_invariants",  # indices of sparse tensors are checked, whatever it says
    "cudnn_enable",  # which library computes, not what
    "cudnn_enabled",
}
# Under the alias, in _alias/, where functions also have the signatures that Python's protocols give them.
WITHOUT_EFFECT_UNDER_ALIAS = {
    "self",
    "name",  # of a function that is made for a module
    "path",  # of finders of modules
    "target",
    "obj",
    "the_type",  # of annotations
    "non_blocking",  # calls on the CPU end before they return
    "pin_memory",  # all memory is the host's
    "pin_memory_device",
    "device",  # there is one, which is always synchronised
    "device_ids",  # no GPUs
    "output_device",
    "dim",  # along which batches would be divided among GPUs
    "device_type",
    "mmap",  # how a file is read, not what
    "hooks",  # of pickled tensors, which PyTorch never fills
    "implicit",  # PyTorch's own mark
    "cache_enabled",  # of casts
    "warn_only",  # where an algorithm is missing: none is
    "number",  # of threads for operators beside each other
    "mode",  # of denormal numbers: the answer is that it cannot be set
}


def test_every_parameter_is_read():
    folder = Path(torch.__file__).parent
    for path in folder.rglob("*.py"):
        if path.name == "_options.py":  # functions of one interface
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            given = function.args
            names = {each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs]}
            read = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
            unread = {name for name in names - read if not re.fullmatch("_|order", name)}
            known = WITHOUT_EFFECT_UNDER_ALIAS if path.parent.name == "_alias" else set()
            assert unread <= WITHOUT_EFFECT | known, f"{path.name}: {function.name}"
