# SPDX-License-Identifier: Apache-2.0
"""Programs written as models of ONNX and read again; what is refused, and how."""

import numpy as np
import pytest
import tenon
import tenon.onnx
from tenon import nn

BATCH = tenon.Dim("batch", min=1, max=8)


def flat(value):
    return [value] if isinstance(value, tenon.Tensor) else [x for each in value for x in flat(each)]


def assert_same(got, want):
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for ours, read in zip(want, got, strict=True):
        assert ours.dtype == read.dtype and tuple(ours.shape) == tuple(read.shape)
        np.testing.assert_allclose(read.numpy(), ours.numpy(), rtol=2e-6, atol=2e-6)


def round_trip(function, path, *inputs, **options):
    tenon.onnx.export(function, path, inputs, **options)
    with tenon.no_grad():
        assert_same(tenon.onnx.load(path)(*inputs), function(*inputs))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


class Block(nn.Module):
    """The layer of a language model."""

    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 16), nn.LayerNorm(16)
        self.inputs, self.output = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, tokens):
        x = self.embedding(tokens)
        rows, length = tokens.shape
        parts = self.inputs(self.norm(x))
        query, key, value = (
            parts[:, :, at : at + 16].reshape(rows, length, 2, 8).transpose(1, 2)
            for at in (0, 16, 32)
        )
        seen = tenon.scaled_dot_product_attention(query, key, value, causal=True)
        return x + tenon.gelu(self.output(seen.transpose(1, 2).reshape(rows, length, 16)))


def image_net():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


@pytest.mark.parametrize(
    ("make", "sample", "axis"),
    [
        (image_net, lambda n: tenon.randn(n, 3, 8, 8), 0),
        (Block, lambda n: tenon.randint(0, 11, [n, 6]), 0),
        (lambda: nn.LSTM(4, 5), lambda n: tenon.randn(3, n, 4), 1),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16), lambda n: tenon.randn(3, n, 8), 1),
    ],
    ids=["images", "attention", "lstm", "encoder"],
)
@pytest.mark.parametrize("opset", [18, 23])
def test_a_model_of_any_batch_is_read_back_with_its_values(path, make, sample, axis, opset):
    model = make().eval()
    tenon.onnx.export(model, path, (sample(2),), dynamic_shapes=[{axis: BATCH}], opset=opset)
    assert tenon.onnx.describe(path)["opsets"] == {"": opset}
    for size in (1, 2, 5):
        x = sample(size)
        with tenon.no_grad():
            assert_same(tenon.onnx.load(path, sizes={"batch": size})(x), model(x))


FUNCTIONS = {
    "numbers beside tensors": lambda x: (x + 1) * 2.5 - 1 / (x + 5),
    "of integers": lambda x: (x > 0).to(tenon.int64) % 3 // 2,
    "masks": lambda x: tenon.where((x > 0) & (x < 1), x, -x),
    "layout": lambda x: tenon.stack([x.flip(0), x.roll([1], [0])]).permute(2, 0, 1)[0],
    "running sums": lambda x: x.cumsum(0).var(1, keepdim=True),
    "orders": lambda x: x.sort(1),
    "logsumexp": lambda x: tenon.logsumexp(x * 100, [1]),
    "indices": lambda x: x[tenon.tensor([0, 2]), tenon.tensor([1, 0])],
    "a new tensor": lambda x: x + tenon.arange(4) + tenon.eye(3, 4),
    "clip": lambda x: tenon.clip(x, -0.5, 0.5),
    "results that are inputs, or the same": lambda x: (x, x + 1, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_takes_several_nodes_is_read_back_with_its_values(path, name):
    round_trip(
        FUNCTIONS[name], path, tenon.tensor(np.linspace(-2, 2, 12).reshape(3, 4).astype("f4"))
    )


def test_a_size_is_computed_where_it_is_needed(path):
    def function(x):
        return x.reshape(x.shape[0] * 2, 2).sum(1), tenon.zeros([x.shape[0], 3]) + x[:, :1]

    tenon.onnx.export(function, path, (tenon.randn(2, 4),), dynamic_shapes=[{0: BATCH}])
    assert tenon.onnx.describe(path)["inputs"][0]["shape"] == ["batch", 4]
    for size in (1, 3):
        x = tenon.randn(size, 4)
        assert_same(tenon.onnx.load(path, sizes={"batch": size})(x), function(x))


def test_programs_and_saved_programs_are_exported_under_given_names(path, tmp_path):
    x = tenon.randn(2, 3)
    program = tenon.export(lambda x: (tenon.sin(x), tenon.cos(x)), (x,))
    program.save(tmp_path / "program.tenon")
    for source in (program, tmp_path / "program.tenon"):
        tenon.onnx.export(source, path, input_names=["angle"], output_names=["sine", "cosine"])
        told = tenon.onnx.describe(path)
        assert [each["name"] for each in told["inputs"]] == ["angle"]
        assert told["outputs"] == ["sine", "cosine"]
        assert_same(tenon.onnx.load(path)(x), program(x))


def test_weights_lie_in_a_file_of_their_own_where_that_is_asked_for(path):
    layer, x = nn.Linear(8, 4).eval(), tenon.randn(2, 8)
    round_trip(layer, path, x, external_data=True)
    beside = path.with_name("model.onnx.data")
    assert beside.stat().st_size == 4096 + 16 and path.stat().st_size < 4096


def test_the_weights_keep_their_names(path):
    layer = nn.Linear(150, 150)  # of more bytes than are folded while a model is loaded
    tenon.onnx.export(layer, path, (tenon.randn(1, 150),))
    read = tenon.onnx.load(path).leaves
    assert {name.split(".")[0] for name in read} & {"weight"}


def test_all_that_is_refused_is_named_at_once_with_its_line(path):
    def function(x):
        return tenon.lgamma(x), tenon.digamma(x)

    with pytest.raises(
        NotImplementedError,
        match=r"(?s)`tenon::lgamma` at .*test_export.py:\d+: it has "
        r"no form in ONNX here; compute it .*`tenon::digamma` at ",
    ):
        tenon.onnx.export(function, path, (tenon.randn(3),))
    assert not path.exists()


def test_what_writes_in_place_is_refused(path):
    def function(x, y):
        x.add_(y)
        return x

    with pytest.raises(NotImplementedError, match=r"`tenon::add_?` at .* writes into a tensor"):
        tenon.onnx.export(function, path, (tenon.randn(3), tenon.randn(3)))


def test_a_size_in_an_attribute_is_refused(path):
    def function(x):
        return tenon.eye(x.shape[0])

    with pytest.raises(NotImplementedError, match=r"its size is batch, and has to be a number"):
        tenon.onnx.export(function, path, (tenon.randn(2, 2),), dynamic_shapes=[{0: BATCH}])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"opset": 12}, "expected an opset from 18 to 23, got 12"),
        ({"input_names": ["a", "b"]}, r"expected 1 input_names \(x\), got 2"),
        ({"output_names": [""]}, "expected output_names that differ and are not empty"),
        ({"dynamic_shapes": [None]}, "expected no inputs and dynamic_shapes beside a program"),
    ],
)
def test_arguments_that_are_not_valid(path, options, text):
    program = tenon.export(lambda x: x + 1, (tenon.randn(2),))
    with pytest.raises(ValueError, match=text):
        tenon.onnx.export(program, path, **options)
