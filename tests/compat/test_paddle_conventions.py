# SPDX-License-Identifier: Apache-2.0
"""Custom operators written for paddle/extension.h: what their authors rely on beyond the plain
operator."""

import pathlib
import warnings

import numpy as np
import pytest
import tenon
from tenon import autograd
from tenon.compat.paddle.utils import cpp_extension
from tenon.utils.cpp_extension import CompileError, is_build_available

pytestmark = pytest.mark.skipif(not is_build_available(), reason="no C++ compiler")

SOURCES = pathlib.Path(__file__).parent / "paddle" / "ops"
X = np.linspace(-1.5, 2.0, 6).reshape(2, 3)


def build(folder, name, *flags, source=None, ldflags=()):
    return cpp_extension.load(
        name=name,
        sources=[SOURCES / (source or f"{name}.cc")],
        extra_cxx_cflags=["-O0", *flags],
        extra_ldflags=list(ldflags),
        build_directory=folder / name,
    )


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = build(tmp_path_factory.mktemp("conventions"), "conventions")
    return module, [str(warning.message) for warning in caught]


@pytest.fixture(scope="module")
def ops(loaded):
    return loaded[0]


def leaf(values):
    tensor = tenon.tensor(np.asarray(values, dtype=np.float64))
    tensor.requires_grad = True
    return tensor


def test_new_of_a_gradient_is_the_gradient_of_the_output(ops):
    x = leaf(X)
    (first,) = autograd.grad(ops.pd_new_tanh(x).sum(), [x], create_graph=True)
    (second,) = autograd.grad(first.sum(), [x])
    t = np.tanh(X)
    np.testing.assert_allclose(second.numpy(), -2 * t * (1 - t * t))


def test_second_gradients_keep_no_memory(ops):
    def second():
        x = leaf(np.ones((256, 256)))
        (first,) = autograd.grad(ops.pd_new_tanh(x).sum(), [x], create_graph=True)
        return autograd.grad(first.sum(), [x])

    second()
    before = tenon.memory.stats("cpu")
    for _ in range(20):
        second()
    after = tenon.memory.stats("cpu")
    assert after["current"] == before["current"] and after["live"] == before["live"]


def test_two_gradients_of_one_input_are_refused(tmp_path):
    with pytest.raises(ValueError, match='"X@GRAD" and "X@NEW" are both the gradient of input "X"'):
        build(tmp_path, "twice", "-DFAULT=7", source="faulty.cc")


def test_mutable_data_of_another_dtype_is_memory_of_it(ops):
    out = ops.pd_rounded(tenon.tensor([0.6, -1.4, 7.5], dtype="float32"))
    assert out.dtype == tenon.int64 and out.tolist() == [1, -1, 8]


def test_an_argument_in_place_may_be_given_another_tensor(ops):
    x = tenon.tensor(X)
    assert ops.pd_reassign(x, True) is x
    np.testing.assert_allclose(x.numpy(), X + 1)
    with pytest.raises(
        tenon.InternalError,
        match=r"made a int64 of shape \[2, 3\], expected float64 of shape \[2, 3\], the form of the input",
    ):
        ops.pd_reassign(x, False)


def test_extents_that_the_kernel_decides(ops):
    for values in ([1.0, -1.0, 2.0], [-1.0], [3.0, 4.0, 5.0, 6.0], []):
        x = tenon.tensor(np.array(values, dtype=np.float32))
        want = np.array([[v, -v] for v in values if v > 0], dtype=np.float32).reshape(-1, 2)
        out = ops.pd_positive(x)
        assert out.shape == want.shape
        np.testing.assert_array_equal(out.numpy(), want)
        np.testing.assert_array_equal((out + out).numpy(), 2 * want)
    x = tenon.tensor([1.0, -1.0, 2.0], dtype="float32", requires_grad=True)
    (ops.pd_positive(x) * tenon.tensor([[3.0, 1.0], [5.0, 1.0]])).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 4.0]


def test_extents_that_the_kernel_decides_need_the_processor(ops):
    for device in ("meta", "null"):
        with (
            tenon.fallback("allow"),
            pytest.raises(
                NotImplementedError, match="extent of axis 0 of `Out` is known only when"
            ),
        ):
            ops.pd_positive(tenon.empty((3,), device=device))
    with pytest.raises(
        tenon.InternalError, match=r"made a float32 of shape \[3, 3\], expected .* \[0, 2\]"
    ):
        ops.pd_wrong_open(tenon.tensor([1.0]))


def test_gradients_of_what_is_written_in_place(ops):
    """Gradients ask for inputs that the operator has overwritten: they get the written values."""

    def run(y, more):
        leaves = [leaf(X), leaf(X + 1), *([leaf(X - 1)] if y else [])]
        leaves += [leaf(X * 2), leaf(X * 3)] if more else []
        hidden = [each * 1.0 for each in leaves]
        rest = hidden[2:]
        first = rest.pop(0) if y else None
        out = ops.pd_exp_all(hidden[:2], first, rest if more else None)
        assert out[0][0] is hidden[0] and out[0][1] is hidden[1]
        assert out[1] is first and (out[2] is None) == (not more)
        sum((each * each).sum() for each in hidden).backward()
        for one in leaves:
            np.testing.assert_allclose(one.grad.numpy(), 2 * np.exp(2 * one.detach().numpy()))

    for y in (False, True):
        for more in (False, True):
            run(y, more)


def test_gradient_of_one_tensor_in_place(ops):
    x = leaf(X)
    hidden = x * 1.0
    assert ops.pd_exp_(hidden) is hidden
    hidden.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(X))


def test_functions_that_do_not_fit_are_left_off(loaded):
    ops, texts = loaded
    for what in ("shape", "dtype"):
        assert any(
            f"its {what} function takes 2 parameters, expected 1" in text and "left off" in text
            for text in texts
        ), texts
    x = tenon.tensor(X)
    np.testing.assert_allclose(ops.pd_doubled(x).numpy(), np.concatenate([X, X]))


def test_functions_for_absent_devices_may_be_missing(loaded, tmp_path):
    ops, texts = loaded
    name = r"OnAnotherDevice\(paddle::Tensor const&\)"
    assert sum("OnAnotherDevice(paddle::Tensor const&)" in text for text in texts) == 1
    np.testing.assert_allclose(ops.pd_anywhere(tenon.tensor(X), False).numpy(), 2 * X)
    for _ in range(2):
        with pytest.raises(NotImplementedError, match=f"{name} was called, which no library"):
            ops.pd_anywhere(tenon.tensor(X), True)
    with pytest.raises(CompileError, match="OnAnotherDevice"):
        build(tmp_path, "strict", source="conventions.cc", ldflags=["-Wl,-z,defs"])


def test_tensors_of_no_elements_have_an_address(ops):
    assert ops.pd_nothing(tenon.empty((0, 3))).shape == (0, 3)


def test_a_result_that_is_a_view(ops):
    x = leaf(X)
    out = ops.transpose(x, [1, 0])
    np.testing.assert_array_equal(out.detach().numpy(), X.T)
    weights = np.arange(6.0).reshape(3, 2)
    (out * tenon.tensor(weights)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), weights.T)
    row = tenon.tensor(X[:1])  # its transpose is dense: the result must be a copy all the same
    column = ops.transpose(row, [1, 0])
    column[0, 0] = 9.0
    assert row[0, 0].item() == X[0, 0]
    into = tenon.zeros((3, 2), dtype=tenon.float64)
    assert ops.transpose(tenon.tensor(X), [1, 0], out=into) is into
    np.testing.assert_array_equal(into.numpy(), X.T)


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        (0, ValueError, r"expected 3 axes of x \[expected one == two, got 1 and 2 at .*:\d+\]"),
        (1, IndexError, r"index 2.5% of 7 \[expected one != 1, got 1 and 1"),
        (2, NotImplementedError, r"not yet \[expected one > two, got 1 and 2"),
        (3, tenon.NotFoundError, r"nowhere \[expected one >= two, got 1 and 2"),
        (4, RuntimeError, r"too early \[expected two < one, got 2 and 1"),
        (5, MemoryError, r"full \[expected two <= one, got 2 and 1"),
        (6, tenon.InternalError, r"a pointer \[expected .* not to be NULL"),
        (7, RuntimeError, r"one is 1 \[expected one == two"),
        (8, RuntimeError, r"\[expected Unprintable::kOne == .*, got another value and another"),
        (9, RuntimeError, r"from elsewhere: .* \[thrown at"),
    ],
)
def test_errors_of_a_kind(ops, how, kind, text):
    with pytest.raises(kind, match=text):
        ops.pd_enforce(tenon.tensor(X), how)
    ops.pd_enforce(tenon.tensor(X), 10)


@pytest.mark.parametrize("index", [2, [0, 2, 2], [[1], [0]], []])
def test_gather_takes_indices_of_three_shapes(ops, index):
    x = np.arange(12.0).reshape(3, 4)
    numbers = np.asarray(index, dtype="int64")
    out, first = ops.pd_gathered(tenon.tensor(x), tenon.tensor(numbers), 1)
    flat = numbers if numbers.ndim == 0 else numbers.reshape(-1)
    np.testing.assert_array_equal(out.numpy(), x.take(flat, axis=1))
    np.testing.assert_array_equal(first.numpy(), x.take(flat, axis=0))


def test_gather_refuses_an_index_of_more_axes(ops):
    with pytest.raises(ValueError, match=r"gather: expected an index of shape \[\], \[n\] or"):
        ops.pd_gathered(tenon.ones((3, 3)), tenon.zeros((2, 2), dtype="int64"), 0)
