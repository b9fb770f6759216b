# SPDX-License-Identifier: Apache-2.0
"""Methods of Tensor that are written in Python, the default dtype, and how tensors print."""

import numpy as np
import pytest
import tenon
from tenon._spellings import METHODS
from tenon._tensor import methods

T = tenon.tensor
X = np.array([[1.0, -2.0, 3.0], [4.0, 0.5, -6.0]])


def test_every_method_is_on_the_type():
    for name in [*methods.__all__, *METHODS]:
        assert getattr(tenon.Tensor, name) is not None, name
        assert name in dir(tenon.Tensor)
    late = [
        name
        for name in vars(tenon.Tensor)
        if type(vars(tenon.Tensor)[name]).__name__ == "_LateMethod"
    ]
    assert late == []  # looking one up puts the function in its place


@pytest.mark.parametrize(
    ("method", "dtype"),
    [
        ("half", "float16"),
        ("bfloat16", "bfloat16"),
        ("float", "float32"),
        ("double", "float64"),
        ("char", "int8"),
        ("byte", "uint8"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
        ("bool", "bool"),
        ("cfloat", "complex64"),
        ("cdouble", "complex128"),
    ],
)
def test_conversions(method, dtype):
    x = getattr(T([0.0, 1.0, 2.0]), method)()
    assert x.dtype.name == dtype and x.type() == dtype and getattr(x, method)() is x


def test_unfold():
    x = T([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True)
    windows = x.unfold(0, 3, 2)
    assert windows.tolist() == [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]
    windows.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 2.0, 1.0, 1.0]
    assert T(X).unfold(1, 2, 1).shape == (2, 2, 2)
    assert T(7.0).unfold(0, 1, 1).tolist() == [7.0] and T(7.0).unfold(-1, 0, 1).shape == (0,)
    with pytest.raises(ValueError, match="size 0 or 1 of a 0-d tensor, got 0 and 2"):
        T(7.0).unfold(0, 2, 1)


def test_dtypes():
    x = T(X)
    assert x.astype("float64") is not x and x.astype("float64", copy=False) is x
    assert x.type(tenon.int64).dtype == x.type_as(T([1])).dtype == tenon.int64
    assert x.is_floating_point() and not x.is_complex() and not x.is_integer()
    assert tenon.is_tensor(x) and not tenon.is_tensor(X) and tenon.is_floating_point(x)
    assert tenon.is_complex(T([1j])) and tenon.is_integer(T([1])) and tenon.numel(x) == 6
    assert tenon.promote_types("int8", tenon.uint8) == tenon.int16
    assert tenon.shape([[1, 2]]) == (1, 2)


def test_shapes():
    x, v = T(X), T([1.0, 2.0, 3.0])
    assert (x.dim(), x.ndimension(), x.nelement(), x.element_size()) == (2, 2, 6, 8)
    assert x.stride() == (3, 1) and x.stride(0) == 3 and x.get_device() == -1
    assert (
        v.expand_as(x).shape == v.broadcast_to(2, 3).shape == v.broadcast_to((2, 3)).shape == (2, 3)
    )
    assert x.view_as(T(np.zeros((3, 2)))).shape == x.reshape_as(T(np.zeros((3, 2)))).shape == (3, 2)
    assert x.ravel().shape == (6,) and x.copy().data_ptr() != x.data_ptr()
    assert x.t().shape == x.swapaxes(0, 1).shape == x.swapdims(0, 1).shape == (3, 2)
    assert v.t().shape == (3,) and x.moveaxis(0, 1).shape == (3, 2)
    with pytest.raises(ValueError, match="at most 2 axes, got 3"):
        tenon.ones(1, 1, 1).t()
    for n in range(1, 6):
        got = [part.tolist() for part in tenon.arange(5).chunk(n)]
        length = -(-5 // n)
        assert got == [list(range(i, min(5, i + length))) for i in range(0, 5, length)]
    assert [part.shape for part in tenon.chunk(x, 2, 1)] == [(2, 2), (2, 1)]
    with pytest.raises(ValueError, match="at least 1 chunk, got 0"):
        x.chunk(0)


def test_new_tensors():
    x = T(X)
    assert x.new_zeros(2, 3).tolist() == x.new_zeros((2, 3)).tolist() == [[0.0] * 3] * 2
    assert x.new_ones(2).dtype == x.new_empty(2).dtype == x.new_full((2,), 7).dtype == tenon.float64
    assert x.new_full((2,), 7, dtype="int8").tolist() == [7, 7]
    assert x.new_tensor([1, 2]).dtype == tenon.float64
    assert x.new_ones(2, device="meta").device == tenon.device("meta")


def test_other_names():
    x, y = T(X), T(X[::-1].copy())
    for name, operator in {
        "mul": np.multiply,
        "sub": np.subtract,
        "div": np.divide,
        "true_divide": np.divide,
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }.items():
        np.testing.assert_array_equal(getattr(x, name)(y).numpy(), operator(X, X[::-1]))
        if hasattr(tenon, name):
            np.testing.assert_array_equal(getattr(tenon, name)(x, y).numpy(), operator(X, X[::-1]))
    z = x.clone()
    assert z.mul_(2).sub_(1).div_(2).neg_() is z
    np.testing.assert_allclose(z.numpy(), -(X * 2 - 1) / 2)
    assert x.neg().tolist() == (-x).tolist() and x.amax(1).tolist() == [3.0, 4.0]
    assert x.amin(dim=1, keepdim=True).tolist() == [[-2.0], [-6.0]]
    assert x.mm(y.t()).tolist() == (x @ y.T).tolist() and x.mv(
        T([1.0, 0.0, 0.0], dtype="float64")
    ).tolist() == [1, 4]
    assert x.clamp(-1, 2).tolist() == x.clip(-1, 2).tolist()
    assert x.clamp_min(0.0).min().item() == 0 and x.clamp_max(0.0).max().item() == 0
    assert x.clone().clamp_(max=1.0).max().item() == 1
    assert x.where(x > 0, 0.0).min().item() == 0
    assert x.take(T([0, 5])).tolist() == [1.0, -6.0]
    assert x.take(T([2]), 1).tolist() == [[3.0], [-6.0]]


def test_rounding():
    x = T([1.256, -2.5, 3.5])
    assert round(x).tolist() == [1.0, -2.0, 4.0] and round(T(3.7)).item() == 4.0
    np.testing.assert_allclose(round(x, 1).numpy(), [1.3, -2.5, 3.5], rtol=1e-6)
    assert round(T([12]), 1).tolist() == [12]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod"])
def test_reductions_in_a_dtype(name):
    array = np.array([[100, 100], [3, 4]], dtype=np.int8)
    axis = {} if name == "mean" else {"axis": 0}
    for dtype in ("float64", "float32") if name == "mean" else ("float64", "int8", "int64"):
        want = getattr(np, name)(array, dtype=dtype, **axis)
        got = getattr(tenon, name)(T(array), dtype=dtype, **axis)
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.dtype.name == want.dtype.name
        assert getattr(T(array), name)(dtype=dtype, **axis).tolist() == got.tolist()
    assert (
        getattr(tenon, name)(T(array), dtype=None, **axis).dtype
        == getattr(tenon, name)(T(array), **axis).dtype
    )
    with pytest.raises(TypeError, match="unknown keyword 'dtypes'"):
        getattr(tenon, name)(T(array), dtypes="int8")


def test_writing():
    index, source = T([[0, 1, 0]]), T([[7.0, 8.0, 9.0]], dtype="float64")
    for method in ("scatter_", "scatter_add_"):
        ours = getattr(T(X), method)(index, source, 0)
        theirs = getattr(T(X), method)(0, index, source)
        wanted = getattr(T(X), method[:-1])(index, source, 0)
        assert ours.tolist() == theirs.tolist() == wanted.tolist()
    x = T(X)
    x.set_value(np.ones((2, 3)))
    assert x.tolist() == [[1.0] * 3] * 2
    with pytest.raises(ValueError, match=r"values of shape \(2, 3\), got \(3,\)"):
        x.set_value([1.0, 2.0, 3.0])
    assert T([1.0, 2.0]).apply_(lambda v: v * 10).tolist() == [10.0, 20.0]
    w = T([1.0], requires_grad=True)
    (w * 2).sum().backward()
    w.clear_grad()
    assert w.grad is None
    masked = T([0.0, 1.0, 2.0]).masked_scatter_(T([True, False, True]), T([5.0, 6.0]))
    assert masked.tolist() == [5.0, 1.0, 6.0]


def test_random_fills():
    tenon.manual_seed(0)
    x = tenon.zeros(2000, dtype="float64")
    assert x.uniform_(2, 3) is x and 2 <= x.min().item() and x.max().item() < 3
    assert abs(x.normal_(5, 2).mean().item() - 5) < 0.3
    assert abs(x.exponential_(2.0).mean().item() - 0.5) < 0.1
    assert abs(x.geometric_(0.5).mean().item() - 2) < 0.3
    assert x.log_normal_().min().item() > 0 and x.cauchy_(1.0, 2.0).dtype == tenon.float64
    assert 0.2 < x.bernoulli_(0.3).mean().item() < 0.4
    assert set(tenon.zeros(300, dtype="int8").random_(3).tolist()) == {0, 1, 2}
    assert set(tenon.zeros(300, dtype="int8").random_(5, 7).tolist()) == {5, 6}
    assert tenon.zeros(1000, dtype="uint8").random_().max().item() > 200
    assert tenon.zeros(100, dtype="bool").random_().any().item()


def test_default_dtype():
    assert tenon.get_default_dtype() == tenon.float32
    try:
        tenon.set_default_dtype(tenon.float64)
        floats = [
            T(1.0),
            T([1.0]),
            tenon.zeros(2),
            tenon.ones(2),
            tenon.empty(2),
            tenon.eye(2),
            tenon.rand(2),
            tenon.randn(2),
            tenon.linspace(0, 1, 3),
            tenon.full((2,), 1.0),
            tenon.arange(0.0, 2.0),
            tenon.asarray([1.0]),
            tenon.nn.Linear(2, 2).weight,
        ]
        assert {x.dtype for x in floats} == {tenon.float64}
        assert T(1j).dtype == tenon.complex128 and T([1], dtype=float).dtype == tenon.float64
        assert tenon.full((2,), 1).dtype == tenon.arange(3).dtype == tenon.int64
        assert tenon.zeros(2, dtype="float16").dtype == tenon.float16
        assert tenon.zeros_like(T([1], dtype="int8")).dtype == tenon.int8
    finally:
        tenon.set_default_dtype("float32")
    assert T([1.0]).dtype == tenon.zeros(2).dtype == tenon.float32
    with pytest.raises(
        TypeError, match="expected float16, bfloat16, float32 or float64, got 'int8'"
    ):
        tenon.set_default_dtype("int8")


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: tenon.zeros(2, **k),
        lambda **k: tenon.full((2,), 1.0, **k),
        lambda **k: tenon.arange(0.0, 2.0, **k),
        lambda **k: tenon.randn(2, **k),
        lambda **k: tenon.ones_like(T([1.0, 2.0]), **k),
    ],
)
def test_new_tensors_may_require_grad(make):
    x = make(requires_grad=True)
    assert x.requires_grad and x.is_leaf and not make(requires_grad=False).requires_grad
    assert not make().requires_grad and make(requires_grad=True, dtype=None).requires_grad


def test_integers_cannot_require_grad():
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        tenon.zeros(2, dtype="int64", requires_grad=True)


def test_print_options():
    x = T([[1 / 3, 2.0, 1e-3]])
    assert repr(x) == "tensor([[0.3333, 2.0000, 0.0010]])"
    with tenon.printoptions(precision=2):
        assert repr(x) == "tensor([[0.33, 2.00, 0.00]])"
        with tenon.printoptions(sci_mode=True):
            assert repr(x) == "tensor([[3.33e-01, 2.00e+00, 1.00e-03]])"
    assert repr(x) == "tensor([[0.3333, 2.0000, 0.0010]])"
    with tenon.printoptions(threshold=3, edgeitems=1):
        assert repr(tenon.arange(6)) == "tensor([0, ..., 5])"
    with tenon.printoptions(linewidth=20):
        assert max(map(len, repr(tenon.arange(20)).splitlines())) <= 22
    with tenon.printoptions(profile="full"):
        assert "..." not in repr(tenon.arange(2000))
    tenon.set_printoptions(precision=1)
    assert repr(T([0.26])) == "tensor([0.3])" and tenon.get_printoptions().precision == 1
    tenon.set_printoptions(profile="default")
    assert tenon.get_printoptions().precision == 4
    with pytest.raises(ValueError, match="'default', 'short' or 'full', got 'long'"):
        tenon.set_printoptions(profile="long")
    with pytest.raises(ValueError, match="expected precision of at least 0, got -1"):
        tenon.set_printoptions(precision=-1)


def test_sharing_is_refused_where_it_is_impossible():
    array = np.ones(3)
    assert tenon.asarray(array, copy=False).data_ptr() == array.ctypes.data
    x = T([1.0])
    assert (
        tenon.asarray(x, copy=False) is x
        and tenon.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    )
    for call in (
        lambda: tenon.asarray([1.0], copy=False),
        lambda: tenon.asarray(array, dtype="float32", copy=False),
        lambda: tenon.asarray(x, dtype="float64", copy=False),
    ):
        with pytest.raises(
            ValueError, match=r"asarray\(\): expected data that a tensor .* can share"
        ):
            call()
