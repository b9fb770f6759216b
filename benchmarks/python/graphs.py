# SPDX-License-Identifier: Apache-2.0
"""Steps of networks on graphs: Tenon beside PyTorch Geometric, where that is installed.

    python graphs.py [--quick] [--only sage] [--threads 1] [--json results.json]

A step is the result of two layers, a loss, its gradients and an update by SGD. Weights and graphs are the same; the losses of the first step
are compared. PyTorch Geometric is given edges, and Tenon a matrix of layout 'csr' of the same edges.
"""

from __future__ import annotations

import re

import numpy as np
from _libraries import Case, limit_threads, measure, start
from _report import Report, parser

FEATURES, HIDDEN, CLASSES = 64, 64, 16
LAYERS = {
    "GCN": ("GCNConv", {}),
    "GAT, 4 heads": ("GATConv", {"heads": 4, "concat": False}),
    "GraphSAGE, mean": ("SAGEConv", {"aggr": "mean"}),
    "GraphSAGE, max": ("SAGEConv", {"aggr": "max"}),
}
SIZES = {"10k nodes": (10_000, 80_000), "100k nodes": (100_000, 800_000)}
CASES = {f"{layer}, {size}": (layer, size) for layer in LAYERS for size in SIZES}
QUICK = tuple(name for name in CASES if "10k" in name)


def graph(nodes: int, count: int) -> np.ndarray:
    """Edges [2, count] by target, of which few nodes send many."""
    generator = np.random.default_rng(0)
    weights = 1.0 / np.arange(1, nodes + 1) ** 0.7
    source = generator.choice(nodes, count, p=weights / weights.sum())
    target = generator.integers(0, nodes, count)
    keys = np.unique(target.astype(np.int64) * nodes + source)
    return np.stack([keys % nodes, keys // nodes])


def weights_of(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {
        name: (generator.standard_normal(shapes[name]) / 8).astype(np.float32)
        for name in sorted(shapes)
    }


def build(library: str, case: Case, options):
    """The step of a case in a library's process."""
    layer, size = CASES[case.parameters["what"]]
    kind, more = LAYERS[layer]
    lib = start(library, options.threads)
    nodes, count = SIZES[size]
    edges = graph(nodes, count)
    generator = np.random.default_rng(2)
    x = generator.standard_normal((nodes, FEATURES)).astype(np.float32)
    classes = generator.integers(0, CLASSES, nodes)
    if library == "torch":
        try:
            from torch_geometric import nn as layers
        except ImportError:
            return None
        tensor, functional = lib.from_numpy, lib.nn.functional
        given = tensor(edges)
    else:
        layers, tensor, functional = lib.geometric, lib.tensor, lib.nn.functional
        starts = np.searchsorted(edges[1], np.arange(nodes + 1))
        ones = np.ones(edges.shape[1], np.float32)
        given = lib.sparse.csr(starts, edges[0].copy(), ones, (nodes, nodes))
    first, second = (
        getattr(layers, kind)(FEATURES, HIDDEN, **more),
        getattr(layers, kind)(HIDDEN, CLASSES, **more),
    )
    model = lib.nn.ModuleList([first, second])
    values = weights_of({name: tuple(each.shape) for name, each in model.state_dict().items()})
    model.load_state_dict({name: tensor(each) for name, each in values.items()})
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    x, classes = tensor(x), tensor(classes)

    def step():
        optimizer.zero_grad()
        hidden = functional.relu(first(x, given))
        loss = functional.cross_entropy(second(hidden, given), classes)
        loss.backward()
        optimizer.step()
        return loss

    return step


def main() -> None:
    options = parser(__doc__, rounds=5, threads=0, peers=("torch",)).parse_args()
    names = [name for name in (QUICK if options.quick else CASES) if re.search(options.only, name)]
    options.only = ""
    report = Report("graphs", options)
    options.threads = options.threads or 1
    limit_threads(options.threads)
    group = f"{options.threads} thread{'s' * (options.threads > 1)}"
    cases = [Case(name, group, tolerance=1e-3, parameters={"what": name}) for name in names]
    measure(cases, build, options, report)
    report.close()


if __name__ == "__main__":
    main()
