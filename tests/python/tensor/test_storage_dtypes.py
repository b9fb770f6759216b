# SPDX-License-Identifier: Apache-2.0
"""Dtypes that are stored and moved, and that no operator computes with.

The formats are written down here from their definitions: OCP Microscaling Formats (E8M0, E2M1), and FNUZ as
"8-bit Numerical Formats for Deep Neural Networks" (Noune et al., 2022) has it.
"""

import itertools
import json
import math
import pickle

import numpy as np
import pytest
import tenon
from tenon.io import safetensors

FLOATS = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0")
PACKED = ("float4_e2m1_x2", "int4_x2", "uint4_x2")
STORAGE = FLOATS + PACKED
FLOAT4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
VALUES = {
    "float4_e2m1_x2": FLOAT4 + [-x for x in FLOAT4],
    "int4_x2": [*range(8), *range(-8, 0)],
    "uint4_x2": list(range(16)),
}


def fnuz(bits, mantissa_bits):
    if bits == 0x80:
        return math.nan
    exponent, mantissa = (bits & 0x7F) >> mantissa_bits, bits & ((1 << mantissa_bits) - 1)
    bias = 1 << (6 - mantissa_bits)
    if exponent:
        mantissa += 1 << mantissa_bits
    magnitude = math.ldexp(mantissa, max(exponent, 1) - bias - mantissa_bits)
    return -magnitude if bits & 0x80 else magnitude


def value_of(name, bits):
    if name == "float8_e8m0":
        return math.nan if bits == 255 else 2.0 ** (bits - 127)
    return fnuz(bits, 3 if name == "float8_e4m3fnuz" else 2)


def bytes_as(name, values):
    return tenon.tensor(np.asarray(values, np.uint8)).bitcast(name)


def bits_of(x):
    return x.bitcast(tenon.uint8).numpy()


def every_pattern(name):
    return bytes_as(name, np.arange(256))


def nearest(name, x):
    """The pattern of the number nearest to `x`; halfway, the even one. Too large is NaN."""
    if math.isnan(x) or math.isinf(x):
        return 0x80
    numbers = [value_of(name, bits) for bits in range(128)]
    step = numbers[127] - numbers[126]
    if abs(x) >= numbers[127] + step / 2:
        return 0x80
    best = min(range(128), key=lambda bits: (abs(abs(x) - numbers[bits]), bits % 2))
    return best | 0x80 if x < 0 and best else best


# -- cast ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("to", ["float32", "float64", "float16", "bfloat16"])
def test_every_pattern_has_its_value(name, to):
    with np.errstate(over="ignore"):  # float16 holds no 2^127
        wanted = np.array([value_of(name, bits) for bits in range(256)])
        if to in ("float16", "float32", "float64"):
            wanted = wanted.astype(to).astype(np.float64)
    if to == "bfloat16" and name == "float8_e8m0":
        wanted[0] = 2.0**-127  # a denormal number of bfloat16
    got = tenon.cast(every_pattern(name), to).to(tenon.float64).numpy()
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", FLOATS)
def test_casting_there_and_back_keeps_every_pattern(name):
    x = every_pattern(name)
    for dtype in ("float32", "float64"):
        np.testing.assert_array_equal(bits_of(x.to(dtype).to(name)), np.arange(256))
    np.testing.assert_array_equal(bits_of(tenon.cast(x, name)), np.arange(256))


@pytest.mark.parametrize("name", FLOATS[:2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_is_to_nearest_even(name, dtype):
    numbers = [value_of(name, bits) for bits in range(128)]
    halves = [(a + b) / 2 for a, b in itertools.pairwise(numbers)]
    last = numbers[127] + (numbers[127] - numbers[126]) / 2  # from here on NaN
    x = np.array([*halves, last, 1e30, 1e-30, math.inf, math.nan, 0.0], dtype)
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.array(math.inf, dtype))])
    x = np.concatenate([x, -x])
    got = bits_of(tenon.tensor(x).to(name))
    np.testing.assert_array_equal(got, [nearest(name, float(each)) for each in x])


def test_powers_of_two_round_to_the_nearest_and_up_halfway():
    x = [1.0, 1.4999, 1.5, 2.9, 3.0, 2.0**127, 2.0**-127, 2.0**-140, 2.0**-126]
    got = bits_of(tenon.tensor(x).to("float8_e8m0"))
    np.testing.assert_array_equal(got, [127, 127, 128, 128, 129, 254, 0, 0, 1])


def test_numbers_that_no_power_of_two_stands_for_are_nan():
    x = tenon.tensor([0.0, -0.0, -1.0, math.inf, -math.inf, math.nan, 1.5 * 2.0**127])
    assert (bits_of(x.to("float8_e8m0")) == 255).all()


@pytest.mark.parametrize("name", FLOATS)
def test_integers_strides_and_blocks(name):
    x = np.arange(1, 6001, dtype=np.int32).reshape(60, 100) % 120 + 1
    whole = tenon.tensor(x).to(name)
    strided = tenon.tensor(x).T.to(name)
    np.testing.assert_array_equal(bits_of(whole).T, bits_of(strided.contiguous()))
    back = whole.T[::2, 1::3].to(tenon.float32).numpy()
    np.testing.assert_array_equal(back, whole.to(tenon.float32).numpy().T[::2, 1::3])


@pytest.mark.parametrize("name", PACKED)
def test_cast_names_pack_and_unpack(name):
    with pytest.raises(
        TypeError, match=rf"\[cast\] expected .* got {name}, .* use pack\(x, dtype\)"
    ):
        tenon.ones(4).to(name)
    with pytest.raises(
        TypeError, match=rf"\[cast\] .* got dtype {name}, .* use unpack\(x, dtype\)"
    ):
        every_pattern(name).to(tenon.float32)
    with pytest.raises(TypeError, match=r"use pack\(x, dtype\)"):
        tenon.tensor([1.0, 2.0], dtype=name)
    np.testing.assert_array_equal(bits_of(tenon.cast(every_pattern(name), name)), np.arange(256))


# -- pack, unpack and bitcast ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PACKED)
def test_unpack_reads_the_low_half_first(name):
    wanted = [[VALUES[name][bits & 15], VALUES[name][bits >> 4]] for bits in range(256)]
    got = tenon.unpack(every_pattern(name).reshape(256, 1))
    assert got.dtype.name == {"f": "float32", "i": "int8", "u": "uint8"}[name[0]]
    np.testing.assert_array_equal(got.numpy(), wanted)
    assert tenon.unpack(every_pattern(name)).shape == (512,)
    np.testing.assert_array_equal(
        np.signbit(got.numpy()), np.signbit(np.array(wanted, got.numpy().dtype))
    )


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int16", "int64"])
def test_packing_what_was_unpacked_gives_the_same_bytes(name, dtype):
    if name.startswith("float") and dtype.startswith("int"):
        return  # refused, see below
    x = every_pattern(name)
    np.testing.assert_array_equal(bits_of(tenon.pack(tenon.unpack(x, dtype), name)), np.arange(256))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float4_rounds_to_nearest_even_and_saturates(dtype):
    halves = [(a + b) / 2 for a, b in itertools.pairwise(FLOAT4)]
    x = np.array([*FLOAT4, *halves, 7.0, 1e30, math.inf, 1e-30], dtype)
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, np.array(math.inf, dtype))])
    x = np.concatenate([x, -x])
    got = tenon.unpack(tenon.pack(tenon.tensor(x), "float4_e2m1_x2"), dtype).numpy()

    def rounded(each):
        best = min(range(8), key=lambda bits: (abs(abs(each) - FLOAT4[bits]), bits % 2))
        return math.copysign(FLOAT4[best if abs(each) < 6 else 7], each)

    wanted = np.array([rounded(float(each)) for each in x], dtype)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("name", PACKED)
def test_nan_becomes_0(name):
    x = tenon.tensor([math.nan, -math.nan])
    assert bits_of(tenon.pack(x, name)) == [0]


@pytest.mark.parametrize(
    ("name", "low", "high"), [("int4_x2", -8, 7), ("uint4_x2", 0, 15), ("float4_e2m1_x2", -6, 6)]
)
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int64", "uint64", "float32", "float64", "bfloat16"]
)
def test_what_is_beyond_becomes_the_nearest_number(name, low, high, dtype):
    x = np.array([-100, -9, -8, 7, 8, 15, 16, 100])
    if dtype.startswith("uint"):
        x = x[x >= 0][:4]
    got = tenon.unpack(tenon.pack(tenon.tensor(x).to(dtype), name), "float32").numpy()
    wanted = np.clip(x, low, high)
    if name.startswith("float"):
        wanted = np.array([math.copysign(6, each) for each in x])
    np.testing.assert_array_equal(got, wanted)


def test_int4_rounds_halves_to_even():
    x = tenon.tensor([-1.5, -0.5, 0.5, 1.5, 2.5, 6.5])
    np.testing.assert_array_equal(
        tenon.unpack(tenon.pack(x, "int4_x2")).numpy(), [-2, 0, 0, 2, 2, 6]
    )


def test_large_and_strided_tensors_pack():
    x = np.random.default_rng(0).integers(-8, 8, (300, 514))
    whole = tenon.pack(tenon.tensor(x.astype(np.float16)), "int4_x2")
    assert whole.shape == (300, 257)
    np.testing.assert_array_equal(tenon.unpack(whole, "bfloat16").to("int64").numpy(), x)
    strided = tenon.pack(tenon.tensor(x.T.copy()).T, "int4_x2")
    np.testing.assert_array_equal(bits_of(strided), bits_of(whole))
    np.testing.assert_array_equal(tenon.unpack(whole.T[1::2], "int64").numpy().shape, (128, 600))
    assert tenon.unpack(tenon.pack(tenon.zeros(0, 4), "int4_x2")).shape == (0, 4)


def test_what_does_not_pack():
    with pytest.raises(
        ValueError, match=r"\[pack\] expected a last axis of even size, .* got shape \(3,?\)"
    ):
        tenon.pack(tenon.ones(3), "int4_x2")
    with pytest.raises(ValueError, match=r"\[pack\] expected a last axis"):
        tenon.pack(tenon.tensor(1.0), "int4_x2")
    with pytest.raises(
        TypeError, match=r"\[pack\] expected dtype float4_e2m1_x2, int4_x2 or uint4_x2, got int8"
    ):
        tenon.pack(tenon.ones(4), "int8")
    with pytest.raises(
        TypeError, match=r"\[unpack\] expected x of dtype .* got float8_e8m0; use cast"
    ):
        tenon.unpack(every_pattern("float8_e8m0"))
    with pytest.raises(TypeError, match=r"a floating one, got int8"):
        tenon.unpack(every_pattern("float4_e2m1_x2"), "int8")
    with pytest.raises(TypeError, match=r"a signed integer or a floating one, got uint8"):
        tenon.unpack(every_pattern("int4_x2"), "uint8")
    with pytest.raises(TypeError, match=r"an integer or a floating one, got float8_e5m2"):
        tenon.unpack(every_pattern("uint4_x2"), "float8_e5m2")
    with pytest.raises(TypeError, match=r"complex64"):
        tenon.pack(tenon.ones(4, dtype="complex64"), "int4_x2")


def test_bitcast_is_a_view_of_the_same_bits():
    x = tenon.tensor([1.0, -2.0])
    bits = x.bitcast(tenon.int32)
    np.testing.assert_array_equal(bits.numpy(), np.array([1, -2], np.float32).view(np.int32))
    bits[0] = 0
    assert x.tolist() == [0.0, -2.0]
    np.testing.assert_array_equal(
        tenon.ones(2, 3).T.bitcast("uint32").numpy(), np.full((3, 2), 0x3F800000, np.uint32)
    )
    with pytest.raises(
        TypeError, match=r"\[bitcast\] expected a dtype of 4 bytes, as float32 has, got int8 of 1"
    ):
        x.bitcast(tenon.int8)
    with pytest.raises(TypeError, match=r"\[bitcast\] .* got bool"):
        x.bitcast(tenon.int32).to(tenon.uint8).bitcast(tenon.bool)


def test_a_block_of_ocp_mx_is_a_product():
    # Two blocks of 32 numbers, whose elements are float4 and whose scales are powers of two.
    rng = np.random.default_rng(1)
    elements, scales = rng.choice(VALUES["float4_e2m1_x2"], (2, 32)), np.array([[0.25], [64.0]])
    stored = tenon.pack(tenon.tensor(elements.astype(np.float32)), "float4_e2m1_x2")
    powers = tenon.tensor(scales.astype(np.float32)).to("float8_e8m0")
    assert stored.shape == (2, 16) and stored.nbytes + powers.nbytes == 34
    np.testing.assert_array_equal(
        (tenon.unpack(stored) * powers.to("float32")).numpy(), elements * scales
    )


# -- movement --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORAGE)
def test_elements_are_moved(name):
    bits = np.random.default_rng(2).integers(0, 256, (4, 6), np.uint8)
    x = bytes_as(name, bits)
    index = tenon.tensor([3, 0, 0])
    picked = np.array([[0, 5], [1, 1], [2, 0], [3, 3]])
    mask = bits > 100
    for got, wanted in (
        (x.clone(), bits),
        (x.reshape(3, 8), bits.reshape(3, 8)),
        (x.T.contiguous(), bits.T),
        (x[1:, ::2].clone(), bits[1:, ::2]),
        (x[2], bits[2]),
        (x[:, 3:4].expand(4, 5).contiguous(), np.broadcast_to(bits[:, 3:4], (4, 5))),
        (tenon.flip(x, [1]).contiguous(), bits[:, ::-1]),
        (tenon.concat([x, x[:1]]), np.concatenate([bits, bits[:1]])),
        (tenon.stack([x, x], 1), np.stack([bits, bits], 1)),
        (tenon.roll(x, 2, 1), np.roll(bits, 2, 1)),
        (tenon.tile(x, [2, 1]), np.tile(bits, [2, 1])),
        (tenon.index_select(x, index, 0), bits[[3, 0, 0]]),
        (x[index], bits[[3, 0, 0]]),
        (x[index, index], bits[[3, 0, 0], [3, 0, 0]]),
        (tenon.gather(x, tenon.tensor(picked), 1), np.take_along_axis(bits, picked, 1)),
        (x[tenon.tensor(mask)], bits[mask]),
        (x.to("cpu"), bits),
        (tenon.split(x, 2, 1)[1].contiguous(), bits[:, 2:4]),
    ):
        assert got.dtype.name == name
        np.testing.assert_array_equal(bits_of(got), wanted)


@pytest.mark.parametrize("name", STORAGE)
def test_elements_are_assigned(name):
    bits = np.arange(24, dtype=np.uint8).reshape(4, 6)
    other = bytes_as(name, np.arange(200, 206))
    x = bytes_as(name, bits.copy())
    x[1] = other
    bits[1] = np.arange(200, 206)
    x[tenon.tensor([3, 2])] = other
    bits[[3, 2]] = np.arange(200, 206)
    x[:, 0] = other[:4]
    bits[:, 0] = np.arange(200, 204)
    mask = bits > 202
    x[tenon.tensor(mask)] = other[0]
    bits[mask] = 200
    np.testing.assert_array_equal(bits_of(x), bits)
    at = np.array([[0, 1, 2, 3, 3, 0]])
    scattered = tenon.scatter(x, tenon.tensor(at), other.reshape(1, 6), 0)
    np.put_along_axis(bits, at, np.arange(200, 206, dtype=np.uint8).reshape(1, 6), 0)
    np.testing.assert_array_equal(bits_of(scattered), bits)


def test_numbers_are_converted_where_they_are_assigned():
    x = tenon.tensor([1.0, 2.0, 4.0]).to("float8_e8m0")
    x[1] = 8
    x[tenon.tensor([0])] = 0.5
    assert x.tolist() == [0.5, 8.0, 4.0]
    with pytest.raises(TypeError, match=r"use pack\(x, dtype\)"):
        every_pattern("int4_x2")[0] = 1


@pytest.mark.parametrize("name", STORAGE)
def test_what_holds_a_tensor(name, tmp_path):
    x = every_pattern(name).reshape(16, 16)
    for copy in (
        pickle.loads(pickle.dumps(x)),
        tenon.from_dlpack(x),
        tenon.frombuffer(bytes(range(256)), x.dtype, (16, 16)),
        tenon.compile(lambda x: x.T.contiguous().T)(x),
    ):
        assert copy.dtype == x.dtype and copy.shape == (16, 16)
        np.testing.assert_array_equal(bits_of(copy).ravel(), np.arange(256))
    assert (
        str(x.dtype) == name and repr(x.dtype) == f"tenon.{name}" == f"tenon.{getattr(tenon, name)}"
    )
    assert x.dtype.itemsize == 1 and not x.dtype.is_floating_point and not x.dtype.is_integer
    assert tenon.empty(3, dtype=name).dtype == tenon.empty_like(x).dtype == name
    path = tmp_path / "x.safetensors"
    if name in ("int4_x2", "uint4_x2"):
        with pytest.raises(ValueError, match=f"cannot hold 'x' of dtype {name}; convert it first"):
            tenon.save({"x": x}, path)
        return
    tenon.save({"x": x}, path)
    loaded = tenon.load(path)["x"]
    assert loaded.dtype == x.dtype and loaded.shape == x.shape
    np.testing.assert_array_equal(bits_of(loaded), bits_of(x))


@pytest.mark.parametrize("name", PACKED)
def test_programs_unpack_bytes(name):
    def restored(stored, scales):
        return tenon.unpack(stored.bitcast(name), "float32") * scales.to("float32")

    stored = tenon.tensor(np.arange(256, dtype=np.uint8)).reshape(16, 16)
    scales = tenon.tensor(2.0 ** np.arange(16)).reshape(16, 1).to("float8_e8m0")
    program = tenon.compile(restored)
    for _ in range(3):  # recorded, and run
        np.testing.assert_array_equal(
            program(stored, scales).numpy(), restored(stored, scales).numpy()
        )


def test_names_and_shapes_in_safetensors(tmp_path):
    path = tmp_path / "x.safetensors"
    for name, kind, shape in (
        ("float8_e4m3fnuz", "F8_E4M3FNUZ", [2, 3]),
        ("float8_e5m2fnuz", "F8_E5M2FNUZ", [2, 3]),
        ("float8_e8m0", "F8_E8M0", [2, 3]),
        ("float4_e2m1_x2", "F4", [2, 6]),  # numbers, as other writers count them
    ):
        tenon.save({"x": bytes_as(name, np.zeros((2, 3)))}, path)
        content = path.read_bytes()
        text = content[8 : 8 + int.from_bytes(content[:8], "little")]
        assert json.loads(text)["x"] == {"dtype": kind, "shape": shape, "data_offsets": [0, 6]}
    path.write_bytes(content.replace(b"[2,6]", b"[4,3]"))
    with pytest.raises(safetensors.FormatError, match="a last size that is a multiple of 2 for F4"):
        tenon.load(path)
    with pytest.raises(ValueError, match=r"cannot hold 'x', a float4_e2m1_x2 without axes"):
        tenon.save({"x": bytes_as("float4_e2m1_x2", 0)}, path)


def test_printing():
    x = tenon.tensor([0.5, 2.0, math.nan]).to("float8_e8m0")
    assert repr(x) == "tensor([0.5, 2.0, nan], dtype=tenon.float8_e8m0)"
    assert x.tolist()[:2] == [0.5, 2.0] and x[1].item() == float(x[1]) == 2.0
    y = tenon.pack(tenon.tensor([[1, -2, 3, -4]]), "int4_x2")
    assert repr(y) == "tensor([[ 1, -2,  3, -4]], shape=(1, 2), dtype=tenon.int4_x2)"
    assert repr(y[0, 1]) == "tensor([ 3, -4], shape=(), dtype=tenon.int4_x2)"
    with pytest.raises(
        TypeError, match=r"got dtype int4_x2, whose elements hold two; use unpack\(\)"
    ):
        y.tolist()
    with pytest.raises(TypeError, match=r"use unpack\(\)"):
        y[0, 1].item()


@pytest.mark.parametrize("name", STORAGE)
def test_numpy_has_no_such_dtype(name):
    fix = r"\.unpack\(\)\.numpy" if name in PACKED else r"\.to\(tenon\.float32\)\.numpy"
    with pytest.raises(TypeError, match=rf"{name} .* NumPy has no such dtype; use {fix}"):
        every_pattern(name).numpy()
    with pytest.raises(BufferError, match="no buffer format"):
        memoryview(every_pattern(name))


def test_limits():
    for name in FLOATS:
        numbers = [value_of(name, bits) for bits in range(256)]
        info = tenon.finfo(name)
        assert info.bits == 8 and info.max == np.nanmax(numbers) and info.min == np.nanmin(numbers)
        one = numbers.index(1.0)
        assert info.eps == numbers[one + 1] - 1
    assert tenon.finfo("float4_e2m1_x2").max == 6 and tenon.finfo("float4_e2m1_x2").bits == 4
    assert (tenon.iinfo("int4_x2").min, tenon.iinfo("int4_x2").max) == (-8, 7)
    assert (tenon.iinfo("uint4_x2").min, tenon.iinfo("uint4_x2").max) == (0, 15)


def test_names_of_other_libraries():
    assert tenon.dtype("float8_e8m0fnu") == tenon.float8_e8m0
    assert tenon.dtype("float4_e2m1fn_x2") == tenon.float4_e2m1_x2


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORAGE)
def test_nothing_is_promoted(name):
    x = every_pattern(name)
    for other in (tenon.ones(256), tenon.ones(256, dtype="int8"), 2, 0.5, True, 1j):
        for function in (lambda a, b: a + b, lambda a, b: b * a, lambda a, b: a < b):
            with pytest.raises(TypeError, match=f"{name}"):
                function(x, other)
    with pytest.raises(TypeError, match=rf"\[concat\] expected one dtype, got {name} and float32"):
        tenon.concat([tenon.ones(3), x])
    with pytest.raises(TypeError, match=f"nothing but {name}, which is stored only"):
        tenon.result_type(x, "float32")
    with pytest.raises(TypeError, match=f"nothing but {name}, which is stored only"):
        tenon.result_type(name, 1.0)
    assert tenon.result_type(x, name) == name
    assert not tenon.can_cast("float32", name) and not tenon.can_cast(name, "float32")
    assert tenon.can_cast(name, name)


@pytest.mark.parametrize("name", STORAGE)
def test_results_are_not_written_into_other_dtypes(name):
    out = every_pattern(name)
    with pytest.raises(TypeError, match=f"does not fit an output of dtype {name}"):
        tenon.exp(tenon.ones(256), out=out)
    with pytest.raises(TypeError, match=f"{name}"):
        tenon.clone(every_pattern(name), out=tenon.ones(256))
    np.testing.assert_array_equal(bits_of(out), np.arange(256))


@pytest.mark.parametrize("name", STORAGE)
def test_new_tensors_of_numbers(name):
    for make in (tenon.zeros, tenon.ones):
        with pytest.raises(TypeError, match=rf"got {name}, which is stored only"):
            make(3, dtype=name)
        with pytest.raises(TypeError, match=rf"got {name}, which is stored only"):
            make(3000, dtype=name)


@pytest.mark.parametrize("name", STORAGE)
def test_gradients_end_at_a_stored_tensor(name):
    x = tenon.ones(4, requires_grad=True)
    y = tenon.pack(x, name) if name in PACKED else x.to(name)
    assert not y.requires_grad
    with pytest.raises((TypeError, RuntimeError), match="floating"):
        every_pattern(name).requires_grad_()
