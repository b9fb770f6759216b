# SPDX-License-Identifier: Apache-2.0
"""Scalars, empty tensors, special values, integers and refusals."""

import decimal
import math
import re
from pathlib import Path

import numpy as np
import pytest
import tenon
from references.pooling import max_pool2d_with_indices
from running import dtype_name, skip_unserved, to_tensor
from samples import CASES, OPERATORS, REFERENCES


def is_activation(name):
    return OPERATORS[name]["origin"].startswith("activation.yaml")


def sampled_by_default(name):
    """Their one argument is a tensor of any shape."""
    samples = OPERATORS[name]["samples"]
    return len(OPERATORS[name]["params"]) == 1 and samples and samples[0]["made"]


def parameters(name):
    return [p["name"] for p in OPERATORS[name]["params"]]


# name: lowest and highest argument
UNARY = {
    name: operator["domain"].get("x", (-3, 3))
    for name, operator in OPERATORS.items()
    if sampled_by_default(name) and not is_activation(name) and name != "bitwise_invert"
}
BINARY = [
    name
    for name, operator in OPERATORS.items()
    if operator["kind"] == "elementwise"
    and parameters(name) == ["x", "y"]
    and name in REFERENCES
    and not name.startswith("bitwise")
    and name not in ("gcd", "lcm")  # of whole numbers
] + ["nextafter"]
ACTIVATIONS = [case for case in CASES if is_activation(case.op)]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e-30])
SHAPES = [(), (0,), (1,), (0, 3), (2, 0, 3), (1, 1, 1), (7,), (33, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary_keeps_any_shape(name, shape, device):
    array = np.full(shape, sum(UNARY[name]) / 2)
    result = getattr(tenon, name)(to_tensor(array, device))
    assert tuple(result.shape) == shape
    np.testing.assert_allclose(
        result.to("cpu").numpy(), REFERENCES[name](array) if array.size else array, rtol=1e-10
    )


BROADCASTS = [
    ((), (3,)),
    ((0,), (1,)),
    ((2, 1), (1, 3)),
    ((4, 1, 2), (3, 1)),
    ((0, 3), (3,)),
    ((1,), ()),
    ((), ()),
]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts(name, shapes, device):
    x, y = (np.full(shape, value) for shape, value in zip(shapes, (1.25, 0.75), strict=True))
    result = getattr(tenon, name)(to_tensor(x, device), to_tensor(y, device))
    want = REFERENCES[name](x, y)
    assert tuple(result.shape) == want.shape
    np.testing.assert_allclose(result.to("cpu").numpy(), want, rtol=1e-10)


def safe(function):
    """NumPy's or math's answer for every element, NaN where math refuses."""

    def call(array):
        out = []
        for value in array:
            try:
                out.append(function(np.array([value]))[0])
            except (ValueError, OverflowError):
                out.append(np.nan)
        return np.array(out)

    return call


# NumPy's sinc multiplies by pi before it reduces: at 1e30, where it is 0, it gives 3e-31.
# References of these are for ordinary numbers; test_special_functions.py has the others.
ELSEWHERE = {"erfinv", "ndtri", "erfcx", "i0", "i0e", "i1", "i1e"}


@pytest.mark.parametrize(
    "name", [n for n in UNARY if n not in {"lgamma", "frac", "nan_to_num", "sinc"} | ELSEWHERE]
)
def test_special_values(name, device):
    got = getattr(tenon, name)(to_tensor(SPECIAL, device)).to("cpu").numpy()
    np.testing.assert_allclose(got, safe(REFERENCES[name])(SPECIAL), rtol=1e-10, equal_nan=True)


@pytest.mark.parametrize("name", [n for n in BINARY if n not in {"nextafter", "xlogy"}])
def test_special_pairs(name, device):
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    got = getattr(tenon, name)(to_tensor(x, device), to_tensor(y, device)).to("cpu").numpy()
    if name in {"floor_divide", "remainder"}:
        ordinary = np.isfinite(x) & np.isfinite(y) & (y != 0)
        x, y, got = x[ordinary], y[ordinary], got[ordinary]
    np.testing.assert_allclose(got, REFERENCES[name](x, y), rtol=1e-10, equal_nan=True)


@pytest.mark.parametrize(
    "case", [c for c in ACTIVATIONS if c.op not in {"glu", "softmax", "log_softmax"}], ids=str
)
def test_activations_pass_nan_on(case, device):
    args = [
        to_tensor(np.array([np.nan]), device) if isinstance(a, np.ndarray) else a for a in case.args
    ]
    result = getattr(tenon, case.op)(*args)
    if case.op not in {"hardshrink"}:
        assert np.isnan(result.to("cpu").numpy()).all()


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "floor_divide",
        "remainder",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "gcd",
        "lcm",
        "less",
        "equal",
    ],
)
def test_integer_dtypes(name, dtype, device):
    skip_unserved(device, dtype)
    x = np.array([0, 1, 5, 100, 127], dtype)
    y = np.array([3, 1, 7, 2, 127], dtype)
    result = getattr(tenon, name)(to_tensor(x, device), to_tensor(y, device))
    want = REFERENCES[name](x, y)
    assert dtype_name(result) == str(want.dtype)
    np.testing.assert_array_equal(result.to("cpu").numpy(), want)


COMPLEX_UNARY = [
    "negative",
    "abs",
    "square",
    "reciprocal",
    "exp",
    "log",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "real",
    "imag",
    "conj",
    "isfinite",
    "clone",
]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype, device):
    skip_unserved(device, dtype)
    x = np.array([1 + 2j, -0.5 + 0.1j, 0.3 - 1j], dtype)
    y = np.array([[0.5 - 1j], [2 + 0j]], dtype)
    tx, ty = to_tensor(x, device), to_tensor(y, device)
    rtol = 1e-5 if dtype == "complex64" else 1e-12
    for name in COMPLEX_UNARY:
        got, want = getattr(tenon, name)(tx).to("cpu").numpy(), REFERENCES[name](x)
        assert got.dtype == want.dtype, name
        np.testing.assert_allclose(got, want, rtol=rtol, err_msg=name)
    for name in ["add", "subtract", "multiply", "divide", "pow", "equal", "not_equal"]:
        want = REFERENCES[name](x, y)
        np.testing.assert_allclose(
            getattr(tenon, name)(tx, ty).to("cpu").numpy(), want, rtol=rtol, err_msg=name
        )
    for name, function in {"sum": np.sum, "mean": np.mean, "prod": np.prod}.items():
        np.testing.assert_allclose(
            getattr(tenon, name)(ty).item(), function(y), rtol=rtol, err_msg=name
        )
    np.testing.assert_allclose(
        tenon.matmul(ty, tx.reshape([1, 3])).to("cpu").numpy(), y @ x[None], rtol=rtol
    )
    with pytest.raises(TypeError, match="less"):
        tenon.less(tx, ty)


def test_integer_division_by_zero_gives_zero(device):
    x, zero = to_tensor(np.array([3, -3]), device), to_tensor(np.array([0, 0]), device)
    assert tenon.floor_divide(x, zero).tolist() == [0, 0]
    assert tenon.remainder(x, zero).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16"])
def test_sums_of_small_integers_of_any_length(dtype, device):
    """Of the greatest value: 2^16 of 2^15 and more would not fit 32 bits."""
    for count in (1, 31, 32767, 32768, 32769, 200001):
        array = np.full(count, True if dtype == "bool" else np.iinfo(dtype).max, dtype=dtype)
        assert int(to_tensor(array, device).sum()) == int(array.sum(dtype=np.int64)), count


def test_softmax_survives_infinities(device):
    x = to_tensor(np.array([[1000.0, 1000.0], [-np.inf, 0.0]]), device)
    assert tenon.softmax(x).tolist() == [[0.5, 0.5], [0.0, 1.0]]
    np.testing.assert_allclose(tenon.logsumexp(x, 1).to("cpu").numpy(), [1000 + np.log(2), 0.0])


REFUSALS = [
    (
        lambda: tenon.matmul(tenon.ones([2, 3]), tenon.ones([2, 3])),
        ValueError,
        r"\[matmul\].*3 and 2.*transpose",
    ),
    (lambda: tenon.ones([2]) + tenon.ones([3]), ValueError, r"\[add\].*broadcast"),
    (lambda: tenon.reshape(tenon.ones([6]), [4, -1]), ValueError, r"\[reshape\].*6 elements"),
    (lambda: tenon.view(tenon.ones([2, 3]).permute(), [6]), ValueError, r"\[view\].*use reshape"),
    (lambda: tenon.sum(tenon.ones([2]), 1), IndexError, r"\[sum\]"),
    (lambda: tenon.max(tenon.ones([0])), ValueError, r"\[max\].*empty"),
    (lambda: tenon.select(tenon.ones([2]), 0, 2), IndexError, r"\[select\]"),
    (lambda: tenon.squeeze(tenon.ones([2]), 0), ValueError, r"\[squeeze\]"),
    (lambda: tenon.concat([tenon.ones([2, 3]), tenon.ones([3, 2])]), ValueError, r"\[concat\]"),
    (
        lambda: tenon.conv2d(tenon.ones([1, 3, 5, 5]), tenon.ones([2, 4, 3, 3])),
        ValueError,
        r"\[conv2d\].*channels",
    ),
    (
        lambda: tenon.conv2d(tenon.ones([1, 3, 2, 2]), tenon.ones([2, 3, 3, 3])),
        ValueError,
        r"\[conv2d\].*room",
    ),
    (lambda: tenon.bitwise_and(tenon.ones([2]), 1), TypeError, r"\[bitwise_and\]"),
    (lambda: tenon.subtract(tenon.ones([2], dtype=tenon.bool), True), TypeError, r"\[subtract\]"),
    (
        lambda: tenon.einsum("ij,jk->iz", [tenon.ones([2, 3]), tenon.ones([3, 2])]),
        ValueError,
        r"\[einsum\]",
    ),
    (lambda: tenon.topk(tenon.ones([3]), 4), ValueError, r"\[topk\]"),
    (
        lambda: tenon.mse_loss(tenon.ones([2]), tenon.ones([2]), "average"),
        ValueError,
        r"\[loss\].*'average'",
    ),
    (
        lambda: tenon.layer_norm(tenon.ones([2, 3]), tenon.ones([2])),
        ValueError,
        r"\[layer_norm\].*weight",
    ),
    (lambda: tenon.index_select(tenon.ones([3]), tenon.tensor([5])), IndexError, r"index_select"),
]


@pytest.mark.parametrize("call, error, text", REFUSALS, ids=[text for _, _, text in REFUSALS])
def test_refusals_say_what_was_expected(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_views_share_memory(device):
    x = to_tensor(np.zeros((3, 4)), device)
    for view in (
        x.reshape([12]),
        x.transpose(),
        x.flip(),
        x.diagonal(),
        x.select(0, 1),
        x.slice(0, 1, 3),
        x.unsqueeze(0),
    ):
        view.add_(1.0)
    assert x.sum().item() == 12 + 12 + 12 + 3 + 4 + 8 + 12


def test_embedding_padding_learns_nothing(device):
    weight = to_tensor(np.ones((3, 2)), device, requires_grad=True)
    rows = tenon.embedding(weight, to_tensor(np.array([0, 1, 1]), device), 1)
    (grad,) = tenon.grad(rows.sum(), weight)
    assert grad.tolist() == [[1, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel, padding", [(2, 0), (3, 1), (5, 2)])
@pytest.mark.parametrize("width", [5, 9, 37, 70])
def test_max_pool_over_ties_and_special_values(width, kernel, padding, stride, device):
    rng = np.random.default_rng(width)
    x = rng.integers(-3, 3, (1, 2, 6, width)).astype(np.float64)  # the first of equals wins
    x[rng.random(x.shape) < 0.03] = np.nan
    x[rng.random(x.shape) < 0.2] = -np.inf
    want, argmax = max_pool2d_with_indices(x, kernel, stride, padding)
    for dtype in ("float32", "float64"):
        skip_unserved(device, dtype)
        tensor = to_tensor(x.astype(dtype), device)
        got, indices = tenon.max_pool2d_with_indices(tensor, kernel, stride, padding)
        np.testing.assert_array_equal(got.to("cpu").numpy(), want)
        np.testing.assert_array_equal(indices.to("cpu").numpy(), argmax)


def test_stop_gradient(device):
    x = to_tensor(np.array([3.0]), device, requires_grad=True)
    (grad,) = tenon.grad((x * tenon.stop_gradient(x)).sum(), x)
    assert grad.tolist() == [3.0]


def test_every_operator_is_tested():
    tested = {case.op for case in CASES}
    elsewhere = {
        # here, in test_random.py, or trivially elsewhere
        "empty",
        "empty_like",
        "to_device",
        "uniform",
        "normal",
        "randint",
        "randperm",
        "bernoulli",
        "dropout",
        "uniform_like",
        "normal_like",
        "multinomial",
    }
    public = {
        name.removeprefix("tenon::") for name in tenon.ops.names() if name.startswith("tenon::")
    }
    public = {name for name in public if hasattr(tenon, name)}
    # Operators that take neither small floats nor integers, and need LAPACK, have no samples.
    folder = Path(__file__).parent
    source = "".join(folder.joinpath(f"test_{name}.py").read_text() for name in ("ldl", "linalg"))
    elsewhere |= {"fft_c2c", "fft_r2c", "fft_c2r", "overlap_add"}  # test_fft.py, test_signal.py
    # Neither what makes complex numbers, of which devices with primitives know nothing, nor what iterates:
    # test_arrangement.py and test_special_functions.py.
    elsewhere |= {"complex", "polar", "as_complex", "float_power", "gammainc", "gammaincc"}
    elsewhere |= {"sample_neighbors", "top_p_sampling"}  # test_graphs.py, test_sequences.py
    elsewhere |= {"tdm_sampler", "shuffle_batch"}  # they draw: test_recommender_operators.py
    elsewhere |= {"bitcast", "pack", "unpack"}  # test_four_bits.py, test_moves_or_refuses.py
    elsewhere |= {name for name in public if re.search(rf"\btenon\.{name}\b|\"{name}\":", source)}
    assert public - tested - elsewhere == set()


def test_gelu_keeps_the_digits_of_its_tail(device):
    x = np.linspace(-12.5, -1, 3001, dtype=np.float32)
    want = np.array([v * math.erfc(-v * math.sqrt(0.5)) / 2 for v in x.astype(np.float64)])
    result = tenon.gelu(to_tensor(x, device)).to("cpu").numpy()
    # A device that has erfc alone rounds its argument, which counts its square.
    ulps = 4 if str(device) == "cpu" else 400
    np.testing.assert_allclose(result, want, rtol=ulps * 2.0**-23)


@pytest.mark.parametrize("approximate", [False, True])
def test_the_gradient_of_gelu_keeps_the_digits_of_its_tail(device, approximate):
    x = np.linspace(-12.5, -1.5, 3001, dtype=np.float32)
    if approximate:
        x = x[x > -7]  # beyond, powers are denormal

    def slope(v):
        if approximate:
            u = 2 * math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)
            s = 1 / (1 + math.exp(-u))
            return s + v * s / (1 + math.exp(u)) * 2 * math.sqrt(2 / math.pi) * (
                1 + 0.134145 * v * v
            )
        density = math.exp(-v * v / 2) / math.sqrt(2 * math.pi)
        return math.erfc(-v * math.sqrt(0.5)) / 2 + v * density

    want = np.array([slope(v) for v in x.astype(np.float64)])
    leaf = to_tensor(x, device, requires_grad=True)
    (grad,) = tenon.grad(tenon.gelu(leaf, approximate=approximate).sum(), leaf)
    # The argument of the sigmoid is rounded; a device without normal_pdf rounds the square, too.
    ulps = 8 if str(device) == "cpu" and not approximate else 400
    np.testing.assert_allclose(grad.to("cpu").numpy(), want, rtol=ulps * 2.0**-23)


@pytest.mark.parametrize(
    "numbers",
    [(0.5, 5, 1), (0, 2.5, 1), (0, 3, 0.5), (5.5, 1, -2), (1, 10, 3), (10, 1, -4)],
    ids=str,
)
def test_ranges_of_mixed_numbers(numbers, device):
    np.testing.assert_allclose(tenon.arange(*numbers, device=device).tolist(), np.arange(*numbers))


def test_ranges_of_large_integers(device):
    skip_unserved(device, "int64")
    assert tenon.arange(2**60, 2**60 + 3, device=device).tolist() == [2**60 + i for i in range(3)]
    assert tenon.arange(-(2**60), 2**60, 2**59 + 1, device=device).tolist() == list(
        range(-(2**60), 2**60, 2**59 + 1)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanhshrink_keeps_the_digits_of_its_small_results(dtype, device):
    """Next to 0 it is x**3 / 3, which the difference of x and tanh(x) does not show."""
    points = [1e-10, 1e-5, 1e-3, 0.01, 0.1, 0.3, 0.7, 0.9, 0.99999, 1.0, 1.0001, 1.5, 3.0, 20.0]
    x = np.array([s * p for p in points for s in (-1, 1)], dtype)

    def exact(v):
        with decimal.localcontext() as context:
            context.prec = 60
            power = (decimal.Decimal(float(v)) * 2).exp()
            return float(decimal.Decimal(float(v)) - (power - 1) / (power + 1))

    result = tenon.tanhshrink(to_tensor(x, device)).to("cpu").numpy()
    want = np.array([exact(v) for v in x])
    np.testing.assert_allclose(result, want, rtol=6 * np.finfo(dtype).eps)
    special = tenon.tanhshrink(tenon.tensor([0.0, math.inf, -math.inf, math.nan], device=device))
    np.testing.assert_array_equal(special.to("cpu").numpy(), [0.0, math.inf, -math.inf, math.nan])
