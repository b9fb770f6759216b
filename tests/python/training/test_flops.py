# SPDX-License-Identifier: Apache-2.0
"""FLOPs counted from operator calls, and the table of a network."""

import pathlib
import re

import pytest
import tenon
from tenon import nn
from tenon.ops import _flop_formulas as formulas
from tenon.training import flops, summary

M, N, K = 3, 4, 5


def test_products():
    x, y = tenon.ones(2, M, K), tenon.ones(K, N)
    assert flops(lambda: x @ y).total == 2 * 2 * M * N * K
    assert flops(lambda: tenon.linear(x, tenon.ones(N, K))).total == 2 * 2 * M * N * K
    assert flops(nn.Linear(K, N), x).total == 2 * 2 * M * N * K + 2 * M * N
    assert flops(lambda: tenon.einsum("bmk,kn->bmn", [x, y])).by_operator["matmul"] == 240


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(groups):
    x = (2, 4, 6, 6)
    conv = nn.Conv2d(4, 8, 3, groups=groups, bias=False)
    assert flops(conv, x).total == 2 * (2 * 8 * 4 * 4) * (4 // groups) * 9
    assert flops(nn.Conv1d(4, 8, 3, groups=groups), (1, 4, 7)).total == (
        2 * (8 * 5) * (4 // groups) * 3 + 8 * 5
    )
    transpose = nn.ConvTranspose2d(4, 8, 3, groups=groups, bias=False)
    assert flops(transpose, x).total == 2 * (2 * 4 * 36) * (8 // groups) * 9


def test_elementwise_views_and_attention():
    x = tenon.ones(M, N)
    assert flops(lambda: (x + 1.0).exp().reshape(-1)).total == 2 * M * N
    assert flops(lambda: x.sum()).total == M * N
    q, k = tenon.ones(2, 5, 8), tenon.ones(2, 7, 8)
    attention = flops(lambda: tenon.scaled_dot_product_attention(q, k, k))
    assert attention.by_operator == {"attention": 2 * 5 * 7 * (4 * 8 + 5)}


def test_what_is_not_counted_is_said():
    report = flops(lambda: tenon.det(tenon.eye(3)) + 1.0)
    assert report.total == 1 and report.uncounted == {"det": 1}
    assert str(report).splitlines()[-1].split() == ["?", "det,", "1", "calls"]


def test_a_backward_pass_counts_what_it_computes():
    x, w = tenon.ones(M, K), tenon.ones(K, N).requires_grad_()
    report = flops(lambda: (x @ w).sum().backward())
    assert report.by_operator["matmul"] == 2 * (2 * M * N * K)
    x.requires_grad = True
    report = flops(lambda: (x @ w).sum().backward())
    assert report.by_operator["matmul"] == 3 * (2 * M * N * K)
    conv = nn.Conv2d(2, 3, 3, bias=False)
    image = tenon.ones(1, 2, 5, 5).requires_grad_()
    forward = 2 * 3 * 9 * 2 * 9
    report = flops(lambda: conv(image).sum().backward())
    count = sum(n for name, n in report.by_operator.items() if name.startswith("conv2d"))
    assert count == 3 * forward


class Net(nn.Module):
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)
        self.unused = nn.Linear(1, 1)

    def forward(self, x):
        return self.head(self.body(x)) + 1.0, x


def test_summary_of_a_network():
    network = Net()
    network.head.requires_grad_(False)
    table = summary(network, (3, 4))
    assert [(row.name, row.kind, row.output, row.parameters) for row in table.rows] == [
        ("", "Net", ((3, 2), (3, 4)), 0),
        ("body", "Sequential", (3, 8), 0),
        ("body.0", "Linear", (3, 8), 40),
        ("body.1", "ReLU", (3, 8), 0),
        ("head", "Linear", (3, 2), 18),
    ]
    first, second = 2 * 3 * 8 * 4 + 24, 2 * 3 * 2 * 8 + 6
    costs = {row.name: row.flops for row in table.rows}
    assert costs["body.0"] == first and costs["head"] == second
    assert costs["body"] == first + 24 and costs[""] == table.flops == first + 24 + second + 6
    assert (table.parameters, table.trainable, table.bytes) == (60, 42, 240)
    lines = str(table).splitlines()
    assert lines[0].split() == ["module", "output", "parameters", "FLOPs"]
    assert lines[4].split() == ["0", "Linear", "(3,", "8)", "40", "216"]
    assert lines[-1] == "parameters 60, trainable 42, 240 bytes with buffers; 348 FLOPs"
    assert network.training and not network._has_hooks
    assert summary(network, tenon.ones(3, 4)).flops == int(flops(network, (3, 4)))


def test_formulas_come_from_the_definitions():
    files = (pathlib.Path(__file__).parents[3] / "opdefs").glob("*.yaml")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    entries = re.findall(r"^- op: (\w+)$(.*?)(?=^- op: |\Z)", text, re.M | re.S)
    written = {
        name: found[1]
        for name, entry in entries
        if (found := re.search(r"^  flops: (.*)$", entry, re.M))
    }
    assert len(written) > 50 and written["det"] == "unknown" and written["cast"] == "0"
    assert {name: formulas.formula_of(name) for name in written} == written
    assert formulas.formula_of("add") is None and formulas.formula_of("no_such") is None


def test_an_empty_convolution_has_none():
    assert flops(nn.Conv2d(4, 8, 3, bias=False), (0, 4, 6, 6)).total == 0


def test_an_operator_of_python_says_its_own():
    @tenon.op("costly::product(Tensor x, Tensor y) -> Tensor", flops="3 * numel(out) * size(x, -1)")
    def product(x, y):
        return x @ y

    @product.shape
    def _(x, y):
        return [x.shape[0], y.shape[1]]

    report = flops(lambda: product(tenon.ones(M, K), tenon.ones(K, N)))
    # The operator is one of its own; what its body calls is not seen beside it.
    assert report.by_operator["costly::product"] == 3 * M * N * K
    with pytest.raises(
        ValueError, match=r"costly::wrong: flops: expected whole numbers, .* got '2 / numel\(x\)'"
    ):
        tenon.op("costly::wrong(Tensor x) -> Tensor", flops="2 / numel(x)")
    with pytest.raises(ValueError, match="of out, x, or 'unknown'; got 'numel\\(z\\)'"):
        tenon.op("costly::wrong(Tensor x) -> Tensor", flops="numel(z)")
    with pytest.raises(ValueError, match="flops: expected"):
        tenon.op("costly::wrong(Tensor x) -> Tensor", flops="__import__('os')")


def test_an_operator_file_says_its_own(tmp_path):
    (tmp_path / "cubes.yaml").write_text(
        """namespace: cubes
ops:
- op: cube
  doc: x * x * x.
  sig: (Tensor x) -> Tensor
  kind: elementwise
  flops: 2 * numel(x)
  dtypes: {compute: promote, allow: floating}
  shape: broadcast(x)
  expr: x * x * x
"""
    )
    cubes = tenon.ops.load(tmp_path / "cubes.yaml")
    assert flops(lambda: cubes.cube(tenon.ones(M, N))).total == 2 * M * N


def test_an_observer_that_fails_says_so_at_the_end():
    seen = []

    def see(name, arguments, results, has_parts):
        seen.append(name)
        raise KeyError("observer")

    observer = tenon._core._CallObserver(see)
    observer.enter()
    y = tenon.ones(2) + 1.0
    with pytest.raises(KeyError, match="observer"):
        observer.exit()
    assert y.tolist() == [2.0, 2.0] and len(seen) == 1
    tenon.ones(2)
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="expected the end of the block on the thread"):
        observer.exit()
    observer.enter()
    with pytest.raises(RuntimeError, match="not in use already"):
        observer.enter()
    with pytest.raises(KeyError, match="observer"):
        tenon.ones(2)
        observer.exit()
