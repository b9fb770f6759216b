# SPDX-License-Identifier: Apache-2.0
"""Functions that are written in Python refuse lists and numbers by the names of their arguments."""

import importlib
import inspect

import pytest
import tenon

MODULES = [
    "tenon.nn.functional",
    "tenon.nn.init",
    "tenon.vision.ops",
    "tenon.vision.transforms.functional",
    "tenon.audio.functional",
    "tenon.geometric",
    "tenon.signal",
    "tenon._tensor.everyday",
    "tenon._tensor.joining",
    "tenon._tensor.counting",
    "tenon._tensor.array_api",
]
FUNCTIONS = [
    (name, key)
    for name in MODULES
    for key, value in vars(importlib.import_module(name)).items()
    if inspect.isfunction(value)
    and not key.startswith("_")
    and value.__module__.startswith(name.removesuffix(".functional"))
]


@pytest.mark.parametrize("module, name", FUNCTIONS)
def test_lists_and_numbers_are_no_attribute_errors(module, name):
    function = getattr(importlib.import_module(module), name)
    needed = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (0, 1)
    ]
    for wrong in ([1.0, 2.0], 3, None):
        try:
            function(*[wrong] * max(len(needed), 1))
        except AttributeError as error:
            pytest.fail(f"{name}({wrong}): {error}")
        except Exception:  # a refusal; some functions take numbers
            pass


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tenon.unique([1, 2]), r"unique\(\): argument 'x': expected Tensor, got list"),
        (lambda: tenon.ravel(3), r"ravel\(\): argument 'x': expected Tensor, got int"),
        (lambda: tenon.flipud([1.0]), "argument '.*': expected Tensor, got list; convert it with"),
        (
            lambda: tenon.nn.functional.layer_norm([1.0, 2.0], [2]),
            r"layer_norm\(\): argument 'x': expected Tensor, got list",
        ),
        (
            lambda: tenon.nn.functional.pdist(3.0),
            r"pdist\(\): argument 'x': expected Tensor, got float",
        ),
        (lambda: tenon.dstack([[1.0], [2.0]]), r"dstack\(\): argument 'tensors': expected Tensors"),
        (lambda: tenon.nn.init.zeros_([0.0]), r"constant_\(\): argument 'tensor': expected Tensor"),
    ],
)
def test_the_argument_is_named(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_other_attribute_errors_are_what_they_are():
    class Indices(tenon.Tensor):
        @property
        def ndim(self):
            raise AttributeError("of its own")

    with pytest.raises(AttributeError, match="of its own"):
        tenon.nn.functional.embedding_bag(Indices(tenon.tensor([0])), tenon.ones(2, 2))
