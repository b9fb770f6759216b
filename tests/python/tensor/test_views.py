# SPDX-License-Identifier: Apache-2.0
"""View operators give the same results by their shape rule alone and under a layer."""

import inspect

import pytest
import tenon

CALLS = [
    ("reshape", (3, 2)), ("reshape", (-1,)), ("reshape", ([2, 3],)), ("flatten", ()), ("flatten", (0, 1)),
    ("view", (6,)), ("squeeze", ()), ("unsqueeze", (0,)), ("unsqueeze", ([0, -1],)),
    ("transpose", ()), ("transpose", (0, 1)), ("permute", (1, 0)), ("permute", ()), ("movedim", (0, 1)),
    ("expand", (4, 2, 3)), ("narrow", (0, 0, 1)), ("select", (1, -1)), ("flip", (0,)), ("diagonal", ()),
    ("sliding_window", (0, 2)), ("slice", ([0], [0], [1])), ("slice", ((0, 1), (0, 1), (1, 3), (1, 1))),
    ("reshape", ((3, 2),)), ("reshape", (True, 6)), ("reshape", (*[1] * 30, 2, 3)), ("reshape", (6 * [1] + [6],)),
    ("unsqueeze", ((0, -1),)), ("permute", ((1, 0),)), ("permute", (None,)), ("squeeze", (None,)),
    ("flatten", (-2,)), ("expand", ((2, 2, -1),)),
]  # fmt: skip
WRONG_CALLS = [
    ("reshape", (4,)), ("reshape", (-1, -1)), ("reshape", ("a",)), ("reshape", (1.5,)), ("reshape", ()),
    ("reshape", (10**30,)), ("flatten", (1, 0)), ("flatten", (0, 5)), ("view", (7,)), ("squeeze", (1,)), ("squeeze", (0,)),
    ("squeeze", (9,)), ("unsqueeze", (7,)), ("unsqueeze", ()), ("transpose", (0, 2)), ("permute", (0,)),
    ("permute", (0, 0)), ("movedim", ([0, 1], 0)), ("expand", (3,)), ("select", (0, 5)), ("narrow", (0, 1, 9)),
    ("reshape", ((3, 2), 1)), ("reshape", ((2, "a"),)), ("reshape", 33 * (1,)), ("reshape", (33 * (1,),)),
    ("transpose", (0, 1, 2)), ("select", (0,)), ("slice", ((0,), (0,))), ("unsqueeze", (0, 1, 2, 9)),
]  # fmt: skip


def numbers(layout):
    if layout == "transposed":
        return tenon.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]).T
    x = tenon.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return x.flip(0) if layout == "reversed" else x


def call(x, name, arguments):
    try:
        return getattr(x, name)(*arguments)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "reversed"])
def test_calls_that_a_layer_watches_give_the_same(name, arguments, layout):
    x, watched = numbers(layout), numbers(layout).detach().requires_grad_()
    got, expected = call(x, name, arguments), call(watched, name, arguments)
    if isinstance(expected, tuple):
        assert got == expected
        return
    assert got.tolist() == expected.tolist()
    assert got.strides == expected.strides
    assert (got.data_ptr() - x.data_ptr()) == (expected.data_ptr() - watched.data_ptr()) or (
        name in ("reshape", "flatten") and layout != "contiguous"
    )


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_writes_show_through(name, arguments):
    x = numbers("contiguous")
    view = getattr(x, name)(*arguments)
    while view.ndim > 0:
        view = view[0]
    view.fill_(70.0)
    assert x.sum().item() > 70


def test_shapes_that_memory_cannot_have_are_copies():
    x = numbers("transposed")
    flat = x.flatten()
    flat.fill_(0.0)
    x.reshape(6).fill_(0.0)
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(("name", "arguments"), WRONG_CALLS)
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_failures_that_a_layer_watches_read_the_same(name, arguments, layout):
    x, watched = numbers(layout), numbers(layout).detach().requires_grad_()
    got = call(x, name, arguments)
    assert isinstance(got, tuple) and got == call(watched, name, arguments)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "complex64"])
def test_every_dtype_and_no_elements(dtype):
    x = tenon.zeros((2, 0, 3), dtype=dtype)
    for shaped, shape in [
        (x.reshape(0, 7), (0, 7)),
        (x.flatten(), (0,)),
        (x.unsqueeze(-1), (2, 0, 3, 1)),
    ]:
        assert shaped.shape == shape and shaped.dtype == x.dtype


def test_numbers_and_tensors_without_axes_or_memory():
    assert tenon.tensor(1.0).flatten().tolist() == [1.0]
    assert tenon.tensor(1.0).reshape([1, 1]).tolist() == [[1.0]]
    assert tenon.reshape(2.0, [1, 1]).tolist() == [[2.0]]
    assert tenon.ones(1, device="meta").reshape(1, 1).shape == (1, 1)


def test_names_of_arguments_and_results_given():
    x = numbers("contiguous")
    assert x.transpose(axis0=0, axis1=1).tolist() == x.T.tolist()
    assert tenon.unsqueeze(x=x, axis=[0]).shape == (1, 2, 3)
    out = tenon.zeros(6)
    assert tenon.reshape(x, [6], out=out) is out and out.tolist() == [1, 2, 3, 4, 5, 6]


class Named(tenon.Tensor):
    pass


def test_methods_are_called_in_every_way():
    x = numbers("contiguous")
    bound, unbound = x.reshape, tenon.Tensor.reshape
    assert bound(3, 2).shape == unbound(x, 3, 2).shape == unbound(x, shape=(3, 2)).shape == (3, 2)
    assert bound(*(3, 2)).shape == unbound(*(x, 3, 2), **{}).shape == (3, 2)
    assert list(map(tenon.Tensor.flatten, [x]))[0].shape == (6,)
    out = tenon.zeros(6)
    assert x.reshape(6, out=out) is out and out[5].item() == 6
    named = Named([[1.0, 2.0]])
    assert named.reshape(2, 1).shape == named.T.shape == (2, 1)
    with pytest.raises(TypeError, match="'reshape' for 'tenon.Tensor' objects"):
        unbound(1.0, [1])
    with pytest.raises(TypeError, match=r"reshape\(\): missing argument 'shape'"):
        x.reshape()
    with pytest.raises(
        TypeError, match=r"squeeze\(\): unknown keyword 'dims'; did you mean 'axis'"
    ):
        x.squeeze(dims=0)


def test_methods_say_what_they_take():
    assert (
        str(inspect.signature(tenon.Tensor.flatten)) == "(self, /, start=0, stop=-1, *, out=None)"
    )
    assert tenon.Tensor.reshape.__name__ == "reshape" == tenon.zeros(1).reshape.__name__
    assert tenon.Tensor.reshape.__doc__ == tenon.reshape.__doc__


def test_assigned_memory_ends_what_was_a_view():
    x, w = tenon.zeros(4), tenon.tensor([1.0, 1.0], requires_grad=True)
    view = x[1:3]
    view.data = tenon.tensor([5.0, 6.0])
    view += w
    assert not x.requires_grad and x.tolist() == [0, 0, 0, 0]
    view.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]
