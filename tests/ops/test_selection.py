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
