# SPDX-License-Identifier: Apache-2.0
"""Tensors longer than the blocks, tiles and lanes that kernels work in, in every layout, with one thread and
more on the CPU; and tensors larger than the caches, in every layout. Those of more than 2^31 elements are in
test_huge_tensors.py."""

import numpy as np
import pytest
import tenon

ROWS, COLUMNS = 75, 333  # of no round number of tiles
DTYPES = [
    "bool",
    "uint8",
    "int16",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.fixture(params=[1, 2], ids="{}T".format)
def threads(request):
    before = tenon.get_num_threads()
    tenon.set_num_threads(request.param)
    yield request.param
    tenon.set_num_threads(before)


def array_of(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("uint", "int")):
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.startswith("complex"):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def layouts(rows, columns):
    """How a rows x columns tensor lies within a larger one: the larger one's shape, and the way back."""
    return {
        "contiguous": ((rows, columns), lambda x: x),
        "transposed": ((columns, rows), lambda x: x.T),
        "every second": ((rows, 2 * columns), lambda x: x[:, ::2]),
        "every third": ((rows, 3 * columns), lambda x: x[:, ::3]),
        "every fifth": ((rows, 5 * columns), lambda x: x[:, ::5]),
        "part": ((rows + 2, columns + 3), lambda x: x[1:-1, 2:-1]),
        "transposed part": ((columns + 3, rows + 2), lambda x: x[2:-1, 1:-1].T),
    }


LAYOUTS = layouts(ROWS, COLUMNS)


def to_tensor(array):
    return tenon.tensor(np.ascontiguousarray(array).reshape(array.shape))


def in_layout(layout, array):
    """NumPy's array and Tenon's tensor."""
    _, view = LAYOUTS[layout]
    return view(array), view(to_tensor(array))


def check(result, want, rtol=1e-6):
    result = result.numpy()
    assert result.shape == want.shape
    np.testing.assert_allclose(result, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies(layout, dtype, threads):
    array, x = in_layout(layout, array_of(dtype, *LAYOUTS[layout][0]))
    np.testing.assert_array_equal(tenon.clone(x).numpy(), array)


@pytest.mark.parametrize("extent", [64, 256, 1024])
@pytest.mark.parametrize("dtype", DTYPES)
def test_transposed_copies_between_rows_that_share_cache_sets(dtype, extent):
    array = array_of(dtype, extent, extent)
    np.testing.assert_array_equal(tenon.clone(to_tensor(array).T).numpy(), array.T)


def test_reversed_copies():
    array = array_of("float32", ROWS, COLUMNS)
    x = to_tensor(array)
    check(tenon.clone(tenon.flip(x, [1])), array[:, ::-1])
    check(tenon.clone(tenon.flip(x, [0, 1])), array[::-1, ::-1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "complex128"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_binary(layout, dtype, threads):
    first, x = in_layout(layout, array_of(dtype, *LAYOUTS[layout][0]))
    second, y = in_layout("transposed", array_of(dtype, COLUMNS, ROWS, seed=1))
    check(x + y, first + second)
    check(y - x, second - first)
    for part in [np.s_[:1], np.s_[:, :1], np.s_[:1, :1]]:
        check(x + y[part], first + second[part])
        check(y[part] - x, second[part] - first)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_selection(layout, threads):
    condition, c = in_layout(layout, array_of("bool", *LAYOUTS[layout][0]))
    first, x = in_layout(layout, array_of("float32", *LAYOUTS[layout][0], seed=1))
    second, y = in_layout("transposed", array_of("float32", COLUMNS, ROWS, seed=2))
    check(tenon.where(c, x, y), np.where(condition, first, second))
    check(tenon.where(c[:, :1], x, y[:1]), np.where(condition[:, :1], first, second[:1]))


def test_results_may_lie_anywhere():
    array = array_of("float32", ROWS, COLUMNS)
    x = to_tensor(array)
    for layout, (shape, view) in LAYOUTS.items():
        whole = to_tensor(np.zeros(shape, np.float32))
        tenon.add(x, x[:1], out=view(whole))
        want = np.zeros(shape, np.float32)
        view(want)[...] = array + array[:1]
        np.testing.assert_array_equal(whole.numpy(), want, err_msg=layout)


REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "var": np.var,
    "argmax": np.argmax,
    "argmin": np.argmin,
}


@pytest.mark.parametrize("columns", [3, 15, 16, 17, 31, 100, 500, 767, 768, 1000, 5000])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_rows_of_any_length(name, columns, threads):
    array = array_of("float64", 40, columns)
    x = to_tensor(array)
    for axis in (0, 1, None):
        check(getattr(tenon, name)(x, axis), np.asarray(REDUCTIONS[name](array, axis)), 1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_in_any_layout(name, layout):
    array, x = in_layout(layout, array_of("float32", *LAYOUTS[layout][0]))
    for axis in (0, 1, None):
        check(getattr(tenon, name)(x, axis), np.asarray(REDUCTIONS[name](array, axis)), 1e-4)


@pytest.mark.parametrize("at", [0, 5, 63, 64, 98, 99])
def test_extremes_hand_on_nan_from_any_place(at):
    array = array_of("float32", 3, 100)
    array[1, at] = np.nan
    x = to_tensor(array)
    for name in ("max", "min", "argmax", "argmin"):
        check(getattr(tenon, name)(x, 1), getattr(np, name)(array, 1))
        check(getattr(tenon, name)(x, 0), getattr(np, name)(array, 0))


@pytest.mark.parametrize("name", ["any", "all"])
def test_logical_reductions(name):
    for value in (False, True):
        array = np.full((5, 2000), value)
        array[2, 1999] = not value
        x = to_tensor(array)
        for axis in (0, 1, None):
            want = np.asarray(getattr(np, name)(array, axis))
            np.testing.assert_array_equal(getattr(tenon, name)(x, axis).numpy(), want)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 1000), (1000,), (3, 7, 600), (2, 4, 1)], ids=str)
def test_scans(shape, dtype, threads):
    array = array_of(dtype, *shape)
    wide = np.int64 if dtype in ("bool", "int16") else dtype
    for axis in range(len(shape)):
        x = to_tensor(array)
        check(tenon.cumsum(x, axis), np.cumsum(array, axis, dtype=wide), 1e-4)
        backwards = np.flip(np.cumsum(np.flip(array, axis), axis, dtype=wide), axis)
        check(tenon.cumsum(x, axis, True), backwards, 1e-4)


def test_a_scan_starts_with_the_first_element():
    result = tenon.cumsum(to_tensor(np.array([[-0.0, -0.0], [-0.0, 1.0]])), 0)
    np.testing.assert_array_equal(np.signbit(result.numpy()), [[True, True], [True, False]])


@pytest.mark.parametrize("dtype", [*DTYPES[:-2]])
@pytest.mark.parametrize("length", [2, 100, 255, 256, 3000])
@pytest.mark.parametrize("descending", [False, True])
def test_sorts(length, dtype, descending, threads):
    array = array_of(dtype, 3, length)
    if dtype.startswith("float"):
        array[0, ::3] = np.repeat([np.nan, 0.0, -0.0, np.inf, -np.inf], length)[
            : len(array[0, ::3])
        ]
        array[1, ::2] = [[0.0, -0.0][i % 2] for i in range(len(array[1, ::2]))]
    elif dtype != "bool":
        array[0] %= 2
    x = to_tensor(array)
    values, indices = (each.numpy() for each in tenon.sort_with_indices(x, 1, descending))
    if descending:  # equal elements keep their order
        want = length - 1 - np.argsort(array[:, ::-1], 1, kind="stable")[:, ::-1]
    else:
        want = np.argsort(array, 1, kind="stable")
    np.testing.assert_array_equal(indices, want)
    np.testing.assert_array_equal(values, np.take_along_axis(array, want, 1))
    columns = tenon.sort_with_indices(to_tensor(np.ascontiguousarray(array.T)), 0, descending)
    np.testing.assert_array_equal(columns[1].numpy(), want.T)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_picks(dtype, threads):
    array = array_of(dtype, ROWS, COLUMNS)
    x = to_tensor(array)
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(-ROWS, ROWS, 200), rng.integers(0, COLUMNS, 700)
    np.testing.assert_array_equal(tenon.index_select(x, to_tensor(rows), 0).numpy(), array[rows])
    np.testing.assert_array_equal(
        tenon.index_select(x, to_tensor(columns), 1).numpy(), array[:, columns]
    )
    indices = rng.integers(0, COLUMNS, (ROWS, 50))
    np.testing.assert_array_equal(
        tenon.gather(x, to_tensor(indices), 1).numpy(),
        np.take_along_axis(array, indices, 1),
    )
    indices = rng.integers(-ROWS, ROWS, (9, COLUMNS))
    np.testing.assert_array_equal(
        tenon.gather(x, to_tensor(indices), 0).numpy(),
        np.take_along_axis(array, indices, 0),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(dtype, threads):
    array = array_of(dtype, 3, 70, 331) * (array_of("bool", 3, 70, 331, seed=1))
    array = array.astype(dtype)
    x = to_tensor(array)
    np.testing.assert_array_equal(tenon.nonzero(x).numpy(), np.argwhere(array))
    mask = array.real > 0 if dtype.startswith("complex") else array > 0
    np.testing.assert_array_equal(x[to_tensor(mask)].numpy(), array[mask])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_joins(dtype, threads):
    arrays = [array_of(dtype, ROWS, COLUMNS, seed=i) for i in range(3)]
    tensors = [to_tensor(array) for array in arrays]
    for axis in (0, 1):
        np.testing.assert_array_equal(
            tenon.concat(tensors, axis).numpy(), np.concatenate(arrays, axis)
        )
    for axis in (0, 1, 2):
        np.testing.assert_array_equal(tenon.stack(tensors, axis).numpy(), np.stack(arrays, axis))
    uneven = tenon.concat([tensors[0], tensors[1][:, :1], tensors[2][:, :0]], 1)
    np.testing.assert_array_equal(uneven.numpy(), np.concatenate([arrays[0], arrays[1][:, :1]], 1))


REDUCED = [tenon.float16, tenon.bfloat16, tenon.float8_e4m3, tenon.float8_e5m2]
CAST_FROM = ["bool", "uint8", "int64", "float32", "float64", "complex64"]
CAST_TO = [tenon.uint8, tenon.int32, tenon.float32, tenon.float64, tenon.complex128, *REDUCED]


@pytest.mark.parametrize("to", CAST_TO, ids=str)
@pytest.mark.parametrize("start", [*CAST_FROM, *REDUCED], ids=str)
def test_casts_do_not_depend_on_size_or_layout(start, to, threads):
    if isinstance(start, str):
        x = to_tensor(np.abs(array_of(start, ROWS, 2 * COLUMNS)).astype(start))
    else:
        x = tenon.cast(to_tensor(np.abs(array_of("float32", ROWS, 2 * COLUMNS))), start)
    part = x[:, ::2]
    one_by_one = tenon.concat([tenon.cast(column, to) for column in tenon.split(part, 1, 1)], 1)
    want = tenon.cast(one_by_one, tenon.complex128).numpy()
    for each in (tenon.cast(part, to), tenon.cast(tenon.clone(part), to), tenon.cast(part.T, to).T):
        np.testing.assert_array_equal(tenon.cast(each, tenon.complex128).numpy(), want)
    out = tenon.zeros((ROWS, 2 * COLUMNS), dtype=to)
    tenon.cast(part, to, out=out[:, ::2])
    np.testing.assert_array_equal(tenon.cast(out[:, ::2], tenon.complex128).numpy(), want)
    assert not tenon.cast(out[:, 1::2], tenon.complex128).numpy().any()


def test_reduced_results_larger_than_the_caches(threads):
    array = np.linspace(-3, 3, 8_500_003, dtype=np.float32)
    half = tenon.cast(to_tensor(array), tenon.float16)
    np.testing.assert_array_equal(half.numpy(), array.astype(np.float16))
    half = half.numpy()
    both = to_tensor(half) + to_tensor(half)
    np.testing.assert_array_equal(both.numpy(), half + half)
    np.testing.assert_array_equal((to_tensor(half)[1:] * 2.0).numpy(), half[1:] * 2)


def test_results_larger_than_the_caches(threads):
    array = np.arange(3_000_001, dtype=np.float64)  # 24 MB
    x = to_tensor(array)
    np.testing.assert_array_equal((x + x).numpy(), array + array)
    np.testing.assert_array_equal((x[1:] * 2.0).numpy(), array[1:] * 2)
    np.testing.assert_array_equal(tenon.clone(x[1:]).numpy(), array[1:])
    np.testing.assert_array_equal(tenon.cast(x, tenon.float32).numpy(), array.astype(np.float32))
    rows = tenon.reshape(x[:-1], (3, 1_000_000))
    np.testing.assert_array_equal(
        (rows + rows[:1]).numpy(), array[:-1].reshape(3, -1) + array[:1_000_000]
    )
    full = tenon.full((4_200_001,), 1.5, dtype=tenon.float64)
    assert full.numpy().min() == full.numpy().max() == 1.5


@pytest.mark.parametrize("dtype", ["uint32", "int32", "int64", "float32", "float64", "complex64"])
def test_counting(dtype, threads):
    kind = getattr(tenon, dtype)
    for arguments in ((70_001,), (5, 70_006), (3, 300_000, 5)):
        want = np.arange(*arguments).astype(dtype)
        np.testing.assert_array_equal(tenon.arange(*arguments, dtype=kind).numpy(), want)


def test_many_tensors_joined(threads):
    arrays = [array_of("float32", n, seed=n) for n in (0, 1, 17, 40_000, 3, 0, 99_991, 64)]
    want = np.concatenate(arrays)
    np.testing.assert_array_equal(tenon.concat([to_tensor(each) for each in arrays]).numpy(), want)
    large = np.arange(2_600_003, dtype=np.float64)  # twice that is more than the caches hold
    joined = tenon.concat(
        [to_tensor(large), to_tensor(arrays[2].astype("float64")), to_tensor(large)]
    )
    want = np.concatenate([large, arrays[2].astype("float64"), large])
    np.testing.assert_array_equal(joined.numpy(), want)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("columns", [70, 1500])
def test_sums_over_rows_do_not_depend_on_threads(dtype, columns):
    x = to_tensor(array_of(dtype, 300, 2 * columns))
    before, sums = tenon.get_num_threads(), []
    for count in (1, 2):
        tenon.set_num_threads(count)
        views = (x, x[:, ::2], x[:, :columns], x.reshape(30, 10, -1))
        sums.append([tenon.sum(view, axis).numpy() for view in views for axis in (0, 1)])
    tenon.set_num_threads(before)
    for one, two in zip(*sums):
        np.testing.assert_array_equal(one, two)


# Larger than the caches, and than what kernels keep of them for blocks: 4.4 million elements.
LARGE = layouts(1531, 2903)


@pytest.mark.parametrize("layout", LARGE)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_tensors_larger_than_the_caches(layout, dtype):
    shape, view = LARGE[layout]
    whole = np.resize(array_of(dtype, 100_003), shape)
    array, x = view(whole), view(to_tensor(whole))
    equal = np.testing.assert_array_equal
    equal(tenon.clone(x).numpy(), array)
    equal((x + x[:1]).numpy(), array + array[:1])
    equal((x < x[:, :1]).numpy(), array < array[:, :1])
    equal(tenon.where(x > 1, x, 1).numpy(), np.where(array > 1, array, array.dtype.type(1)))
    equal(x.to("float64").numpy(), array.astype("float64"))
    rows = np.arange(array.shape[0] - 1, -1, -3)
    equal(tenon.index_select(x, to_tensor(rows), 0).numpy(), array[rows])
    equal(tenon.concat([x, x[:7]], 0).numpy(), np.concatenate([array, array[:7]]))
    equal(x[x > 2].numpy(), array[array > 2])
    equal(tenon.sort(x[:97], 1).numpy(), np.sort(array[:97], 1))
    wide = array.astype("float64")
    for axis in (0, 1, None):
        equal(x.max(axis).numpy(), array.max(axis))
        equal(x.argmax(axis).numpy(), array.argmax(axis))
        got = x.sum(axis).numpy().astype("float64")
        bound = 2e-3 if dtype == "float16" else 1e-5
        assert (np.abs(got - wide.sum(axis)) <= bound * np.abs(wide).sum(axis)).all()
    got = tenon.cumsum(x[:97], 1).to("float64").numpy()
    slack = {"float16": 1e-3, "float32": 1e-5}.get(dtype, 1e-12) * np.abs(wide[:97]).sum()
    np.testing.assert_allclose(got, np.cumsum(wide[:97], 1), atol=slack, rtol=0)
