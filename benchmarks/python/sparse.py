# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices: Tenon beside SciPy, PyTorch and JAX.

    python sparse.py [--quick] [--only spmm] [--threads 1] [--json results.json]

PyTorch's products of CSR matrices are MKL's; JAX has BCOO. A row that a library has no function for stays empty. SciPy's
products of two sparse matrices are not sorted.
"""

from __future__ import annotations

import re

import numpy as np
from _libraries import Case, limit_threads, measure, start
from _report import Report, parser


def regular(rows: int, columns: int, in_row: int) -> tuple[np.ndarray, np.ndarray]:
    """As many elements in each row, anywhere."""
    generator = np.random.default_rng(1)
    picked = generator.integers(0, columns, (rows, in_row))
    picked.sort(1)
    picked = np.minimum(picked + np.arange(in_row), columns - in_row + np.arange(in_row))
    picked = np.maximum.accumulate(picked, 1)
    return np.arange(rows + 1) * in_row, picked.reshape(-1)


def power_law(rows: int, stored: int) -> tuple[np.ndarray, np.ndarray]:
    """A graph of which few nodes have many neighbours."""
    generator = np.random.default_rng(2)
    weights = 1.0 / np.arange(1, rows + 1) ** 0.7
    column = generator.choice(rows, stored, p=weights / weights.sum())
    row = generator.integers(0, rows, stored)
    keys = np.unique(row.astype(np.int64) * rows + column)
    return np.searchsorted(keys, np.arange(rows + 1) * rows), keys % rows


MATRICES = {
    "16k^2, 16 a row": lambda: (16384, *regular(16384, 16384, 16)),
    "4k^2, 1 %": lambda: (4096, *regular(4096, 4096, 41)),
    "power law, 100k": lambda: (100_000, *power_law(100_000, 800_000)),
    "1k^2, 10 %": lambda: (1024, *regular(1024, 1024, 102)),
}
CASES = {
    **{f"spmm 64, {name}": ("spmm", name, 64) for name in MATRICES if "1k" not in name},
    "spmm 256, 1k^2, 10 %": ("spmm", "1k^2, 10 %", 256),
    **{f"spmv, {name}": ("spmv", name, 1) for name in MATRICES},
    "spgemm, 16k^2, 16 a row": ("spgemm", "16k^2, 16 a row", 0),
    "spgemm, 4k^2, 1 %": ("spgemm", "4k^2, 1 %", 0),
    "sddmm 64, 16k^2, 16 a row": ("sddmm", "16k^2, 16 a row", 64),
    "sddmm 64, 4k^2, 1 %": ("sddmm", "4k^2, 1 %", 64),
    "softmax, 16k^2, 16 a row": ("softmax", "16k^2, 16 a row", 0),
    "softmax, 4k^2, 1 %": ("softmax", "4k^2, 1 %", 0),
    "coalesce 10^6 of 10^10": ("coalesce", "", 100_000),
    "coalesce 10^6 of 10^6": ("coalesce", "", 1000),
    "transpose to csr, power law, 100k": ("transpose", "power law, 100k", 0),
    "submanifold 3^3, 16 channels": ("convolution", "", 16),
    "submanifold 3^3, 64 channels": ("convolution", "", 64),
}
QUICK = tuple(name for name in CASES if "4k" in name)


def pairs(size: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    return generator.integers(0, size, (2, 1_000_000)), generator.standard_normal(
        1_000_000, np.float32
    )


def surface(channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Sites of 96^3 near a sphere."""
    at = np.stack(np.meshgrid(*[np.arange(96)] * 3, indexing="ij"))
    distance = np.sqrt(((at - 47.5) ** 2).sum(0))
    there = np.argwhere(np.abs(distance - 40.0) < 0.52)
    indices = np.concatenate([np.zeros((1, len(there)), np.int64), there.T])
    values = np.random.default_rng(4).standard_normal((len(there), channels), np.float32)
    return indices, values


def _convolution(library: str, lib, channels: int):
    if library != "tenon":
        return None
    indices, values = surface(channels)
    x = lib.sparse.coo(indices, values, (1, 96, 96, 96, channels))
    layer = lib.sparse.nn.SubmConv3d(channels, channels, 3)

    def run():
        with lib.no_grad():
            return layer(x).values()

    return run


def _coalesce(library: str, lib, size: int):
    indices, values = pairs(size)
    if library == "tenon":
        x = lib.sparse.coo(indices, values, (size, size))
        return lambda: x.coalesce().values()
    if library == "torch":
        x = lib.sparse_coo_tensor(lib.from_numpy(indices), lib.from_numpy(values), (size, size))
        return lambda: x.coalesce().values()
    if library == "scipy":
        import scipy.sparse

        return lambda: scipy.sparse.coo_array((values, tuple(indices)), (size, size)).tocsr().data
    return None


def build(library: str, case: Case, options):
    """What a case is in a library's process."""
    kind, name, number = CASES[case.parameters["what"]]
    lib = start(library, options.threads)
    if kind == "convolution":
        return _convolution(library, lib, number)
    if kind == "coalesce":
        return _coalesce(library, lib, number)
    rows, indptr, indices = MATRICES[name]()
    generator = np.random.default_rng(5)
    values = generator.standard_normal(len(indices)).astype(np.float32)
    shape = (rows, rows)
    dense = [generator.standard_normal((rows, max(number, 1))).astype(np.float32) for _ in range(2)]
    dense = [x[:, 0].copy() if kind == "spmv" else x for x in dense]
    indices = indices.astype(np.int32)
    if library == "scipy":
        import scipy.sparse

        a = scipy.sparse.csr_array((values, indices, indptr.astype(np.int32)), shape)
        product = lambda: a @ dense[0]  # noqa: E731
        return {
            "spmm": product,
            "spmv": product,
            "spgemm": lambda: (a @ a).sum(1),
            "transpose": lambda: a.T.tocsr().data,
        }.get(kind)
    if library == "jax":
        if kind not in ("spmm", "spmv"):
            return None
        from jax.experimental import sparse

        row = np.repeat(np.arange(rows), np.diff(indptr))
        a = sparse.BCOO(
            (values, np.stack([row, indices], 1)),
            shape=shape,
            indices_sorted=True,
            unique_indices=True,
        )
        product = lib.jit(lambda a, y: a @ y)
        y = lib.numpy.asarray(dense[0])
        return lambda: product(a, y).block_until_ready()
    if library == "torch":
        parts = [lib.from_numpy(x) for x in (indptr.astype(np.int32), indices, values)]
        a, (y, z) = lib.sparse_csr_tensor(*parts, shape), map(lib.from_numpy, dense)
        coo = a.to_sparse_coo().coalesce() if kind == "softmax" else None
        wide = (
            lib.sparse_csr_tensor(parts[0].long(), parts[1].long(), parts[2], shape)
            if kind == "transpose"
            else None
        )
        return {
            "spmm": lambda: a @ y,
            "spmv": lambda: a @ y,
            "spgemm": lambda: lib.sparse.mm(lib.sparse.mm(a, a), lib.ones(rows, 1))[:, 0],
            "sddmm": lambda: lib.sparse.sampled_addmm(a, y, z.T, beta=0.0).values(),
            "softmax": lambda: lib.sparse.softmax(coo, 1).values(),
            "transpose": lambda: wide.to_sparse_csc().values(),
        }[kind]
    a, (y, z) = lib.sparse.csr(indptr, indices, values, shape), map(lib.tensor, dense)
    return {
        "spmm": lambda: a @ y,
        "spmv": lambda: a @ y,
        "spgemm": lambda: (a @ a).sum(1),
        "sddmm": lambda: lib.sparse.sddmm(a, y, z).values(),
        "softmax": lambda: lib.sparse.softmax(a).values(),
        "transpose": lambda: a.T.to_sparse("csr").values(),
    }[kind]


def main() -> None:
    peers = ("scipy", "torch", "jax")
    options = parser(__doc__, rounds=7, threads=0, peers=peers).parse_args()
    names = [name for name in (QUICK if options.quick else CASES) if re.search(options.only, name)]
    options.only = ""
    report = Report("sparse", options)
    options.threads = options.threads or 1
    limit_threads(options.threads)
    group = f"{options.threads} thread{'s' * (options.threads > 1)}"
    cases = [Case(name, group, tolerance=1e-3, parameters={"what": name}) for name in names]
    measure(cases, build, options, report)
    report.close()


if __name__ == "__main__":
    main()
