# SPDX-License-Identifier: Apache-2.0
"""tenon.compat.torch and tenon.compat.paddle: order of arguments, keywords, defaults and results of the other
library. Names that are operators are covered by the operators' own tests."""

import pytest
import tenon
from tenon._spellings import SPELLINGS
from tenon.compat import paddle, torch

X = torch.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]])
V = torch.tensor([3, 1, 2])


def values(result):
    if isinstance(result, (tuple, list)):
        return [values(each) for each in result]
    return result.tolist() if isinstance(result, tenon.Tensor) else result


@pytest.mark.parametrize("namespace", [torch, paddle], ids=["torch", "paddle"])
def test_every_name_exists(namespace):
    for name in dir(namespace):
        assert hasattr(namespace, name), name
    with pytest.raises(AttributeError, match=r"does not cover \w+\.no_such_thing; docs/compat"):
        namespace.no_such_thing


def test_the_generated_table():
    assert SPELLINGS["torch"]["cat"] == "concat" and SPELLINGS["paddle"]["neg"] == "negative"
    assert (
        torch.neg(X).tolist() == (-X).tolist()
        and torch.mul(input=X, other=2).tolist() == (X * 2).tolist()
    )


TORCH = {
    "max with dim": (lambda: torch.max(X, dim=1), [[5.0, 6.0], [1, 2]]),
    "max keepdim": (lambda: torch.max(X, 0, keepdim=True).indices, [[1, 0, 1]]),
    "max of all": (lambda: torch.max(X), 6.0),
    "max of two": (
        lambda: torch.max(X, torch.full((2, 3), 3.0)),
        [[3.0, 5.0, 3.0], [4.0, 3.0, 6.0]],
    ),
    "min": (lambda: torch.min(X, dim=1).values, [1.0, 3.0]),
    "amax": (lambda: torch.amax(X, dim=(0, 1)), 6.0),
    "var": (lambda: torch.var(torch.tensor([1.0, 3.0])), 2.0),
    "var of all": (lambda: torch.var(torch.tensor([1.0, 3.0]), unbiased=False), 1.0),
    "std": (lambda: torch.std(torch.tensor([1.0, 3.0]), correction=0), 1.0),
    "var_mean": (lambda: torch.var_mean(torch.tensor([1.0, 3.0])), [2.0, 2.0]),
    "sum": (lambda: torch.sum(V, dtype=torch.float64), 6.0),
    "sort": (lambda: torch.sort(V), [[1, 2, 3], [1, 2, 0]]),
    "topk": (lambda: torch.topk(V, k=2), [[3, 2], [0, 2]]),
    "argsort": (lambda: torch.argsort(V, descending=True), [0, 2, 1]),
    "cat": (lambda: torch.cat((V, V), dim=0), [3, 1, 2, 3, 1, 2]),
    "split": (lambda: torch.split(V, 2), [[3, 1], [2]]),
    "split by sizes": (lambda: torch.split(tensor=V, split_size_or_sections=[1, 2]), [[3], [1, 2]]),
    "chunk": (lambda: torch.chunk(V, 2), [[3, 1], [2]]),
    "gather": (lambda: torch.gather(X, 1, torch.tensor([[2], [0]])), [[2.0], [4.0]]),
    "scatter": (lambda: torch.scatter(V, 0, torch.tensor([1]), 9), [3, 9, 2]),
    "scatter_add": (
        lambda: torch.scatter_add(V, 0, torch.tensor([1, 1]), torch.tensor([5, 6])),
        [3, 12, 2],
    ),
    "index_select": (lambda: torch.index_select(X, 1, torch.tensor([1])), [[5.0], [3.0]]),
    "index_add": (
        lambda: torch.index_add(V, 0, torch.tensor([0]), torch.tensor([2]), alpha=3),
        [9, 1, 2],
    ),
    "take": (lambda: torch.take(X, torch.tensor([4])), [3.0]),
    "take_along_dim": (
        lambda: torch.take_along_dim(X, torch.tensor([[1], [1]]), dim=1),
        [[5.0], [3.0]],
    ),
    "nonzero": (lambda: torch.nonzero(V > 1), [[0], [2]]),
    "nonzero as tuple": (lambda: torch.nonzero(V > 1, as_tuple=True), [[0, 2]]),
    "where": (lambda: torch.where(V > 1), [[0, 2]]),
    "unique": (lambda: torch.unique(torch.tensor([2, 1, 2]), return_counts=True), [[1, 2], [1, 2]]),
    "meshgrid": (lambda: torch.meshgrid(V, V[:2])[1], [[3, 1]] * 3),
    "repeat_interleave": (lambda: torch.repeat_interleave(V, torch.tensor([1, 0, 2])), [3, 2, 2]),
    "clamp": (lambda: torch.clamp(V, min=2), [3, 2, 2]),
    "add with alpha": (lambda: torch.add(V, V, alpha=2), [9, 3, 6]),
    "div to the floor": (lambda: torch.div(V, 2, rounding_mode="floor"), [1, 0, 1]),
    "div truncated": (lambda: torch.div(-V, 2, rounding_mode="trunc"), [-1, 0, -1]),
    "round": (lambda: torch.round(torch.tensor([1.26]), decimals=1).double().round() == 1, [True]),
    "equal": (lambda: torch.equal(V, V), True),
    "eq": (lambda: torch.eq(V, 1), [False, True, False]),
    "allclose": (lambda: torch.allclose(X, X), True),
    "flatten": (lambda: torch.flatten(X, start_dim=0).shape, [6]),
    "permute": (lambda: torch.permute(X, dims=(1, 0)).shape, [3, 2]),
    "transpose": (lambda: torch.transpose(X, dim0=0, dim1=1).shape, [3, 2]),
    "squeeze": (lambda: torch.squeeze(X[None], dim=0).shape, [2, 3]),
    "softmax": (lambda: torch.softmax(torch.zeros(2), dim=0), [0.5, 0.5]),
    "cumsum": (lambda: torch.cumsum(V, dim=0), [3, 4, 6]),
    "diff": (lambda: torch.diff(V, n=2), [3]),
    "einsum": (lambda: torch.einsum("i,i->", V, V), 14),
    "matrix products": (lambda: torch.mm(input=X, mat2=X.T), [[30.0, 31.0], [31.0, 61.0]]),
    "cross": (lambda: torch.cross(V, V), [0, 0, 0]),
    "norm": (lambda: torch.norm(torch.tensor([3.0, 4.0])), 5.0),
    "rot90": (lambda: torch.rot90(X, 1, [0, 1])[0], [2.0, 6.0]),
    "searchsorted": (lambda: torch.searchsorted(torch.tensor([1, 2, 3]), 2, right=True), 2),
    "linspace": (lambda: torch.linspace(0, 1, steps=3), [0.0, 0.5, 1.0]),
    "arange": (lambda: torch.arange(start=1, end=4), [1, 2, 3]),
    "zeros": (lambda: torch.zeros(2, 1), [[0.0], [0.0]]),
    "eye": (lambda: torch.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
    "full_like": (lambda: torch.full_like(V, 2), [2, 2, 2]),
    "diagonal": (lambda: torch.diagonal(X[None], dim1=1, dim2=2), [[1.0, 3.0]]),
    "tile": (lambda: torch.tile(V, dims=(2,)), [3, 1, 2, 3, 1, 2]),
    "vmap": (lambda: torch.vmap(torch.sum)(X), [8.0, 13.0]),
}


@pytest.mark.parametrize("name", TORCH)
def test_torch(name):
    call, want = TORCH[name]
    assert values(call()) == want


def test_torch_random():
    generator = torch.Generator(seed=1)
    first = torch.randint(10, (4,), generator=generator).tolist()
    again = torch.randint(0, 10, (4,), generator=generator.manual_seed(1)).tolist()
    assert first == again and torch.normal(5.0, 0.0, (2,)).tolist() == [5.0, 5.0]
    assert torch.normal(V.float(), 0.0).tolist() == [3.0, 1.0, 2.0]
    assert torch.rand_like(X).shape == torch.randn_like(X).shape == torch.poisson(X).shape == (2, 3)
    assert torch.randn(2, 3, requires_grad=True).requires_grad


def test_a_torch_program():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(0)
    x = torch.randn(16, 3)
    target = torch.sum(x, dim=1, keepdim=True)
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        assert losses[-1] < losses[0] and not model(x).requires_grad


PADDLE = {
    "to_tensor": (lambda: paddle.to_tensor([1.0], stop_gradient=False).requires_grad, True),
    "full": (lambda: paddle.full([2], 3), [3.0, 3.0]),
    "matmul": (lambda: paddle.matmul(X, X, transpose_y=True), [[30.0, 31.0], [31.0, 61.0]]),
    "max": (lambda: paddle.max(X, axis=1, keepdim=True), [[5.0], [6.0]]),
    "argmax": (lambda: paddle.argmax(X, axis=1, dtype="int32"), [1, 2]),
    "std": (lambda: paddle.var(paddle.to_tensor([1.0, 3.0])), 2.0),
    "topk": (lambda: paddle.topk(V, k=1), [[3], [0]]),
    "sort": (lambda: paddle.sort(V), [1, 2, 3]),
    "concat": (lambda: paddle.concat(x=[V, V], axis=0), [3, 1, 2, 3, 1, 2]),
    "split": (lambda: paddle.split(V, [1, -1]), [[3], [1, 2]]),
    "split in equal parts": (lambda: paddle.split(X, 3, axis=1)[2], [[2.0], [6.0]]),
    "transpose": (lambda: paddle.transpose(X, perm=[1, 0]).shape, [3, 2]),
    "flatten": (lambda: paddle.flatten(X, start_axis=0).shape, [6]),
    "tile": (lambda: paddle.tile(V, repeat_times=[2]), [3, 1, 2, 3, 1, 2]),
    "gather": (lambda: paddle.gather(V, paddle.to_tensor([2, 0])), [2, 3]),
    "index_add": (
        lambda: paddle.index_add(V, paddle.to_tensor([0]), 0, paddle.to_tensor([5])),
        [8, 1, 2],
    ),
    "scatter": (lambda: paddle.scatter(V, paddle.to_tensor([1]), paddle.to_tensor([9])), [3, 9, 2]),
    "scatter added": (
        lambda: paddle.scatter(
            V, paddle.to_tensor([1, 1]), paddle.to_tensor([4, 5]), overwrite=False
        ),
        [3, 9, 2],
    ),
    "scale": (lambda: paddle.scale(V, 2, bias=1), [7, 3, 5]),
    "where": (lambda: paddle.where(V > 1, V, paddle.zeros_like(V)), [3, 0, 2]),
    "unique": (lambda: paddle.unique(paddle.to_tensor([2, 1, 2])), [1, 2]),
    "cumsum": (lambda: paddle.cumsum(X)[-1], 21.0),
    "norm": (lambda: paddle.norm(paddle.to_tensor([3.0, 4.0]), p=2), 5.0),
    "numel": (lambda: paddle.numel(X), 6),
    "shape": (lambda: paddle.shape(X), [2, 3]),
    "cast": (lambda: paddle.cast(V, "float32").dtype, tenon.float32),
    "clip": (lambda: paddle.clip(V, min=2), [3, 2, 2]),
    "equal_all": (lambda: paddle.equal_all(V, V), True),
    "arange": (lambda: paddle.arange(3), [0, 1, 2]),
    "uniform": (lambda: paddle.uniform([2], min=3, max=3), [3.0, 3.0]),
    "randint": (lambda: paddle.randint(1, 2, [2]), [1, 1]),
    "addmm": (lambda: paddle.addmm(paddle.ones([2, 2]), X, X.T, beta=2.0)[0], [32.0, 33.0]),
    "put_along_axis": (lambda: paddle.put_along_axis(V, paddle.to_tensor([1]), 7, 0), [3, 7, 2]),
}


@pytest.mark.parametrize("name", PADDLE)
def test_paddle(name):
    call, want = PADDLE[name]
    assert values(call()) == want


def test_importing_paddle_loads_no_device_plugin():
    assert paddle.device_plugins() is not None and callable(paddle.load_device_plugin)
