# SPDX-License-Identifier: Apache-2.0
"""Elements chosen by masks and by their size, in lengths around words of 64, registers and segments."""

import numpy as np
import pytest
import tenon

DTYPES = """bool uint8 int16 int32 uint32 int64 uint64 float16 float32 float64 complex64
    complex128""".split()
SHAPES = [(0,), (1,), (15,), (63,), (64,), (65,), (333,), (5, 7), (33, 70), (3, 4, 50), (40_000,)]
SHARES = [0.0, 0.03, 0.5, 1.0]


def arrays(dtype, shape, share):
    rng = np.random.default_rng(7)
    x = (
        (rng.standard_normal(shape) * 100).astype(dtype)
        if dtype != "bool"
        else rng.random(shape) < 0.5
    )
    return x, rng.random(shape) < share


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_select_and_nonzero(dtype, share):
    for shape in SHAPES:
        x, mask = arrays(dtype, shape, share)
        chosen = tenon.tensor(x)[tenon.tensor(mask)]
        np.testing.assert_array_equal(chosen.numpy(), x[mask])
        x[~mask] = 0
        np.testing.assert_array_equal(tenon.nonzero(tenon.tensor(x)).numpy(), np.argwhere(x))
        assert tenon.count_nonzero(tenon.tensor(x)).item() == np.count_nonzero(x)


# In lanes that count to 255 at most, in registers, in what is left after them; -0 in every float.
@pytest.mark.parametrize("dtype", [*DTYPES, "int8", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_counts(dtype):
    narrow = not hasattr(np, dtype)
    for shape in [*SHAPES, (255,), (257,), (4097,), (70_000,), (3, 300), (300, 300)]:
        x, zeros = arrays("float32" if narrow else dtype, shape, 0.3)
        if dtype in ("uint8", "int8"):
            x[..., ::3] = np.array(128).astype(dtype)
        x[zeros] = 0
        if "float" in dtype:
            x[zeros] *= -1
        ours = tenon.cast(tenon.tensor(x), getattr(tenon, dtype)) if narrow else tenon.tensor(x)
        for axis in (None, *range(x.ndim), tuple(range(x.ndim))):
            got = tenon.count_nonzero(ours, axis).numpy()
            np.testing.assert_array_equal(got, np.count_nonzero(x, axis=axis))
            got = tenon.count_nonzero(ours.T, axis, keepdim=True).numpy()
            np.testing.assert_array_equal(got.squeeze(), np.count_nonzero(x.T, axis=axis).squeeze())
        if dtype == "bool":
            assert ours.sum().item() == x.sum()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "length", [1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 4096, 4097, 70_001]
)
def test_extremes_meet_every_number(length, dtype):
    rng = np.random.default_rng(5)
    for name in ("max", "min"):
        for here in {0, length // 2, length - 1}:
            x = np.abs(rng.standard_normal(length)).astype(dtype) * (1 if name == "min" else -1)
            x[here] *= -1
            assert getattr(tenon.tensor(x), name)().item() == x[here]
            x[here] = np.nan
            assert np.isnan(getattr(tenon.tensor(x), name)().item())
        x = np.full(length, np.inf if name == "min" else -np.inf, dtype)
        assert getattr(tenon.tensor(x), name)().item() == x[0]


def test_masked_select_of_views():
    x, mask = arrays("float32", (30, 40), 0.5)
    ours, chooses = tenon.tensor(x), tenon.tensor(mask)
    np.testing.assert_array_equal(ours.T[chooses.T].numpy(), x.T[mask.T])
    np.testing.assert_array_equal(ours[:, ::2][chooses[:, ::2]].numpy(), x[:, ::2][mask[:, ::2]])
    row = tenon.masked_select(ours[0], chooses)
    np.testing.assert_array_equal(row.numpy(), np.broadcast_to(x[0], mask.shape)[mask])


def test_gradients_of_masked_select():
    x, mask = arrays("float64", (6, 8), 0.5)
    ours, row = (tenon.tensor(each, requires_grad=True) for each in (x, x[0]))
    (ours[tenon.tensor(mask)] ** 2).sum().backward()
    np.testing.assert_array_equal(ours.grad.numpy(), np.where(mask, 2 * x, 0))
    tenon.masked_select(row, tenon.tensor(mask)).sum().backward()
    np.testing.assert_array_equal(row.grad.numpy(), mask.sum(0))


def extremes_of(x):
    for name in ("argmax", "argmin"):
        for axis in (None, *range(x.ndim)):
            got = getattr(tenon, name)(tenon.tensor(x), axis).numpy()
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis), err_msg=f"{name} {axis}")


@pytest.mark.parametrize("dtype", [each for each in DTYPES if not each.startswith("complex")])
def test_places_of_extremes(dtype):
    for shape in SHAPES[1:]:
        x, chosen = arrays(dtype, shape, 0.03)
        extremes_of(x)
        x[~chosen] = 0  # equals
        extremes_of(x)
        if dtype.startswith("float"):
            x[arrays(dtype, shape, 0.01)[1]] = np.nan
            extremes_of(x)
            x[chosen] = -np.inf
            extremes_of(x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float32", "float64", "complex64"])
@pytest.mark.parametrize("length", [1, 63, 4096, 4097, 70_000, 1 << 20])
def test_any_and_all_look_far_enough(length, dtype):
    for here in {0, length // 2, length - 1}:
        x = np.zeros(length, dtype)
        assert not tenon.tensor(x).any().item() and not tenon.tensor(x).all().item()
        x[here] = 1
        assert tenon.tensor(x).any().item()
        assert tenon.tensor(x).all().item() == (length == 1)
        x = np.ones(length, dtype)
        x[here] = 0
        assert not tenon.tensor(x).all().item()


# Around registers, steps of four of them, and two such steps side by side; any byte but 0 is true.
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "float32"])
def test_any_and_all_of_short_rows(dtype):
    lengths = [1, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 511, 513, 768, 1000]
    values = [1, 2, 127] if dtype != "bool" else [1]
    for length in lengths:
        for value in values:
            row = np.eye(length, dtype=dtype) * np.array(value).astype(dtype)
            x = np.concatenate([row, np.zeros((2, length), dtype)])
            ours = tenon.tensor(x)
            np.testing.assert_array_equal(ours.any(1).numpy(), x.any(1))
            np.testing.assert_array_equal(ours[:, ::-1].any(1).numpy(), x.any(1))
            full = np.where(x, np.array(0, dtype), np.array(value, dtype))
            np.testing.assert_array_equal(tenon.tensor(full).all(1).numpy(), full.all(1))
            np.testing.assert_array_equal(tenon.tensor(full).T.all(0).numpy(), full.all(1))
            if value > 1:
                assert tenon.tensor(-full if dtype != "uint8" else full + 128).all(1).numpy()[-1]


# Around registers, steps of four of them, and two such steps side by side.
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64", "bfloat16"])
def test_rows_meet_every_number_once(dtype):
    step = 256 // getattr(tenon, dtype).itemsize
    lengths = {step * many + rest for many in (1, 2, 4, 6, 7, 12, 14) for rest in (-1, 0, 1)}
    for length in sorted(lengths) + [13 * step + 5, 4096, 4097, 9000]:
        x = np.arange(3 * length).reshape(3, length) % 3 - 1
        x[1] = 1
        x[2, length // 2 :] = 0
        ours = tenon.cast(tenon.tensor(x), getattr(tenon, dtype))
        sums = tenon.cast(ours, tenon.float32) if dtype == "bfloat16" else ours
        np.testing.assert_array_equal(sums.sum(1).numpy(), x.sum(1))
        np.testing.assert_array_equal(tenon.count_nonzero(ours, 1).numpy(), np.count_nonzero(x, 1))
        for here in (0, length // 2 - 1, length // 2, length - 1):
            x[0, here] = 5
            x[1, here] = -5
            ours = tenon.cast(tenon.tensor(x), getattr(tenon, dtype))
            both = tenon.cast(ours.max(1), tenon.int64), tenon.cast(ours.min(1), tenon.int64)
            np.testing.assert_array_equal(both[0].numpy(), x.max(1))
            np.testing.assert_array_equal(both[1].numpy(), x.min(1))
            x[0, here], x[1, here] = 0, 1


# Steps of two, three and four elements, forward and backward, in halves and what is left of them.
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("length", [5, 127, 513, 1025, 2047, 2600])
def test_rows_of_every_few_elements(length, dtype):
    x = (np.arange(3 * 4 * length).reshape(3, 4 * length) * 7 % 251).astype(dtype)
    for step in (2, 3, 4, 5, -1, -2):
        np.testing.assert_array_equal(tenon.clone(tenon.tensor(x)[:, ::step]).numpy(), x[:, ::step])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_of_one_shape_and_of_several(dtype):
    rng = np.random.default_rng(11)
    x = rng.standard_normal((6, 7, 3))
    a, b = rng.integers(-6, 6, (5, 4)).astype(dtype), rng.integers(-7, 7, (5, 4)).astype(dtype)
    ours = tenon.tensor(x)
    for first, second in ((a, b), (a, b[:1]), (a[:, :1], b[:1]), (a, b[0])):
        got = ours[tenon.tensor(first), tenon.tensor(second)]
        np.testing.assert_array_equal(got.numpy(), x[first, second])
    for one in (a, a[0], a[:0], a % 6):
        np.testing.assert_array_equal(ours[tenon.tensor(one)].numpy(), x[one])
        np.testing.assert_array_equal(ours[:, tenon.tensor(one)].numpy(), x[:, one])
        written, expected = tenon.tensor(x), x.copy()
        written[tenon.tensor(one)] = 2.5
        expected[one] = 2.5
        np.testing.assert_array_equal(written.numpy(), expected)
    for wrong in (6, -7):
        with pytest.raises(IndexError, match="positions from -6 to 5"):
            ours[tenon.tensor(np.array([0, wrong], dtype))]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_gather_checks_every_block(dtype):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((100, 100))
    index = rng.integers(0, 100, (100, 100)).astype(dtype)
    np.testing.assert_array_equal(
        tenon.gather(tenon.tensor(x), tenon.tensor(index), 1).numpy(),
        np.take_along_axis(x, index.astype(np.int64), 1),
    )
    index[77, 5] = 100
    with pytest.raises(IndexError, match="positions from -100 to 99, got 100"):
        tenon.gather(tenon.tensor(x), tenon.tensor(index), 0)
    if not dtype.startswith("u"):
        index[77, 5] = -100
        np.testing.assert_array_equal(
            tenon.gather(tenon.tensor(x), tenon.tensor(index), 1).numpy(),
            np.take_along_axis(x, index.astype(np.int64), 1),
        )
