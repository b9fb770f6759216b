# SPDX-License-Identifier: Apache-2.0
"""Constructors of layers: the order of their settings is PyTorch's, and what does not fit is refused."""

import inspect
import math

import numpy as np
import pytest
import tenon
from tenon import nn

LAYERS = sorted(
    name
    for name in nn.__all__
    if inspect.isclass(getattr(nn, name)) and issubclass(getattr(nn, name), nn.Module)
)
# Values for settings without a default.
REQUIRED = {
    "in_features": 4, "out_features": 4, "in_channels": 4, "out_channels": 4, "kernel_size": 2,
    "input_size": 4, "hidden_size": 3, "num_features": 4, "num_groups": 2, "num_channels": 4,
    "normalized_shape": 4, "embed_dim": 4, "num_heads": 2, "d_model": 4, "nhead": 2,
    "num_embeddings": 4, "embedding_dim": 2, "in1_features": 2, "in2_features": 2,
    "n_classes": 5, "cutoffs": [2], "feature_size": 4, "num_classes": 4, "output_size": 2,
    "norm_type": 2.0, "num_layers": 1,
}  # fmt: skip


def flags_of(layer):
    kinds = {"bool": "True or False", "bool | None": "True, False or None"}
    annotations = getattr(layer.__init__, "__annotations__", {})
    return {name: kinds[kind] for name, kind in annotations.items() if kind in kinds}


def required(layer):
    known = inspect.signature(layer).parameters.values()
    given = {each.name: REQUIRED.get(each.name) for each in known if each.default is each.empty}
    if "encoder_layer" in given:
        given["encoder_layer"] = nn.TransformerEncoderLayer(4, 2)
    return {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize("name", [n for n in LAYERS if flags_of(getattr(nn, n))])
def test_switches_take_nothing_but_true_and_false(name):
    layer = getattr(nn, name)
    for flag, wanted in flags_of(layer).items():
        for value in ("sum", 0.5, 2, [True]):
            with pytest.raises(TypeError, match=f"{name}: expected {flag} to be {wanted}, got"):
                layer(**{**required(layer), flag: value})


def test_switches_take_the_truth_values_of_numpy_and_numbers():
    assert nn.Linear(2, 3, np.bool_(False)).bias is None
    assert nn.Linear(2, 3, 0).bias is None
    assert nn.Linear(2, 3, bias=1).bias is not None


def test_the_fourth_setting_of_rnn_is_its_nonlinearity():
    layer = nn.RNN(2, 3, 1, "relu")
    assert layer.nonlinearity == "relu" and layer.bias is True
    assert nn.RNN(2, 3, 1, "relu", False, True, 0.0, True).bidirectional
    x = tenon.randn(5, 4, 2)
    assert layer(x)[0].min().item() == 0.0
    with pytest.raises(ValueError, match="expected nonlinearity 'tanh' or 'relu', got True"):
        nn.RNN(2, 3, 1, True)
    with pytest.raises(TypeError, match="LSTM: expected bias to be True or False, got 'relu'"):
        nn.LSTM(2, 3, 1, "relu")


def test_device_and_dtype_may_be_positional():
    assert nn.Linear(2, 3, True, None, tenon.float64).weight.dtype == tenon.float64
    assert nn.Conv2d(1, 2, 3, 1, 0, 1, 1, False, "zeros", "cpu", tenon.float64).bias is None
    assert nn.BatchNorm1d(2, 1e-5, 0.1, True, True, None, tenon.float64).weight.dtype.name == (
        "float64"
    )


@pytest.mark.parametrize(
    "layer, settings",
    [
        (nn.ReLU(True), {}),
        (nn.LeakyReLU(0.2, True), {"negative_slope": 0.2}),
        (nn.Hardtanh(-2.0, 2.0, True), {"min": -2.0, "max": 2.0}),
        (nn.Hardtanh(min_value=-2.0, max_value=2.0), {"min": -2.0, "max": 2.0}),
        (nn.Softshrink(lambd=0.1), {"threshold": 0.1}),
    ],
)
def test_activations_take_inplace_behind_their_settings(layer, settings):
    assert layer.settings == settings


def test_activations_refuse_what_they_do_not_know():
    with pytest.raises(TypeError, match=r"ReLU: expected settings \['inplace'\], got slope and"):
        nn.ReLU(slope=1.0)
    with pytest.raises(TypeError, match="ReLU: expected inplace to be True or False"):
        nn.ReLU(0.1)
    with pytest.raises(TypeError, match="LeakyReLU: expected settings .* got negative_slope twice"):
        nn.LeakyReLU(0.1, negative_slope=0.2)
    with pytest.raises(TypeError, match=r"Tanh: expected settings \[\], got \[True\]"):
        nn.Tanh(True)
    with pytest.raises(ValueError, match="GELU: expected approximate 'none' or 'tanh', got 'erf'"):
        nn.GELU("erf")(tenon.ones(2))


@pytest.mark.parametrize("layer", [nn.Softmax, nn.LogSoftmax, nn.Softmin])
def test_softmax_without_an_axis_is_for_vectors_and_rows(layer):
    for shape in ((3,), (2, 3)):
        x = tenon.randn(shape)
        assert layer()(x).tolist() == layer(-1)(x).tolist()
    with pytest.raises(
        ValueError, match=r"expected dim, the axis of the classes, for an input of 3"
    ):
        layer()(tenon.ones(2, 3, 4))


def test_softplus_is_a_line_behind_its_threshold():
    x = tenon.tensor([-1.0, 0.5, 2.0])
    assert nn.Softplus(2.0, 3.0)(x).tolist()[2] == 2.0
    assert nn.Softplus(2.0)(x).tolist()[2] > 2.0
    want = [-1.5 * math.log1p(math.exp(-each / 1.5)) for each in x.tolist()]
    np.testing.assert_allclose(nn.Softplus(-1 / 1.5)(x).numpy(), want, rtol=1e-6)


def test_losses_take_the_settings_before_reduction():
    x, y = tenon.tensor([1.0, 2.0]), tenon.tensor([0.0, 0.0])
    assert nn.MSELoss(False)(x, y).item() == 5.0
    assert nn.MSELoss(None, False)(x, y).tolist() == [1.0, 4.0]
    assert nn.MSELoss(size_average=True, reduction="sum")(x, y).item() == 2.5
    logits, target = tenon.randn(3, 4), tenon.tensor([0, 1, 1])
    assert nn.CrossEntropyLoss(None, None, 1, None, "sum")(logits, target).item() == (
        nn.functional.cross_entropy(logits[:1], target[:1]).item()
    )
    positive = tenon.tensor([3.0, 1.0])
    assert nn.BCEWithLogitsLoss(None, None, None, "sum", positive)(x, y + 1.0).item() > (
        nn.BCEWithLogitsLoss(reduction="sum")(x, y + 1.0).item()
    )
    with pytest.raises(TypeError, match="MSELoss: expected size_average to be True, False or None"):
        nn.MSELoss("sum")


def test_norms_without_a_bias_and_without_running_statistics():
    for layer in (nn.BatchNorm1d(4, bias=False), nn.GroupNorm(2, 4, bias=False)):
        assert layer.bias is None and layer.weight is not None
    layer = nn.BatchNorm1d(2)
    assert layer.track_running_stats and layer.affine
    x = tenon.randn(5, 2)
    layer.track_running_stats = False
    layer(x)
    assert layer.running_mean.tolist() == [0.0, 0.0] and layer.num_batches_tracked.item() == 0
    assert not nn.InstanceNorm1d(2).track_running_stats


def test_rms_norm_adds_what_rounds_in_the_dtype():
    for dtype in (tenon.float32, tenon.float64):
        x = tenon.tensor([1e-4, 2e-4], dtype=dtype)
        eps = tenon.finfo(dtype).eps
        assert nn.RMSNorm(2)(x).tolist() == nn.RMSNorm(2, eps)(x).tolist()
        assert nn.RMSNorm(2)(x).tolist() != nn.RMSNorm(2, 1e-6)(x).tolist()
    with pytest.raises(ValueError, match=r"RMSNorm: expected the last axes to be \(2,\), got"):
        nn.RMSNorm(2)(tenon.ones(3, 1))


def test_norms_of_one_value_are_refused():
    with pytest.raises(ValueError, match="batch_norm: expected more than one value per channel"):
        nn.BatchNorm1d(2, track_running_stats=False)(tenon.ones(1, 2))
    with pytest.raises(ValueError, match="instance_norm: expected more than one value per channel"):
        nn.InstanceNorm1d(2, track_running_stats=True)(tenon.ones(3, 2, 1))


def test_dropout_of_channels_takes_rows_of_channels():
    x = tenon.ones(50, 50)
    kept = (nn.Dropout2d(0.5)(x) != 0).sum(1)
    assert 5 < kept.min().item() and kept.max().item() < 45
    assert nn.Dropout3d(0.5).eval()(x).tolist() == x.tolist()


@pytest.mark.parametrize(
    "draw",
    [
        nn.init.normal_,
        nn.init.uniform_,
        nn.init.xavier_uniform_,
        nn.init.xavier_normal_,
        nn.init.kaiming_uniform_,
        nn.init.kaiming_normal_,
        nn.init.trunc_normal_,
        nn.init.orthogonal_,
        lambda w, **more: nn.init.sparse_(w, 0.5, **more),
    ],
)
def test_initial_values_come_from_a_generator(draw):
    new = lambda: tenon.random.Generator(seed=7)
    state = tenon.random.get_state()
    first = draw(tenon.empty(4, 3), generator=new()).tolist()
    assert tenon.random.get_state() == state
    assert draw(tenon.empty(4, 3), generator=new()).tolist() == first
    assert draw(tenon.empty(4, 3), generator=None).tolist() != first


def test_what_changes_no_result_or_is_not_there():
    nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 1, None, False, False)
    for layer in (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d):
        with pytest.raises(NotImplementedError, match="maxima come without their indices"):
            layer(2, True)
    with pytest.raises(NotImplementedError, match="maxima come without their indices"):
        nn.FractionalMaxPool2d(2, 2, return_indices=True)
    with pytest.raises(NotImplementedError, match="gradients are dense, expected sparse False"):
        nn.EmbeddingBag(3, 2, sparse=True)


def test_tables_over_the_memory_of_a_tensor():
    rows = tenon.randn(3, 2)
    assert nn.Embedding(3, 2, _weight=rows).weight.tolist() == rows.tolist()
    assert not nn.Embedding.from_pretrained(rows).weight.requires_grad
    assert nn.EmbeddingBag(3, 2, _weight=rows).weight.data_ptr() == rows.data_ptr()
    with pytest.raises(ValueError, match=r"Embedding: expected _weight of shape \[3, 4\], got"):
        nn.Embedding(3, 4, _weight=rows)


# -- bags of rows ------------------------------------------------------------------------------------

TABLE = [[1.0], [2.0], [4.0], [8.0]]


def bags(indices, offsets, **more):
    table, indices = tenon.tensor(TABLE), tenon.tensor(indices, dtype="int64")
    found = nn.functional.embedding_bag(
        indices, table, tenon.tensor(offsets, dtype="int64"), **{"mode": "sum", **more}
    )
    return found.reshape(-1).tolist()


def test_bags_leave_the_padding_row_out_counted_from_either_end():
    for mode, want in (("sum", [1.0, 0.0]), ("mean", [1.0, 0.0]), ("max", [1.0, 0.0])):
        for padding_idx in (-1, 3):
            assert bags([0, 3, 3], [0, 2], mode=mode, padding_idx=padding_idx) == want
    with pytest.raises(IndexError, match="expected padding_idx within 4 rows, got -5"):
        bags([0], [0], padding_idx=-5)


@pytest.mark.parametrize("mode, want", [("sum", [3.0, 4.0]), ("mean", [1.5, 4.0]), ("max", [2, 4])])
def test_entries_behind_the_last_offset_are_in_no_bag(mode, want):
    assert bags([0, 1, 2, 3], [0, 2, 3], mode=mode, include_last_offset=True) == want
    assert bags([0, 1, 2], [0, 2, 3], mode=mode, include_last_offset=True) == want
    assert bags([0, 1, 2], [0, 2], mode=mode) == want


@pytest.mark.parametrize("offsets", [[1, 2], [0, 5], [0, 3, 2], [-1, 2]])
def test_offsets_of_bags_ascend_from_zero_within_the_indices(offsets):
    with pytest.raises(ValueError, match="embedding_bag.*expected ascending offsets from 0 to at"):
        bags([0, 1, 2, 3], offsets)


def test_offsets_that_a_program_reads_late_are_refused_too():
    table, indices = tenon.tensor(TABLE), tenon.tensor([0, 1, 2])
    program = tenon.export(
        lambda offsets: nn.functional.embedding_bag(indices, table, offsets, "sum"),
        (tenon.tensor([0, 2]),),
    )
    assert program(tenon.tensor([0, 1])).reshape(-1).tolist() == [1.0, 6.0]
    with pytest.raises(
        ValueError, match="expected ascending offsets from 0 to at most the 3 indices, got 1"
    ):
        program(tenon.tensor([1, 2]))


def test_weights_of_bags_have_the_shape_of_the_indices():
    with pytest.raises(ValueError, match=r"expected per_sample_weights of the shape \(3,\)"):
        bags([0, 1, 2], [0], per_sample_weights=tenon.ones(1))
    assert bags([0, 1], [0], per_sample_weights=tenon.tensor([2.0, 3.0])) == [8.0]


def test_gradients_of_bags_are_divided_by_how_often_a_row_was_read():
    layer = nn.EmbeddingBag(4, 1, scale_grad_by_freq=True, mode="sum")
    layer(tenon.tensor([[0, 1, 1]])).sum().backward()
    assert layer.weight.grad.reshape(-1).tolist() == [1.0, 1.0, 0.0, 0.0]


def test_negative_classes_and_indices_are_not_those_at_the_end():
    scores, target = tenon.randn(3, 4), tenon.tensor([0, -1, 1])
    wrong = [
        lambda: nn.functional.softmax_with_cross_entropy(scores, target.unsqueeze(-1)),
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 4, [2])(scores, target),
        lambda: nn.functional.max_unpool1d(tenon.ones(1, 1, 2), tenon.tensor([[[0, -1]]]), 2),
        lambda: tenon.geometric.segment_sum(scores, target, 3),
        lambda: tenon.geometric.segment_max(scores, target, 3),
        lambda: tenon.geometric.segment_max(scores, target + 3, 3),
        lambda: tenon.geometric.segment_softmax(scores, target, 3),
        lambda: tenon.geometric.degree(target, 3),
    ]
    for call in wrong:
        with pytest.raises(IndexError, match="expected (classes|positions|segments) from"):
            call()
    ignored = nn.functional.softmax_with_cross_entropy(scores, target.unsqueeze(-1), False, -1)
    assert ignored[1].item() == 0.0
    assert bags([0, -1], [0], padding_idx=3) == [1.0]


# -- modules -----------------------------------------------------------------------------------------


def test_apply_visits_a_child_with_two_names_once():
    shared, seen = nn.Linear(2, 2), []
    model = nn.Sequential(shared, nn.Sequential(shared), nn.ReLU())
    model.apply(seen.append)
    assert [type(each).__name__ for each in seen] == ["Linear", "Sequential", "ReLU", "Sequential"]


@pytest.mark.parametrize(
    "value, reason",
    [
        (np.zeros(2), "expected a Tensor, got ndarray"),
        ([0.0, 0.0], "expected a Tensor, got list"),
        (tenon.complex(tenon.ones(2), tenon.ones(2)), "would lose its imaginary part in float32"),
        (tenon.empty(2, device="meta"), "expected values, got a tensor on the device meta"),
    ],
)
def test_a_state_dict_is_loaded_as_a_whole_or_not_at_all(value, reason):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    before = {name: each.tolist() for name, each in model.state_dict().items()}
    state = {name: tenon.zeros_like(each) for name, each in model.state_dict().items()}
    state["1.bias"] = value
    with pytest.raises(ValueError, match=f"1.bias: .*{reason}"):
        model.load_state_dict(state)
    assert {name: each.tolist() for name, each in model.state_dict().items()} == before


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_query_that_sees_no_key_gets_zeros(need_weights):
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = tenon.randn(2, 3, 4).requires_grad_()
    hidden = tenon.tensor([[True] * 3, [False, False, True]])
    out, weights = layer(x, x, x, key_padding_mask=hidden, need_weights=need_weights)
    assert out[0].tolist() == [layer.out_proj.bias.tolist()] * 3
    out.sum().backward()
    assert all(tenon.isfinite(each.grad).all().item() for each in (x, *layer.parameters()))
    if need_weights:
        assert weights[0].abs().max().item() == 0.0
        np.testing.assert_allclose(weights[1].sum(-1).detach().numpy(), 1.0, rtol=1e-6)
    unknown = layer(x * float("nan"), key_padding_mask=hidden, need_weights=need_weights)[0]
    assert tenon.isnan(unknown[1]).all().item()
