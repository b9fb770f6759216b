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


# -- names that are rarely typed --------------------------------------------------------------------------

S = torch.tensor([[2.0, 0.0, 1.0], [1.0, 3.0, 0.0], [0.0, 1.0, 4.0]])
N = torch.tensor([[1.0, float("nan"), 3.0, 2.0], [float("nan"), -2.0, 0.5, 9.0]])
C = torch.tensor([1 + 2j, 3 - 1j])
W = torch.ones(2, 1, 3, 3)
I = torch.tensor([3, 1, 1, 2])  # noqa: E741

MORE_TORCH = {
    "adjoint": (lambda: torch.adjoint(C.reshape(1, 2)), [[1 - 2j], [3 + 1j]]),
    "as_strided_scatter": (
        lambda: torch.as_strided_scatter(torch.zeros(3, 3), torch.ones(2, 2), (2, 2), (1, 2), 1),
        [[0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
    ),
    "atleast_2d": (lambda: torch.atleast_2d([V, torch.tensor(3)]), [[[3, 1, 2]], [[3]]]),
    "bincount": (lambda: torch.bincount(I, minlength=5), [0, 2, 1, 1, 0]),
    "block_diag": (
        lambda: torch.block_diag(torch.ones(1, 2), torch.ones(1, 1)),
        [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    "cartesian_prod": (lambda: torch.cartesian_prod(V[:2], V[2:]), [[3, 2], [1, 2]]),
    "chain_matmul": (
        lambda: torch.chain_matmul(X, S, torch.eye(3)),
        [[7.0, 17.0, 9.0], [11.0, 15.0, 28.0]],
    ),
    "column_stack": (lambda: torch.column_stack((V, V)), [[3, 3], [1, 1], [2, 2]]),
    "combinations": (
        lambda: torch.combinations(V, 2, True),
        [[3, 3], [3, 1], [3, 2], [1, 1], [1, 2], [2, 2]],
    ),
    "fliplr": (lambda: torch.fliplr(X), [[2.0, 5.0, 1.0], [6.0, 3.0, 4.0]]),
    "gradient": (
        lambda: torch.gradient(X, spacing=2.0, dim=1),
        [[[2.0, 0.25, -1.5], [-0.5, 0.5, 1.5]]],
    ),
    "histc": (lambda: torch.histc(X, 5, 0, 5), [0.0, 1.0, 1.0, 1.0, 2.0]),
    "histogram": (lambda: torch.histogram(X, 2), [[3.0, 3.0], [1.0, 3.5, 6.0]]),
    "hsplit": (lambda: torch.hsplit(V, [2]), [[3, 1], [2]]),
    "igamma": (lambda: torch.igamma(torch.ones(1), torch.zeros(1)), [0.0]),
    "median": (lambda: torch.median(torch.tensor([4.0, 1.0, 3.0, 2.0])), 2.0),
    "median with dim": (lambda: torch.median(X, 1), [[2.0, 4.0], [2, 0]]),
    "median keepdim": (lambda: torch.median(X, 0, keepdim=True).values, [[1.0, 3.0, 2.0]]),
    "nanmedian": (lambda: torch.nanmedian(N, 1), [[2.0, 0.5], [3, 2]]),
    "nonzero_static": (lambda: torch.nonzero_static(V > 1, size=3), [[0], [2], [-1]]),
    "range": (lambda: torch.range(1, 2, 0.5), [1.0, 1.5, 2.0]),
    "svd": (lambda: torch.svd(X).V.shape, (3, 2)),
    "tensor_split": (lambda: torch.tensor_split(V, 2), [[3, 1], [2]]),
    "trapz": (lambda: torch.trapz(X, torch.tensor([0.0, 1.0, 3.0])), [10.0, 12.5]),
    "triangular_solve": (
        lambda: (
            torch.triangular_solve(
                torch.ones(2, 1), torch.tensor([[2.0, 1.0], [0.0, 4.0]])
            ).solution
        ),
        [[0.375], [0.25]],
    ),
    "unique_consecutive": (
        lambda: torch.unique_consecutive(I, False, True),
        [[3, 1, 2], [1, 2, 1]],
    ),
    "vdot": (lambda: torch.vdot(C, C), 15 + 0j),
    "conv2d": (lambda: torch.conv2d(torch.ones(1, 1, 3, 3), W, padding=0), [[[[9.0]], [[9.0]]]]),
    "conv_transpose2d": (
        lambda: torch.conv_transpose2d(torch.ones(1, 2, 1, 1), W[:, :, :1], None, 2, 0, 0, 2).shape,
        (1, 2, 1, 3),
    ),
    "avg_pool1d": (lambda: torch.avg_pool1d(X.reshape(1, 2, 3), 3), [[[8.0 / 3], [13.0 / 3]]]),
    "hardshrink": (lambda: torch.hardshrink(torch.tensor([0.4, 0.6])), [0.0, 0.6]),
    "hann_window": (lambda: torch.hann_window(4), [0.0, 0.5, 1.0, 0.5]),
    "cond": (lambda: torch.cond(True, lambda x: x + 1, lambda x: x, (V,)), [4, 2, 3]),
    "compile": (lambda: torch.compile(lambda x: x * 2, mode="default")(V), [6, 2, 4]),
}


def close(a, b):
    if isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b or abs(a - b) < 1e-5


@pytest.mark.parametrize("name", MORE_TORCH)
def test_more_of_torch(name):
    call, expected = MORE_TORCH[name]
    assert close(values(call()), expected)


def test_what_pytorch_allows_and_tenon_does_not():
    with pytest.raises(NotImplementedError, match="fullgraph=False, got True"):
        torch.compile(fullgraph=True)
    with pytest.raises(ValueError, match="return_complex=True or False for real numbers, got None"):
        torch.stft(X, 2)
    with pytest.raises(ValueError, match=r"mvlgamma\(\): expected numbers above .* = 1.0"):
        torch.mvlgamma(torch.ones(1), 3)
    assert torch.isnan(torch.median(N)) and torch.nanmedian(N).item() == 1.0


A = torch.tensor([-8, 7])
MORE_PADDLE = {
    "add_n": (lambda: paddle.add_n([X, X, X]), (X * 3).tolist()),
    "allclose": (lambda: paddle.allclose(X, X), True),
    "amax": (lambda: paddle.amax(X, 1, True), [[5.0], [6.0]]),
    "assign": (lambda: paddle.assign([1, 2]), [1, 2]),
    "bitwise_right_shift": (lambda: paddle.bitwise_right_shift(A, V[1:2]), [-4, 3]),
    "logical shift": (
        lambda: paddle.bitwise_right_shift(A.to(tenon.int8), V[1:2].to(tenon.int8), False),
        [124, 3],
    ),
    "logical shift of int64": (
        lambda: paddle.bitwise_right_shift(A, V[1:2], False),
        [2**63 - 4, 3],
    ),
    "broadcast_shape": (lambda: list(paddle.broadcast_shape([2, 1], [3])), [2, 3]),
    "cat": (lambda: paddle.cat([X, X], 1).shape, (2, 6)),
    "cumprod": (lambda: paddle.cumprod(X), [1.0, 5.0, 10.0, 40.0, 120.0, 720.0]),
    "floor_mod": (lambda: paddle.floor_mod(A, V[:1]), [1, 1]),
    "histogram": (lambda: paddle.histogram(X, 5, 0, 5), [0, 1, 1, 1, 2]),
    "histogram_bin_edges": (lambda: paddle.histogram_bin_edges(X, 2), [1.0, 3.5, 6.0]),
    "hsplit": (lambda: paddle.hsplit(X, [1])[1], [[5.0, 2.0], [3.0, 6.0]]),
    "increment": (lambda: paddle.increment(torch.tensor([1.0]), 2.0), [3.0]),
    "index_sample": (
        lambda: paddle.index_sample(X, torch.tensor([[2, 0], [1, 1]])),
        [[2.0, 1.0], [3.0, 3.0]],
    ),
    "isin": (lambda: paddle.isin(V, V[:1], invert=True), [False, True, True]),
    "is_empty": (lambda: paddle.is_empty(X), False),
    "mv": (lambda: paddle.mv(X, torch.ones(3)), [8.0, 13.0]),
    "permute": (lambda: paddle.permute(X, 1, 0).shape, (3, 2)),
    "polygamma": (lambda: paddle.polygamma(torch.ones(1), 1), [1.6449341]),
    "reverse": (lambda: paddle.reverse(V, [0]), [2, 1, 3]),
    "searchsorted": (
        lambda: paddle.searchsorted(torch.tensor([1, 3]), V, True, True).dtype.name,
        "int32",
    ),
    "slice": (lambda: paddle.slice(X, [1], [-2], [100]), [[5.0, 2.0], [3.0, 6.0]]),
    "strided_slice": (
        lambda: paddle.strided_slice(X, [1], [2], [-10], [-1]),
        [[2.0, 5.0, 1.0], [6.0, 3.0, 4.0]],
    ),
    "take": (lambda: paddle.take(X, torch.tensor([[7, -1]]), "wrap"), [[5.0, 6.0]]),
    "take and clip": (lambda: paddle.take(X, torch.tensor([9, -9]), "clip"), [6.0, 1.0]),
    "tensor_split": (lambda: paddle.tensor_split(V, 2), [[3, 1], [2]]),
    "unfold": (lambda: paddle.unfold(V, 0, 2, 1), [[3, 1], [1, 2]]),
    "unique_consecutive": (lambda: paddle.unique_consecutive(I), [3, 1, 2]),
    "view_as": (lambda: paddle.view_as(X, torch.zeros(6)).shape, (6,)),
    "standard_gamma": (lambda: paddle.standard_gamma(X).shape, (2, 3)),
    "log_normal": (lambda: paddle.log_normal(shape=[4]).shape, (4,)),
    "randint_like": (lambda: paddle.randint_like(V, 1), [0, 0, 0]),
    "create_parameter": (lambda: paddle.create_parameter([2], "float32", is_bias=True), [0.0, 0.0]),
}


@pytest.mark.parametrize("name", MORE_PADDLE)
def test_more_of_paddle(name):
    call, expected = MORE_PADDLE[name]
    assert close(values(call()), expected)


def test_what_paddle_allows_and_tenon_does_not():
    with pytest.raises(ValueError, match=r"one element, got shape \(2, 3\)"):
        paddle.increment(X)
    with pytest.raises(ValueError, match="'raise', 'wrap' or 'clip', got 'other'"):
        paddle.take(X, V, "other")
    with pytest.raises(ValueError, match="size from 1 to 3 and a step from 1, got 4 and 1"):
        paddle.unfold(V, 0, 4, 1)
    with pytest.raises(NotImplementedError, match="attr=None, got 'w'"):
        paddle.create_parameter([2], "float32", attr="w")
