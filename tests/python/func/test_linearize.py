# SPDX-License-Identifier: Apache-2.0
"""linearize, and ensembles of modules as stacked states."""

import numpy as np
import pytest
import tenon
from tenon import func, nn


def test_linearize_is_jvp_for_many_tangents():
    x, y = tenon.normal([3]), tenon.normal([3])
    calls = []

    def f(x, y):
        calls.append(1)
        return {"a": tenon.sin(x) * y, "b": (x * x).sum()}

    result, tangent = func.linearize(f, x, y)
    for _ in range(3):
        v, w = tenon.normal([3]), tenon.normal([3])
        expected = func.jvp(f, (x, y), (v, w))
        got = tangent(v, w)
        for name in ("a", "b"):
            np.testing.assert_allclose(
                result[name].detach().numpy(), expected[0][name].detach().numpy(), rtol=1e-5
            )
            np.testing.assert_allclose(
                got[name].detach().numpy(), expected[1][name].detach().numpy(), rtol=1e-4, atol=1e-6
            )
    assert len(calls) == 4  # once for linearize, and for each jvp
    with pytest.raises(ValueError, match="linearize"):
        tangent(tenon.normal([2]), y)


def test_an_ensemble_is_one_batched_call():
    models = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)) for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["0.weight"].shape == (3, 8, 4) and parameters["0.weight"].is_leaf
    assert buffers == {}
    x = tenon.normal([5, 4])

    def call(parameters, x):
        return func.functional_call(models[0], parameters, (x,))

    together = func.vmap(call, in_dims=(0, None))(parameters, x)
    for got, model in zip(together, models, strict=True):
        np.testing.assert_allclose(
            got.detach().numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5
        )
    together.sum().backward()
    assert parameters["2.bias"].grad.shape == (3, 2)


def test_refusals_and_batch_norms():
    with pytest.raises(ValueError, match="at least one module, got none"):
        func.stack_module_state([])
    with pytest.raises(TypeError, match="modules of one class, got Linear and ReLU"):
        func.stack_module_state([nn.Linear(2, 2), nn.ReLU()])
    with pytest.raises(ValueError, match="all modules in training or none, got both"):
        func.stack_module_state([nn.Linear(2, 2), nn.Linear(2, 2).eval()])
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert func.replace_all_batch_norm_modules_(model) is model
    assert dict(model.named_buffers()) == {}
    x = tenon.normal([6, 2])
    model.eval()
    np.testing.assert_allclose(model(x).mean(axis=0).detach().numpy(), 0, atol=1e-5)
