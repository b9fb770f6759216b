# SPDX-License-Identifier: Apache-2.0
"""Which calls vmap makes once for the whole batch, and which once for each sample; the results are those
of a loop over the samples either way."""

import copy
import operator
import pickle

import numpy as np
import pytest
import tenon
from tenon import func

rng = np.random.default_rng(0)
BATCH = 3


def random(*shape):
    return tenon.tensor(rng.standard_normal(shape))


def positions(high, *shape):
    return tenon.tensor(rng.integers(0, high, shape))


def leaves(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def check(function, args, in_dims):
    """vmap of `function` beside a loop; the number of operators that were called for each sample."""
    before = sum(func.rules.loops().values())
    got = leaves(func.vmap(function, in_dims=in_dims)(*args))
    loops = sum(func.rules.loops().values()) - before
    samples = [
        leaves(function(*(x if d is None else x[i] for x, d in zip(args, in_dims, strict=True))))
        for i in range(BATCH)
    ]
    assert len(got) == len(samples[0])
    for one, *want in zip(got, *samples, strict=True):
        want = tenon.stack(want)
        assert one.shape == want.shape and one.dtype == want.dtype
        np.testing.assert_allclose(one.numpy(), want.numpy(), rtol=1e-6, atol=1e-9)
    return loops


VECTORS, MATRICES, NUMBERS = random(BATCH, 4), random(BATCH, 4, 4), random(BATCH)
BLOCKS = random(BATCH, 2, 3, 4)
ROW, SQUARE, THREE = random(4), random(4, 4), random(3, 2, 4)
IMAGES = random(BATCH, 2, 3, 6, 6)
ROWS = positions(4, BATCH, 5)
POSITIVE = MATRICES @ MATRICES.mT + 4 * tenon.eye(4)

# name: function, arguments, where the batch is
AT_ONCE = {
    "samples of fewer axes than what they share": (
        lambda x, y: tenon.add(x, y),
        (VECTORS, SQUARE),
        (0, None),
    ),
    "samples of other numbers of axes": (tenon.multiply, (VECTORS, MATRICES), (0, 0)),
    "three tensors": (lambda c, x, y: tenon.where(c > 0, x, y), (NUMBERS, VECTORS, ROW), (0, 0, None)),
    "sum": (lambda x: x.sum(), (BLOCKS,), (0,)),
    "sum of an axis": (lambda x: tenon.sum(x, 0), (BLOCKS,), (0,)),
    "sum of axes": (lambda x: tenon.sum(x, [0, -1], keepdim=True), (BLOCKS,), (0,)),
    "sum of numbers": (lambda x: x.sum(), (NUMBERS,), (0,)),
    "var": (lambda x: tenon.var(x, -1, correction=1), (BLOCKS,), (0,)),
    "argmax": (lambda x: tenon.argmax(x), (BLOCKS,), (0,)),
    "argmin of an axis": (lambda x: tenon.argmin(x, 1, keepdim=True), (BLOCKS,), (0,)),
    "softmax": (lambda x: tenon.softmax(x, 0), (BLOCKS,), (0,)),
    "cumsum": (lambda x: tenon.cumsum(x, 1), (BLOCKS,), (0,)),
    "sort": (lambda x: tenon.sort(x, 0), (BLOCKS,), (0,)),
    "topk": (lambda x: tenon.topk(x, 2, 1)[0], (BLOCKS,), (0,)),
    "diff": (lambda x: tenon.diff(x, 0), (BLOCKS,), (0,)),
    "trapezoid": (lambda x: tenon.trapezoid(x, axis=0), (BLOCKS,), (0,)),
    "reshape": (lambda x: x.reshape(-1, 2), (BLOCKS,), (0,)),
    "flatten": (lambda x: tenon.flatten(x, 0, 1), (BLOCKS,), (0,)),
    "flatten of numbers": (lambda x: tenon.flatten(x), (NUMBERS,), (0,)),
    "permute": (lambda x: tenon.permute(x, [2, 0, 1]), (BLOCKS,), (0,)),
    "permute backwards": (lambda x: x.T, (MATRICES,), (0,)),
    "transpose": (lambda x: tenon.transpose(x, 0, 1), (BLOCKS,), (0,)),
    "transpose from the end": (lambda x: tenon.transpose(x, -1, 0), (BLOCKS,), (0,)),
    "diagonal": (lambda x: tenon.diagonal(x, 1, 0, 2), (BLOCKS,), (0,)),
    "rot90": (lambda x: tenon.rot90(x, 1, 0, 2), (BLOCKS,), (0,)),
    "movedim": (lambda x: tenon.movedim(x, [0, 1], [2, 0]), (BLOCKS,), (0,)),
    "unsqueeze": (lambda x: tenon.unsqueeze(x, [0, -1]), (BLOCKS,), (0,)),
    "squeeze": (lambda x: x.squeeze(), (BLOCKS[:, :1, :1],), (0,)),
    "squeeze of an axis": (lambda x: x.squeeze(1), (BLOCKS[:, :1, :1],), (0,)),
    "squeeze of nothing": (lambda x: x.squeeze(), (BLOCKS,), (0,)),
    "flip": (lambda x: tenon.flip(x), (BLOCKS,), (0,)),
    "flip of an axis": (lambda x: tenon.flip(x, [1]), (BLOCKS,), (0,)),
    "roll": (lambda x: tenon.roll(x, [1, 2], [0, -1]), (BLOCKS,), (0,)),
    "expand": (lambda x: x.expand(2, 5, 4), (VECTORS,), (0,)),
    "narrow": (lambda x: tenon.narrow(x, 1, 1, 2), (BLOCKS,), (0,)),
    "split": (lambda x: tenon.split(x, 2, 2), (BLOCKS,), (0,)),
    "repeat": (lambda x: tenon.repeat(x, 2, 1), (BLOCKS,), (0,)),
    "tril": (lambda x: tenon.tril(x), (MATRICES,), (0,)),
    "triu of matrices of each sample": (lambda x: tenon.triu(x, 1), (BLOCKS,), (0,)),
    "tile": (lambda x: tenon.tile(x, [2]), (BLOCKS,), (0,)),
    "tile to more axes": (lambda x: tenon.tile(x, [2, 1, 3]), (VECTORS,), (0,)),
    "pad": (lambda x: tenon.pad(x, [1, 2, 0, 1]), (MATRICES,), (0,)),
    "concat": (lambda x, y: tenon.concat([x, y], 1), (BLOCKS, BLOCKS), (0, 0)),
    "concat with what they share": (lambda x, y: tenon.concat([y, x], -1), (BLOCKS, BLOCKS[0]), (0, None)),
    "stack": (lambda x, y: tenon.stack([x, y], -1), (BLOCKS, BLOCKS[0]), (0, None)),
    "stack behind the first axis": (lambda x: tenon.stack([x, x], 1), (VECTORS,), (0,)),
    "gather": (lambda x, i: tenon.gather(x, i, 0), (VECTORS, ROWS), (0, 0)),
    "gather from what they share": (lambda x, i: tenon.gather(x, i, 0), (ROW, ROWS), (None, 0)),
    "scatter": (lambda x, i, s: tenon.scatter_add(x, i, s, 0), (VECTORS, ROWS, random(5)), (0, 0, None)),
    "embedding": (lambda w, i: tenon.embedding(w, i), (SQUARE, ROWS), (None, 0)),
    "index_select": (lambda x, i: tenon.index_select(x, i, 1), (MATRICES, ROWS[0]), (0, None)),
    "index_select by each sample": (lambda x, i: tenon.index_select(x, i, -1), (THREE, ROWS), (None, 0)),
    "index": (lambda x, i: x[i], (MATRICES, ROWS), (0, 0)),
    "index of what they share": (lambda x, i: x[i], (SQUARE, ROWS), (None, 0)),
    "index by two": (lambda x, i, j: x[i, j], (MATRICES, ROWS, ROWS[0]), (0, 0, None)),
    "matmul": (tenon.matmul, (MATRICES, MATRICES), (0, 0)),
    "matmul of vectors": (tenon.matmul, (VECTORS, VECTORS), (0, 0)),
    "matmul with a vector": (tenon.matmul, (SQUARE, VECTORS), (None, 0)),
    "matmul of a vector": (tenon.matmul, (VECTORS, MATRICES), (0, 0)),
    "matmul of blocks": (tenon.matmul, (BLOCKS, MATRICES), (0, 0)),
    "dot": (tenon.dot, (VECTORS, ROW), (0, None)),
    "outer": (tenon.outer, (VECTORS, ROW), (0, None)),
    "linear": (tenon.linear, (VECTORS, SQUARE, ROW), (0, None, None)),
    "linear of each weight": (tenon.linear, (SQUARE, MATRICES, VECTORS), (None, 0, 0)),
    "linear of each bias": (tenon.linear, (SQUARE, SQUARE, VECTORS), (None, None, 0)),
    "linear of each weight and one bias": (tenon.linear, (MATRICES, MATRICES, ROW), (0, 0, None)),
    "addmm": (
        lambda x, a, b: tenon.addmm(x, a, b, beta=0.5, alpha=2),
        (MATRICES, MATRICES, SQUARE),
        (0, 0, None),
    ),
    "addmm of nothing": (
        lambda x, a, b: tenon.addmm(x * float("nan"), a, b, beta=0),
        (MATRICES, MATRICES, SQUARE),
        (0, 0, None),
    ),
    "addmv": (
        lambda x, a, v: tenon.addmv(x, a, v, beta=0.5, alpha=2),
        (VECTORS, SQUARE, VECTORS),
        (0, None, 0),
    ),
    "addr": (
        lambda x, a, b: tenon.addr(x, a, b, beta=0.5, alpha=2),
        (SQUARE, VECTORS, VECTORS),
        (None, 0, 0),
    ),
    "trace": (lambda x: tenon.trace(x, 1), (MATRICES,), (0,)),
    "layer_norm": (
        lambda x, w, b: tenon.layer_norm(x, w, b),
        (MATRICES, VECTORS, VECTORS),
        (0, 0, 0),
    ),
    "layer_norm of what they share": (
        lambda x, w: tenon.layer_norm(x, w, None),
        (SQUARE, VECTORS),
        (None, 0),
    ),
    "rms_norm": (lambda x, w: tenon.rms_norm(x, w), (MATRICES, VECTORS), (0, 0)),
    "max_pool2d": (lambda x: tenon.max_pool2d(x, [2, 2], [2, 2]), (IMAGES,), (0,)),
    "conv2d": (lambda x, w: tenon.conv2d(x, w), (IMAGES, random(4, 3, 2, 2)), (0, None)),
    "conv2d of each kernel": (
        lambda x, w, b: tenon.conv2d(x, w, b),
        (IMAGES, random(BATCH, 4, 3, 2, 2), random(BATCH, 4)),
        (0, 0, 0),
    ),
    "conv2d of groups of each kernel": (
        lambda x, w: tenon.conv2d(x, w, groups=3),
        (IMAGES[0], random(BATCH, 6, 1, 2, 2)),
        (None, 0),
    ),
    "mse_loss": (tenon.mse_loss, (VECTORS, ROW), (0, None)),
    "mse_loss of all": (
        lambda x, y: tenon.mse_loss(x, y, reduction="none"),
        (VECTORS, VECTORS),
        (0, 0),
    ),
    "l1_loss of numbers": (tenon.l1_loss, (NUMBERS, NUMBERS[0]), (0, None)),
    "huber_loss": (lambda x, y: tenon.huber_loss(x, y, reduction="sum"), (BLOCKS, BLOCKS), (0, 0)),
    "cross_entropy": (tenon.cross_entropy, (random(BATCH, 5, 4), ROWS), (0, 0)),
    "cross_entropy that ignores": (
        lambda x, t: tenon.cross_entropy(x, t, ignore_index=1),
        (random(BATCH, 5, 4), tenon.tensor([[0, 1, 2, 1, 3]] * BATCH)),
        (0, 0),
    ),
    "cross_entropy of all": (
        lambda x, t: tenon.cross_entropy(x, t, reduction="none"),
        (random(BATCH, 5, 4), ROWS[0]),
        (0, None),
    ),
    "cross_entropy summed": (
        lambda x, t: tenon.cross_entropy(x, t, reduction="sum"),
        (random(5, 4), ROWS),
        (None, 0),
    ),
    "det": (tenon.linalg.det, (MATRICES,), (0,)),
    "cholesky_inverse": (tenon.cholesky_inverse, (tenon.linalg.cholesky(POSITIVE),), (0,)),
    "solve": (tenon.linalg.solve, (POSITIVE, VECTORS), (0, 0)),
    "solve of matrices": (tenon.linalg.solve, (POSITIVE, SQUARE), (0, None)),
    "solve with what they share": (tenon.linalg.solve, (POSITIVE[0], VECTORS), (None, 0)),
    "einsum of traces": (lambda x: tenon.einsum("ii->i", [x]), (MATRICES,), (0,)),
    "einsum": (lambda x, y: tenon.einsum("ij, jk -> ik", [x, y]), (MATRICES, SQUARE), (0, None)),
    "attention": (
        lambda q, k, v: tenon.scaled_dot_product_attention(q, k, v),
        (random(BATCH, 2, 5, 4), random(BATCH, 2, 5, 4), random(2, 5, 4)),
        (0, 0, None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ONCE)
def test_one_call_serves_the_whole_batch(name):
    assert check(*AT_ONCE[name]) == 0


FOR_EACH = {
    "argmax of all axes that stay": (lambda x: tenon.argmax(x, keepdim=True), (MATRICES,), (0,)),
    "roll of all elements": (lambda x: tenon.roll(x, 1), (MATRICES,), (0,)),
    "repeat of all elements": (lambda x: tenon.repeat(x, 2), (MATRICES,), (0,)),
    "weights of each sample": (lambda w: tenon.embedding(w, ROWS[0]), (MATRICES,), (0,)),
    "rows and indices of each sample": (
        lambda x, i: tenon.index_select(x, i, 0),
        (MATRICES, ROWS),
        (0, 0),
    ),
    "trace of matrices of each sample": (lambda x: tenon.trace(x), (BLOCKS[..., :3],), (0,)),
    "solve of batches of each sample": (
        tenon.linalg.solve,
        (tenon.stack([POSITIVE, 2 * POSITIVE], 1), MATRICES),
        (0, 0),
    ),
    "one number in each place": (
        lambda x, i: tenon.scatter(x, i, tenon.tensor(2.0, dtype=tenon.float64), 0),
        (VECTORS, ROWS),
        (0, 0),
    ),
    "einsum of any axes": (
        lambda x, y: tenon.einsum("...i,...i->...", [x, y]),
        (MATRICES, ROW),
        (0, None),
    ),
    "einsum without an arrow": (
        lambda x, y: tenon.einsum("ij,jk", [x, y]),
        (MATRICES, SQUARE),
        (0, None),
    ),
    "weights of classes": (
        lambda x, w: tenon.cross_entropy(x, ROWS[0], w),
        (random(BATCH, 5, 4), abs(VECTORS)),
        (0, 0),
    ),
}


@pytest.mark.parametrize("name", FOR_EACH)
def test_what_no_rule_covers_is_called_for_each_sample(name):
    assert check(*FOR_EACH[name]) >= 1


def test_axes_are_those_of_a_sample():
    for call in (
        lambda x: tenon.sum(x, 2),
        lambda x: tenon.softmax(x, -3),
        lambda x: tenon.transpose(x, 0, 2),
        lambda x: tenon.concat([x, x], 2),
    ):
        with pytest.raises(IndexError, match=r"vmap: expected an axis of a sample of 2 axes, got"):
            func.vmap(call)(MATRICES)


def test_samples_without_memory():
    x = tenon.ones([BATCH, 2], device="meta")
    for function in (lambda x: x * 2, lambda x: x.sum(), lambda x: tenon.softmax(x, 0)):
        assert func.vmap(function)(x).device.type == "meta"
    assert func.vmap(func.grad(lambda x: (x * x).sum()))(x).shape == (BATCH, 2)
    # Outside of a batch nothing of a sample can be lost.
    shape = lambda x: (x.sum(), x.to("meta"))
    assert func.grad(shape, has_aux=True)(tenon.ones(2))[1].device.type == "meta"


def test_numbers_of_samples_are_not_packed_together():
    pack = lambda x: tenon.pack(x, tenon.int4_x2)
    assert check(lambda x: tenon.unpack(pack(x)), (VECTORS.round(),), (0,)) == 0
    with pytest.raises(ValueError, match=r"expected a last axis of even size, .* got shape \(\)"):
        func.vmap(pack)(tenon.ones(4))


READINGS = {
    "the truth": bool,
    "int()": int,
    "float()": float,
    "complex()": complex,
    "an index": operator.index,
    "item()": lambda x: x.item(),
    "tolist()": lambda x: x.tolist(),
    "numpy()": lambda x: x.numpy(),
    "a NumPy array": lambda x: x.__array__(),
    "__dlpack__()": lambda x: x.__dlpack__(),
    "copy.deepcopy() or pickle, use clone()": copy.deepcopy,
    "data_ptr()": lambda x: x.data_ptr(),
}


@pytest.mark.parametrize("what", READINGS)
def test_values_of_a_sample_are_not_read(what):
    with pytest.raises(RuntimeError) as error:
        func.vmap(lambda x: READINGS[what](x) and x)(NUMBERS)
    assert str(error.value) == (
        f"vmap: expected a function that reads no values of its tensors, got {what}: there is one for "
        "each sample; use tenon.where instead of branches"
    )
    with pytest.raises(RuntimeError, match="copy.deepcopy"):
        func.vmap(lambda x: pickle.dumps(x) and x)(NUMBERS)


def test_transposed_samples():
    z = tenon.complex(MATRICES, MATRICES.mT + 1)
    for function in (lambda t: t.T, lambda t: t.mT, lambda t: t.mH, lambda t: t.H):
        assert check(function, (z,), (0,)) == 0 and check(function, (MATRICES,), (0,)) == 0
    assert check(lambda t: t.mH, (BLOCKS,), (0,)) == 0
    with pytest.raises(AttributeError, match="H: expected a matrix of 2 axes, got 3"):
        func.vmap(lambda t: t.H)(BLOCKS)


def test_batches_of_batches():
    x, y = random(2, BATCH, 4), random(2, 4)
    inner = lambda x, y: func.vmap(lambda x: tenon.dot(x, y) + tenon.softmax(x, 0))(x)
    got = func.vmap(inner)(x, y)
    want = (x * y.unsqueeze(1)).sum(-1).unsqueeze(-1) + tenon.softmax(x, -1)
    np.testing.assert_allclose(got.numpy(), want.numpy())
    # Of two operands the inner batch has one and the outer one the other.
    got = func.vmap(lambda y: func.vmap(lambda x: tenon.concat([x, y], 0))(x[0]))(y)
    want = [[[*x[0, j].tolist(), *y[i].tolist()] for j in range(BATCH)] for i in range(2)]
    assert got.tolist() == want
    # A gradient in both: of what each pair has, and of what all of an outer sample share.
    of_pair = func.vmap(func.vmap(func.grad(lambda x, y: (x * x * y).sum()), (0, None)), (0, 0))
    np.testing.assert_allclose(of_pair(x, y).detach().numpy(), (2 * x * y.unsqueeze(1)).numpy())
    of_shared = lambda x, y: func.grad(lambda y: func.vmap(lambda x: (x * y * y).sum())(x).sum())(y)
    got = func.vmap(of_shared)(x, y).detach()
    np.testing.assert_allclose(got.numpy(), (2 * x.sum(1) * y).numpy())


def test_results_come_with_what_the_function_adds():
    x, v = random(4), random(4)
    both = lambda x: ((x**2).sum(), {"twice": 2 * x})
    rows = lambda x: (x**2, {"twice": 2 * x})
    results = {
        "grad": func.grad(both, has_aux=True)(x),
        "jacrev": func.jacrev(rows, has_aux=True)(x),
        "jacfwd": func.jacfwd(rows, has_aux=True)(x),
        "vjp": func.vjp(rows, x, has_aux=True),
        "jvp": func.jvp(rows, (x,), (v,), has_aux=True),
    }
    for name, result in results.items():
        assert len(result) == (3 if name in ("vjp", "jvp") else 2)
        assert result[-1]["twice"].tolist() == (2 * x).tolist()
    told = lambda x: ((x**2).sum(), ("text", 3, x))
    for transform in (func.grad, func.jacrev, func.jacfwd):
        assert transform(told, has_aux=True)(x)[1][:2] == ("text", 3)
    # What comes back has a history while recording is on, and none while it is off.
    w = random(4).requires_grad_()
    square = lambda x: (x * x * w).sum()
    value, pull = func.vjp(square, x)
    assert value.requires_grad and func.grad_and_value(square)(x)[1].requires_grad
    with tenon.no_grad():
        value, pull = func.vjp(square, x)
        assert not value.requires_grad and not func.grad_and_value(square)(x)[1].requires_grad
        assert not func.jvp(square, (x,), (v,))[0].requires_grad
    (gradient, (value, aux)) = func.grad_and_value(both, has_aux=True)(x)
    assert gradient.tolist() == results["grad"][0].tolist() == aux["twice"].tolist()
    assert value.item() == pytest.approx((x**2).sum().item())
    assert func.value_and_grad(both, has_aux=True)(x)[1].tolist() == gradient.tolist()
    assert results["jacrev"][0].tolist() == results["jacfwd"][0].tolist()
    assert results["vjp"][0].tolist() == results["jvp"][0].tolist() == (x**2).tolist()
    assert len(func.vjp(lambda x: x, x)) == len(func.jvp(lambda x: x, (x,), (v,))) == 2


def test_products_with_hessians_take_tuples():
    x = random(3)
    for product in (func.vhp, func.hvp):
        for primals, vectors in ((x, (x,)), ((x,), x), (x, x)):
            with pytest.raises(TypeError, match="expected primals and vectors as tuples, with one"):
                product(lambda x: (x**3).sum(), primals, vectors)
    for primals, tangents in ((x, (x,)), ((x,), x)):
        with pytest.raises(TypeError, match="jvp: expected primals and tangents as tuples"):
            func.jvp(lambda x: x, primals, tangents)
    with pytest.raises(ValueError, match="jvp: expected 1 vectors, one for each of the arguments"):
        func.jvp(lambda x: x, (x,), (x, x))
