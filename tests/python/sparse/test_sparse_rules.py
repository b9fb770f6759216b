# SPDX-License-Identifier: Apache-2.0
"""Every operator, given a sparse tensor in the place of each tensor argument of its samples: the dense result, or a refusal,
and no third; and every device with what is made of operators."""

import numpy as np
import pytest
import tenon
from devices import DEVICES
from tenon import nn, optim, sparse

RNG = np.random.default_rng(11)
# Results are random, uninitialised, or say how the argument lies in memory.
NOT_COMPARED = {
    "bernoulli",
    "dropout",
    "dropout_add",
    "empty_like",
    "multinomial",
    "normal_like",
    "poisson",
    "shuffle_batch",
    "uniform_like",
}


def dense_of(result):
    if isinstance(result, (tuple, list)):
        return [dense_of(item) for item in result]
    return result.to_dense() if isinstance(result, tenon.Tensor) else result


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if not isinstance(a, tenon.Tensor):
        return a == b
    if a.dtype != b.dtype or tuple(a.shape) != tuple(b.shape):
        return False
    if a.dtype.is_complex:
        a, b = tenon.abs(a), tenon.abs(b)
    return np.allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5, equal_nan=True)


def matrix(dtype):
    x = np.where(RNG.random((4, 4)) < 0.5, RNG.normal(size=(4, 4)), 0.0).astype(np.float32)
    x[0, 0] = 0.5
    return tenon.tensor(x).to(dtype)


def forms(x):
    coo = x.to_sparse()
    half = coo.values() / 2
    twice = tenon.concat([coo.indices(), coo.indices()], axis=1)
    yield sparse.coo(twice, tenon.concat([half, half]), x.shape)
    yield x.to_sparse("csr")


def all_operators():
    """Those whose arguments are one to three tensors, and whatever has a default."""
    for name in sorted(dir(tenon.ops)):
        op = getattr(
            tenon.ops, name, None
        )  # a namespace of a plugin may be listed before it is there
        schema = getattr(op, "schema", "")
        if not schema.startswith("tenon::"):
            continue
        inner = schema[schema.index("(") + 1 : schema.rindex(") ->")]
        params = [p.strip() for p in inner.split(",") if p.strip() not in ("*", "")]
        needed = [p for p in params if "=" not in p]
        if 1 <= len(needed) <= 3 and all(p.startswith("Tensor ") for p in needed):
            yield name, len(needed)


@pytest.mark.parametrize(("name", "count"), list(all_operators()))
def test_dense_result_or_refusal(name, count):
    op = getattr(tenon.ops, name)
    x = matrix(tenon.float32)
    beside = [tenon.tensor(np.float32(0.5)), matrix(tenon.float32)]
    for other in beside if count > 1 else [None]:
        for where in range(count):
            args = [x if i == where else other for i in range(count)]
            try:
                expected = dense_of(op(*args))
            except (ValueError, TypeError, NotImplementedError, RuntimeError, IndexError):
                continue
            for form in forms(x):
                given = [form if i == where else other for i in range(count)]
                try:
                    result = dense_of(op(*given))
                except (NotImplementedError, TypeError, ValueError, IndexError) as error:
                    assert "to_dense()" in str(error) or "layout" in str(error), f"{name}: {error}"
                    continue
                assert name in NOT_COMPARED or same(result, expected), (name, where, form.layout)


@pytest.mark.parametrize("device", DEVICES)
def test_devices(device):
    with tenon.fallback("allow"):
        x = np.where(RNG.random((6, 5)) < 0.5, RNG.normal(size=(6, 5)), 0.0).astype(np.float32)
        y = tenon.tensor(RNG.normal(size=(5, 3)).astype(np.float32))
        for layout in ("coo", "csr"):
            s = tenon.tensor(x).to_sparse(layout).to(device)
            assert (
                s.layout == layout and s.device.kind == device and s.values().device.kind == device
            )
            np.testing.assert_allclose(s.to_dense().cpu().numpy(), x, rtol=1e-6)
            np.testing.assert_allclose(
                (s @ y.to(device)).cpu().numpy(), x @ y.numpy(), rtol=1e-4, atol=1e-5
            )
            np.testing.assert_allclose(
                tenon.norm(s * 2.0).cpu().item(), 2 * np.linalg.norm(x), rtol=1e-5
            )
        tables = [nn.Embedding(9, 4, sparse=is_sparse) for is_sparse in (False, True)]
        with tenon.no_grad():
            tables[1].weight.copy_(tables[0].weight)
        ids = tenon.tensor([[1, 3], [3, 8]]).to(device)
        for table in tables:
            table.to(device)
            optimizer = optim.Adagrad(table.parameters(), lr=0.1)
            for _ in range(2):
                optimizer.zero_grad()
                (table(ids) ** 2).sum().backward()
                optimizer.step()
        np.testing.assert_allclose(
            tables[1].weight.detach().cpu().numpy(),
            tables[0].weight.detach().cpu().numpy(),
            rtol=1e-6,
        )
