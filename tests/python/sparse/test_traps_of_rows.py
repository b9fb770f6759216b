# SPDX-License-Identifier: Apache-2.0
"""Faults that gradients of rows of other libraries once had, by name: README.md says where they were reported."""

import numpy as np
import pytest
import tenon
from tenon import nn, optim, sparse

T = tenon.tensor


def table(is_sparse, rows=6):
    made = nn.Embedding(rows, 2, sparse=is_sparse)
    with tenon.no_grad():
        made.weight.copy_(tenon.arange(2.0 * rows).reshape([rows, 2]))
    return made


def trained(is_sparse, make, batches):
    """The table's rows after a step for each batch."""
    made = table(is_sparse)
    optimizer = make([made.weight])
    for ids in batches:
        optimizer.zero_grad()
        (made(T(ids, tenon.int64)) ** 2).sum().backward()
        optimizer.step()
    return made.weight.tolist()


def test_overflow_of_duplicates():
    """Finite numbers whose sum is not: the scaler leaves the step out."""
    weight = nn.Parameter(tenon.ones([2, 1]))
    weight.grad = sparse.coo([[1, 1]], T([[3e38], [3e38]]), (2, 1))
    scaler, optimizer = tenon.amp.GradScaler(init_scale=1.0), optim.SGD([weight], lr=1.0)
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [[1.0], [1.0]] and scaler.get_scale() < 1.0


def test_clip_rows():
    """A row that occurs twice counts as the sum: its norm is 6, and not that of 3 and 3."""
    weight = nn.Parameter(tenon.zeros([3, 1]))
    weight.grad = sparse.coo([[1, 1]], T([[3.0], [3.0]]), (3, 1))
    assert nn.utils.clip_grad_norm_([weight], 3.0).item() == 6.0
    np.testing.assert_allclose(weight.grad.to_dense().numpy(), [[0.0], [3.0], [0.0]], rtol=1e-5)
    nn.utils.clip_grad_value_([weight], 1.0)
    assert weight.grad.to_dense().tolist() == [[0.0], [1.0], [0.0]]


@pytest.mark.parametrize("make", [optim.SGD, optim.AdamW, optim.Adam])
def test_decay_of_absent_rows(make):
    """Weights decay whether their rows are read or not, as they do with dense gradients."""
    configured = lambda p: make(p, lr=0.1, weight_decay=0.5)
    rows = trained(True, configured, [[1], [2, 2]])
    assert rows == trained(False, configured, [[1], [2, 2]])
    assert rows[5] != table(True).weight.tolist()[5]


def test_lazy_is_not_adam():
    """Adam moves rows that were read before, by their moments; only `lazy` does not."""
    batches = [[1], [2], [3]]
    adam = lambda p: optim.Adam(p, lr=0.1)
    lazy = lambda p: optim.Adam(p, lr=0.1, lazy=True)
    whole = trained(True, adam, batches)
    assert whole == trained(False, adam, batches)
    assert trained(True, lazy, batches)[1] != whole[1]


def test_rows_repeat():
    made = table(True)
    made(T([4, 4, 4])).sum().backward()
    optim.SGD([made.weight], lr=1.0).step()
    assert made.weight.tolist()[4] == [8.0 - 3.0, 9.0 - 3.0]
    assert made.weight.grad.coalesce().nnz == 1


@pytest.mark.parametrize("make", [optim.SGD, optim.Adagrad, optim.Adam, optim.RMSprop])
def test_no_rows(make):
    made = table(True)
    made(tenon.zeros([0], dtype=tenon.int64)).sum().backward()
    assert made.weight.grad.layout == "coo" and made.weight.grad.nnz == 0
    assert nn.utils.clip_grad_norm_([made.weight], 1.0).item() == 0.0
    before = made.weight.tolist()
    make([made.weight], lr=0.1).step()
    assert made.weight.tolist() == before
    assert trained(True, make, [[], [1]]) == trained(False, make, [[], [1]])


def test_rows_under_ddp():
    """Each rank reads other rows, one of them none."""
    import tenon.distributed as dist

    def train(is_sparse):
        model = dist.DistributedDataParallel(nn.Sequential(table(is_sparse)))
        ids = [[1, 1], []][dist.get_rank()]
        model(T(ids, tenon.int64)).sum().backward()
        grad = model.module[0].weight.grad
        return grad.layout, (grad.to_dense() if is_sparse else grad).tolist()

    with dist.local(2) as ranks:
        rows = ranks.run(lambda: train(True))
        dense = ranks.run(lambda: train(False))
    assert [grad for _, grad in rows] == [grad for _, grad in dense]
    assert rows[1][0] == "coo" and rows[1][1][1] == [1.0, 1.0]


class Matrices(tenon.data.Dataset):
    def __init__(self, layout):
        self.layout = layout

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return T([[0.0, index], [1.0, 0.0]]).to_sparse(self.layout)


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_workers(layout):
    loader = tenon.data.DataLoader(Matrices(layout), batch_size=None, num_workers=2)
    got = list(loader)
    assert [x.layout for x in got] == [layout] * 3
    assert [x.to_dense()[0, 1].item() for x in got] == [0.0, 1.0, 2.0]


def test_write_of_rows():
    """Rows are written where they are: no copy of the table is made."""
    weight = tenon.zeros([100_000, 16])
    tenon.memory.reset_peak()
    before = tenon.memory.stats()["current"]
    weight[T([3, 99_999])] = 1.0
    weight.index_add_(T([3, 3]), tenon.ones([2, 16]))
    assert tenon.memory.stats()["peak"] - before < 100_000
    assert weight[3].tolist() == [3.0] * 16 and weight.sum().item() == 64.0
