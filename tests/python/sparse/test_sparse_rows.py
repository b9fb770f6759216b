# SPDX-License-Identifier: Apache-2.0
"""Embeddings whose gradient consists of rows, and what clipping, scaling and optimizers do with it."""

import numpy as np
import pytest
import tenon
from tenon import nn, optim
from tenon.nn import functional as F

RNG = np.random.default_rng(3)


def tables(rows=40, features=5, **options):
    """The same table twice: with dense gradients, and with gradients of rows."""
    weight = RNG.normal(size=(rows, features)).astype(np.float32)
    made = [
        nn.Embedding(rows, features, sparse=is_sparse, **options) for is_sparse in (False, True)
    ]
    for table in made:
        with tenon.no_grad():
            table.weight.copy_(tenon.tensor(weight))
    return made


def backward(table, ids, target):
    ((table(ids) - target) ** 2).sum().backward()


def batch(rows=40, features=5, count=12):
    ids = tenon.tensor(RNG.integers(0, rows, (3, count // 3)))
    return ids, tenon.tensor(RNG.normal(size=(3, count // 3, features)).astype(np.float32))


@pytest.mark.parametrize("padding_idx", [None, 3])
@pytest.mark.parametrize("by_freq", [False, True])
def test_gradient(padding_idx, by_freq):
    dense, rows = tables(padding_idx=padding_idx, scale_grad_by_freq=by_freq)
    ids, target = batch()
    ids[0, 0] = 3
    ids[0, 1] = ids[1, 1]
    for table in (dense, rows):
        backward(table, ids, target)
    grad = rows.weight.grad
    assert grad.layout == "coo" and grad.indices().shape[0] == 1 and grad.nnz <= ids.numel()
    np.testing.assert_allclose(
        grad.to_dense().numpy(), dense.weight.grad.numpy(), rtol=1e-5, atol=1e-6
    )


def test_negative_indices_and_none_at_all():
    dense, rows = tables()
    for ids in (tenon.tensor([-1, 39, 0]), tenon.tensor(np.zeros(0, np.int64))):
        for table in (dense, rows):
            table.weight.grad = None
            table(ids).sum().backward()
        assert rows.weight.grad.layout == "coo"
        assert rows.weight.grad.to_dense().tolist() == dense.weight.grad.tolist()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_padding_by_an_index_from_the_end(is_sparse):
    table = nn.Embedding(4, 1, padding_idx=0, sparse=is_sparse)
    table(tenon.tensor([-4, 0, -3])).sum().backward()
    assert table.weight.grad.to_dense().tolist() == [[0.0], [1.0], [0.0], [0.0]]


def test_gradients_add_up():
    dense, rows = tables()
    for _ in range(3):
        ids, target = batch()
        for table in (dense, rows):
            backward(table, ids, target)
    assert rows.weight.grad.layout == "coo" and rows.weight.grad.nnz == 36
    np.testing.assert_allclose(
        rows.weight.grad.to_dense().numpy(), dense.weight.grad.numpy(), rtol=1e-5, atol=1e-5
    )
    # Beside a dense gradient of the same table.
    for table in (dense, rows):
        table.weight.grad = None
        (table(ids).sum() + (table.weight * 2.0).sum()).backward()
    np.testing.assert_allclose(
        rows.weight.grad.to_dense().numpy(), dense.weight.grad.numpy(), rtol=1e-5, atol=1e-5
    )


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd_maximize": lambda p: optim.SGD(p, lr=0.1, maximize=True),
    "sgd_decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.01),
    "adagrad_decay": lambda p: optim.Adagrad(p, lr=0.1, weight_decay=0.1),
    "adam": lambda p: optim.Adam(p, lr=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.1),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.1),
    "adadelta": lambda p: optim.Adadelta(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bits_of_the_dense_run(name):
    dense, rows = tables()
    optimizers = [OPTIMIZERS[name]([table.weight]) for table in (dense, rows)]
    for _ in range(20):
        ids, target = batch()
        for table, optimizer in zip((dense, rows), optimizers):
            optimizer.zero_grad()
            backward(table, ids, target)
            optimizer.step()
    assert rows.weight.tolist() == dense.weight.tolist()


@pytest.mark.parametrize("make", [optim.Adam, optim.AdamW])
def test_lazy_moves_only_the_rows_that_were_read(make):
    _, table = tables()
    optimizer = make([table.weight], lr=0.1, lazy=True)
    before = table.weight.detach().clone()
    backward(table, tenon.tensor([[1, 2, 2]]), tenon.zeros([1, 3, 5]))
    optimizer.step()
    optimizer.zero_grad()
    first = table.weight.detach().clone()
    moved = (first != before).any(1).tolist()
    assert [i for i, m in enumerate(moved) if m] == [1, 2]
    backward(table, tenon.tensor([[7]]), tenon.zeros([1, 1, 5]))
    optimizer.step()
    moved = (table.weight.detach() != first).any(1).tolist()
    assert [i for i, m in enumerate(moved) if m] == [7]
    state = optimizer.state[table.weight]
    assert state["m"].shape == table.weight.shape and (state["m"][7] != 0).all().item()
    assert optimizer.state_dict()["param_groups"][0]["lazy"] is True


def test_lazy_is_adam_where_every_row_is_read():
    dense, rows = tables(rows=6)
    optimizers = [
        optim.Adam([dense.weight], lr=0.1),
        optim.Adam([rows.weight], lr=0.1, lazy=True),
    ]
    ids = tenon.tensor([[0, 1, 2, 3, 4, 5, 5, 2]])
    for _ in range(5):
        target = tenon.tensor(RNG.normal(size=(1, 8, 5)).astype(np.float32))
        for table, optimizer in zip((dense, rows), optimizers):
            optimizer.zero_grad()
            backward(table, ids, target)
            optimizer.step()
    assert rows.weight.tolist() == dense.weight.tolist()


@pytest.mark.parametrize("order", [2.0, 1.0, float("inf")])
def test_clipping_sees_sums(order):
    dense, rows = tables()
    ids = tenon.tensor([[1, 1, 2]])
    for table in (dense, rows):
        table(ids).sum().backward()
    norms = [nn.utils.clip_grad_norm_([t.weight], 0.5, order).item() for t in (dense, rows)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-6)
    np.testing.assert_allclose(
        rows.weight.grad.to_dense().numpy(), dense.weight.grad.numpy(), rtol=1e-5, atol=1e-7
    )
    for table in (dense, rows):
        nn.utils.clip_grad_value_([table.weight], 0.01)
    assert rows.weight.grad.layout == "coo"
    np.testing.assert_allclose(
        rows.weight.grad.to_dense().numpy(), dense.weight.grad.numpy(), rtol=1e-6
    )


def test_loss_scaler_sees_what_overflows_only_as_a_sum():
    _, table = tables(rows=4, features=1)
    table.weight.grad = tenon.sparse.coo([[1, 1]], tenon.tensor([[3e38], [3e38]]), (4, 1))
    scaler = tenon.amp.GradScaler(init_scale=1.0)
    optimizer = optim.SGD([table.weight], lr=1.0)
    before = table.weight.tolist()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert table.weight.tolist() == before  # the step was left out


def test_loss_scaler_unscales_rows():
    dense, rows = tables()
    ids, target = batch()
    for table in (dense, rows):
        scaler = tenon.amp.GradScaler(init_scale=1024.0)
        optimizer = optim.SGD([table.weight], lr=0.1)
        scaler.scale(((table(ids) - target) ** 2).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert rows.weight.tolist() == dense.weight.tolist()


def test_low_precision_with_master_weights():
    weight = tenon.tensor(RNG.normal(size=(10, 4)).astype(np.float32)).to(tenon.bfloat16)
    results = []
    for is_sparse in (False, True):
        p = nn.Parameter(weight.clone())
        optimizer = optim.SGD([p], lr=0.1, multi_precision=True)
        for step in range(4):
            optimizer.zero_grad()
            ids = tenon.tensor([step, step + 1, 3])
            F.embedding(ids, p, sparse=is_sparse).sum().backward()
            optimizer.step()
        results.append(p.detach().to(tenon.float32).tolist())
    assert results[0] == results[1]


def test_zero_grad_to_zeros():
    _, table = tables()
    ids, target = batch()
    backward(table, ids, target)
    optim.SGD([table.weight]).zero_grad(set_to_none=False)
    assert table.weight.grad.layout == "coo" and table.weight.grad.nnz == 0
    assert table.weight.grad.to_dense().numpy().sum() == 0


def test_hooks_get_rows_and_frozen_tables_get_none():
    seen = []
    _, table = tables()
    table.weight.register_hook(lambda grad: seen.append(grad.layout))
    table(tenon.tensor([1])).sum().backward()
    assert seen == ["coo"]
    frozen = nn.Embedding.from_pretrained(tenon.ones([3, 2]), sparse=True)
    assert not frozen(tenon.tensor([1])).requires_grad


def test_bags_say_that_their_gradients_are_dense():
    with pytest.raises(NotImplementedError, match=r"use Embedding\(sparse=True\)"):
        nn.EmbeddingBag(3, 2, sparse=True)


def test_compiled_steps_have_the_bits_of_plain_ones():
    """The part that needs the numbers of rows runs without a program."""
    dense, rows = tables()
    steps = []
    for table in (dense, rows):
        optimizer = optim.SGD(table.parameters(), lr=0.5)

        def step(ids, table=table, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (table(ids) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        steps.append(tenon.compile(step))
    for ids in ([1, 2], [2, 2], [5, 1], [0, 39]):
        losses = [step(tenon.tensor(ids)).item() for step in steps]
        assert losses[0] == losses[1]
    assert rows.weight.tolist() == dense.weight.tolist()


def test_compiled_functions_run_sparse_tensors_without_a_program():
    matrix = tenon.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse("csr")
    x = tenon.ones([2, 1])
    assert tenon.compile(lambda a, b: a @ b)(matrix, x).tolist() == [[1.0], [2.0]]
    assert tenon.compile(lambda b: matrix @ b)(x).tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_data_parallel_gathers_rows(ranks):
    """Rows of all ranks, with the bits of dense gradients; a rank may have none, and equal rows are sums."""
    import tenon.distributed as dist

    def run(is_sparse):
        def train():
            tenon.manual_seed(5)
            rank = dist.get_rank()
            model = nn.Sequential(nn.Embedding(10, 3, sparse=is_sparse), nn.Linear(3, 2))
            parallel = dist.DistributedDataParallel(model)
            optimizer = optim.SGD(model.parameters(), lr=0.5)
            layouts = []
            batches = [[[1, 2, 2], [2, 9], [5]], [[3], [3, 3], [3]], [[0, 1], [], []]]
            for batch in batches:
                optimizer.zero_grad()
                ids = tenon.tensor(batch[rank % 3], dtype=tenon.int64)
                (parallel(ids) ** 2).sum().backward()
                layouts.append(model[0].weight.grad.layout)
                optimizer.step()
            return model[0].weight.tolist(), layouts

        with dist.local(ranks) as group:
            return group.run(train)

    dense, rows = run(False), run(True)
    for (expected, _), (got, layouts) in zip(dense, rows):
        assert got == expected and set(layouts) == {"coo"}
    assert all(table == rows[0][0] for table, _ in rows)


def test_data_parallel_refuses_rows_that_it_cannot_foresee():
    import tenon.distributed as dist

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tenon.ones([4, 2]))

        def forward(self, ids):
            return F.embedding(ids, self.weight, sparse=True)

    def train():
        dist.DistributedDataParallel(Table())(tenon.tensor([1, 2])).sum().backward()

    with (
        dist.local(2) as ranks,
        pytest.raises(
            (NotImplementedError, RuntimeError), match=r"tables of Embedding\(sparse=True\)"
        ),
    ):
        ranks.run(train)
