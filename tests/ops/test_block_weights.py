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


def test_threads_change_no_bit():
    rng = np.random.default_rng(2)
    weight = tenon.tensor(weight_of(rng, 301, 64, 18))
    x = tenon.tensor(rng.standard_normal((3, 2048)).astype(np.float32))
    threads = tenon.get_num_threads()
    try:
        results = []
        for count in (1, 4):
            tenon.set_num_threads(count)
            results += [tenon.linear_blocks(x[:rows], weight, "q4_0")[0] for rows in (1, 3)]
    finally:
        tenon.set_num_threads(threads)
    assert len({result.numpy().tobytes() for result in results}) == 1


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


def test_weights_are_bytes():
    with pytest.raises(TypeError, match="uint8"):
        tenon.linear_blocks(tenon.zeros(2, 32), tenon.zeros((3, 34), dtype="int8"), "q8_0")
    with pytest.raises(TypeError, match="uint8"):
        tenon.dequantize_blocks(tenon.zeros(3, 34), "q8_0")
    with pytest.raises(ValueError, match="whole blocks of 'q4_0', which have 18 bytes"):
        tenon.dequantize_blocks(tenon.zeros((3, 17), dtype="uint8"), "q4_0")
