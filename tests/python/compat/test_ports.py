# SPDX-License-Identifier: Apache-2.0
"""Calls that only PyTorch has are answered as there or refused with both spellings; what means something else is told."""

import collections
import copy
import json
import pickle
import warnings

import numpy as np
import pytest
import tenon
from tenon.compat import torch

X = [[1.0, 2.0, 4.0], [4.0, 5.0, 9.0]]
AS_IN_PYTORCH = """
x.add(x, alpha=2)
x.add(2, alpha=3)
x.clone().add_(x, alpha=-0.5)
x.sub(x, alpha=2)
x.clone().sub_(x, alpha=0.5)
x.div(3, rounding_mode="floor")
x.div(-3, rounding_mode="trunc")
x.clone().div_(-3, rounding_mode="floor")
x.clone().div_(-3, rounding_mode="trunc")
x.clone().div_(4, rounding_mode=None)
n.div(-2, rounding_mode="floor")
n.div(-2, rounding_mode="trunc")
n.clone().div_(-2, rounding_mode="trunc")
n.add(n, alpha=3)
x.std(unbiased=True)
x.std(unbiased=False)
x.std(dim=0, unbiased=True)
x.std(1, unbiased=False)
x.std(1, True)
x.std(True)
x.std(False)
x.var(True)
x.var(False)
x.std(0, False, True)
x.var((0, 1), False)
x.var(0, unbiased=True, keepdim=True)
x.std(dim=1, correction=2, keepdim=True)
x.var(unbiased=True)
x.var(dim=(0, 1), unbiased=False)
x.amax(dim=1)
x.chunk(2, dim=1)[0]
torch.chunk(x, 3, dim=1)[2]
x.topk(2, 1, True, True)[0]
x.topk(2, dim=1, largest=False, sorted=True)[1]
torch.full((2, 3), torch.tensor(2.5))
torch.full_like(x, torch.tensor(3))
torch.zeros(size=(2, 3))
torch.tensor(deque([1, 2]))
torch.tensor(deque([(1.0, 2.0), (3.0, 4.0)]))
torch.tensor([deque([1, 2]), [3, 4]])
torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=x[:, :2] > 1.5, dropout_p=0.0)
torch.nn.functional.scaled_dot_product_attention(x, x, x, None, 0.0, is_causal=True)
"""


def values_of(line, library):
    made = {
        "torch": library,
        "x": library.tensor(X),
        "n": library.tensor([7, -7, 3]),
        "deque": collections.deque,
    }
    return eval(line, made)


@pytest.mark.parametrize("line", AS_IN_PYTORCH.strip().splitlines())
def test_calls_that_only_pytorch_has(line):
    pytorch = pytest.importorskip("torch")
    want, got = values_of(line, pytorch), values_of(line, tenon)
    assert got.shape == tuple(want.shape) and got.dtype.name == str(want.dtype).split(".")[1]
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-6)


def test_gradients_of_calls_with_alpha():
    x = tenon.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x.add(x * x, alpha=2).sum().backward()
    assert x.grad.tolist() == [5.0, 9.0, 13.0]
    assert tenon.func.vmap(lambda row: row.add(row, alpha=2))(tenon.tensor(X)).tolist() == [
        [3.0, 6.0, 12.0],
        [12.0, 15.0, 27.0],
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    {
        "x.std(dim=0)": r"whose std\(\) divides by n - 1; write correction=1 as well .* axis= to divide by n",
        "x.var(dim=0, keepdim=True)": r"whose var\(\) divides by n - 1",
        "torch.std_mean(x, dim=0)": r"whose std_mean\(\) divides by n - 1",
        "torch.func.vmap(lambda row: row.var(dim=0))(x)": r"whose var\(\) divides by n - 1",
        "x.sort(dim=1)": r"whose sort\(\) gives \(values, indices\); write axis= for the values, and argsort",
        "x.median(dim=1)": r"write axis= for the mean of the middle two",
        "x.repeat(1, 2, 2)": r"PyTorch's x.repeat\(1, 2, 2\), which repeats the whole, is x.tile\(\[1, 2, 2\]\)",
        "x.repeat((2, 3))": r"is x.tile\(\[2, 3\]\)",
        "x.add(x, beta=2)": "unknown keyword 'beta'",
        "x.chunk(2, 1, dim=1)": "two values for argument 'axis'",
        "torch.tensor({1, 2})": "expected numbers, nested lists, an array or a Tensor, got set",
    }.items(),
)
def test_refused_with_both_spellings(line, message):
    with pytest.raises(TypeError, match=message):
        values_of(line, tenon)


def test_other_refusals():
    x = tenon.tensor(X)
    message = r"got 3; PyTorch's x.repeat\(2, 3\), which repeats the whole, is x.tile\(\[2, 3\]\)"
    with pytest.raises(IndexError, match=message):
        eval("x.repeat(2, 3)", {"x": x})
    with pytest.raises(IndexError, match=message):
        tenon.repeat(x, 2, 3)
    with pytest.raises(ValueError, match=r"without axes as fill_value, got one of shape \(2, 3\)"):
        tenon.full((2,), x)
    with pytest.raises(
        ValueError, match="expected rounding_mode None, 'trunc' or 'floor', got 'up'"
    ):
        x.div(x, rounding_mode="up")


# -- modules with tenon.compat.torch as `torch`, as this one -------------------------------------------


def test_size_can_be_called_in_a_port():
    x = tenon.tensor(X)
    assert x.size() == (2, 3) and x.size(0) == 2 and x.size(-1) == 3 and x.size(dim=1) == 3
    assert x.size == 6 and isinstance(x.size, int) and x.size + 1 == 7 and f"{x.size}" == "6"
    assert tenon.zeros(x.size).shape == (6,) and list(range(6))[: x.size] == list(range(6))
    assert json.dumps(x.size) == "6"
    assert type(pickle.loads(pickle.dumps(x.size))) is int and copy.deepcopy(x.size) == 6
    with pytest.raises(IndexError):
        x.size(2)


def test_size_is_an_int_elsewhere():
    assert eval("type(x.size)", {"x": tenon.tensor(X)}) is int
    assert eval("type(x.size)", {"x": tenon.tensor(X), "torch": np}) is int


def test_open_sizes_are_followed_through_size():
    x = tenon.tensor(X)
    program = tenon.export(
        lambda x: x.reshape(x.size(1), x.size(0)) * x.size,
        (x,),
        dynamic_shapes=[{0: tenon.Dim("rows", max=8)}],
    )
    y = tenon.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(program(y).numpy(), y.numpy().reshape(3, 4) * 12)


PORTS_MEANINGS = {
    "x.std()": "std divides by n, PyTorch's by n - 1; write correction=1 for PyTorch's",
    "x.var(0)": "var divides by n, PyTorch's by n - 1",
    "x.max(1)": r"values alone, PyTorch's \(values, indices\); write axis= .* or torch.max\(x, dim\)",
    "x.min(dim=1, keepdim=True)": r"or torch.min\(x, dim\)",
    "x.sort()": r"or torch.sort\(x, dim\)",
    "x.median()": "mean of the middle two, PyTorch's the lower one",
    "x.repeat(2, 1)": r"repeats each element, PyTorch's the whole; write x.tile\(\[...\]\)",
}


@pytest.mark.parametrize(("line", "message"), PORTS_MEANINGS.items())
def test_other_meanings_are_told_in_a_port(line, message):
    code = compile(line, f"<{line}>", "eval")
    port = {"torch": torch, "x": tenon.tensor(X)}
    with pytest.warns(UserWarning, match=message) as told:
        first = eval(code, port)
    assert told[0].filename == f"<{line}>" and len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert eval(code, port).tolist() == first.tolist()  # once for a place
        other = compile(line, f"<{line}, elsewhere>", "eval")
        if "dim=" not in line:  # which is told everywhere
            assert eval(other, {"x": port["x"]}).tolist() == first.tolist()  # in no port


@pytest.mark.parametrize("name", ["max", "min"])
def test_pytorchs_keyword_is_told_in_every_module(name):
    program = f"for _ in range(3): values = x.{name}(dim=1)\nother = tenon.{name}(x, dim=0)\n"
    names = {"x": tenon.tensor(X), "tenon": tenon}
    with pytest.warns(UserWarning, match=rf"{name}\(dim=\): .* write axis= or a{name}\(\)") as told:
        exec(compile(program, f"<{name} by dim>", "exec"), names)
    assert [(each.filename, each.lineno) for each in told] == [
        (f"<{name} by dim>", 1),
        (f"<{name} by dim>", 2),
    ]
    assert names["values"].tolist() == getattr(np, name)(X, axis=1).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = f"x.a{name}(dim=1), tenon.a{name}(x, dim=0, keepdim=True), x.{name}(axis=1), x.{name}(1)"
        exec(compile(plain, f"<a{name}>", "exec"), names)
        with pytest.raises(UserWarning):  # an error where warnings are
            exec(compile(program, f"<{name} by dim, again>", "exec"), names)


def test_what_is_meant_is_not_told():
    x = tenon.tensor(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.std(axis=0), x.std(correction=0), x.std(unbiased=True), x.var(0, 1), x.var(ddof=0)
        x.max(), x.min(), x.max(axis=1), x.sort(axis=1), x.median(axis=1), x.amax(1)
        x.repeat(2, axis=1), x.tile([2, 1])
        tenon.std(x), tenon.max(x, 1), tenon.repeat(x, 2, 1)
        values, indices = torch.max(x, 1)
    assert indices.tolist() == [2, 2]


@pytest.mark.parametrize("name", ["std", "var"])
def test_a_bool_for_the_axis_is_pytorchs_unbiased(name):
    x = tenon.tensor(X)
    for unbiased in (True, False):
        wanted = getattr(np, name)(x.numpy(), ddof=int(unbiased))
        np.testing.assert_allclose(getattr(x, name)(unbiased).numpy(), wanted, rtol=1e-6)
    with pytest.raises(
        TypeError,
        match="'axis': expected int or list of ints or None, got bool; `unbiased` of PyTorch is correction=1 or",
    ):
        getattr(x, name)(True, keepdim=True)


@pytest.mark.parametrize("name", ["sum", "argmax", "softmax"])
def test_a_bool_is_no_axis(name):
    with pytest.raises(TypeError, match="argument 'axis': expected int.*, got bool"):
        getattr(tenon.tensor(X), name)(True)


def test_taken_apart_in_a_port_is_told_once():
    x = tenon.tensor(X)
    with pytest.warns(UserWarning, match="Tenon's max gives the values alone") as told:
        values, indices = x.max(1)
    assert len(told) == 1
