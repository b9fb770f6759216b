# SPDX-License-Identifier: Apache-2.0
"""paddle.nn's recurrent layers, SpectralNorm and attention, against loops and, where it is installed, Paddle."""

import importlib

import numpy as np
import pytest
import tenon
from tenon.compat.paddle import nn

F = nn.functional
RNG = np.random.default_rng(11)
T = tenon.tensor


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def same_weights(ours, theirs):
    """Gives Paddle's layer the weights of ours."""
    import paddle as peer

    given = dict(theirs.named_parameters())
    assert set(given) == set(dict(ours.named_parameters()))
    for name, value in ours.named_parameters():
        given[name].set_value(peer.to_tensor(value.detach().numpy()))


def close(ours, theirs):
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            close(one, other)
        return
    np.testing.assert_allclose(ours.detach().numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


CELLS = ["SimpleRNNCell", "LSTMCell", "GRUCell"]


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_layers_of_one_step(name):
    cell = getattr(nn, name)(3, 4)
    layer = getattr(nn, name.removesuffix("Cell"))(3, 4)
    layer.set_state_dict({f"{key}_l0": value for key, value in cell.state_dict().items()})
    x = T(normal(2, 5, 3))
    outs, states = layer(x)
    again, after = nn.RNN(cell)(x)
    np.testing.assert_allclose(again.detach().numpy(), outs.detach().numpy(), rtol=1e-5, atol=1e-6)
    last = states[0] if name == "LSTMCell" else states
    after = after[0] if name == "LSTMCell" else after
    assert last.shape == (1, 2, 4) and after.shape == (2, 4)
    np.testing.assert_allclose(after.detach().numpy(), last[0].detach().numpy(), atol=1e-6)
    step, state = cell(x[:, 0])
    assert step.shape == (2, 4) and (state[0] if isinstance(state, tuple) else state).shape == (
        2,
        4,
    )


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("time_major", [False, True])
def test_lengths(name, time_major):
    layer = getattr(nn, name)(3, 4, 2, "bidirect", time_major)
    x = normal(3, 5, 3)
    given = T(np.swapaxes(x, 0, 1).copy() if time_major else x)
    outs, states = layer(given, None, T([5, 2, 4]))
    outs = tenon.transpose(outs, 0, 1) if time_major else outs
    for row, length in enumerate([5, 2, 4]):
        cut = T(x[row : row + 1, :length].copy())
        cut = tenon.transpose(cut, 0, 1) if time_major else cut
        alone, ends = layer(cut)
        alone = tenon.transpose(alone, 0, 1) if time_major else alone
        np.testing.assert_allclose(
            outs[row, :length].detach().numpy(), alone[0].detach().numpy(), rtol=1e-5, atol=1e-6
        )
        assert not outs[row, length:].any().item()
        pairs = zip(states, ends) if name == "LSTM" else [(states, ends)]
        for whole, one in pairs:
            np.testing.assert_allclose(
                whole[:, row].detach().numpy(), one[:, 0].detach().numpy(), atol=1e-6
            )
    outs.sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_attributes_and_refusals():
    half = nn.GRU(2, 3, bias_ih_attr=False, weight_ih_attr=nn.initializer.Constant(0.5))
    assert half.weight_ih_l0.tolist() == [[0.5, 0.5]] * 9 and half.bias_ih_l0 is None
    bare = nn.LSTM(2, 3, bias_ih_attr=False, bias_hh_attr=False)
    for layer in (half, bare):
        assert layer(tenon.ones([1, 2, 2]))[0].shape == (1, 2, 3)
    assert nn.LSTM(2, 4, proj_size=3)(tenon.ones([1, 2, 2]))[0].shape == (1, 2, 3)
    with pytest.raises(NotImplementedError, match="only biases can be left out"):
        nn.LSTM(2, 3, weight_hh_attr=False)
    with pytest.raises(ValueError, match="direction 'forward', 'bidirect' or 'bidirectional', got"):
        nn.GRU(2, 3, direction="backward")
    with pytest.raises(ValueError, match="expected nonlinearity 'tanh' or 'relu', got 'sin'"):
        nn.SimpleRNN(2, 3, activation="sin")
    with pytest.raises(ValueError, match=r"sequence_length \[batch\] of 2, got shape \(3,\)"):
        nn.GRU(2, 3)(tenon.ones([2, 4, 2]), None, T([1, 2, 3]))
    with pytest.raises(ValueError, match="from 0 to the 4 steps, got"):
        nn.GRU(2, 3)(tenon.ones([2, 4, 2]), None, T([1, 5]))


class Decay(nn.RNNCellBase):
    """A cell of one's own."""

    @property
    def state_shape(self):
        return ((2,), (2,))

    def forward(self, inputs, states):
        sums, counts = states
        return sums + inputs, (sums + inputs, counts + 1.0)


def test_cells_of_ones_own():
    x = T(np.arange(12.0, dtype=np.float32).reshape(2, 3, 2))
    outs, (sums, counts) = nn.RNN(Decay())(x, None, T([3, 1]))
    assert outs[0].tolist() == np.cumsum(x[0].numpy(), 0).tolist()
    assert sums[1].tolist() == x[1, 0].tolist() and counts.tolist() == [[3.0, 3.0], [1.0, 1.0]]
    outs, _ = nn.BiRNN(Decay(), Decay())(x)
    assert outs.shape == (2, 3, 4) and outs[0, 0, 2:].tolist() == x[0].sum(0).tolist()
    with pytest.raises(NotImplementedError, match="must define state_shape"):
        nn.RNN(nn.RNNCellBase())(x)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_spectral_norm(dim):
    weight = T(normal(3, 2, 4))
    layer = nn.SpectralNorm([3, 2, 4], dim, power_iters=60)
    rows = np.moveaxis(weight.numpy(), dim, 0).reshape(weight.shape[dim], -1)
    expected = weight.numpy() / np.linalg.svd(rows, compute_uv=False)[0]
    np.testing.assert_allclose(layer(weight).numpy(), expected, rtol=1e-3, atol=1e-4)
    assert sorted(layer.state_dict()) == ["weight_u", "weight_v"]
    assert not layer.weight_u.requires_grad
    with pytest.raises(ValueError, match=r"expected a weight of shape \[3, 2, 4\], got \(2, 3\)"):
        layer(tenon.ones([2, 3]))
    with pytest.raises(ValueError, match="expected dim an axis of weight_shape"):
        nn.SpectralNorm([3, 2], 2)


def shown(rows, causal, queries=5):
    """The mask of flashmask_attention by its definition, element by element."""
    batch, heads, keys, count = rows.shape
    out = np.ones((batch, heads, queries, keys), bool)
    for b, h, j in np.ndindex(batch, heads, keys):
        at = rows[b, h, j]
        for i in range(queries):
            if causal:
                hidden = i < j or at[0] <= i < (at[1] if count == 2 else queries)
            elif count == 2:
                hidden = (i > j and i >= at[0]) or (i < j and i < at[1])
            else:
                hidden = (i > j and at[0] <= i < at[1]) or (i < j and at[2] <= i < at[3])
            out[b, h, i, j] = not hidden
    return out


@pytest.mark.parametrize("causal,count", [(True, 1), (True, 2), (False, 2), (False, 4)])
@pytest.mark.parametrize("heads", [1, 2])
def test_flashmask_attention(causal, count, heads):
    q, k, v = normal(2, 5, 4, 3), normal(2, 5, 2, 3), normal(2, 5, 2, 3)
    rows = np.sort(RNG.integers(0, 6, (2, heads, 5, count)), -1).astype(np.int32)
    got = F.flashmask_attention(T(q), T(k), T(v), T(rows), causal=causal).numpy()
    seen = np.repeat(shown(rows, causal), 4 // heads, 1)
    keys, values = (np.repeat(x, 2, 2) for x in (k, v))
    scores = np.einsum("nlhe,nkhe->nhlk", q, keys) / np.sqrt(3)
    scores = np.where(seen, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.nan_to_num(np.exp(scores - scores.max(-1, keepdims=True)))
        weights = np.nan_to_num(powers / powers.sum(-1, keepdims=True))
    expected = np.einsum("nhlk,nkhe->nlhe", weights, values)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_windows_and_refusals_of_attention():
    q = T(normal(1, 6, 2, 4))
    for window, causal in ((1, False), ((2, 1), False), (2, True)):
        before, behind = (window, window) if isinstance(window, int) else window
        at = np.arange(6)
        seen = at[None] >= at[:, None] - before
        seen &= at[None] <= at[:, None] + (0 if causal else behind)
        expected = F.scaled_dot_product_attention(q, q, q, T(seen))
        got = F.flashmask_attention(q, q, q, causal=causal, window_size=window)
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    rows = tenon.zeros([1, 1, 6, 4], dtype=tenon.int32)
    with pytest.raises(ValueError, match=r"expected startend_row_indices \[1, 1 or 2, 6, 1 or 2\]"):
        F.flashmask_attention(q, q, q, rows, causal=True)
    with pytest.raises(NotImplementedError, match="expected no return_softmax_lse"):
        F.flashmask_attention(q, q, q, return_softmax_lse=True)
    with pytest.raises(ValueError, match="as many keys as queries with causal"):
        F.flashmask_attention(q[:, :3], q, q, causal=True)
    with pytest.raises(ValueError, match=r"expected query \[batch, length, heads, depth\]"):
        F.scaled_dot_product_attention(q[0], q, q)
    packed = tenon.stack([q, q, q], 2)
    out, nothing = F.flash_attn_qkvpacked(packed, causal=True)
    assert nothing is None
    expected = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    np.testing.assert_allclose(out.numpy(), expected.numpy(), atol=1e-6)


# -- beside Paddle


@pytest.mark.parametrize("name", ["SimpleRNN", "LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("lengths", [None, [3, 2]])
def test_layers_beside_paddle(name, direction, lengths):
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    peer = importlib.import_module("paddle")
    ours = getattr(nn, name)(3, 4, 2, direction)
    theirs = getattr(peer.nn, name)(3, 4, 2, direction)
    same_weights(ours, theirs)
    x = normal(2, 3, 3)
    wanted = theirs(peer.to_tensor(x), None, None if lengths is None else peer.to_tensor(lengths))
    close(ours(T(x), None, None if lengths is None else T(lengths)), wanted)


@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("proj_size", [0, 2])
def test_files_of_paddle(direction, proj_size):
    """Paddle's layers hold weights twice, and that of a projection transposed; alone and in other layers."""
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    peer = importlib.import_module("paddle")
    theirs = peer.nn.LSTM(3, 4, 2, direction, proj_size=proj_size)
    cell = peer.nn.LSTMCell(3, 4, proj_size=proj_size)
    wholes = {}
    for prefix, layer in (("0.", theirs), ("1.", cell)):
        for key, value in layer.state_dict().items():
            wholes[prefix + key] = T(value.numpy())
    both = nn.Sequential(
        nn.LSTM(3, 4, 2, direction, proj_size=proj_size), nn.LSTMCell(3, 4, proj_size=proj_size)
    )
    both.set_state_dict(wholes)
    x = normal(2, 3, 3)
    if not proj_size:
        close(both[0](T(x)), theirs(peer.to_tensor(x)))
        close(both[1](T(x[:, 0].copy())), cell(peer.to_tensor(x[:, 0])))
        return
    # With a projection neither of Paddle's runs without states on its CPU.
    kind, suffix = ("cell", "") if direction == "forward" else ("cell_bw", "_reverse")
    own = both[0].get_parameter(f"weight_hr_l1{suffix}")
    close(tenon.transpose(own, 0, 1), theirs.state_dict()[f"1.{kind}.weight_ho"])
    close(tenon.transpose(both[1].weight_hr, 0, 1), cell.weight_ho)
    assert both[0](T(x))[0].shape == (2, 3, 2 if direction == "forward" else 4)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("lengths", [None, [3, 1]])
def test_cells_beside_paddle(name, backwards, lengths):
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    peer = importlib.import_module("paddle")
    ours, theirs = getattr(nn, name)(3, 4), getattr(peer.nn, name)(3, 4)
    same_weights(ours, theirs)
    x = normal(2, 3, 3)
    close(ours(T(x[:, 0].copy())), theirs(peer.to_tensor(x[:, 0])))
    wanted = peer.nn.RNN(theirs, backwards)(
        peer.to_tensor(x), None, None if lengths is None else peer.to_tensor(lengths)
    )
    close(nn.RNN(ours, backwards)(T(x), None, None if lengths is None else T(lengths)), wanted)


def test_spectral_norm_and_attention_beside_paddle():
    pytest.importorskip("paddle.nn")  # the folder of tests is a package "paddle", too
    peer = importlib.import_module("paddle")
    ours, theirs = nn.SpectralNorm([3, 5], 1, 2), peer.nn.SpectralNorm([3, 5], 1, 2)
    same_weights(ours, theirs)
    weight = normal(3, 5)
    for _ in range(2):  # a call leaves the vectors as they are
        close(ours(T(weight)), theirs(peer.to_tensor(weight)))
    q, mask = normal(2, 4, 2, 3), normal(2, 2, 4, 4)
    close(
        F.scaled_dot_product_attention(T(q), T(q), T(q), T(mask)),
        peer.nn.functional.scaled_dot_product_attention(*map(peer.to_tensor, (q, q, q, mask))),
    )
    packed = normal(2, 4, 3, 2, 3)
    close(
        F.flash_attn_qkvpacked(T(packed), causal=True)[0],
        peer.nn.functional.flash_attn_qkvpacked(peer.to_tensor(packed), causal=True)[0],
    )
