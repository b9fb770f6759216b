# SPDX-License-Identifier: Apache-2.0
"""The gated recurrent unit's operator beside its steps, and beside PyTorch."""

import numpy as np
import pytest
import tenon


def _steps(x, weight, bias, h):
    """As nn.GRU was before there was an operator."""
    size, out = h.shape[-1], []
    for t in range(x.shape[0]):
        before = tenon.linear(h, weight, bias)
        gates = tenon.sigmoid(x[t][:, : 2 * size] + before[:, : 2 * size])
        fresh = tenon.tanh(x[t][:, 2 * size :] + gates[:, :size] * before[:, 2 * size :])
        h = tenon.lerp(fresh, h, gates[:, size:])
        out.append(h)
    return tenon.stack(out)


@pytest.mark.parametrize("steps,batch,size", [(1, 1, 3), (5, 4, 7), (3, 40, 33), (0, 2, 3)])
def test_the_operator_is_its_steps(steps, batch, size):
    generator = np.random.default_rng(steps)
    shapes = [(steps, batch, 3 * size), (3 * size, size), (3 * size,), (batch, size)]
    args = [
        tenon.tensor(generator.standard_normal(shape) * 0.5, requires_grad=True) for shape in shapes
    ]
    out, gates = tenon.gru_recurrence(*args)
    assert list(out.shape) == [steps, batch, size] and list(gates.shape) == [steps, batch, 4 * size]
    if steps == 0:
        return
    by_steps = _steps(*args)
    np.testing.assert_allclose(
        out.detach().numpy(), by_steps.detach().numpy(), rtol=1e-10, atol=1e-12
    )
    factor = tenon.tensor(generator.standard_normal(out.shape))
    ours = tenon.autograd.grad((out * factor).sum(), args)
    wanted = tenon.autograd.grad((by_steps * factor).sum(), args)
    for each, other in zip(ours, wanted):
        np.testing.assert_allclose(each.numpy(), other.numpy(), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_is_beside_pytorch(bias):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.GRU(5, 6, num_layers=2, bidirectional=True, bias=bias)
    ours = tenon.nn.GRU(5, 6, num_layers=2, bidirectional=True, bias=bias)
    ours.load_state_dict(
        {name: tenon.tensor(x.detach().numpy()) for name, x in theirs.state_dict().items()}
    )
    x = np.random.default_rng(0).standard_normal((7, 3, 5)).astype(np.float32)
    wanted, last = theirs(torch.tensor(x))
    out, state = ours(tenon.tensor(x))
    np.testing.assert_allclose(out.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.detach().numpy(), last.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_shapes_that_do_not_fit_are_refused():
    x, weight, bias, h = (
        tenon.zeros([2, 3, 6]),
        tenon.zeros([6, 2]),
        tenon.zeros([6]),
        tenon.zeros([3, 2]),
    )
    with pytest.raises(ValueError, match=r"expected bias of shape \(6,\), got \(5,\)"):
        tenon.gru_recurrence(x, weight, tenon.zeros([5]), h)
    with pytest.raises(ValueError, match=r"expected weight of shape \(6, 2\), got \(8, 2\)"):
        tenon.gru_recurrence(x, tenon.zeros([8, 2]), bias, h)
    with pytest.raises(TypeError, match="expected h of dtype float32 like the rest, got float64"):
        tenon.gru_recurrence(x, weight, bias, h.to(tenon.float64))


def test_low_precision_is_rounded_once():
    generator = np.random.default_rng(1)
    args = [
        tenon.tensor(generator.standard_normal(s) * 0.5).to(tenon.bfloat16)
        for s in ((4, 2, 9), (9, 3), (9,), (2, 3))
    ]
    wide = tenon.gru_recurrence(*(x.to(tenon.float32) for x in args))[0].to(tenon.bfloat16)
    assert tenon.gru_recurrence(*args)[0].tolist() == wide.tolist()
