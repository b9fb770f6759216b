# SPDX-License-Identifier: Apache-2.0
"""Blocks that are written: the bits of the `gguf` package, what they read back as, and what is refused."""

import zlib

import numpy as np
import pytest
import tenon
from running import to_tensor

# Name, bytes of a block, largest error as a part of the block's largest magnitude, and the CRC-32 of what the `gguf` package (0.19.0)
# makes of `numbers()`.
FORMATS = [
    ("q8_0", 34, 0.0041, 0xD7B6C6FC),
    ("q4_0", 18, 0.126, 0x168FF3D1),
    ("q4_1", 20, 0.068, 0xBE6D1A8D),
    ("q5_0", 22, 0.063, 0x496ABF1A),
    ("q5_1", 24, 0.033, 0x1A3D4175),
    ("mxfp4", 17, 0.25, 0xD85AA9B8),
]
each_format = pytest.mark.parametrize("name, bytes_of_block, error, checksum", FORMATS)


def numbers():
    """Rows of normal numbers of many sizes, of halves between codes, of one sign, and of zeros."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 64)).astype(np.float32)
    x *= np.exp(rng.uniform(-12, 9, (512, 1))).astype(np.float32)
    x[100:200] = rng.integers(-32, 33, (100, 64)).astype(np.float32) / 4
    x[200:250] = np.abs(x[200:250])
    x[250:260] = -np.abs(x[250:260])
    x[260:270] = 0
    x[270:280] = 3.5
    return x


@each_format
def test_blocks_have_the_bits_of_the_reference(name, bytes_of_block, error, checksum, device):
    got = tenon.quantize_blocks(to_tensor(numbers(), device), name)
    assert got.shape == (512, 2 * bytes_of_block) and got.dtype == tenon.uint8
    assert zlib.crc32(got.to("cpu").numpy().tobytes()) == checksum


@each_format
def test_blocks_read_back(name, bytes_of_block, error, checksum, device):
    x = np.random.default_rng(1).standard_normal((3, 5, 96))
    got = tenon.dequantize_blocks(tenon.quantize_blocks(to_tensor(x, device), name), name)
    assert got.shape == x.shape
    largest = np.abs(x.reshape(3, 5, 3, 32)).max(-1, keepdims=True)
    difference = np.abs(got.to("cpu").numpy().reshape(3, 5, 3, 32) - x.reshape(3, 5, 3, 32))
    assert (difference <= error * largest).all()


# Format with 256 numbers in a block, the one of 32 whose mean squared error it must not exceed, and that of normal numbers
# with variance 1.
LARGE = [
    ("q2_K", None, 0.1),
    ("q3_K", None, 0.025),
    ("q4_K", "q4_0", 0.0068),
    ("q5_K", "q5_0", 0.0018),
    ("q6_K", "q5_1", 0.00065),
    ("iq4_xs", "q4_0", 0.0066),
]


def normal_blocks():
    """Normal numbers of many sizes; of one sign; zeros; and one number alone."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((64, 512)).astype(np.float32)
    scale = np.exp(rng.uniform(-6, 4, (64, 1))).astype(np.float32)
    x[40:44], x[44:48], x[48:50] = np.abs(x[40:44]), -np.abs(x[44:48]), 0
    x[50:52, 1:] = 0
    return x, scale


@pytest.mark.parametrize("name, beside, bound", LARGE)
def test_large_blocks_lose_less_than_small_ones(name, beside, bound, device):
    x, scale = normal_blocks()

    def error(format):
        stored = tenon.quantize_blocks(to_tensor(x * scale, device), format)
        assert stored.dtype == tenon.uint8
        made = tenon.dequantize_blocks(stored, format).to("cpu").numpy() / scale
        assert (made[48:50] == 0).all() and np.abs(made[50:52] - x[50:52]).max() < 0.05
        return ((made - x)[:48] ** 2).mean()

    lost = error(name)
    assert lost < bound
    if beside:
        assert lost < error(beside)


@pytest.mark.parametrize("name", [name for name, *_ in LARGE])
def test_large_blocks_are_one_by_one(name):
    x = normal_blocks()[0].reshape(-1, 256)  # more and fewer than are computed at once
    x = np.concatenate([x, x, x])
    whole = tenon.quantize_blocks(tenon.tensor(x), name).numpy()
    for row in (0, 255, 256, 383):
        one = tenon.quantize_blocks(tenon.tensor(x[row]), name).numpy()
        assert one.tobytes() == whole[row].tobytes()


@pytest.mark.parametrize("name", [name for name, *_ in LARGE])
def test_a_large_block_with_nan_is_nan(name):
    x = np.ones((1, 512), np.float32)
    x[0, 3] = np.nan
    got = tenon.dequantize_blocks(tenon.quantize_blocks(tenon.tensor(x), name), name).numpy()[0]
    assert np.isnan(got[:256]).all() and np.allclose(got[256:], 1, rtol=0.02)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes_are_rounded_to_float32_first(dtype):
    x = tenon.tensor(np.random.default_rng(2).standard_normal((4, 32)), dtype=dtype)
    got = tenon.quantize_blocks(x, "q5_1").numpy()
    assert got.tobytes() == tenon.quantize_blocks(x.to("float32"), "q5_1").numpy().tobytes()


@pytest.mark.parametrize("name", ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1"])
def test_a_block_with_nan_is_nan(name):
    x = np.ones((1, 64), np.float32)
    x[0, 3] = np.nan
    got = tenon.dequantize_blocks(tenon.quantize_blocks(tenon.tensor(x), name), name).numpy()[0]
    assert np.isnan(got[:32]).all() and np.isfinite(got[32:]).all()


def test_nothing_at_all():
    assert tenon.quantize_blocks(tenon.zeros([0, 64]), "q4_0").shape == (0, 36)
    assert tenon.quantize_blocks(tenon.zeros([2, 0]), "q8_0").shape == (2, 0)
    assert tenon.quantize_blocks(tenon.zeros([32]), "q8_0").shape == (34,)


def test_strided_rows():
    x = tenon.tensor(np.random.default_rng(3).standard_normal((64, 3)))
    got = tenon.quantize_blocks(x.transpose(0, 1), "q4_1").numpy()
    want = tenon.quantize_blocks(x.transpose(0, 1).contiguous(), "q4_1").numpy()
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "shape, dtype, name, error, message",
    [
        ([32], "float32", "iq3_s", ValueError, r"expected format 'q8_0', .*, got 'iq3_s'"),
        ([32], "float32", "iq4_xs", ValueError, r"a multiple of 256 elements, got shape \(32,\)"),
        ([32], "float32", "q4_K", ValueError, r"a multiple of 256 elements, got shape \(32,\)"),
        ([33], "float32", "q4_0", ValueError, r"a multiple of 32 elements, got shape \(33,\)"),
        ([], "float32", "q4_0", ValueError, r"expected x of shape \[..., elements\]"),
        ([32], "int32", "q4_0", TypeError, r"expected a floating x, got int32"),
    ],
)
def test_what_is_refused(shape, dtype, name, error, message):
    with pytest.raises(error, match=message):
        tenon.quantize_blocks(tenon.zeros(shape, dtype=dtype), name)
