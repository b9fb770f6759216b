# SPDX-License-Identifier: Apache-2.0
"""Operators as Python functions and methods: arguments, results, documentation, errors."""

import copy
import inspect
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tenon


def test_one_object_is_function_and_method():
    assert tenon.add is tenon.Tensor.add is tenon.ops.add is tenon.ops.tenon.add
    x = tenon.tensor([1.0, 2.0])
    assert (
        x.add(1).tolist()
        == tenon.add(x, 1).tolist()
        == tenon.Tensor.add(x, 1).tolist()
        == [2.0, 3.0]
    )
    assert x.add.__self__ is x
    assert list(map(tenon.Tensor.item, [tenon.tensor(1)])) == [1]


def test_introspection():
    assert tenon.add.__name__ == "add" and tenon.add.__module__ == "tenon"
    assert tenon.add.full_name == "tenon::add" and "yaml" in tenon.add.origin
    assert repr(tenon.add) == "<operator tenon::add(Tensor x, Tensor y) -> Tensor>"
    assert tenon.sum.__doc__.startswith("sum(Tensor x")
    assert str(inspect.signature(tenon.sum)) == "(x, axis=None, keepdim=False, *, out=None)"
    assert str(inspect.signature(tenon.zeros)) == "(shape, *, dtype=None, device=None, out=None)"
    assert str(inspect.signature(tenon.zeros(1).sum)) == "(axis=None, keepdim=False, *, out=None)"
    assert "add" in dir(tenon) and "tenon::add" in tenon.ops.names()


def test_operators_pickle_by_name():
    assert pickle.loads(pickle.dumps(tenon.add)) is tenon.add
    assert copy.deepcopy(tenon.add) is tenon.add


def test_keywords_defaults_and_lists():
    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert tenon.sum(x=x).item() == 10.0
    assert (
        x.sum(1).tolist()
        == x.sum(axis=1).tolist()
        == x.sum([1]).tolist()
        == x.sum((-1,)).tolist()
        == [3.0, 7.0]
    )
    assert x.sum(keepdim=True, axis=(0,)).tolist() == [[4.0, 6.0]]
    assert x.sum(np.int64(0)).tolist() == [4.0, 6.0]
    assert x.reshape(4).shape == x.reshape((4,)).shape == x.reshape([-1]).shape == (4,)
    assert x.reshape(1, 2, 2).shape == (1, 2, 2)
    assert x.reshape(np.array([4, 1])).shape == (4, 1)
    assert (
        tenon.zeros(2, 3).shape
        == tenon.zeros((2, 3)).shape
        == tenon.zeros([2, 3], dtype="int8").shape
        == (2, 3)
    )
    assert tenon.zeros(()).shape == ()


def test_lists_of_tensors():
    x, y = tenon.tensor([1.0]), tenon.tensor([2.0])
    assert tenon.concat([x, y]).tolist() == tenon.concat((x, y)).tolist() == [1.0, 2.0]
    assert [part.tolist() for part in tenon.concat([x, y]).split([1, 1])] == [[1.0], [2.0]]
    with pytest.raises(
        TypeError, match=r"concat\(\): argument 'tensors': expected list of Tensors, got int"
    ):
        tenon.concat(3)
    with pytest.raises(TypeError, match="expected list of Tensors, got list"):
        tenon.concat([x, 1])


def test_several_results_have_names():
    result = tenon.topk(tenon.tensor([1.0, 3.0, 2.0]), 2)
    values, indices = result
    assert result.values is values and result.indices is indices
    assert values.tolist() == [3.0, 2.0] and indices.tolist() == [1, 2]


def test_out():
    x, out = tenon.tensor([1.0, 2.0]), tenon.empty(2)
    assert tenon.add(x, 1, out=out) is out and out.tolist() == [2.0, 3.0]
    assert tenon.add(x, 1, out=None) is not None
    assert x.add(x, out=x) is x and x.tolist() == [2.0, 4.0]
    strided = tenon.zeros((2, 2))
    tenon.multiply(x, 2, out=strided[:, 1])
    assert strided.tolist() == [[0.0, 4.0], [0.0, 8.0]]
    with pytest.raises(TypeError, match=r"add\(\): argument 'out': expected Tensor, got list"):
        tenon.add(x, 1, out=[1])
    with pytest.raises(TypeError, match="expected 1 tensors for 'out', got 2"):
        tenon.add(x, 1, out=(x, x))
    with pytest.raises((ValueError, TypeError)):
        tenon.add(x, 1, out=tenon.empty(3))


def test_in_place_forms():
    x = tenon.tensor([1.0, 4.0])
    assert x.add_(1) is x and x.sqrt_() is x and x.multiply_(tenon.tensor(2.0)) is x
    np.testing.assert_allclose(x.numpy(), 2 * np.sqrt([2.0, 5.0]), rtol=1e-6)
    assert tenon.add_(x, 1) is x
    assert (
        "in place" in repr(tenon.Tensor.add_)
        and "writes the result into `x`" in tenon.Tensor.add_.__doc__
    )
    assert not hasattr(x, "sum_")  # its result has another shape
    with pytest.raises(TypeError, match=r"add_\(\): expected a Tensor to write into, got int"):
        tenon.add_(1, x)
    with pytest.raises((ValueError, TypeError)):
        tenon.tensor([1.0]).add_(x)  # the result has another shape


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            "tenon.add(x)",
            r"add\(\): missing argument 'y'\n  signature: tenon::add\(Tensor x, Tensor y\) -> Tensor",
        ),
        ("tenon.add(x, x, x)", r"add\(\): expected at most 2 positional arguments, got 3"),
        (
            "tenon.add(x, [1.0])",
            r"argument 'y': expected Tensor or number, got list; convert it with tenon.tensor",
        ),
        ("tenon.add(x, np.ones(1))", r"got numpy.ndarray; convert it with tenon.tensor"),
        ("tenon.add(x, 'a')", r"expected Tensor or number, got str"),
        ("tenon.add(x, None)", r"expected Tensor or number, got NoneType"),
        ("tenon.add(x, y=x, x=x)", r"got two values for argument 'x'"),
        ("tenon.add(x, z=x)", r"unknown keyword 'z'"),
        ("tenon.sum(x, dims=0)", r"unknown keyword 'dims'; did you mean 'axis'\?"),
        ("tenon.sum(x, axis=0, dim=0)", r"got two values for argument 'dim'"),
        ("tenon.sum(x, keepdim=True, keepdims=True)", r"got two values for argument 'keepdims'"),
        ("tenon.exp(x, keepdims=True)", r"exp\(\): unknown keyword 'keepdims'"),
        ("tenon.sum(x, 'a')", r"argument 'axis': expected int or list of ints or None, got str"),
        ("tenon.sum(x, 1.0)", r"expected int or list of ints or None, got float"),
        ("tenon.sum(x, 0, 1)", r"argument 'keepdim': expected bool, got int"),
        (
            "tenon.argmax(x, x)",
            r"argument 'axis': expected int or None, got tenon.Tensor; read its value with .item",
        ),
        ("tenon.zeros((1,), dtype=7)", r"argument 'dtype': expected dtype or None, got int"),
        ("tenon.zeros((1,), device=7)", r"argument 'device': expected device or None, got int"),
        ("tenon.zeros((1,), tenon.int8)", r"positional|list of ints"),
        (
            "tenon.full((1,), x)",
            r"a number or a tensor without axes as fill_value, got one of shape",
        ),
    ],
)
def test_wrong_arguments_are_explained(call, text):
    x = tenon.tensor([1.0])
    with pytest.raises((TypeError, ValueError), match=text):
        eval(call, {"tenon": tenon, "np": np, "x": x})


def test_errors_of_the_core_become_exceptions():
    with pytest.raises(ValueError, match="add"):
        tenon.zeros(2) + tenon.zeros(3)
    with pytest.raises(IndexError):
        tenon.zeros(2).sum(3)
    with pytest.raises(TypeError):
        tenon.bitwise_and(tenon.zeros(2), tenon.zeros(2))
    with pytest.raises(MemoryError):
        tenon.empty(1 << 46, dtype=tenon.int8)
    with pytest.raises(AttributeError, match="module 'tenon' has no attribute 'no_such_thing'"):
        tenon.no_such_thing
    with pytest.raises(AttributeError, match="there is no operator tenon::no_such_thing"):
        tenon.ops.no_such_thing


def test_numbers_of_numpy_and_python_are_weak():
    half = tenon.tensor([1.0], dtype=tenon.float16)
    assert (half * 2).dtype == (half * 2.5).dtype == (half * np.float64(2)).dtype == tenon.float16
    assert (tenon.tensor([1]) * 2.5).dtype == tenon.float32
    assert (tenon.tensor([True]) + 1).dtype == tenon.int64
    assert (tenon.tensor([1.0]) * 2j).dtype == tenon.complex64


def test_many_arguments_live_on_the_heap():
    shape = [1] * 31 + [2]
    assert tenon.zeros(shape).shape == tuple(shape)
    tensors = [tenon.tensor([float(i)]) for i in range(200)]
    assert tenon.concat(tensors).sum().item() == sum(range(200))


@pytest.mark.parametrize(
    "shape", [(), (1,), (0,), (3, 0), (600, 0), (512,), (513,), (16, 32), (2, 2, 2, 3), (1,) * 5]
)
def test_small_tensors_that_are_only_made(shape):
    tenon.ones(shape), tenon.ones(shape)  # their memory comes back
    made = [tenon.zeros(shape), tenon.zeros(list(shape)), tenon.zeros(shape, device="cpu")]
    if shape:
        made.append(tenon.zeros(*shape))
    for x in made:
        assert (x.dtype, x.device, x.is_contiguous()) == (tenon.float32, tenon.device("cpu"), True)
        np.testing.assert_array_equal(x.numpy(), np.zeros(shape), strict=False)
        x += 1  # of its own
    for x in (tenon.empty(shape), tenon.empty(list(shape)), tenon.empty(*shape or ((),))):
        assert (x.shape, x.dtype) == (shape, tenon.float32)


@pytest.mark.parametrize("make", [tenon.zeros, tenon.empty])
def test_shapes_that_cannot_be(make):
    for shape in ((-1,), (2, -3), (1 << 62, 8)):
        with pytest.raises(
            ValueError, match="negative extents|sizes >= 0|too many elements|too large"
        ):
            make(*shape)
    with pytest.raises(TypeError, match="'shape'"):
        make()
    with pytest.raises(TypeError, match="'shape'"):
        make(1.5)


def test_who_watches_kernels_sees_zeros():
    code = """
import tenon
tenon.ones(1), tenon.fallback_report(reset=True)
tenon.zeros(2), tenon.zeros((2, 2)), tenon.empty(2)
print([row["native"] for row in tenon.fallback_report() if row["op"] == "full"])
"""
    for value, seen in (("", "[]"), ("1", "[2]")):
        environment = dict(os.environ, TENON_VALIDATE=value)
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
        assert run.stdout.decode().strip() == seen, run.stderr.decode()
