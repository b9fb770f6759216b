# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pooling and normalisation of sites, against dense ones."""

import numpy as np
import pytest
import tenon
from tenon import nn, sparse
from tenon.nn import functional as F
from tenon.sparse import nn as snn
from twice import check_gradients_twice

T = tenon.tensor
RNG = np.random.default_rng(29)


def sites(sizes, channels, count, batch=2, dtype=np.float32):
    """A tensor of layout coo with sites in a random order, its dense form, and where it has sites."""
    shape = (batch, *sizes)
    flat = RNG.permutation(int(np.prod(shape)))[:count]
    indices = np.stack(np.unravel_index(flat, shape)).astype(np.int64)
    values = RNG.normal(size=(count, channels)).astype(dtype)
    x = sparse.coo(indices, values, (*shape, channels))
    dense = np.zeros((*shape, channels), dtype)
    dense[tuple(indices)] = values
    there = np.zeros(shape, bool)
    there[tuple(indices)] = True
    return x, dense, there


def channels_first(x):
    return T(np.ascontiguousarray(np.moveaxis(x, -1, 1)))


def channels_last(x):
    return np.moveaxis(x.detach().numpy(), 1, -1)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("kernel", [1, 3, (3, 5, 1)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_submanifold_is_the_dense_one_at_its_sites(axes, kernel, dilation):
    kernel = kernel if isinstance(kernel, int) else kernel[:axes]
    sizes = (5, 4, 6)[:axes]
    x, dense, there = sites(sizes, 3, 25)
    layer = (snn.SubmConv3d if axes == 3 else snn.SubmConv2d)(3, 4, kernel, dilation)
    result = layer(x)
    assert result.layout == "coo" and tuple(result.shape) == (2, *sizes, 4)
    assert result.nnz == 25
    pads = [(k - 1) // 2 * dilation for k in layer.kernel_size]
    conv = F.conv3d if axes == 3 else F.conv2d
    expected = conv(channels_first(dense), layer.weight, layer.bias, 1, pads, dilation)
    expected = channels_last(expected) * there[..., None]
    np.testing.assert_allclose(result.detach().to_dense().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [(2, 2, 0, 1), (3, 1, 1, 1), (3, 2, 1, 1), (3, (2, 1, 1), (0, 1, 0), (1, 2, 1))],
)
def test_convolution_is_the_dense_one(axes, kernel, stride, padding, dilation):
    stride, padding, dilation = (
        v if isinstance(v, int) else list(v[:axes]) for v in (stride, padding, dilation)
    )
    x, dense, _ = sites((6, 5, 7)[:axes], 3, 12)
    make = snn.Conv3d if axes == 3 else snn.Conv2d
    layer = make(3, 4, kernel, stride, padding, dilation, bias=False)
    result = layer(x)
    conv = F.conv3d if axes == 3 else F.conv2d
    expected = conv(channels_first(dense), layer.weight, None, stride, padding, dilation)
    np.testing.assert_allclose(
        result.detach().to_dense().numpy(), channels_last(expected), atol=1e-5
    )


def test_gradients_twice():
    x, _, _ = sites((3, 4), 2, 7, dtype=np.float64)
    indices, values = x.coalesce().indices(), x.coalesce().values().detach()
    weight = T(RNG.normal(size=(2, 2, 3, 3)), dtype=tenon.float64, requires_grad=True)
    bias = T(RNG.normal(size=2), dtype=tenon.float64, requires_grad=True)
    values.requires_grad_()

    def of(function):
        return lambda v, w, b: function(sparse.coo(indices, v, x.shape), w, b).values()

    for function in (snn.functional.subm_conv2d, snn.functional.conv2d):
        check_gradients_twice(of(function), (values, weight, bias))


def test_repeated_sites_are_sums_and_no_sites_are_none():
    weight = T(RNG.normal(size=(2, 1, 3, 3)).astype(np.float32))
    twice = sparse.coo([[0, 0, 0], [1, 1, 2], [1, 1, 2]], T([[1.0], [2.0], [5.0]]), (1, 4, 4, 1))
    once = sparse.coo([[0, 0], [1, 2], [1, 2]], T([[3.0], [5.0]]), (1, 4, 4, 1))
    results = [snn.functional.subm_conv2d(x, weight).to_dense().tolist() for x in (twice, once)]
    assert results[0] == results[1]
    none = sparse.coo(np.zeros((3, 0), np.int64), np.zeros((0, 1), np.float32), (1, 4, 4, 1))
    for function in (snn.functional.subm_conv2d, snn.functional.conv2d):
        assert function(none, weight).nnz == 0
    assert snn.functional.max_pool2d(none, 2).nnz == 0


def test_sites_at_the_border_do_not_meet_those_of_the_next_row():
    """The last site of a row and the first of the next one are neighbours in memory alone."""
    x = sparse.coo([[0, 0], [0, 1], [3, 0]], T([[1.0], [10.0]]), (1, 2, 4, 1))
    result = snn.functional.subm_conv2d(x, tenon.ones([1, 1, 1, 3]))
    assert result.values().reshape([-1]).tolist() == [1.0, 10.0]


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, None, 0), (3, 2, 1)])
def test_pooling_of_sites_that_are_there(kernel, stride, padding):
    x, dense, there = sites((6, 4), 3, 20)
    result = snn.MaxPool2d(kernel, stride, padding)(x)
    lowest = np.where(there[..., None], dense, -1e30).astype(np.float32)
    expected = channels_last(
        F.max_pool2d(channels_first(lowest), kernel, stride or kernel, padding)
    )
    expected = np.where(expected < -1e29, 0.0, expected)
    np.testing.assert_allclose(result.to_dense().numpy(), expected, atol=1e-6)


def test_a_small_network_trains():
    tenon.manual_seed(0)
    x, _, _ = sites((6, 6, 6), 2, 40)
    layers = [snn.SubmConv3d(2, 8, 3), snn.BatchNorm(8), snn.Conv3d(8, 8, 2, 2), snn.LayerNorm(8)]
    model = nn.ModuleList(layers)
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        h = x
        for layer in layers:
            h = layer(h)
        loss = ((tenon.relu(h).values() - 1.0) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert set(snn.SubmConv3d(2, 8, 3).state_dict()) == set(nn.Conv3d(2, 8, 3).state_dict())


def test_refusals():
    x, _, _ = sites((4, 4), 2, 5)
    with pytest.raises(ValueError, match="a kernel of odd sizes"):
        snn.functional.subm_conv2d(x, tenon.ones([1, 2, 2, 2]))
    with pytest.raises(ValueError, match=r"expected weights \[out_channels, 2"):
        snn.functional.conv2d(x, tenon.ones([1, 3, 2, 2]))
    with pytest.raises(ValueError, match="expected a tensor of layout coo"):
        snn.functional.conv2d(tenon.ones([1, 4, 4, 2]), tenon.ones([1, 2, 2, 2]))
    with pytest.raises(NotImplementedError, match="groups=1"):
        snn.functional.conv2d(x, tenon.ones([2, 1, 2, 2]), groups=2)
    with pytest.raises(ValueError, match="a grid that the kernel fits in"):
        snn.functional.conv2d(x, tenon.ones([1, 2, 5, 5]))
    indices = np.array([[0], [1], [1]])
    written = sparse.coo(indices, np.ones((1, 2), np.float32), (1, 4, 4, 2))
    indices[1, 0] = 99
    with pytest.raises(IndexError, match="from 0 to 3 along axis 1, got 99 at position 0"):
        snn.functional.subm_conv2d(written, tenon.ones([1, 2, 3, 3]))
