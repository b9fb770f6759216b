# SPDX-License-Identifier: Apache-2.0
"""The lines of Paddle's operators (opdefs/paddle), without Paddle."""

import inspect

import numpy as np
import pytest
import tenon
from tenon.paddle import _legacy, _lines
from tenon.paddle._lines import CALLS, NATIVE, PARAMETERS, Refused

# Operators of the 47 nets of tests/bridges/paddle_nets.py, by Paddle 3's names.
IN_NETS = (
    "abs add affine_grid all any arange argmax argsort assign atan atan2 batch_norm bicubic_interp bilinear bilinear_interp "
    "bitwise_and cast ceil celu clip concat conv2d conv2d_transpose cos cumprod cumsum deformable_conv depthwise_conv2d divide "
    "dropout einsum elementwise_pow elu embedding equal erf exp expand expm1 flatten flip floor floor_divide fmax "
    "frobenius_norm full full_int_array full_like full_with_tensor gather gather_nd gelu greater_equal greater_than "
    "grid_sample group_norm hardshrink hardsigmoid hardswish hardtanh index_select instance_norm isfinite isnan layer_norm "
    "leaky_relu less_equal less_than log log1p log2 log_softmax logical_and logical_not logical_or logical_xor logsigmoid "
    "logsumexp matmul max max_pool2d_with_index maximum mean meshgrid min minimum mish multiply nearest_interp not_equal numel "
    "one_hot p_norm pad3d pixel_shuffle pool2d pool3d pow prelu prod reciprocal relu relu6 remainder repeat_interleave reshape "
    "rnn roi_align roll round rsqrt scale scatter selu set_value set_value_with_tensor shape64 sigmoid sign silu sin slice "
    "softmax softplus softshrink softsign split split_with_num sqrt square squeeze stack strided_slice subtract sum swish "
    "take_along_axis tanh tanh_shrink thresholded_relu tile topk transpose tril triu unbind unfold unsqueeze where yolo_box"
).split()


def run(kind, **given):
    """Results of an operator on tensors with data."""

    def call(name, *arguments, **keywords):
        found = getattr(tenon, name)(*arguments, **keywords)
        return list(found) if isinstance(found, (list, tuple)) else found

    return _lines.tell(call, kind, given)


def test_operators_of_the_nets_have_lines():
    assert [kind for kind in IN_NETS if _lines.reason(kind) is not None] == []


def test_functions_are_there_and_take_the_lines_parameters():
    used = set()
    for name, call in CALLS.items():
        for case in call.cases:
            if case.native:
                used.add(case.native)
                inspect.signature(NATIVE[case.native]).bind(None, **dict.fromkeys(call.names))
                assert {parameter.name for parameter in PARAMETERS[name]} >= set(call.names)
    assert used <= set(NATIVE)
    assert sorted(set(NATIVE) - used - {"number", "kind_of", "axes_of"}) == []


def test_names_of_paddle_2_are_those_of_paddle_3():
    for old, line in _legacy._LINES.items():
        if line.kind == "select_input":
            continue
        assert line.kind in CALLS, old
        known = {parameter.name for parameter in PARAMETERS[line.kind]}
        own = {name for name in line.names.values() if not name.startswith("@")}
        used = {ours for slot, ours in line.names.items() if ours in own}
        assert used - known <= {"lower", "vec", "X"}, (old, used - known)


def test_slices_backwards_and_beyond_the_end():
    x = tenon.arange(6)
    for start, stop, step in ((5, 0, -2), (4, -7, -1), (-1, -100, -3), (1, 4, -1), (0, 100, 2)):
        (found,) = run("strided_slice", x=x, axes=[0], starts=[start], ends=[stop], strides=[step])
        python_stop = None if step < 0 and stop < -6 else stop
        assert found.tolist() == list(range(6))[start:python_stop:step], (start, stop, step)


def test_rows_that_are_added_start_from_zero():
    x = tenon.ones((3, 2))
    index = tenon.tensor([1, 1, 0], dtype="int64")
    (found,) = run("scatter", x=x, index=index, updates=tenon.ones((3, 2)), overwrite=False)
    assert found.tolist() == [[1, 1], [2, 2], [1, 1]]


def test_padding_rows_are_zeros_whatever_the_table_has():
    ids = tenon.tensor([[0, 2]], dtype="int64")
    (found,) = run("embedding", x=ids, weight=tenon.ones((3, 2)), padding_idx=0, sparse=False)
    assert found.tolist() == [[[0, 0], [1, 1]]]


def test_same_padding_puts_the_odd_one_behind():
    x = tenon.arange(16, dtype="float32").reshape((1, 1, 4, 4))
    weight = tenon.ones((1, 1, 2, 2))
    (found,) = run("conv2d", input=x, filter=weight, padding_algorithm="SAME")
    assert found[0, 0, 3].tolist() == [25, 27, 29, 15]


def test_images_with_channels_last():
    x = tenon.arange(8, dtype="float32").reshape((1, 2, 2, 2))
    given = {"kernel_size": [2, 2], "strides": [2, 2], "paddings": [0, 0], "ceil_mode": False}
    given |= {"exclusive": True, "pooling_type": "avg", "global_pooling": False, "adaptive": False}
    (found,) = run("pool2d", x=x, data_format="NHWC", padding_algorithm="EXPLICIT", **given)
    assert found.tolist() == [[[[3, 4]]]]


def test_means_leave_out_margins_that_differ():
    x = tenon.ones((1, 1, 3, 3))
    given = {"kernel_size": [2, 2], "strides": [2, 2], "paddings": [1, 0, 1, 0], "ceil_mode": False}
    given |= {"pooling_type": "avg", "global_pooling": False, "adaptive": False}
    given |= {"data_format": "NCHW", "padding_algorithm": "EXPLICIT"}
    (found,) = run("pool2d", x=x, exclusive=True, **given)
    assert found.tolist() == [[[[1, 1], [1, 1]]]]
    (found,) = run("pool2d", x=x, exclusive=False, **given)
    assert found.tolist() == [[[[0.25, 0.5], [0.5, 1]]]]


def test_a_convolution_and_pools_along_three_axes():
    x = tenon.arange(16, dtype="float32").reshape((1, 1, 2, 2, 4))
    weight = tenon.ones((1, 1, 2, 2, 2))
    (found,) = run("conv3d", input=x, filter=weight, strides=[1, 1, 2])
    assert found.tolist() == [[[[[52.0, 68.0]]]]]
    given = {"kernel_size": [2, 2, 2], "strides": [1, 1, 2], "paddings": [0, 0, 0]}
    given |= {"ceil_mode": False, "exclusive": True, "padding_algorithm": "EXPLICIT"}
    given |= {"global_pooling": False, "adaptive": False, "data_format": "NCDHW"}
    assert run("pool3d", x=x, pooling_type="avg", **given)[0].tolist() == [[[[[6.5, 8.5]]]]]
    assert run("pool3d", x=x, pooling_type="max", **given)[0].tolist() == [[[[[13.0, 15.0]]]]]
    given |= {"kernel_size": [1, 1, 2], "adaptive": True}
    assert run("pool3d", x=x, pooling_type="avg", **given)[0].tolist() == [[[[[6.5, 8.5]]]]]
    given |= {"kernel_size": [2, 1, 1], "strides": [1, 1, 1], "adaptive": False}
    given |= {"paddings": [1, 0, 0, 0, 0, 0]}  # a margin before the first axis alone
    (found,) = run("pool3d", x=x, pooling_type="avg", **given)
    assert found[0, 0, :, 0].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    (found,) = run("pool3d", x=x, pooling_type="avg", **(given | {"exclusive": False}))
    assert found[0, 0, 0, 0].tolist() == [0, 0.5, 1, 1.5]


def recurrent(mode, lengths, x, weights, states, *, both=False):
    return run(
        "rnn",
        x=x,
        pre_state=states,
        weight_list=weights,
        sequence_length=lengths,
        dropout_state_in=None,
        is_bidirec=both,
        input_size=3,
        hidden_size=2,
        mode=mode,
        is_test=True,
    )


@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN_TANH"])
def test_sequences_of_other_lengths_end_by_themselves(mode):
    tenon.manual_seed(0)
    gates = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1}[mode]
    steps, batch = 5, 3
    x = tenon.normal([steps, batch, 3])
    weights = [tenon.normal([gates * 2, n]) for _ in range(2) for n in (3, 2)]
    weights += [tenon.normal([gates * 2]) for _ in range(4)]
    states = [tenon.normal([2, batch, 2]) for _ in range(2 if mode == "LSTM" else 1)]
    lengths = [5, 2, 0]
    out, _, ends = recurrent(mode, tenon.tensor(lengths), x, weights, states, both=True)
    for row, count in enumerate(lengths):
        assert out[count:, row].tolist() == [[0.0] * 4] * (steps - count)
        alone = [state[:, row : row + 1] for state in states]
        if count:
            part = x[:count, row : row + 1]
            wanted, _, last = recurrent(mode, None, part, weights, alone, both=True)
            np.testing.assert_allclose(out[:count, row].numpy(), wanted[:, 0].numpy(), atol=1e-6)
        else:
            last = alone
        for found, expected in zip(ends, last, strict=True):
            np.testing.assert_allclose(found[:, row].numpy(), expected[:, 0].numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        ("nonzero", {"condition": None}, "the shape of its result depends on data"),
        ("acme", {}, "there is no line for it"),
        ("set_value", {"none_axes": [0], "steps": [1]}, "with new axes in its index"),
        ("dropout", {"p": 0.5, "is_test": False}, "save the model after model.eval()"),
        ("rnn", {"mode": "ELMAN", "sequence_length": None}, "mode='ELMAN'"),
        ("cumsum", {"axis": 0, "exclusive": True}, "exclusive=True"),
        ("multiclass_nms3", {}, "depends on data; load the model with until='multiclass_nms3'"),
    ],
)
def test_what_cannot_be_told_says_why(kind, given, text):
    x = tenon.ones((2, 2))
    values = {name: x for name in ()} | given
    for parameter in PARAMETERS.get(kind, ()):
        if parameter.default is ...:
            is_tensor = parameter.type == "Tensor"
            values.setdefault(
                parameter.name, x if is_tensor else [x] if "Tensor" in parameter.type else []
            )
    if kind == "set_value":
        values |= {"shape": [1], "values": [1.0]}
    with pytest.raises(Refused) as error:
        run(kind, **values)
    assert text in str(error.value)
