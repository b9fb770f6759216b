# SPDX-License-Identifier: Apache-2.0
"""Weights in blocks: the bits of every format, products of one row and of many, gradients, and what is refused."""

import hashlib
import zlib

import numpy as np
import pytest
import tenon
from running import to_tensor

# Name, elements and bytes of a block, and the CRC-32 of the float32 numbers that the `gguf` package (0.19.0) makes of 64
# blocks: the digest of SHAKE-256 of the name, NaN as 0.
FORMATS = [
    ("q8_0", 32, 34, 0x69541C45),
    ("q4_0", 32, 18, 0x16650E79),
    ("q4_1", 32, 20, 0x19B2A7F9),
    ("q5_0", 32, 22, 0xDB4AB64E),
    ("q5_1", 32, 24, 0xE97767A7),
    ("q2_K", 256, 84, 0x1A7AF6F7),
    ("q3_K", 256, 110, 0xDAC26BAE),
    ("q4_K", 256, 144, 0xD53B6D92),
    ("q5_K", 256, 176, 0x739691A6),
    ("q6_K", 256, 210, 0xFE93AAA1),
    ("iq4_nl", 32, 18, 0x1CEB8907),
    ("iq4_xs", 256, 136, 0x87897F11),
    ("mxfp4", 32, 17, 0xB71A0796),
]
each_format = pytest.mark.parametrize("name, elements, bytes_of_block, checksum", FORMATS)


def weight_of(rng, rows, blocks, bytes_of_block):
    """Bytes below 60 are finite factors below 1 wherever a format has them."""
    return rng.integers(0, 60, (rows, blocks * bytes_of_block), dtype=np.uint8)


@each_format
def test_blocks_have_the_bits_of_the_reference(name, elements, bytes_of_block, checksum, device):
    digest = hashlib.shake_256(name.encode()).digest(64 * bytes_of_block)
    blocks = np.frombuffer(digest, np.uint8).reshape(8, 8 * bytes_of_block)
    got = tenon.dequantize_blocks(to_tensor(blocks, device), name)
    assert got.shape == (8, 8 * elements) and got.dtype == tenon.float32
    numbers = got.to("cpu").numpy()
    numbers = np.where(np.isnan(numbers), np.float32(0), numbers)
    assert zlib.crc32(numbers.astype("<f4").tobytes()) == checksum


@each_format
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_products_are_those_of_the_numbers(name, elements, bytes_of_block, checksum, dtype, device):
    rng = np.random.default_rng(0)
    stored = to_tensor(weight_of(rng, 7, 3, bytes_of_block), device)
    numbers = tenon.dequantize_blocks(stored, name).to("cpu").to("float64").numpy()
    bias = to_tensor(rng.standard_normal(7), device, dtype=dtype)
    for shape in [(1,), (6,), (2, 3), ()]:
        x = to_tensor(rng.standard_normal((*shape, 3 * elements)), device, dtype=dtype)
        got = tenon.linear_blocks(x, stored, name, bias)
        assert got.shape == (*shape, 7) and got.dtype == x.dtype
        x, bias_numbers = (t.to("cpu").to("float64").numpy() for t in (x, bias))
        want = x @ numbers.T + bias_numbers
        # Of the sum of magnitudes: float32 has steps of 2**-24, the result is rounded once.
        step = {"float64": 1e-14, "float32": 1e-6, "float16": 2**-10, "bfloat16": 2**-8}[dtype]
        bound = step * (np.abs(x) @ np.abs(numbers).T + np.abs(bias_numbers))
        assert (np.abs(got.to("cpu").to("float64").numpy() - want) <= bound).all()


@each_format
@pytest.mark.parametrize("columns", [1, 4, 9])
def test_bits_of_a_row_do_not_depend_on_the_rows_beside_it(
    name, elements, bytes_of_block, checksum, columns
):
    rng = np.random.default_rng(1)
    weight = tenon.tensor(weight_of(rng, columns, 2, bytes_of_block))
    x = tenon.tensor(rng.standard_normal((11, 2 * elements)).astype(np.float32))
    whole = tenon.linear_blocks(x, weight, name).numpy()
    for rows in (1, 2, 5):
        part = tenon.linear_blocks(x[:rows], weight, name).numpy()
        assert part.tobytes() == whole[:rows].tobytes()


@pytest.mark.parametrize("activations", ["float", "int8"])
def test_threads_change_no_bit(activations):
    rng = np.random.default_rng(2)
    weight = tenon.tensor(weight_of(rng, 301, 64, 18))
    x = tenon.tensor(rng.standard_normal((3, 2048)).astype(np.float32))
    threads = tenon.get_num_threads()
    try:
        results = []
        for count in (1, 4):
            tenon.set_num_threads(count)
            results += [
                tenon.linear_blocks(x[:rows], weight, "q4_0", activations=activations)[0]
                for rows in (1, 3)
            ]
    finally:
        tenon.set_num_threads(threads)
    assert len({result.numpy().tobytes() for result in results}) == 1


def rounded_to_8_bits(x):
    """Rows with each 32 elements as whole steps of a 127th of their largest magnitude."""
    blocks = x.astype(np.float32).reshape(-1, 32)
    step = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), step, out=np.zeros_like(step), where=step != 0)
    return (np.rint(blocks * inverse).astype(np.float64) * step).reshape(x.shape)


@each_format
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_of_eight_bits_are_those_of_the_rounded_numbers(
    name, elements, bytes_of_block, checksum, dtype, device
):
    rng = np.random.default_rng(5)
    blocks = 3 if elements == 256 else 19  # more than the 512 elements of a panel
    stored = to_tensor(weight_of(rng, 37, blocks, bytes_of_block), device)
    numbers = tenon.dequantize_blocks(stored, name).to("cpu").to("float64").numpy()
    bias = to_tensor(rng.standard_normal(37), device, dtype=dtype)
    for rows in (1, 3, 21):
        x = rng.standard_normal((rows, blocks * elements))
        x[0, 32:64] = 0
        x = to_tensor(x, device, dtype=dtype)
        got = tenon.linear_blocks(x, stored, name, bias, activations="int8")
        x, bias_numbers = (t.to("cpu").to("float64").numpy() for t in (x, bias))
        rounded = rounded_to_8_bits(x)
        want = rounded @ numbers.T + bias_numbers
        step = {"float32": 1e-6, "bfloat16": 2**-8}[dtype]
        bound = step * (np.abs(rounded) @ np.abs(numbers).T + np.abs(bias_numbers))
        assert (np.abs(got.to("cpu").to("float64").numpy() - want) <= bound).all()


@each_format
@pytest.mark.parametrize("columns", [1, 16, 75])
def test_eight_bits_of_a_row_do_not_depend_on_the_rows_beside_it(
    name, elements, bytes_of_block, checksum, columns
):
    rng = np.random.default_rng(6)
    blocks = 3 if elements == 256 else 17
    weight = tenon.tensor(weight_of(rng, columns, blocks, bytes_of_block))
    x = tenon.tensor(rng.standard_normal((33, blocks * elements)).astype(np.float32))
    whole = tenon.linear_blocks(x, weight, name, activations="int8").numpy()
    for rows in (1, 2, 7, 24):
        part = tenon.linear_blocks(x[33 - rows :], weight, name, activations="int8").numpy()
        assert part.tobytes() == whole[33 - rows :].tobytes()


def test_codes_at_the_ends_of_eight_bits_are_multiplied_exactly():
    """-128 and 127 beside rows of x of the largest steps: sums of two products exceed 16 bits."""
    codes = np.full((16, 32), -128, np.int8)
    codes[1::2] = 127
    ones = np.full((16, 1), 1, "<f2").view(np.uint8)
    blocks = np.concatenate([ones, codes.view(np.uint8)], 1)
    x = np.full((9, 32), 127, np.float32)
    x[::2] = -127
    got = tenon.linear_blocks(tenon.tensor(x), tenon.tensor(blocks), "q8_0", activations="int8")
    np.testing.assert_array_equal(got.numpy(), x @ codes.T.astype(np.float32))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_eight_bits_of_what_is_not_finite(value):
    rng = np.random.default_rng(7)
    weight = tenon.tensor(weight_of(rng, 5, 2, 18))
    x = rng.standard_normal((2, 64)).astype(np.float32)
    x[1, 40] = value
    got = tenon.linear_blocks(tenon.tensor(x), weight, "q4_0", activations="int8").numpy()
    assert np.isfinite(got[0]).all() and not np.isfinite(got[1]).any()


def test_tiny_numbers_of_eight_bits():
    x = np.full((1, 32), 1e-42, np.float32)
    weight = tenon.quantize_blocks(tenon.ones([3, 32]), "q8_0")
    got = tenon.linear_blocks(tenon.tensor(x), weight, "q8_0", activations="int8").numpy()
    assert (np.abs(got) <= 1e-40).all()


def test_gradients_of_eight_bits_are_those_of_floats():
    rng = np.random.default_rng(8)
    weight = tenon.tensor(weight_of(rng, 3, 1, 34))
    x = tenon.tensor(rng.standard_normal((2, 32)), requires_grad=True)
    out = tenon.linear_blocks(x, weight, "q8_0", activations="int8")
    (grad,) = tenon.grad(out.sum(), [x])
    numbers = tenon.dequantize_blocks(weight, "q8_0").to("float64").numpy()
    np.testing.assert_allclose(grad.numpy(), np.broadcast_to(numbers.sum(0), (2, 32)))


def test_gradients_of_x_and_bias_twice():
    rng = np.random.default_rng(3)
    weight = tenon.tensor(weight_of(rng, 3, 1, 34))
    x = tenon.tensor(rng.standard_normal((2, 32)), requires_grad=True)
    bias = tenon.tensor(rng.standard_normal(3), requires_grad=True)
    out = tenon.linear_blocks(x, weight, "q8_0", bias)
    grads = tenon.grad((out * out).sum(), [x, bias], create_graph=True)
    matrix = tenon.dequantize_blocks(weight, "q8_0").to("float64").numpy()
    np.testing.assert_allclose(grads[0].detach().numpy(), 2 * out.detach().numpy() @ matrix)
    np.testing.assert_allclose(grads[1].detach().numpy(), 2 * out.detach().numpy().sum(0))
    (second,) = tenon.grad(grads[0].sum(), [x])
    np.testing.assert_allclose(
        second.numpy(), np.broadcast_to(2 * matrix.sum(1) @ matrix, (2, 32)), rtol=1e-12
    )


def test_rows_of_tables(device):
    stored = weight_of(np.random.default_rng(4), 5, 2, 34)
    indices = np.array([[4, 0, -1], [2, 2, 1]])
    got = tenon.embedding_blocks(to_tensor(stored, device), to_tensor(indices, device), "q8_0")
    numbers = tenon.dequantize_blocks(tenon.tensor(stored), "q8_0").numpy()
    assert got.to("cpu").numpy().tobytes() == numbers[indices].tobytes()


def test_nothing_at_all(device):
    def bytes_of(*shape):
        return to_tensor(np.zeros(shape, np.uint8), device)

    def floats(*shape):
        return to_tensor(np.ones(shape, np.float32), device)

    assert tenon.dequantize_blocks(bytes_of(0, 34), "q8_0").shape == (0, 32)
    assert tenon.dequantize_blocks(bytes_of(2, 0), "q4_K").shape == (2, 0)
    assert tenon.linear_blocks(floats(0, 32), bytes_of(3, 34), "q8_0").shape == (0, 3)
    assert tenon.linear_blocks(floats(2, 32), bytes_of(0, 34), "q8_0").shape == (2, 0)
    got = tenon.linear_blocks(floats(2, 0), bytes_of(3, 0), "q8_0", floats(3))
    assert got.tolist() == [[1.0] * 3] * 2
    assert tenon.linear_blocks(floats(2, 0), bytes_of(3, 0), "q8_0").tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    "x, weight, name, bias, message",
    [
        ([2, 32], [3, 34], "q9_0", None, r"expected format 'q8_0', 'q4_0', .* 'mxfp4', got 'q9_0'"),
        ([2, 32], [3, 35], "q8_0", None, r"whole blocks of 'q8_0', which have 34 bytes for 32"),
        ([2, 33], [3, 34], "q8_0", None, r"multiple of the 32 elements .* 'q8_0' has, got .*33"),
        ([2, 32], [3, 144], "q4_K", None, r"multiple of the 256 elements that a block of 'q4_K'"),
        ([2, 64], [3, 34], "q8_0", None, r"expected x.shape\[-1\] to be the 32 elements"),
        ([], [3, 34], "q8_0", None, r"expected x of shape \[..., in\]"),
        ([2, 32], [34], "q8_0", None, r"expected weight to have 2 axes, \[out, bytes of a row\]"),
        ([2, 32], [3, 34], "q8_0", [4], r"expected bias of shape \[3\], got \(4,\)"),
    ],
)
def test_what_is_refused(x, weight, name, bias, message):
    weight = tenon.zeros(weight, dtype="uint8")
    with pytest.raises(ValueError, match=message):
        tenon.linear_blocks(
            tenon.zeros(x), weight, name, None if bias is None else tenon.zeros(bias)
        )


def test_activations_are_named():
    weight = tenon.zeros([3, 34], dtype="uint8")
    with pytest.raises(ValueError, match=r"expected activations 'float' or 'int8', got 'int4'"):
        tenon.linear_blocks(tenon.zeros(2, 32), weight, "q8_0", activations="int4")


def test_weights_are_bytes():
    with pytest.raises(TypeError, match="uint8"):
        tenon.linear_blocks(tenon.zeros(2, 32), tenon.zeros((3, 34), dtype="int8"), "q8_0")
    with pytest.raises(TypeError, match="uint8"):
        tenon.dequantize_blocks(tenon.zeros(3, 34), "q8_0")
    with pytest.raises(ValueError, match="whole blocks of 'q4_0', which have 18 bytes"):
        tenon.dequantize_blocks(tenon.zeros((3, 17), dtype="uint8"), "q4_0")
