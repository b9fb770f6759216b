# SPDX-License-Identifier: Apache-2.0
"""Element types of less than a byte, powers of two, and operators that keep a state."""

import numpy as np
import pytest
import tenon
import tenon.onnx
from messages import TYPES, field, graph, model, node, value

F32 = np.float32
UINT4, INT4, FLOAT4, FLOAT8E8M0, UINT2, INT2 = 21, 22, 23, 24, 25, 26


def cast(x, to, **attributes):
    nodes = [node("Cast", ["x"], ["y"], to=to, **attributes)]
    return tenon.onnx.load(model(nodes, [value("x", x.dtype.name, x.shape)], ["y"], opset=28))(
        tenon.tensor(x)
    )


@pytest.mark.parametrize(
    ("to", "dtype", "want"),
    [
        (INT4, "int8", [7, -8, -1, 0, 7, -8, 1]),
        (UINT4, "uint8", [7, 8, 15, 0, 7, 8, 1]),
        (INT2, "int8", [-1, 0, -1, 0, -1, 0, 1]),
        (UINT2, "uint8", [3, 0, 3, 0, 3, 0, 1]),
    ],
)
def test_integers_keep_their_low_bits(to, dtype, want):
    for kind in (F32, np.int32):
        got = cast(np.array([-9, -8, -1, 0, 7, 8, 17]).astype(kind), to)
        assert got.dtype.name == dtype and got.tolist() == want


def test_float4_rounds_to_the_nearest_and_saturates():
    x = np.array([0.25, 0.3, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 5.1, 9.0, -np.inf, np.nan], F32)
    got = tenon.cast(cast(x, FLOAT4), tenon.float32)
    assert got.tolist() == [0.0, 0.5, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 6.0, 6.0, -6.0, 0.0]


def test_powers_of_two_in_a_direction():
    x = np.array([0.0, 1.0, 1.1, 3.0, 6.0], F32)
    for mode, want in (("up", [2.0**-127, 1, 2, 4, 8]), ("down", [2.0**-127, 1, 1, 2, 4])):
        got = tenon.cast(cast(x, FLOAT8E8M0, round_mode=mode), tenon.float64)
        assert got.tolist() == want


def packed(name, kind, shape, data):
    return (
        b"".join(field(1, size) for size in shape)
        + field(2, kind)
        + field(8, name)
        + field(9, data)
    )


@pytest.mark.parametrize(
    ("kind", "data", "want"),
    [
        (UINT4, b"\x21\xf3", [1, 2, 3]),
        (INT4, b"\x8f\x07", [-1, -8, 7]),
        (UINT2, b"\x39", [1, 2, 3]),
        (INT2, b"\x36", [-2, 1, -1]),
        (FLOAT4, b"\xf1\x05", [0.5, -6.0, 3.0]),
    ],
)
def test_weights_are_unpacked(kind, data, want):
    def whole(elements):
        nodes = [node("Cast", ["w"], ["y"], to=TYPES["float32"])]
        body = graph(nodes, [], ["y"]) + field(5, packed("w", kind, [3], elements))
        return field(1, 10) + field(7, body) + field(8, field(2, 25))

    assert tenon.onnx.load(whole(data))().tolist() == want
    with pytest.raises(ValueError, match="tensor `w`: expected [12] bytes for its shape, got 9"):
        tenon.onnx.load(whole(bytes(9)))


def test_quantised_numbers_of_four_bits():
    weights = {"s": np.array(2.0, F32)}
    nodes = [
        node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=INT4),
        node("DequantizeLinear", ["q", "s"], ["y"]),
    ]
    program = tenon.onnx.load(
        model(nodes, [value("x", "float32", [4])], ["q", "y"], weights, opset=25)
    )
    numbers, real = program(tenon.tensor([-99.0, -3.0, 3.0, 99.0]))
    assert numbers.tolist() == [-8, -2, 2, 7] and real.tolist() == [-16.0, -4.0, 4.0, 14.0]


def test_cast_like_takes_the_type_of_its_target_and_not_its_carrier():
    nodes = [
        node("Cast", ["x"], ["n"], to=INT4),
        node("CastLike", ["x", "n"], ["a"]),
        node("Cast", ["n"], ["w"], to=TYPES["int8"]),
        node("CastLike", ["x", "w"], ["b"]),
    ]
    program = tenon.onnx.load(model(nodes, [value("x", "float32", [2])], ["a", "b"], opset=25))
    a, b = program(tenon.tensor([9.0, -3.0]))
    assert a.tolist() == [-7, -3] and b.tolist() == [9, -3]


def test_boxes_that_are_kept():
    boxes = np.array([[[0, 0, 1, 1], [1, 1.1, 0, 0.1], [0, 10, 1, 11]]], F32)
    scores = np.array([[[0.9, 0.75, 0.6], [0.1, 0.8, 0.2]]], F32)
    weights = {
        "b": boxes,
        "s": scores,
        "m": np.array([2]),
        "i": np.array([0.5], F32),
        "t": np.array([0.15], F32),
    }
    nodes = [node("NonMaxSuppression", ["b", "s", "m", "i", "t"], ["y"])]
    got = tenon.onnx.load(model(nodes, [], ["y"], weights))()
    assert got.tolist() == [[0, 0, 0], [0, 0, 2], [0, 1, 1], [0, 1, 2]]
    none = tenon.onnx.load(
        model([node("NonMaxSuppression", ["b", "s"], ["y"])], [], ["y"], weights)
    )()
    assert none.shape == (0, 3)
    with pytest.raises(
        NotImplementedError, match="expected input `boxes` to be known when the model is loaded"
    ):
        tenon.onnx.load(
            model(
                nodes,
                [value("b", "float32", [1, 3, 4])],
                ["y"],
                {k: v for k, v in weights.items() if k != "b"},
            )
        )


def test_linear_attention_is_its_recurrence():
    rng = np.random.default_rng(3)
    batch, time, heads, group, size, width = 2, 5, 2, 2, 3, 4
    q = rng.normal(size=(batch, time, heads * group * size)).astype(F32)
    k = rng.normal(size=(batch, time, heads * size)).astype(F32)
    v = rng.normal(size=(batch, time, heads * width)).astype(F32)
    decay = -rng.random((batch, time, heads)).astype(F32)
    beta = rng.random((batch, time, 1)).astype(F32)
    names = {"q": q, "k": k, "v": v, "decay": decay, "beta": beta}
    nodes = [
        node(
            "LinearAttention",
            ["q", "k", "v", "", "decay", "beta"],
            ["y", "state"],
            q_num_heads=heads * group,
            kv_num_heads=heads,
            scale=0.5,
        )
    ]
    inputs = [value(name, "float32", array.shape) for name, array in names.items()]
    program = tenon.onnx.load(model(nodes, inputs, ["y", "state"], opset=27))
    y, last = program(*(tenon.tensor(array) for array in names.values()))
    state = np.zeros((batch, heads, size, width), F32)
    for t in range(time):
        query = q[:, t].reshape(batch, heads, group, size)
        key, val = k[:, t].reshape(batch, heads, size), v[:, t].reshape(batch, heads, width)
        state = state * np.exp(decay[:, t])[:, :, None, None]
        change = (val - np.einsum("bhs,bhsw->bhw", key, state)) * beta[:, t][:, :, None]
        state = state + key[..., None] * change[..., None, :]
        want = 0.5 * np.einsum("bhgs,bhsw->bhgw", query, state).reshape(batch, -1)
        np.testing.assert_allclose(y.numpy()[:, t], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last.numpy(), state, rtol=1e-4, atol=1e-5)


def test_a_causal_convolution_goes_on_where_it_ended():
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(1, 2, 6)).astype(F32), rng.normal(size=(2, 1, 3)).astype(F32)

    def run(part, past=None):
        inputs = [value("x", "float32", part.shape)]
        given = [tenon.tensor(part)]
        if past is not None:
            inputs.append(value("past", "float32", past.shape))
            given.append(past)
        nodes = [
            node(
                "CausalConvWithState",
                ["x", "w", "", "past" if past is not None else ""],
                ["y", "s"],
                activation="silu",
            )
        ]
        return tenon.onnx.load(model(nodes, inputs, ["y", "s"], {"w": w}, opset=27))(*given)

    whole, end = run(x)
    first, state = run(x[:, :, :2])
    second, last = run(x[:, :, 2:], state)
    np.testing.assert_allclose(
        np.concatenate([first.numpy(), second.numpy()], 2), whole.numpy(), rtol=1e-5
    )
    assert np.array_equal(end.numpy(), last.numpy()) and np.array_equal(last.numpy(), x[:, :, 4:])
