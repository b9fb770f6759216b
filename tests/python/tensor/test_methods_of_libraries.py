# SPDX-License-Identifier: Apache-2.0
"""Methods of Tensor that are functions of PyTorch or Paddle (`methods` of opdefs/names/names.yaml), and others by their
names, beside PyTorch and Paddle where these are installed."""

import importlib

import numpy as np
import pytest
import tenon
from tenon._spellings import METHODS

X = np.array([[0.5, -0.25, 0.125], [0.75, 0.0, -0.5]])
WHOLE = np.array([[3, 1, 2], [1, 0, 3]])
# What a method is called with, beside the tensor: of `X`, unless a line names another one.
CALLS = """
adjoint(); arccos(); arccosh() of X + 2; arcsin(); arcsinh(); arctan(); arctan2(X + 1); arctanh(); argwhere()
bincount() of WHOLE[0]; bitwise_not() of WHOLE; conj_physical(); dsplit(2) of np.ones((2, 2, 4)); fix() of X * 5
ger(X[1]) of X[0]; histc(4, -1, 1); histogram(3) of X[0]; hsplit(3); igamma(X + 2) of X + 1; igammac(X + 2) of X + 1
inverse() of X[:, :2]; mvlgamma(2) of X + 3; narrow_copy(1, 1, 2); nonzero_static(size=3); pinverse()
repeat_interleave(2, dim=1); resolve_conj(); resolve_neg(); stft(4, return_complex=True) of np.arange(9.0)
sum_to_size(1, 3); take_along_dim(WHOLE % 2, 0); tensor_split(2, dim=1); unique() of WHOLE
unique(return_inverse=True, return_counts=True) of WHOLE; unique_consecutive() of WHOLE[0]
unsafe_chunk(2, 1); unsafe_split(2, 1); vdot(X[1]) of X[0]; vsplit(2)
equal_all(X); floor_mod(WHOLE + 1) of WHOLE; gammaln() of X + 2; greater_than(X * 2); increment(2.0) of X[:1, :1]
index_sample(WHOLE % 2); is_empty(); less_than(X * 2); mod(WHOLE + 1) of WHOLE; rank(); reverse([1]); scale(2.0, 1.0)
strided_slice([1], [0], [3], [2]); unstack()
"""
SKIPPED = {
    "istft": "the inverse of stft, which its own test calls",
    "orgqr": "what geqrf gives, which its own test calls",
}


def calls():
    for each in CALLS.replace("\n", ";").split(";"):
        if each.strip():
            call, _, tensor = each.strip().partition(" of ")
            name, _, rest = call.partition("(")
            yield name, f"({rest}", tensor or "X"


def tensors(value, make):
    if isinstance(value, np.ndarray):
        return make(value)
    return [tensors(each, make) for each in value] if isinstance(value, list) else value


def ask(method, arguments, make):
    """The method of a tensor, of arguments that are tensors of the same library."""

    def call(*args, **kwargs):
        return method(*(tensors(each, make) for each in args), **kwargs)

    return eval(f"call{arguments}", {"call": call, "X": X, "WHOLE": WHOLE, "np": np})


def arrays(result):
    if isinstance(result, (tuple, list)):
        return [array for each in result for array in arrays(each)]
    if hasattr(result, "detach"):
        result = result.detach()
    return [np.asarray(result.numpy() if hasattr(result, "numpy") else result)]


def same(ours, theirs):
    ours, theirs = arrays(ours), arrays(theirs)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)


def value(text):
    return eval(text, {"X": X, "WHOLE": WHOLE, "np": np})


def test_every_method_is_tried():
    tried = {name for name, _, _ in calls()}
    names = {name.removesuffix("_") for name in METHODS} - set(SKIPPED)
    assert names <= tried, names - tried
    public = {
        name
        for name in METHODS
        if (op := getattr(tenon, name, None)) is not None and op is getattr(tenon.ops, name, 0)
    }
    assert public == set()  # an operator has its method anyway


@pytest.mark.parametrize("name,arguments,tensor", list(calls()), ids=lambda each: str(each)[:30])
def test_a_method_is_the_function(name, arguments, tensor):
    library = METHODS.get(name, METHODS.get(f"{name}_"))
    function = getattr(importlib.import_module(f"tenon.compat.{library}"), name)
    x = value(tensor)
    expected = ask(lambda *a, **k: function(tenon.tensor(x), *a, **k), arguments, tenon.tensor)
    if name in METHODS:
        same(ask(getattr(tenon.tensor(x), name), arguments, tenon.tensor), expected)
    if f"{name}_" in METHODS:
        written = tenon.tensor(x)
        assert ask(getattr(written, f"{name}_"), arguments, tenon.tensor) is written
        np.testing.assert_allclose(written.numpy(), np.asarray(expected.numpy(), x.dtype))


@pytest.mark.parametrize("name,arguments,tensor", list(calls()), ids=lambda each: str(each)[:30])
def test_as_the_library(name, arguments, tensor):
    library = METHODS.get(name, METHODS.get(f"{name}_"))
    # A stand-in for Paddle, for its custom operators, has no layers.
    pytest.importorskip(f"{library}.nn")
    theirs = importlib.import_module(library)
    make = theirs.tensor if library == "torch" else theirs.to_tensor
    x = value(tensor)
    for each in (name, f"{name}_"):
        if each in METHODS and hasattr(make(x), each):
            ours = ask(getattr(tenon.tensor(x), each), arguments, tenon.tensor)
            same(ours, ask(getattr(make(x), each), arguments, make))


def test_the_shape_of_the_tensor_itself():
    x = tenon.arange(6.0).reshape([1, 2, 3])
    assert x.squeeze_() is x and x.shape == (2, 3)
    assert x.unsqueeze_(-1).shape == (2, 3, 1) and x.transpose_(0, 1).shape == (3, 2, 1)
    assert x.swapaxes_(0, 2).shape == (1, 2, 3) and x.flatten_().shape == (6,)
    assert x.reshape_(2, 3).t_().tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert x.swapdims_(0, 1).shape == (2, 3)
    y = tenon.ones([1, 2], requires_grad=True)
    with pytest.raises(
        NotImplementedError, match="squeeze_\\(\\): expected a tensor that requires no"
    ):
        y.squeeze_()
    with pytest.raises(NotImplementedError, match="write x = x.detach\\(\\)"):
        (y * 2).detach_()
    assert y.detach_() is y and not y.requires_grad


def test_written_over_keeps_the_history():
    x = tenon.tensor([0.25, 0.5], requires_grad=True)
    y = x * 1.0
    y.arcsin_()
    y.sum().backward()
    np.testing.assert_allclose(
        x.grad.numpy(), 1 / np.sqrt(1 - np.array([0.25, 0.5]) ** 2), rtol=1e-6
    )
    with pytest.raises(ValueError, match="arccos_\\(\\): expected a result of shape"):
        tenon.tensor([1, 0]).arccos_()
    with pytest.raises(TypeError, match="expected no out, got one: the result is"):
        tenon.ones([1]).arccos_(out=tenon.ones([1]))


def test_what_a_tensor_is():
    x = tenon.ones([2, 2])
    assert x.is_cpu and not x.is_cuda and not x.is_meta and not x.is_sparse and x.is_signed()
    assert tenon.ones([1], device="meta").is_meta and not tenon.ones([1], dtype="uint8").is_signed()
    assert x.to_sparse().is_sparse and x.is_same_size(x.T) and not x.is_same_size(x[0])


def test_arguments_in_pytorchs_order():
    index, source = tenon.tensor([[0, 1, 1]]), tenon.tensor([[1.0, 2.0, 3.0]])
    ours = tenon.zeros([2, 3]).scatter_reduce_(index, source, 0, "sum")
    theirs = tenon.zeros([2, 3]).scatter_reduce_(0, index, source, "sum", include_self=False)
    assert ours.tolist() == theirs.tolist() == [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    with pytest.raises(TypeError, match="scatter_reduce_\\(\\): expected `reduce`, got none"):
        tenon.zeros([2, 3]).scatter_reduce_(0, index, source)
    x = tenon.tensor([1.5, 2.5])
    np.testing.assert_allclose(x.polygamma(1).numpy(), tenon.polygamma(1, x).numpy())
    expected = x.polygamma(2).tolist()
    assert x.polygamma_(2) is x and x.tolist() == expected
