# SPDX-License-Identifier: Apache-2.0
"""Kernels from source give what the CPU's give: also at the edges of every dtype, for long axes,
odd sizes and strange strides."""

import numpy as np
import pytest
import tenon

rng = np.random.default_rng(7)


def array(x):
    x = x.to("cpu")
    return (x.to(tenon.float32) if x.dtype == tenon.bfloat16 else x).numpy()


def both(device, call, *arrays, dtype=None):
    """The same call on the device and on the CPU."""

    def on(place):
        tensors = [tenon.tensor(a, device=place) for a in arrays]
        if dtype:
            tensors = [t.to(getattr(tenon, dtype)) if t.dtype != tenon.bool else t for t in tensors]
        result = call(*tensors)
        return [array(r) for r in (result if isinstance(result, (tuple, list)) else [result])]

    return zip(on(device), on("cpu"))


def assert_equal(device, call, *arrays, dtype=None, rtol=0.0, atol=0.0):
    for got, want in both(device, call, *arrays, dtype=dtype):
        assert got.dtype == want.dtype and got.shape == want.shape
        if rtol or atol:
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
        else:
            np.testing.assert_array_equal(got, want)


def edges(dtype):
    """Pairs of every two interesting numbers."""
    info = np.iinfo(dtype)
    numbers = sorted(
        {info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 7, 33, info.max - 1, info.max}
    )
    numbers = np.array([n for n in numbers if info.min <= n <= info.max], dtype=dtype)
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


# Programs are compiled anew on a fresh machine, so every parameter costs: two signed and two
# unsigned dtypes stand for all.
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize(
    "op",
    ["add", "multiply", "floor_divide", "remainder", "fmod", "pow", "maximum", "less", "equal",
     "bitwise_left_shift", "bitwise_right_shift", "bitwise_xor"],
)  # fmt: skip
def test_integers_at_the_edges(op, dtype, device):
    assert_equal(device, getattr(tenon, op), *edges(dtype))


@pytest.mark.parametrize("dtype", ["int16", "uint32"])
@pytest.mark.parametrize("op", ["negative", "abs", "sign", "bitwise_invert"])
def test_one_integer_at_the_edges(op, dtype, device):
    assert_equal(device, getattr(tenon, op), edges(dtype)[0])


SPECIAL = np.array(
    [-np.inf, -1e30, -2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.5, 1e30, np.inf, np.nan]
)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("op", ["maximum", "fmin", "floor_divide", "remainder", "fmod"])
def test_special_numbers(op, dtype, device):
    x, y = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    assert_equal(device, getattr(tenon, op), x, y, dtype=dtype)


@pytest.mark.parametrize("op", ["round", "sign", "isfinite", "signbit"])
def test_special_numbers_one_by_one(op, device):
    assert_equal(device, getattr(tenon, op), SPECIAL, dtype="float32")


@pytest.mark.parametrize(
    "to", ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float64"]
)
@pytest.mark.parametrize("start", ["bool", "int64", "bfloat16", "float32"])
def test_casts(start, to, device):
    numbers = np.array([0, 1, 2, 3, 100, 101, 127] if start != "bool" else [0, 1])
    assert_equal(device, lambda x: x.to(getattr(tenon, start)).to(getattr(tenon, to)), numbers)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounding_of_halves(dtype, device):
    bits = rng.integers(0, 2**32, 20000, dtype=np.uint32)
    powers = np.float32(2.0) ** np.arange(-30, 17, dtype=np.float32)
    numbers = np.concatenate([bits.view(np.float32), powers])
    assert_equal(device, lambda x: x.to(getattr(tenon, dtype)), numbers)


@pytest.mark.parametrize(
    "value", [1.0005, 65519.0, 65520.0, 3e-8, -6e-5, float("nan"), -float("inf")]
)
def test_a_half_made_on_the_host_rounds_alike(value, device):
    for dtype in (tenon.float16, tenon.bfloat16):
        got, want = (array(tenon.full([3], value, dtype=dtype, device=d)) for d in (device, "cpu"))
        np.testing.assert_array_equal(got, want)


SHAPES = [(5,), (100000,), (3, 70000), (70000, 3), (300, 257), (7, 9, 11, 13), (2, 3, 1, 5, 1, 4)]


@pytest.mark.parametrize("op", ["sum", "max", "argmax", "argmin", "any", "mean"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions_over_every_axis(shape, op, device):
    x = rng.standard_normal(shape).astype(np.float32)
    slack = {"sum": 2e-3, "mean": 1e-5}.get(op, 0.0)
    for axis in [None, *range(len(shape))]:
        assert_equal(
            device, lambda t, axis=axis: getattr(tenon, op)(t, axis=axis), x, rtol=slack, atol=slack
        )
    if len(shape) > 2 and op in ("sum", "max"):
        assert_equal(
            device, lambda t: getattr(tenon, op)(t, axis=[0, 2]), x, rtol=slack, atol=slack
        )
        turned = lambda t: getattr(tenon, op)(tenon.flip(t.permute()), axis=[1, -1])  # noqa: E731
        assert_equal(device, turned, x, rtol=slack, atol=slack)


def test_nan_leads(device):
    x = rng.standard_normal(5000).astype(np.float32)
    x[[4321, 777]] = np.nan
    for op in (tenon.argmax, tenon.argmin, tenon.max, tenon.min):
        assert_equal(device, op, x)


@pytest.mark.parametrize(
    "m,n,k", [(1, 1, 1), (3, 5, 7), (33, 65, 17), (128, 64, 64), (1, 300, 50), (130, 2, 70)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_matrix_products(m, n, k, dtype, device):
    x, y = (rng.integers(-4, 5, s).astype(np.float32) for s in ((m, k), (k, n)))
    assert_equal(device, tenon.matmul, x, y, dtype=dtype)  # small integers: every sum is exact
    assert_equal(
        device, lambda a, b: tenon.matmul(a.permute().contiguous().permute(), b), x, y, dtype=dtype
    )
    assert_equal(
        device, lambda a, b: tenon.linear(a, b.permute().contiguous(), b[0]), x, y, dtype=dtype
    )


def test_batches_broadcast(device):
    x = rng.integers(-4, 5, (2, 1, 3, 4, 5)).astype(np.float32)
    y = rng.integers(-4, 5, (6, 1, 5, 7)).astype(np.float32)
    assert_equal(device, tenon.matmul, x, y)
    assert_equal(device, lambda a, b: tenon.matmul(a.permute([1, 2, 0, 3, 4]), b[0, 0]), x, y)
    assert_equal(device, lambda a, b: tenon.matmul(a, b[0, 0, :, 0]), x, y)


@pytest.mark.parametrize("shape", [(1,), (17,), (5000,), (3, 40, 2), (2, 1000)], ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable(shape, descending, device):
    x = rng.integers(-5, 6, shape).astype(np.float32)
    x.flat[::7] = np.nan
    for axis in range(len(shape)):
        assert_equal(
            device, lambda t, axis=axis: tuple(tenon.sort_with_indices(t, axis, descending)), x
        )
    assert_equal(device, lambda t: tuple(tenon.topk(t, 1, -1, descending)), x)


# So many elements in lanes that long are sorted by digits where groups share memory, by merging elsewhere.
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float64", "int8", "int32", "int64", "uint8", "bool"]
)
def test_many_elements_are_sorted_stably(dtype, descending, device):
    x = rng.standard_normal((2, 20000, 2)) * 50
    if dtype in ("float32", "bfloat16", "float64"):
        x = np.round(x, 1)  # so that some are equal
        x.flat[::7], x.flat[1::7], x.flat[2::7] = np.nan, 0.0, -0.0
        x.flat[3::7], x.flat[4::7] = np.inf, -np.inf
    x = x.astype({"bfloat16": "float32"}.get(dtype, dtype))
    given = "bfloat16" if dtype == "bfloat16" else None
    assert_equal(device, lambda t: tuple(tenon.sort_with_indices(t, 1, descending)), x, dtype=given)
    assert_equal(device, lambda t: tuple(tenon.topk(t, 3, 1, descending)), x, dtype=given)


@pytest.mark.parametrize("shape", [(5000,), (3, 2000, 2), (7, 1)], ids=str)
def test_scans(shape, device):
    x = rng.integers(-3, 4, shape)
    for axis in range(len(shape)):
        assert_equal(device, lambda t, axis=axis: tenon.cumsum(t, axis), x)
        assert_equal(device, lambda t, axis=axis: tenon.cumsum(t, axis, True), x.astype(np.int8))
        assert_equal(device, lambda t, axis=axis: tenon.cumprod(t, axis), x)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
def test_indexing(dtype, device):
    x = rng.integers(0, 50, (6, 7, 8)).astype(np.float32)
    index = rng.integers(-7, 7, (6, 5, 8))
    source = rng.integers(0, 9, (6, 5, 8)).astype(np.float32)
    to = getattr(tenon, dtype)
    calls = [
        lambda x, i, s: tenon.gather(x.to(to), i, 1),
        lambda x, i, s: tenon.scatter_add(x.to(to), i, s.to(to), 1),
        lambda x, i, s: tenon.scatter_add(x.to(to), i, 2, 1),
        lambda x, i, s: tenon.index_select(x.to(to), i[:, 0, 0], 1),
        lambda x, i, s: tenon.index_add(x.to(to), i[0, :, 0], s.to(to)[:, :5], 1),
        lambda x, i, s: tenon.index(x.to(to), [i[:, 0, 0], i[0, 0, :1]], 1),
        lambda x, i, s: tenon.index_put(
            x.to(to), [i[:, 0, 0], i[0, 0, :1]], s.to(to)[0, 0, 0], axis=1, accumulate=True
        ),
        lambda x, i, s: tenon.index_put(x.to(to), [i[:1, 0, 0]], 3, axis=1),
        lambda x, i, s: tenon.nonzero(x.to(to) - 1),
    ]
    for call in calls:
        assert_equal(device, call, x, index, source)


def test_nonzero_of_much(device):
    x = rng.integers(0, 3, (90, 100, 5)).astype(np.uint8)
    assert_equal(device, tenon.nonzero, x)
    assert_equal(device, tenon.nonzero, np.zeros((3, 0, 2)))
    assert_equal(device, tenon.nonzero, np.zeros((50, 50)))


@pytest.mark.parametrize("shape", [(4, 1000), (70, 3), (3, 5, 7), (2, 300, 4)], ids=str)
def test_slices(shape, device):
    x = rng.standard_normal(shape).astype(np.float32) * 5
    for axis in range(len(shape)):
        assert_equal(device, lambda t, axis=axis: tenon.softmax(t, axis), x, rtol=2e-5, atol=1e-7)
        assert_equal(
            device, lambda t, axis=axis: tenon.log_softmax(t, axis), x, rtol=2e-5, atol=2e-5
        )
    weight = rng.standard_normal(shape[-1]).astype(np.float32)
    assert_equal(device, lambda t, w: tenon.layer_norm(t, w, w), x, weight, rtol=1e-4, atol=1e-4)
    channels = rng.standard_normal(shape[1]).astype(np.float32)
    assert_equal(
        device, lambda t, w: tuple(tenon.batch_norm(t, w, w)), x, channels, rtol=1e-4, atol=1e-4
    )


def test_slices_without_a_maximum(device):
    x = np.full((2, 40), -np.inf, np.float32)
    x[1, 3] = 0
    assert_equal(device, tenon.softmax, x)
    assert_equal(device, tenon.log_softmax, x)


def test_more_axes_than_one_launch_walks(device):
    x = rng.standard_normal([2] * 12).astype(np.float32)
    alternating = list(range(0, 12, 2)) + list(range(1, 12, 2))
    assert_equal(device, lambda t: tenon.flip(t.permute(alternating)) + t, x)
    assert_equal(device, lambda t: t.permute(alternating).contiguous(), x)


@pytest.mark.parametrize("axes", [[1, 0, 2], [2, 1, 0], [0, 2, 1], [2, 0, 1]], ids=str)
@pytest.mark.parametrize("shape", [(20, 33, 70), (8, 9, 1), (100, 3, 40)], ids=str)
def test_transposed_copies(shape, axes, device):
    x = rng.standard_normal(shape)
    for dtype in ("float64", "int8"):
        assert_equal(device, lambda t: t.permute(axes).contiguous(), x.astype(dtype))
    assert_equal(device, lambda t: tenon.flip(t.permute(axes), [0]).contiguous(), x)
    assert_equal(device, lambda t: tenon.flip(t.permute(axes), [2]).contiguous(), x)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float64", "bool"])
def test_everything_can_be_moved(dtype, device):
    x = (rng.standard_normal((3, 4)) + 1).astype(dtype)
    assert_equal(device, lambda t: t.permute().contiguous(), x)
    assert_equal(device, lambda t: tenon.index_select(t, tenon.arange(2, device=t.device)), x)
    assert_equal(device, lambda t: tenon.full_like(t, 3), x)
