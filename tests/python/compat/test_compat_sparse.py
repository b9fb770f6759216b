# SPDX-License-Identifier: Apache-2.0
"""torch.sparse, torch.nested and paddle.sparse: against dense results, and beside the libraries where they are installed."""

import numpy as np
import pytest
import tenon
from tenon.compat import paddle as P
from tenon.compat import torch as C

RNG = np.random.default_rng(31)
INDICES = np.array([[0, 2, 0, 1], [1, 0, 1, 2]])
VALUES = np.array([1.0, -3.0, 2.0, 4.0], np.float32)
DENSE = np.array([[0, 3, 0], [0, 0, 4], [-3, 0, 0]], np.float32)
Y = RNG.normal(size=(3, 2)).astype(np.float32)


def array(x):
    if hasattr(x, "is_nested") and x.is_nested:
        return array(x.to_padded_tensor(0.0))
    if hasattr(x, "to_dense") and "strided" not in str(getattr(x, "layout", "strided")):
        x = x.to_dense()
    if hasattr(x, "is_sparse") and callable(x.is_sparse) and x.is_sparse():
        x = x.to_dense()
    return x.detach().numpy() if hasattr(x, "detach") else np.asarray(x)


def torch_cases(torch):
    """What PyTorch's names give, by `torch`: the namespace, or the library."""
    coo = torch.sparse_coo_tensor(torch.tensor(INDICES), torch.tensor(VALUES), (3, 3))
    csr = torch.sparse_csr_tensor(
        torch.tensor([0, 1, 2, 3]), torch.tensor([1, 2, 0]), torch.tensor([3.0, 4.0, -3.0]), (3, 3)
    )
    csc = torch.sparse_csc_tensor(
        torch.tensor([0, 1, 2, 3]), torch.tensor([2, 0, 1]), torch.tensor([-3.0, 3.0, 4.0]), (3, 3)
    )
    bsr = torch.sparse_bsr_tensor(
        torch.tensor([0, 1]), torch.tensor([0]), torch.tensor(DENSE[None].copy()), (3, 3)
    )
    y, square = torch.tensor(Y), torch.tensor(DENSE + 1)
    diagonals = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    yield "coo", coo
    yield "csr", csr
    yield "csc", csc
    yield "bsr", bsr
    yield "size", torch.sparse_coo_tensor(torch.tensor(INDICES), torch.tensor(VALUES))
    yield (
        "compressed",
        torch.sparse_compressed_tensor(
            torch.tensor([0, 1, 2, 3]),
            torch.tensor([1, 2, 0]),
            torch.tensor([3.0, 4.0, -3.0]),
            (3, 3),
            layout=torch.sparse_csr,
        ),
    )
    yield "mm", torch.sparse.mm(coo, y)
    yield "mm of two", torch.sparse.mm(coo, coo)
    yield "addmm", torch.sparse.addmm(y, coo, y, beta=0.5, alpha=2.0)
    yield "sampled", torch.sparse.sampled_addmm(csr, square, square, beta=0.5, alpha=2.0)
    yield "softmax", torch.sparse.softmax(coo, 1)
    yield "softmax 0", torch.sparse.softmax(coo, 0)
    yield "log_softmax", torch.sparse.log_softmax(coo, 1)
    yield "sum", torch.sparse.sum(coo)
    yield "sum 0", torch.sparse.sum(coo, 0)
    yield "sum 1", torch.sparse.sum(coo, dim=[1])
    for k, shape in (([0, 1], (3, 3)), ([0, -1], (3, 3)), ([-1, 2], (4, 3)), ([0, 1], (2, 5))):
        yield f"spdiags {k}", torch.sparse.spdiags(diagonals, torch.tensor(k), shape)


def nested_cases(torch):
    rows = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0])]
    nested = torch.nested.nested_tensor(rows, layout=torch.jagged)
    yield "nested", nested
    yield "nested as", torch.nested.as_nested_tensor(rows, layout=torch.jagged)
    jagged = torch.nested.nested_tensor_from_jagged(
        torch.tensor(Y.repeat(2, 0)), torch.tensor([0, 2, 6]), max_seqlen=4
    )
    yield "nested jagged", jagged
    yield "nested padded", torch.nested.to_padded_tensor(jagged, 7.0)
    yield "nested larger", torch.nested.to_padded_tensor(jagged, 7.0, (2, 5, 2))
    yield "nested sin", torch.sin(nested) * 2.0
    dense = torch.tensor(np.arange(24, dtype=np.float32).reshape(3, 4, 2))
    parts = torch.tensor([1, 0, 3]), torch.tensor([2, 4, 1])
    narrow = torch.nested.narrow(dense, 1, *parts, layout=torch.jagged)
    yield "nested narrow", narrow.contiguous()
    yield "nested masked", torch.nested.masked_select(torch.tensor(DENSE), torch.tensor(DENSE != 0))
    yield "nested none", torch.nested.masked_select(dense[:, :, 0], torch.tensor([False]))


def test_torch_names_against_dense_results():
    found = {name: array(value) for name, value in torch_cases(C)}
    for name in ("coo", "csr", "csc", "bsr", "size", "compressed"):
        np.testing.assert_array_equal(found[name], DENSE, err_msg=name)
    np.testing.assert_allclose(found["mm"], DENSE @ Y, rtol=1e-6)
    np.testing.assert_allclose(found["mm of two"], DENSE @ DENSE, rtol=1e-6)
    np.testing.assert_allclose(found["addmm"], 0.5 * Y + 2 * DENSE @ Y, rtol=1e-5)
    there = DENSE != 0
    expected = (0.5 * DENSE + 2 * (DENSE + 1) @ (DENSE + 1)) * there
    np.testing.assert_allclose(found["sampled"], expected, rtol=1e-5)
    np.testing.assert_array_equal(found["softmax"], there.astype(np.float32))
    assert found["sum"] == 4.0 and found["sum 0"].tolist() == [-3.0, 3.0, 4.0]
    assert C.sparse.sum(C.sparse_coo_tensor([[0], [1]], [2.0], (2, 2)), 0).layout == "coo"
    nested = {name: array(value) for name, value in nested_cases(C)}
    assert nested["nested"].tolist() == [[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]
    assert nested["nested larger"].shape == (2, 5, 2)
    rows = np.arange(24).reshape(3, 4, 2)
    assert nested["nested narrow"][0, :2].tolist() == rows[0, 1:3].tolist()
    assert nested["nested narrow"][2, :1].tolist() == rows[2, 3:].tolist()
    assert nested["nested masked"].tolist() == [[3.0], [4.0], [-3.0]]
    x = C.ones(2, 3, requires_grad=True)
    part = C.nested.narrow(x, 1, C.tensor([0, 2]), 1, layout=C.jagged)
    part.values().sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_torch_names_beside_the_library():
    torch = pytest.importorskip("torch")
    for cases in (torch_cases, nested_cases):
        theirs, ours = cases(torch), cases(C)
        for (name, expected), (_, got) in zip(theirs, ours, strict=True):
            a, b = array(expected), array(got)
            assert a.shape == b.shape, name
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6, err_msg=name)


def test_torch_refusals():
    coo = C.sparse_coo_tensor(INDICES, VALUES, (3, 3))
    with pytest.raises(NotImplementedError, match="expected layout=torch.jagged, got None"):
        C.nested.nested_tensor([tenon.ones([1])])
    with pytest.raises(TypeError, match="expected a sparse tensor, got layout strided"):
        C.sparse.softmax(tenon.ones([2, 2]), 1)
    with pytest.raises(TypeError, match="expected a sparse matrix"):
        C.sparse.mm(tenon.ones([2, 2]), tenon.ones([2, 2]))
    with pytest.raises(NotImplementedError, match="is_coalesced"):
        C.sparse_coo_tensor(INDICES, VALUES, (3, 3), is_coalesced=True)
    with pytest.raises(NotImplementedError, match="left=True"):
        C.sparse.spsolve(coo, tenon.ones([3]), left=False)
    with pytest.raises(ValueError, match="rows of 3 elements, got start 2 and length 2 of row 1"):
        C.nested.narrow(C.ones(2, 3), 1, C.tensor([0, 2]), 2, layout=C.jagged)
    with pytest.raises(NotImplementedError, match="narrow.*expected a dense tensor .* and dim=2"):
        C.nested.narrow(C.ones(2, 3, 4), 2, 0, 1, layout=C.jagged)
    with pytest.raises(NotImplementedError, match="a mask of float32"):
        C.nested.masked_select(C.ones(2, 3), C.ones(3))
    with pytest.raises(NotImplementedError, match="jagged_dim=1"):
        C.nested.nested_tensor_from_jagged(tenon.ones([2]), tenon.tensor([0, 2]), jagged_dim=2)


def paddle_cases(paddle, is_library):
    """What Paddle's names give. What its CPUs do not have is left out beside the library."""
    s = paddle.sparse
    coo = s.sparse_coo_tensor(paddle.to_tensor(INDICES), paddle.to_tensor(VALUES), [3, 3])
    once = s.coalesce(coo)
    csr = s.sparse_csr_tensor([0, 1, 2, 3], [1, 2, 0], [3.0, 4.0, -3.0], [3, 3])
    yield "coo", once  # with equal indices, the library's dense form has one of them
    yield "csr", csr
    for name in "sin tan asinh atan sinh tanh square abs expm1 neg deg2rad rad2deg".split():
        for x in (once, csr):
            yield name, getattr(s, name)(x)
    half = s.divide(csr, 10.0)
    yield "asin", s.asin(half)
    yield "atanh", s.atanh(half)
    yield "log1p", s.log1p(half)
    yield "sqrt", s.sqrt(s.abs(csr))
    yield "isnan", s.isnan(csr)
    yield "pow", s.pow(csr, 2.0)
    yield "cast", s.cast(once, "int32", "float64")
    yield "add", s.add(once, once)
    yield "subtract", s.subtract(csr, csr)
    yield "multiply", s.multiply(csr, csr)
    yield "divide", s.divide(csr, 4.0)
    yield "transpose", s.transpose(once, [1, 0])
    yield "transpose csr", s.transpose(csr, [1, 0])
    yield "reshape", s.reshape(once, [1, 9])
    yield "slice", s.slice(once, [0, 1], [0, 1], [2, 3])
    yield "sum", s.sum(once)
    yield "sum 0", s.sum(once, 0)
    yield "sum keep", s.sum(once, 1, keepdim=True)
    yield "mask_as", s.mask_as(paddle.to_tensor(DENSE + 1), once)
    yield "relu", s.nn.functional.relu(once)
    yield "relu6", s.nn.functional.relu6(csr)
    yield "leaky_relu", s.nn.functional.leaky_relu(csr, 0.1)
    yield "softmax", s.nn.functional.softmax(csr)
    if not is_library:
        yield "matmul", s.matmul(coo, paddle.to_tensor(Y))
        yield "mv", s.mv(csr, paddle.to_tensor(Y[:, 0].copy()))
        yield "addmm", s.addmm(paddle.to_tensor(Y), coo, paddle.to_tensor(Y), 2.0, 3.0)
        square = paddle.to_tensor(DENSE + 1)
        yield "masked_matmul", s.masked_matmul(square, square, csr)


def sites(paddle):
    flat = np.random.default_rng(3).permutation(60)[:14]
    indices = np.stack(np.unravel_index(flat, (1, 4, 5, 3)))
    values = np.random.default_rng(4).normal(size=(14, 2)).astype(np.float32)
    x = paddle.sparse.sparse_coo_tensor(
        paddle.to_tensor(indices), paddle.to_tensor(values), [1, 4, 5, 3, 2]
    )
    weight = np.random.default_rng(5).normal(size=(3, 3, 3, 2, 4)).astype(np.float32)
    return x, paddle.to_tensor(weight)


def paddle_convolutions(paddle):
    x, weight = sites(paddle)
    F = paddle.sparse.nn.functional
    yield "conv3d", F.conv3d(x, weight, None, 2, 1)
    yield "subm_conv3d", F.subm_conv3d(x, weight, None, 1, 1)
    yield "max_pool3d", F.max_pool3d(x, 2, 2)


def test_paddle_names_against_dense_results():
    found = dict(paddle_cases(P, False))
    dense = {name: array(value) for name, value in found.items()}
    np.testing.assert_array_equal(dense["coo"], DENSE)
    np.testing.assert_allclose(dense["sin"], np.sin(DENSE), rtol=1e-6)
    np.testing.assert_allclose(dense["matmul"], DENSE @ Y, rtol=1e-6)
    np.testing.assert_allclose(dense["mv"], DENSE @ Y[:, 0], rtol=1e-6)
    np.testing.assert_allclose(dense["addmm"], 2 * Y + 3 * DENSE @ Y, rtol=1e-5)
    expected = (DENSE + 1) @ (DENSE + 1) * (DENSE != 0)
    np.testing.assert_allclose(dense["masked_matmul"], expected, rtol=1e-6)
    np.testing.assert_array_equal(dense["sum 0"], DENSE.sum(0))
    assert found["sum 0"].layout == "coo" and found["reshape"].shape == (1, 9)
    np.testing.assert_array_equal(dense["slice"], DENSE[0:2, 1:3])
    # Equal indices are sums: |1 + 2|, not |1| + |2|.
    negative = P.sparse.sparse_coo_tensor([[0, 0], [0, 0]], [1.0, -3.0], [1, 1])
    assert P.sparse.abs(negative).to_dense().tolist() == [[2.0]]


def test_paddle_layers():
    x, _ = sites(P)
    layers = P.sparse.nn
    for layer in (
        layers.SubmConv3D(2, 4, 3, padding=1),
        layers.Conv3D(2, 4, 2),
        layers.BatchNorm(2),
        layers.ReLU(),
        layers.ReLU6(),
        layers.LeakyReLU(0.1),
        layers.MaxPool3D(2, 2),
    ):
        assert layer(x).layout == "coo", layer
    flat = P.sparse.sparse_coo_tensor([[0, 0], [0, 1], [2, 1]], Y[:2], [1, 3, 3, 2])
    for layer in (layers.SubmConv2D(2, 3, 3), layers.Conv2D(2, 3, 2, bias_attr=False)):
        assert layer(flat).layout == "coo"
        assert tuple(layer.weight.shape)[-2:] == (2, 3)
    csr = P.sparse.sparse_csr_tensor([0, 1, 2, 3], [1, 2, 0], [3.0, 4.0, -3.0], [3, 3])
    np.testing.assert_array_equal(array(layers.Softmax()(csr)), DENSE != 0)
    with pytest.raises(NotImplementedError, match="statistics of the sites of all ranks"):
        layers.SyncBatchNorm(3)


def test_paddle_attention():
    q, k, v = (RNG.normal(size=(1, 2, 3, 4)).astype(np.float32) for _ in range(3))
    there = np.stack([DENSE != 0, np.tri(3) > 0])
    mask = tenon.tensor(there.astype(np.float32)).to_sparse()
    result = P.sparse.nn.functional.attention(*map(tenon.tensor, (q, k, v)), mask)
    scores = np.where(there, np.einsum("bhqd,bhkd->bhqk", q, k)[0] / 2.0, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(result[0].numpy(), weights @ v[0], atol=1e-5)


def test_paddle_names_beside_the_library():
    pytest.importorskip("paddle.nn")
    import paddle

    paddle.set_device("cpu")
    theirs, ours = paddle_cases(paddle, True), dict(paddle_cases_named(P))
    for place, (name, expected) in enumerate(theirs):
        a, b = array(expected), array(ours[place])
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6, err_msg=name)
    for (name, expected), (_, got) in zip(
        paddle_convolutions(paddle), paddle_convolutions(P), strict=True
    ):
        np.testing.assert_allclose(array(got), array(expected), atol=1e-4, err_msg=name)


def paddle_cases_named(paddle):
    return enumerate(value for _, value in paddle_cases(paddle, False))


def test_paddle_covers_what_the_library_has():
    pytest.importorskip("paddle.nn")
    import paddle

    for theirs, ours in (
        (paddle.sparse, P.sparse),
        (paddle.sparse.nn, P.sparse.nn),
        (paddle.sparse.nn.functional, P.sparse.nn.functional),
    ):
        assert [name for name in theirs.__all__ if not hasattr(ours, name)] == []


def test_paddle_refusals():
    csr = P.sparse.sparse_csr_tensor([0, 1], [0], [1.0], [1, 2])
    with pytest.raises(NotImplementedError, match="pca_lowrank"):
        P.sparse.pca_lowrank(csr)
    with pytest.raises(TypeError, match="expected a tensor of layout coo or csr, got strided"):
        P.sparse.sin(tenon.ones([2]))
    with pytest.raises(NotImplementedError, match="0 / 0"):
        P.sparse.divide(csr, csr)
    with pytest.raises(NotImplementedError, match="expected the last axis, got 0"):
        P.sparse.nn.functional.softmax(csr, 0)
    with pytest.raises(NotImplementedError, match="expected stride 1"):
        x, weight = sites(P)
        P.sparse.nn.functional.subm_conv3d(x, weight, None, 2)
