# SPDX-License-Identifier: Apache-2.0
"""Functions of the array API standard that are no operators, against NumPy's of the same names."""

import numpy as np
import pytest
import tenon

T = tenon.tensor
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_limits_of_floats(dtype):
    got, want = tenon.finfo(dtype), np.finfo(dtype)
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(got, name) == getattr(want, name), name
    assert got.dtype == getattr(tenon, dtype) and tenon.finfo(T([1.0], dtype=dtype)) == got


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float8_e5m2", "bfloat16"])
def test_limits_of_floats_that_numpy_does_not_have(dtype):
    info = tenon.finfo(dtype)
    assert T(info.max, dtype=dtype).item() == info.max
    assert T(info.max, dtype=dtype).item() > T(info.max * (1 - info.eps), dtype=dtype).item()
    one = T(1.0, dtype=dtype).item()
    assert T(1.0 + info.eps, dtype=dtype).item() == one + info.eps
    assert T(1.0 + info.eps / 2, dtype=dtype).item() == one
    assert T(info.smallest_normal, dtype=dtype).item() == info.smallest_normal


@pytest.mark.parametrize("dtype", INTEGERS)
def test_limits_of_integers(dtype):
    got, want = tenon.iinfo(dtype), np.iinfo(dtype)
    assert (got.bits, got.max, got.min) == (want.bits, want.max, want.min)
    assert tenon.iinfo(T([1], dtype=dtype)).dtype == getattr(tenon, dtype)


def test_limits_are_of_one_kind():
    assert tenon.finfo("complex64") == tenon.finfo("float32")
    with pytest.raises(
        TypeError, match=r"finfo\(\): expected a floating or complex dtype, got int8"
    ):
        tenon.finfo("int8")
    with pytest.raises(TypeError, match=r"iinfo\(\): expected an integer dtype, got bool"):
        tenon.iinfo(tenon.bool)


def test_kinds_of_dtypes():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating"]
    for dtype in ["bool", *INTEGERS, *FLOATS, "complex64"]:
        for kind in [*kinds, "complex floating", "numeric", ("bool", "integral")]:
            want = np.isdtype(np.dtype(dtype), kind)
            assert tenon.isdtype(getattr(tenon, dtype), kind) == want, (dtype, kind)
    assert tenon.isdtype(tenon.bfloat16, "real floating")
    assert tenon.isdtype(tenon.int8, (tenon.int16, tenon.int8))
    with pytest.raises(TypeError, match="expected a dtype, a tuple or one of bool, signed integer"):
        tenon.isdtype(tenon.int8, "number")


def test_result_types():
    assert tenon.result_type(tenon.int8, "int16") == tenon.int16
    assert tenon.result_type(T([1]), T([1.0])) == tenon.float32
    assert tenon.result_type(tenon.uint8, 300) == tenon.uint8
    assert tenon.result_type(tenon.int8, 1.0, tenon.float64) == tenon.float64
    for dtype in ("bool", "int8", "float16", "float64", "complex64"):
        for number in (True, 1, 1.0, 1j):
            want = (T([1], dtype=dtype) * number).dtype
            assert tenon.result_type(dtype, number) == want, (dtype, number)
    with pytest.raises(ValueError, match="expected at least one tensor or dtype"):
        tenon.result_type(1, 2.0)


def test_casts():
    assert tenon.can_cast("int8", "int16") and not tenon.can_cast(T([1.0]), "int16")
    x = T([1.5, 2.5])
    assert tenon.astype(x, tenon.int64).tolist() == [1, 2]
    assert tenon.astype(x, "float32", copy=False) is x
    assert tenon.astype(x, "float32").data_ptr() != x.data_ptr()


def test_shapes():
    array = np.arange(24.0).reshape(2, 3, 4)
    x = T(array)
    for axis in (-4, 0, 2, 3):
        assert tenon.expand_dims(x, axis=axis).shape == np.expand_dims(array, axis).shape
    pairs = [
        (tenon.permute_dims(x, (2, 0, 1)), np.permute_dims(array, (2, 0, 1))),
        (tenon.matrix_transpose(x), np.matrix_transpose(array)),
        (tenon.moveaxis(x, 0, -1), np.moveaxis(array, 0, -1)),
        (tenon.broadcast_to(x[:, :1], (5, 2, 3, 4)), np.broadcast_to(array[:, :1], (5, 2, 3, 4))),
        (tenon.take(x, T([2, 0]), axis=1), np.take(array, [2, 0], axis=1)),
        (tenon.take(x[0, 0], T([3, 3])), np.take(array[0, 0], [3, 3])),
        *zip(tenon.unstack(x, axis=1), np.unstack(array, axis=1)),
        *zip(tenon.broadcast_arrays(x, T([1.0])), np.broadcast_arrays(array, [1.0])),
    ]
    for got, want in pairs:
        np.testing.assert_array_equal(got.numpy(), want)
    assert tenon.broadcast_shapes((2, 1), (3,), ()) == (2, 3) and tenon.broadcast_shapes() == ()
    assert tenon.broadcast_shapes((0,), (1,)) == (0,)
    with pytest.raises(ValueError, match=r"got \(2,\), \(3,\): extents 2 and 3 differ"):
        tenon.broadcast_shapes((2,), (3,))
    with pytest.raises(ValueError, match="extents that are not negative"):
        tenon.broadcast_to(x, (-1, 3, 4))
    with pytest.raises(ValueError, match="expected an axis for a tensor of 3 axes"):
        tenon.take(x, T([0]))
    with pytest.raises(ValueError, match="expected at least 2 axes, got 1"):
        tenon.matrix_transpose(T([1.0]))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "min", "any", "all", "std", "var"])
def test_reductions_keep_dims(name):
    array = np.arange(6.0).reshape(2, 3)
    function = getattr(tenon, name)
    got = function(T(array), axis=1, keepdims=True)
    np.testing.assert_allclose(got.numpy(), getattr(np, name)(array, axis=1, keepdims=True))
    assert getattr(T(array), name)(0, keepdims=False).shape == (3,)


ARRAYS = {
    "numbers": np.array([[3, 1, 3], [2, 1, 1]]),
    "floats": np.array([2.5, -0.0, np.inf, 2.5, 0.0]),
    "one": np.array(7),
    "complex": np.array([1 + 2j, 1 - 1j, -2 + 0j, 1 + 2j, 1 - 1j]),
    "nothing": np.zeros((2, 0)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_sets(name):
    array = ARRAYS[name]
    x = T(array)
    for function in ("unique_all", "unique_counts", "unique_inverse"):
        got, want = getattr(tenon, function)(x), getattr(np, function)(array)
        assert got._fields == want._fields
        for field in got._fields:
            np.testing.assert_array_equal(
                getattr(got, field).numpy(), getattr(want, field), err_msg=f"{function}.{field}"
            )
    np.testing.assert_array_equal(tenon.unique_values(x).numpy(), np.unique(array))
    for among in ([1, 3], [], [7.0, np.inf]):
        for invert in (False, True):
            got = tenon.isin(x, T(np.array(among)), invert=invert)
            np.testing.assert_array_equal(got.numpy(), np.isin(array, among, invert=invert))


def test_every_nan_is_different():
    x = T([np.nan, 1.0, np.nan])
    values, counts = tenon.unique_counts(x)
    assert counts.tolist() == [1, 1, 1] and values.shape == (3,)
    assert tenon.isin(x, x).tolist() == [False, True, False]


def test_what_the_namespace_says():
    info = tenon.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == T([1.0]).dtype
    assert info.default_dtypes()["indexing"] == tenon.argmax(T([1.0])).dtype
    assert set(info.dtypes(kind="integral")) == set(INTEGERS)
    assert info.dtypes()["complex64"] == tenon.complex64
    extents = (1,) * info.capabilities()["max dimensions"]
    assert tenon.ones(extents).shape == extents
    with pytest.raises(NotImplementedError):
        tenon.ones((*extents, 1))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "complex64"])
def test_cumulative_functions(name, dtype):
    array = np.arange(1, 7).reshape(2, 3).astype(dtype)
    ours, numpys = getattr(tenon, name), getattr(np, name)
    for options in (
        {"axis": 0},
        {"axis": -1, "include_initial": True},
        {"axis": 1, "dtype": dtype, "include_initial": True},
    ):
        got, want = ours(T(array), **options), numpys(array, **options)
        np.testing.assert_array_equal(got.numpy(), want)
        assert got.dtype.name == want.dtype.name
    np.testing.assert_array_equal(ours(T(array[0])).numpy(), numpys(array[0]))
    with pytest.raises(ValueError, match=rf"{name}\(\): expected an axis for a tensor of 2 axes"):
        ours(T(array))
    with pytest.raises(IndexError):
        ours(T(array), axis=2, include_initial=True)


# -- the namespace of the standard --------------------------------------------------------------------

xp = tenon.array_api


def test_every_name_of_the_namespace_exists():
    for name in dir(xp):
        assert getattr(xp, name) is not None or name == "newaxis"
    assert xp.linalg is tenon.linalg and xp.sin is tenon.sin
    with pytest.raises(AttributeError, match="no attribute 'sinn'; did you mean 'sin'?"):
        xp.sinn


def test_results_of_the_standard():
    array = np.array([[3, 0, 1], [0, 2, 2]], dtype=np.int8)
    x = T(array)
    for got, want in zip(xp.nonzero(x), np.nonzero(array), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
    with pytest.raises(ValueError, match="at least one axis"):
        xp.nonzero(T(1))
    for indexing in ("xy", "ij"):
        vectors = [np.arange(3), np.arange(2)]
        got = xp.meshgrid(*map(T, vectors), indexing=indexing)
        for ours, want in zip(got, np.meshgrid(*vectors, indexing=indexing), strict=True):
            np.testing.assert_array_equal(ours.numpy(), want)
    assert xp.meshgrid() == ()
    for name in ("sum", "prod"):
        for dtype in (None, "int8", "float64"):
            got = getattr(xp, name)(x, axis=1, dtype=dtype, keepdims=True)
            want = getattr(np, name)(array, axis=1, dtype=dtype, keepdims=True)
            np.testing.assert_array_equal(got.numpy(), want)
            assert got.dtype.name == want.dtype.name
    np.testing.assert_array_equal(
        xp.concat([x, x], axis=None).numpy(), np.concat([array] * 2, None)
    )
    np.testing.assert_array_equal(
        xp.argsort(x, descending=True, stable=False).numpy(), np.argsort(-array, stable=True)
    )


def test_differences_and_repetitions():
    array = np.array([[1.0, 4.0, 9.0], [2.0, 3.0, 5.0]])
    x = T(array)
    for options in (
        {"n": 2},
        {"n": 0, "axis": 0},
        {"prepend": array[:, :1], "append": array},
    ):
        ours = {k: T(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        np.testing.assert_array_equal(xp.diff(x, **ours).numpy(), np.diff(array, **options))
    with pytest.raises(ValueError, match="expected n of at least 0, got -1"):
        xp.diff(x, n=-1)
    for counts, axis in (
        ([2, 0, 1], 1),
        ([3], 1),
        ([0, 0], 0),
        ([1, 0, 2, 0, 0, 1], None),
        (2, None),
    ):
        repeats = T(counts) if isinstance(counts, list) else counts
        got = xp.repeat(x, repeats, axis=axis)
        np.testing.assert_array_equal(got.numpy(), np.repeat(array, counts, axis=axis))


def test_searching_through_a_sorter():
    array = np.array([3.0, 1.0, 2.0, 2.0])
    order = np.argsort(array)
    for side in ("left", "right"):
        got = xp.searchsorted(T(array), T([2.0, 0.0]), side=side, sorter=T(order))
        want = np.searchsorted(array, [2.0, 0.0], side=side, sorter=order)
        np.testing.assert_array_equal(got.numpy(), want)
    with pytest.raises(ValueError, match="expected side 'left' or 'right', got 'middle'"):
        xp.searchsorted(T(array), T([2.0]), side="middle")
    assert xp.searchsorted(T([0, 2**63], dtype=tenon.uint64), 2**63, side="right").item() == 2
    assert xp.searchsorted(T([0.5, 1.5]), 1).item() == 1


def test_reshaping_with_and_without_a_copy():
    x = T([[1, 2, 3], [4, 5, 6]])
    assert xp.reshape(x, (3, 2), copy=True).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (6,), copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="with copy=False; leave copy out to allow a copy"):
        xp.reshape(x.T, (6,), copy=False)


def test_to_device():
    x = T([1.0])
    assert x.to_device("cpu") is x and x.to_device(x.device, stream=None) is x
    assert x.to_device("meta").device == tenon.device("meta")
    with pytest.raises(ValueError, match=r"to_device\(\): expected stream None, got 1"):
        x.to_device("cpu", stream=1)
    with pytest.raises(TypeError, match="expected a device or its name, got int"):
        x.to_device(3)


COMPLEX = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "exp2",
    "expm1",
    "log10",
    "log1p",
    "log2",
]


@pytest.mark.parametrize("name", [*COMPLEX, "sign"])
def test_complex_functions(name):
    parts = [-np.inf, -2.5, -1.0, -0.0, 0.0, 1e-9, 0.5, 3.0, np.inf, np.nan]
    array = np.array([complex(a, b) for a in parts for b in parts])
    if name in ("sign", "exp2"):  # NumPy's infinities differ from C's here
        array = array[np.isfinite(array)]
    with np.errstate(all="ignore"):
        want = getattr(
            np,
            name
            if name in ("exp2", "expm1", "log10", "log1p", "log2", "sign")
            else "arc" + name[1:],
        )(array)
    got = getattr(tenon, name)(T(array)).numpy()
    finite = np.isfinite(array) & np.isfinite(want)
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-12, atol=1e-15)
    if name in COMPLEX[:6]:
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)
