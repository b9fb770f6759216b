# SPDX-License-Identifier: Apache-2.0
"""PyTorch's loops, eigenvalues of large matrices, recurrent layers as functions and inner forms, beside PyTorch where it is installed."""

import itertools

import numpy as np
import pytest
import tenon
from tenon.compat import torch

RNG = np.random.default_rng(9)


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("torch")


def matrix(m, dtype=np.float64):
    x = RNG.standard_normal((m, m))
    x = x @ x.T + np.diag(np.arange(m))
    return ((x + x.T) / 2).astype(dtype)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    "kind", ["plain", "metric", "preconditioned", "sparse", "batch", "complex"]
)
def test_some_eigenvalues(largest, kind):
    tenon.manual_seed(0)
    a = np.stack([matrix(24) for _ in range(2)]) if kind == "batch" else matrix(24)
    b, more = None, {}
    if kind == "complex":
        skew = RNG.standard_normal((24, 24))
        a = a + 1j * (skew - skew.T)
    if kind == "metric":
        b = matrix(24) + 30 * np.eye(24)
        more["B"] = tenon.tensor(b)
    if kind == "preconditioned":
        more["iK"] = tenon.tensor(np.linalg.inv(a))
    given = tenon.tensor(a)
    if kind == "sparse":
        given = given.to_sparse("csr")
    values, vectors = torch.lobpcg(given, 3, largest=largest, tol=1e-10, **more)
    every = np.linalg.eigvals(np.linalg.inv(b) @ a).real if b is not None else np.linalg.eigvalsh(a)
    every = np.sort(every, -1)
    wanted = every[..., ::-1][..., :3] if largest else every[..., :3]
    np.testing.assert_allclose(values.numpy(), wanted, rtol=1e-7)
    v = vectors.numpy()
    image = v if b is None else b @ v
    np.testing.assert_allclose(a @ v, image * values.numpy()[..., None, :], atol=1e-5)
    gram = np.swapaxes(v.conj(), -1, -2) @ image
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(3), gram.shape), atol=1e-8)


def test_eigenvalues_have_gradients():
    tenon.manual_seed(1)
    a = tenon.tensor(matrix(15)).requires_grad_()
    values, vectors = torch.lobpcg(a, 2, tol=1e-9)
    (slope,) = tenon.grad(values[0] - 2 * values[1], [a])
    v = vectors.numpy()
    np.testing.assert_allclose(
        slope.numpy(), np.outer(v[:, 0], v[:, 0]) - 2 * np.outer(v[:, 1], v[:, 1]), atol=1e-6
    )


def test_where_the_search_starts_and_ends(theirs):
    a, x = matrix(30), RNG.standard_normal((30, 4))
    for options in ({}, {"niter": 2}, {"largest": False}):
        wanted, _ = theirs.lobpcg(theirs.tensor(a), 2, X=theirs.tensor(x), **options)
        values, vectors = torch.lobpcg(tenon.tensor(a), 2, X=tenon.tensor(x), **options)
        tolerance = 0.2 if "niter" in options else 1e-4  # few steps leave both far from the end
        np.testing.assert_allclose(values.numpy(), wanted.numpy(), rtol=tolerance)
        assert tuple(vectors.shape) == (30, 2)
    assert tuple(torch.lobpcg(tenon.tensor(a), X=tenon.tensor(x))[0].shape) == (4,)
    assert tuple(torch.lobpcg(tenon.tensor(a))[0].shape) == (1,)
    assert tuple(torch.lobpcg(tenon.tensor(a), 2, n=5)[0].shape) == (2,)
    assert torch.lobpcg(tenon.eye(9), 3)[0].tolist() == pytest.approx([1.0] * 3)


def test_what_lobpcg_refuses():
    a = tenon.eye(12)
    for options, text in (
        ({"k": 5}, "at least 3 n rows of a, with n 5, got k 5 and 12 rows"),
        ({"method": "basic"}, "expected method None or 'ortho', got 'basic'"),
        ({"tracker": print}, "expected no tracker"),
        ({"X": tenon.ones([11, 2])}, r"expected x of shape \(12, 'n'\), got \(11, 2\)"),
        ({"k": 1, "X": tenon.ones([12, 2])}, "that are independent in the metric, got some"),
        ({"k": 1, "X": tenon.zeros([12, 1])}, "that are independent in the metric, got some"),
    ):
        with pytest.raises((ValueError, NotImplementedError), match=text):
            torch.lobpcg(a, **options)
    with pytest.raises(TypeError, match="expected a floating or complex matrix, got int64"):
        torch.lobpcg(tenon.ones([6, 6], dtype="int64"))


def test_a_loop():
    i, x = torch.while_loop(
        lambda i, x: i < 4, lambda i, x: (i + 1, x * 2), (tenon.tensor(0), tenon.ones([2]))
    )
    assert i.item() == 4 and x.tolist() == [16.0, 16.0]
    program = tenon.export(
        lambda x: torch.while_loop(lambda x: x.sum() < 50, lambda x: (x * 2,), (x,))[0],
        (tenon.ones([2]),),
    )
    assert program(tenon.ones([2]) * 5).tolist() == [40.0, 40.0]
    with pytest.raises(TypeError, match="expected carried_inputs as a tuple, got Tensor"):
        torch.while_loop(lambda x: x < 1, lambda x: x, tenon.ones([1]))


@pytest.mark.parametrize(
    "name,kind", [("gru", "GRU"), ("lstm", "LSTM"), ("rnn_tanh", "RNN"), ("rnn_relu", "RNN")]
)
@pytest.mark.parametrize(
    "layers,both,batch_first,biases",
    [*itertools.product([1, 2], [False, True], [False], [True]), (2, True, True, False)],
)
def test_recurrent_layers(theirs, name, kind, layers, both, batch_first, biases):
    theirs.manual_seed(2)
    more = {"nonlinearity": "relu"} if name == "rnn_relu" else {}
    layer = getattr(theirs.nn, kind)(
        3, 4, layers, bias=biases, batch_first=batch_first, bidirectional=both, **more
    )
    x = theirs.randn(5, 2, 3)
    states = [theirs.randn(layers * (1 + both), 5 if batch_first else 2, 4) for _ in range(2)]
    hx = states if kind == "LSTM" else states[0]
    settings = (biases, layers, 0.0, True, both, batch_first)
    wanted = getattr(theirs, name)(x, hx, [*layer.parameters()], *settings)
    mine = [tenon.tensor(each.detach().numpy()) for each in layer.parameters()]
    first = tenon.tensor(states[0].numpy())
    hx = [first, tenon.tensor(states[1].numpy())] if kind == "LSTM" else first
    mine[0].requires_grad_()
    got = getattr(torch, name)(tenon.tensor(x.numpy()), hx, mine, *settings)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)
    got[0].sum().backward()
    (slope,) = theirs.autograd.grad(wanted[0].sum(), [next(layer.parameters())])
    np.testing.assert_allclose(mine[0].grad.numpy(), slope.numpy(), rtol=1e-4, atol=1e-5)


def test_recurrent_weights_are_counted():
    x, h = tenon.ones([2, 1, 3]), tenon.zeros([1, 1, 4])
    with pytest.raises(ValueError, match="expected 4 weights for 1 layers, weight_ih_l0, .* got 2"):
        torch.gru(
            x, h, [tenon.ones([12, 3]), tenon.ones([12, 4])], True, 1, 0.0, False, False, False
        )
    with pytest.raises(NotImplementedError, match="expected a list of weights as third argument"):
        torch.gru(x, h, h, True, 1, 0.0, False, False, False)


def test_inner_forms(theirs):
    x, w, b = (RNG.standard_normal(s).astype(np.float32) for s in ((7, 2, 3), (3, 3, 4), (4,)))
    image, filters = (
        RNG.standard_normal(s).astype(np.float32) for s in ((2, 4, 6, 5), (4, 2, 3, 3))
    )
    pairs = RNG.standard_normal((3, 2)).astype(np.float32)

    def run(library, make):
        yield library.conv_tbc(make(x), make(w), make(b), 1)
        yield library.conv_tbc(make(x), make(w), make(b))
        args = ([2], [1, 0], [1], False, [0], 2)
        yield library.convolution(make(image), make(filters), make(b), *args)
        yield library.convolution(
            make(image), make(filters), None, [2, 2], [1], [1], True, [1, 0], 1
        )
        yield from library.max_pool1d_with_indices(make(x), 2)
        yield from library.max_pool1d_with_indices(make(x), [2], [1], 1, 1, True)
        yield library.slice_copy(make(x), 0, 1, None, 2)
        yield library.slice_copy(make(x), dim=-1, start=-2, end=9)
        yield library.view_as_complex_copy(make(pairs))
        yield library.view_as_real_copy(library.view_as_complex_copy(make(pairs)))
        yield from library.native_dropout(make(x), 0.3, False)
        yield from library.native_dropout(make(x), 1.0, True)

    for got, want in zip(run(torch, tenon.tensor), run(theirs, theirs.tensor), strict=True):
        assert str(got.dtype).split(".")[-1] == str(want.dtype).split(".")[-1]
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)
    tenon.manual_seed(0)
    out, kept = torch.native_dropout(tenon.ones([4000]), 0.25, True)
    assert 0.7 < kept.to("float32").mean().item() < 0.8
    np.testing.assert_allclose(out.numpy(), kept.numpy() / 0.75, rtol=1e-6)
    with pytest.raises(
        ValueError, match="expected output_padding of zeros beside transposed=False"
    ):
        torch.convolution(
            tenon.tensor(image), tenon.tensor(filters), None, [1], [0], [1], False, [1], 2
        )
