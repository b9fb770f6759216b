# SPDX-License-Identifier: Apache-2.0
"""Calls that no operator can serve: an error that says what was expected, and memory left alone."""

import math
import subprocess
import sys

import numpy as np
import pytest
import tenon
from tenon import _core
from tenon._tensor import pickling

T = tenon.tensor


@pytest.mark.parametrize(
    "call",
    [
        lambda bad: tenon.concat(bad),
        lambda bad: tenon.stack(bad),
        lambda bad: tenon.meshgrid(bad),
        lambda bad: tenon.broadcast_tensors(bad),
        lambda bad: tenon.einsum("i,i->i", bad),
        lambda bad: tenon.index(tenon.ones((2, 2)), bad),
        lambda bad: tenon.index_put(tenon.ones((2, 2)), bad, 1.0),
    ],
    ids="concat stack meshgrid broadcast_tensors einsum index index_put".split(),
)
@pytest.mark.parametrize("bad", [[T([1.0]), None], (T([1.0]), None)], ids=["list", "tuple"])
def test_lists_of_tensors_hold_no_none(call, bad):
    with pytest.raises(TypeError, match=f"got {type(bad).__name__} with NoneType at index 1"):
        call(bad)


def test_every_list_of_tensors_refuses_none():
    checked = 0
    for name in tenon.ops.names():
        space, _, short = name.partition("::")
        operator = getattr(tenon, short, None) if space == "tenon" else None
        # Of some the name is a function over it, which takes forms of NumPy's as well.
        if "Tensor[] " not in getattr(operator, "schema", "").partition("->")[0]:
            continue
        parameters = operator.schema.partition("(")[2].partition(")")[0].split(", ")
        arguments = {
            each.split()[1]: [None] if each.startswith("Tensor[] ") else tenon.ones((2,))
            for each in parameters
            if each.startswith("Tensor") and "=" not in each
        }
        if any(each.startswith("str ") and "=" not in each for each in parameters):
            arguments["equation"] = "i->i"
        with pytest.raises(TypeError, match="NoneType at index 0"):
            operator(**arguments)
        checked += 1
    assert checked >= 7


def test_operator_files_refuse_none_in_lists(tmp_path):
    file = tmp_path / "join.yaml"
    file.write_text(
        "namespace: refusing\nops:\n- op: join\n  doc: Join tensors.\n"
        "  sig: (Tensor[] tensors) -> Tensor\n  kind: composite\n"
        "  decompose: concat(tensors, 0)\n  example: join([[1.], [2.]]) == [1., 2.]\n"
    )
    join = tenon.ops.load(str(file)).join
    assert join([T([1.0]), T([2.0])]).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="NoneType at index 1"):
        join([T([1.0]), None])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, y: tenon.grad([None], [x]), r"outputs\[0\]"),
        (lambda x, y: tenon.grad([y, None], [x], [None, None]), r"outputs\[1\]"),
        (lambda x, y: tenon.grad(y, None), r"inputs\[0\]"),
        (lambda x, y: tenon.grad(y, [x, None]), r"inputs\[1\]"),
        (lambda x, y: tenon.autograd.backward([y, None]), r"outputs\[1\]"),
    ],
)
def test_gradients_are_of_tensors(call, text):
    x = T([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match=f"expected a tensor for {text}, got none"):
        call(x, (x * x).sum())
    assert tenon.grad([(x * x).sum()], [x], [None])[0].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: tenon.stack([1.0, 2.0]),
            r"expected list of Tensors, got list with float at index 0; convert it with "
            r"tenon.tensor\(...\)",
        ),
        (lambda: tenon.concat([T([1.0]), [2.0]]), "got list with list at index 1; convert it"),
        (lambda: tenon.reshape(T([1.0]), [1, "a"]), "got list with str at index 1"),
        (lambda: tenon.reshape(T([1.0]), [1, T(1)]), r"at index 1; read its value with .item\(\)"),
        (lambda: T([1.0]).reshape(1, "a", 1), "expected int or list of ints, got str"),
    ],
)
def test_errors_name_the_item_of_a_list(call, text):
    with pytest.raises(TypeError, match=text):
        call()


VIEWS_OF_NUMBERS = {
    "flip": lambda: tenon.flip(3.0),
    "permute": lambda: tenon.permute(False),
    "stop_gradient": lambda: tenon.stop_gradient(1.0),
    "unsqueeze": lambda: tenon.unsqueeze(1, 0),
    "expand": lambda: tenon.expand(2.0, (3,)),
}


@pytest.mark.parametrize("name", VIEWS_OF_NUMBERS)
def test_views_want_a_tensor(name):
    with pytest.raises(
        TypeError, match=rf"\[{name}\] argument `x`: expected a Tensor, whose memory"
    ):
        VIEWS_OF_NUMBERS[name]()


def test_outputs_of_data_dependent_operators_are_checked():
    x = tenon.ones((3, 2))
    memory = tenon.full((20,), -7, dtype="int64")
    with pytest.raises(ValueError, match=r"expected an output of shape \(6, 2\), got \(3,\)"):
        tenon.nonzero(x, out=memory[:3])
    assert memory.tolist() == [-7] * 20
    with pytest.raises(ValueError, match=r"got \(0,\)"):
        tenon.nonzero(x, out=tenon.ones((0,)))
    with pytest.raises(TypeError, match="the result is int64 and does not fit .* bool"):
        tenon.nonzero(x, out=tenon.zeros((6, 2), dtype="bool"))
    out = tenon.zeros((2, 6), dtype="int64").T
    assert tenon.nonzero(x, out=out) is out and out.tolist() == tenon.nonzero(x).tolist()
    with pytest.raises(ValueError, match=r"\[masked_select\] .* shape \(1,\), got \(5,\)"):
        tenon.masked_select(T([1.0, 2.0]), T([True, False]), out=tenon.ones((5,)))


class Named(tenon.Tensor):
    pass


@pytest.mark.parametrize("kind", [b"x", "Tensor", object, int, type, None, T([1.0]), tenon.dtype])
def test_pickles_make_nothing_but_tensors(kind):
    state = T([1.0, 2.0]).__reduce_ex__(4)[1][1:]
    with pytest.raises(TypeError, match="expected tenon.Tensor or a subclass|incompatible"):
        pickling.tensor(kind, *state)
    assert type(pickling.tensor(Named, *state)) is Named


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: tenon.dot(T([True]), T([True])),
            r"^\[dot\] > \[matmul\] expected any dtype with arithmetic but bool",
        ),
        (
            lambda: T([True]) @ T([True]),
            r"\[matmul\] expected any dtype with arithmetic but bool, got bool",
        ),
    ],
)
def test_errors_of_parts_name_what_was_called(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_errors_of_a_composite_name_it_once():
    with pytest.raises(ValueError) as error:
        tenon.group_norm(tenon.ones((2, 3)), 2)
    assert str(error.value).startswith("[group_norm] expected")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"max_version": "a"},
            r"'max_version': expected None or a tuple \(major, minor\), got 'a'",
        ),
        ({"max_version": (1,)}, r"\(major, minor\), got \(1,\)"),
        ({"max_version": (1, "a")}, r"got \(1, 'a'\)"),
        ({"max_version": 1.0}, "got 1.0"),
        ({"dl_device": "cpu"}, r"'dl_device': expected None or a tuple \(device type, index\)"),
        ({"dl_device": (1, 2, 3)}, r"got \(1, 2, 3\)"),
    ],
)
def test_dlpack_explains_its_arguments(arguments, text):
    with pytest.raises(TypeError, match=text):
        tenon.ones((2,)).__dlpack__(**arguments)


def test_names_that_are_neither_dtype_nor_device():
    text = (
        "expected the name of a dtype, such as 'float32', or of a device, got 'float33': no device"
    )
    with pytest.raises(tenon.NotFoundError, match=text):
        T([1.0]).to("float33")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((b"abc", "float32"), "expected a multiple of 4 bytes, the size of a float32, got 3"),
        ((b"abcd", "float32", (-1,)), r"integers that are not negative, got \(-1,\)"),
        ((b"abcd", "float32", (0.5,)), r"integers that are not negative, got \(0.5,\)"),
        ((b"abcd", "float32", (1,) * 40), "a shape of at most 32 integers"),
        (
            (b"abcd", "float32", (2,)),
            r"a buffer with 8 bytes from byte 0 on for the shape \(2,\) of float32, got 4",
        ),
        ((b"abcd", "uint8", None, 5), "an offset from 0 to 4, the bytes of the buffer, got 5"),
    ],
)
def test_frombuffer_explains_itself(arguments, text):
    with pytest.raises(ValueError, match=text):
        tenon.frombuffer(*arguments)


def test_formats_of_numbers_are_for_numbers():
    assert f"{T(1.5):.2f}" == "1.50"
    assert f"{T([1.0, 2.0]):>20}" == "tensor([1., 2.])".rjust(20)
    with pytest.raises(
        TypeError, match="of 1 axes is formatted as text, which format '.2f' does not"
    ):
        f"{T([1.0, 2.0]):.2f}"


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        (tenon, "sofmax", "softmax"),
        (tenon, "vstck", "vstack"),
        (tenon.ops, "cat", "concat"),
        (tenon, "flaot32", "float32"),
        (tenon.ops, "sofmax", "softmax"),
        (tenon.ops.tenon, "sofmax", "softmax"),
    ],
)
def test_unknown_names_suggest_known_ones(owner, name, meant):
    with pytest.raises(AttributeError, match=f"{name}.*; did you mean '{meant}'"):
        getattr(owner, name)
    with pytest.raises(AttributeError) as error:
        owner.qqqqqq
    assert "did you mean" not in str(error.value)


def test_the_interpreter_suggests_names_of_tensors():
    # Tensors look attributes up as CPython's own types do, whose tracebacks suggest names.
    program = "import tenon; tenon.ones((1,)).softmx"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "no attribute 'softmx'. Did you mean: 'softmax'?" in done.stderr


def test_a_vector_has_no_matrix_transpose():
    x = tenon.ones((2,))
    assert not hasattr(x, "mT") and hasattr(tenon.ones((2, 3)), "mT")
    with pytest.raises(AttributeError, match="mT: expected at least 2 axes, got 1"):
        x.mT


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 3, 0), (0, 3, 4), (0, 3), (3, 0, 4), (3, 0), (2, 5, 0, 4)])
def test_batch_norm_of_nothing(shape, dtype):
    for x in (tenon.ones(shape, dtype=dtype), tenon.ones(shape[::-1], dtype=dtype).permute()):
        out, mean, var = tenon.batch_norm(x, tenon.ones(shape[1], dtype=dtype))
        assert out.shape == shape and mean.shape == var.shape == (shape[1],)
        assert all(map(math.isnan, mean.tolist() + var.tolist()))
        weight = tenon.ones(shape[1], dtype=dtype).requires_grad_()
        x = x.detach().requires_grad_()
        tenon.batch_norm(x, weight, weight * 2)[0].sum().backward()
        assert x.grad.shape == shape
        assert weight.grad.tolist() == [0.0] * shape[1]


def test_conv_transpose2d_pads_beyond_a_stride():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(3, 2, 3, 2))
    options = {"stride": [1, 2], "padding": [1, 0], "dilation": [3, 4], "output_padding": [2, 3]}
    want = np.zeros((2, 2, 4 - 1 + 3 * 2 + 1 + 2, (5 - 1) * 2 + 4 + 1 + 3))
    for i in range(4):
        for j in range(5):
            for k in range(3):
                for m in range(2):
                    part = np.einsum("nc,co->no", x[:, :, i, j], weight[:, :, k, m])
                    want[:, :, i + 3 * k, 2 * j + 4 * m] += part
    got = tenon.conv_transpose2d(T(x), T(weight), None, **options)
    np.testing.assert_allclose(got.numpy(), want[:, :, 1:-1], rtol=1e-12, atol=1e-12)


def test_array_namespaces_are_of_known_versions():
    x = tenon.ones((1,))
    assert x.__array_namespace__() is x.__array_namespace__(api_version=None) is tenon.array_api
    for version in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is tenon.array_api
    assert tenon.array_api.__array_api_version__ == version
    for version in ("2099.01", 3):
        with pytest.raises(ValueError, match="expected api_version None or one of '2021.12', "):
            x.__array_namespace__(api_version=version)


def test_rebuilding_needs_no_python_check():
    """The class is checked where the tensor is made, not only in the function that pickles name."""
    with pytest.raises(TypeError, match="expected tenon.Tensor or a subclass of it in a pickle"):
        _core._rebuild(object, b"", tenon.float32, (0,), "cpu", False)
