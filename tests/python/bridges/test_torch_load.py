# SPDX-License-Identifier: Apache-2.0
"""PyTorch models as programs, beside PyTorch."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import tenon  # noqa: E402

F = torch.nn.functional
Module: Any = torch.nn.Module
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def tenon_of(tree):
    if isinstance(tree, torch.Tensor):
        return tenon.from_dlpack(tree.detach())
    return tree


def torch_of(tree):
    if isinstance(tree, tenon.Tensor):
        return torch.from_dlpack(tree)
    if isinstance(tree, dict):
        return {key: torch_of(each) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(torch_of(each) for each in tree)
    return tree


def check(model, *inputs, **options):
    """The program of a model, after its results were compared with PyTorch's."""
    if isinstance(model, torch.nn.Module):
        model.eval()
    program = tenon.torch.load(torch.export.export(model, inputs), **options)
    with torch.no_grad():
        expected = model(*inputs)
    torch.testing.assert_close(torch_of(program(*map(tenon_of, inputs))), expected, **CLOSE)
    return program


class Function(Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Block(Module):
    """A block of a transformer: attention of several heads, and two layers behind it."""

    def __init__(self, width=32, heads=4, causal=False):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.into = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.into(self.first(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.layers(self.second(x))


class Language(Module):
    """Embeddings, blocks, and the embedding again as the last layer."""

    def __init__(self, causal):
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(50, 32), torch.nn.Embedding(16, 32)
        self.blocks = torch.nn.Sequential(*[Block(causal=causal) for _ in range(2)])
        self.norm = torch.nn.LayerNorm(32)
        self.head = torch.nn.Linear(32, 50, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions(positions))))


def convolutional():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(inplace=True),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 8, 3, groups=4, stride=2),
        torch.nn.GroupNorm(2, 8),
        torch.nn.SiLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(8, 5),
    )


def test_layers():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    program = check(net, torch.randn(3, 4))
    assert list(program.leaves) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_convolutions():
    torch.manual_seed(0)
    text = str(check(convolutional(), torch.randn(2, 3, 16, 16)))
    assert "tenon::conv2d" in text


@pytest.mark.parametrize("causal", [False, True])
def test_transformers_keep_attention_and_norms_whole(causal):
    torch.manual_seed(0)
    text = str(check(Language(causal), torch.randint(0, 50, (2, 8))))
    assert text.count("= tenon::layer_norm") == 5
    assert text.count("= tenon::linear") == 9
    assert "softmax" not in text


def test_weights_are_shared_and_tied_ones_once():
    torch.manual_seed(0)
    net, ids = Language(True).eval(), torch.randint(0, 50, (1, 4))
    program = check(net, ids)
    shared = [t for name, t in program.leaves.items() if t.shape == (50, 32)]
    assert len(shared) == 1 and shared[0].data_ptr() == net.tokens.weight.data_ptr()
    with torch.no_grad():
        net.tokens.weight.mul_(2)
        torch.testing.assert_close(torch_of(program(tenon_of(ids))), net(ids), **CLOSE)


class Counter(Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2))
        self.register_buffer("last", torch.zeros(2), persistent=False)

    def forward(self, x):
        before = self.count.view(2)
        result = before + x
        self.last.copy_(before)
        self.count.add_(x)
        return result, self.count


def test_buffers_are_written_once_a_run_and_loading_runs_nothing():
    net = Counter()
    program = tenon.torch.load(torch.export.export(net, (torch.ones(2),)))
    assert net.count.tolist() == [0, 0]
    leaves = program.leaves
    for turn in range(1, 4):
        result, count = program(tenon.ones([2]))
        assert result.tolist() == count.tolist() == [turn, turn]
        assert leaves["count"].tolist() == [turn, turn]
        assert leaves["last"].tolist() == [turn - 1, turn - 1]
    assert sorted(tenon.torch.report()[-1].writes) == ["count", "last"]


def test_inputs_that_the_model_writes():
    def add_one(x):
        x.add_(1)
        return x * 2

    program = tenon.torch.load(torch.export.export(Function(add_one), (torch.zeros(2),)))
    given = tenon.zeros([2])
    assert program(given).tolist() == [2, 2]
    assert given.tolist() == [1, 1]


def test_structures_and_keywords():
    class Net(Module):
        def forward(self, pair, *, scale, flag=True):
            a, b = pair["a"], pair["b"]
            return {"sum": (a + b) * scale, "parts": [a, b.exp()]}

    inputs = ({"a": torch.ones(2), "b": torch.zeros(2)},)
    exported = torch.export.export(Net(), inputs, {"scale": torch.tensor(3.0)})
    program = tenon.torch.load(exported)
    result = program({"a": tenon.ones([2]), "b": tenon.zeros([2])}, tenon.tensor(3.0))
    assert result["sum"].tolist() == [3, 3] and result["parts"][1].tolist() == [1, 1]


def test_sizes_that_each_call_chooses():
    torch.manual_seed(0)
    net = Language(True).eval()
    batch, length = torch.export.Dim("batch", max=8), torch.export.Dim("length", min=2, max=16)
    exported = torch.export.export(
        net, (torch.randint(0, 50, (3, 5)),), dynamic_shapes=({0: batch, 1: length},)
    )
    program = tenon.torch.load(exported)
    assert len(program.dimensions) == 2
    for shape in ((1, 2), (2, 16), (8, 7)):
        ids = torch.randint(0, 50, shape)
        with torch.no_grad():
            torch.testing.assert_close(torch_of(program(tenon_of(ids))), net(ids), **CLOSE)
    with pytest.raises(ValueError):
        program(tenon_of(torch.randint(0, 50, (9, 4))))


def test_a_file(tmp_path):
    net, x = torch.nn.Linear(3, 2).eval(), torch.randn(2, 3)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    program = tenon.torch.load(tmp_path / "net.pt2")
    torch.testing.assert_close(torch_of(program(tenon_of(x))), net(x).detach(), **CLOSE)
    program.save(tmp_path / "net.tenon")
    again = tenon.jit.load(tmp_path / "net.tenon")
    assert again(tenon_of(x)).tolist() == program(tenon_of(x)).tolist()


def test_lines_of_the_users_program():
    program = tenon.torch.load(torch.export.export(Function(lambda x: x.relu()), (torch.ones(2),)))
    assert "test_torch_load.py" in str(program)


def test_all_that_is_missing_is_said_at_once():
    def function(x):
        return x[x > 0].sum() + torch.nonzero(x).sum() + x.geqrf()[0].sum() + x.relu().sum()

    with pytest.raises(NotImplementedError) as refused:
        tenon.torch.load(torch.export.export(Function(function), (torch.ones(2, 2),)), name="net")
    text = str(refused.value)
    assert "nonzero: the shape of its result depends on data" in text
    assert "geqrf: there is no line for it" in text
    assert "relu" not in text
    report = tenon.torch.report()[-1]
    assert report.name == "net" and "geqrf" in report.refused


def test_what_cannot_be_loaded():
    with pytest.raises(
        TypeError, match="expected a torch.export.ExportedProgram or a path, got Linear"
    ):
        tenon.torch.load(torch.nn.Linear(2, 2))
    exported = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    with pytest.raises(NotImplementedError, match="expected device 'cpu'"):
        tenon.torch.load(exported, device="meta")


CALLS = {
    "promotion of a number": lambda x: x * torch.tensor(2.5, dtype=torch.float64) + 1,
    "integers divided": lambda x: torch.div(x.long(), 3, rounding_mode="trunc") - (x.long() // 2),
    "mean of halves": lambda x: x.half().mean(dtype=torch.float32),
    "sum of booleans": lambda x: (x > 0).sum(1),
    "indices apart": lambda x: x.reshape(2, 3, 2)[torch.tensor([0, 1]), :, torch.tensor([1, 0])],
    "indices written": lambda x: x.index_put((torch.tensor([0, 2]),), torch.tensor(5.0)),
    "a mask written": lambda x: x.masked_fill(x > 0, -1.0),
    "a piece written": lambda x: torch.cat([x[:1] * 2, x[1:]]).clone(),
    "cut with steps": lambda x: x[::2, 1:],
    "rolled": lambda x: x.roll((1, -1), (0, 1)) + x.roll(2),
    "padded": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0) + F.pad(x, (1, 2, 0, 1)),
    "padded to less": lambda x: F.pad(x, (-1, 2)),
    "variance": lambda x: x.var(1) + x.std(1, unbiased=False),
    "norms": lambda x: torch.linalg.vector_norm(x, dim=1) + x.norm(p=1, dim=1),
    "sorted": lambda x: x.sort(1, descending=True).values + x.topk(2, 0).values[:1],
    "clamped": lambda x: x.clamp(min=-0.5) + x.clamp(-1, 1) + x.clamp(max=0.1),
    "chosen": lambda x: torch.where(x > 0, x, 0.5) + torch.where(x > 0, 1.0, 2.0),
    "cumulated": lambda x: x.cumsum(0) + x.cumprod(1),
    "chunks": lambda x: x.chunk(3, 0)[1] + x.split([1, 3], 0)[0],
    "transposed convolution": lambda x: F.conv_transpose2d(
        x.reshape(1, 1, 4, 3), x[:2, :2].reshape(1, 1, 2, 2), stride=2
    ),
    "one axis": lambda x: F.conv1d(
        x.reshape(1, 4, 3), x[:2].reshape(1, 2, 3)[:, :, :2].expand(3, 2, 2).repeat(1, 2, 1)
    ),
    "resized": lambda x: F.interpolate(
        x.reshape(1, 1, 4, 3), scale_factor=2, mode="bilinear", align_corners=False
    ),
    "resized, nearest": lambda x: F.interpolate(x.reshape(1, 1, 4, 3), size=(5, 7)),
    "averages": lambda x: F.avg_pool2d(x.reshape(1, 1, 4, 3), 2, ceil_mode=True),
    "softmax": lambda x: x.softmax(1) + x.log_softmax(0),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "gathered": lambda x: x.gather(1, torch.tensor([[0, 2], [1, 1], [0, 0], [2, 2]])),
    "scattered": lambda x: torch.zeros(4, 3).scatter(1, torch.tensor([[0], [2], [1], [1]]), x),
    "added at": lambda x: x.index_add(0, torch.tensor([0, 0]), x[:2]),
    "median": lambda x: x.median(1).values,
    "triangle": lambda x: x.tril() + x.triu(1),
    "made anew": lambda x: torch.arange(1, 4) + x.new_zeros(4, 3) + torch.full((3,), 2.0),
    "repeated": lambda x: x.repeat(2, 1) + x.repeat_interleave(2, 0),
    "normalised": lambda x: F.rms_norm(x, (3,), x[0]) + F.normalize(x),
    "glu": lambda x: F.glu(x.t()) + F.elu(x.t()[:, :2]) + F.softplus(x.t()[:, :2]),
    "logic": lambda x: (x > 0) & ~(x > 1) | (x == 0),
    "truth": lambda x: (x > 0).any(1) | (x > -9).all(),
    "smallest": lambda x: x.min(1).values + x.amax((0, 1)) + x.argmin(1),
    "powers": lambda x: x**2 + 2.0**x + x.abs() ** 0.5,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_agree(name):
    torch.manual_seed(1)
    check(Function(CALLS[name]), torch.randn(4, 3))
