# SPDX-License-Identifier: Apache-2.0
"""Programs whose weights are data of their own."""

import numpy as np
import pytest
import tenon
from tenon import nn


def randomized(model):
    """In evaluation, with statistics and weights of normalisations that are not the initial ones."""
    with tenon.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                module.running_mean.copy_(tenon.randn(module.running_mean.shape))
                module.running_var.copy_(tenon.rand(module.running_var.shape) + 0.5)
                if module.weight is not None:
                    module.weight.copy_(tenon.randn(module.weight.shape))
                    module.bias.copy_(tenon.randn(module.bias.shape))
    return model.eval()


def exported(model, *inputs, **options):
    with tenon.no_grad():
        return tenon.export(model, inputs, **options)


def steps(program):
    return [
        line.split(" = ")[1].split("(")[0] for line in str(program).splitlines() if " = " in line
    ]


def test_weights_are_what_they_were():
    layer, x = nn.Linear(4, 3), tenon.randn(5, 4)
    program = exported(layer, x)
    frozen = program.freeze()
    want = program(x).numpy().copy()
    np.testing.assert_array_equal(frozen(x).numpy(), want)
    with tenon.no_grad():
        layer.weight.zero_()
    np.testing.assert_array_equal(frozen(x).numpy(), want)
    assert (program(x).numpy() != want).any()
    assert 'constant %1: float32[3, 4] cpu:0 "weight"' in str(frozen)


def test_what_follows_from_weights_is_computed_once(tmp_path):
    weight, x = tenon.randn(6, 4), tenon.randn(3, 6)

    def function(x):
        scaled = (weight * 2).exp().T[1:]  # a view of what is computed
        return x @ scaled.T + tenon.arange(3.0), weight.sum()

    program = exported(function, x)
    frozen = program.freeze()
    assert "fold: 2 steps are data of the program now, 96 bytes" in frozen.changes()
    assert "tenon::exp" in steps(program) and "tenon::exp" not in steps(frozen)
    # What is returned is made anew, so that a caller may write into it; so is what no tensor goes into.
    assert "tenon::sum" in steps(frozen) and "tenon::arange" in steps(frozen)
    frozen.save(tmp_path / "frozen.tenon")
    for each in (frozen, tenon.jit.load(tmp_path / "frozen.tenon")):
        for got, want in zip(each(x), program(x), strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_random_numbers_and_what_would_be_large_stay_steps():
    weight, x = tenon.full([64], 0.5), tenon.randn(64)
    program = exported(lambda x: x + tenon.bernoulli(weight), x).freeze()
    assert (program(x) != program(x)).any().item()
    column, row = tenon.randn(600, 1), tenon.randn(600)
    large = exported(lambda x: x + (column * row).sum(), tenon.randn(3)).freeze()
    assert "fold" not in large.changes() and "tenon::multiply" in steps(large)


def test_inputs_have_gradients():
    layer = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    x = tenon.randn(5, 4, requires_grad=True)
    frozen = tenon.export(layer, x).freeze()
    got, want = (tenon.grad(f(x).sum(), [x])[0] for f in (frozen, layer))
    np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_programs_of_many_sizes():
    model = randomized(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()))
    n = tenon.Dim("n", max=6)
    program = exported(model, tenon.randn(2, 2, 5, 5), dynamic_shapes=[{0: n}])
    frozen = program.freeze(numerics="fast")
    assert steps(frozen)[-2:] == ["tenon::conv2d", "tenon::relu"]
    for size in (1, 4, 6):
        x = tenon.randn(size, 2, 5, 5)
        # Rounded in another order, as the weights hold the normalisation.
        np.testing.assert_allclose(frozen(x).numpy(), program(x).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("layers", "shape"),
    [
        ((nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 6, 5)),
        ((nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2, bias=False), nn.BatchNorm2d(6)), (2, 4, 6, 5)),
        ((nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, affine=False, eps=0.1)), (2, 3, 6, 5)),
        ((nn.Linear(5, 4), nn.BatchNorm1d(4)), (3, 5)),
        ((nn.Conv2d(3, 4, 3).to(tenon.float64), nn.BatchNorm2d(4).to(tenon.float64)), (2, 3, 6, 5)),
    ],
)  # fmt: skip
def test_normalisations_become_part_of_layers(layers, shape):
    model = randomized(nn.Sequential(*layers))
    x = tenon.randn(*shape).to(next(iter(model.parameters())).dtype)
    program = exported(model, x)
    exact, fast = program.freeze(), program.freeze(numerics="fast")
    assert "tenon::batch_norm_inference" in steps(exact)
    assert not any("batch_norm" in step for step in steps(fast))
    assert "batch_norms: a normalisation became part of tenon::" in fast.changes()
    np.testing.assert_array_equal(exact(x).numpy(), program(x).numpy())
    # Products and sums are rounded in another order.
    tolerance = 1e-12 if x.dtype == tenon.float64 else 1e-5
    np.testing.assert_allclose(fast(x).numpy(), program(x).numpy(), rtol=tolerance, atol=tolerance)


def test_normalisations_that_cannot():
    def kept(*layers, function=None):
        model = randomized(nn.Sequential(*layers))
        x = tenon.randn(2, 3, 6, 5)
        run = (lambda x: function(model, x)) if function else model
        program = exported(run, x)
        fast = program.freeze(numerics="fast")
        assert "tenon::batch_norm_inference" in steps(fast)
        # Rewrites of "fast" may round in another order.
        np.testing.assert_allclose(fast(x).numpy(), program(x).numpy(), rtol=1e-5, atol=1e-5)

    convolution, norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    kept(convolution, nn.ReLU(), norm)
    kept(convolution, norm, function=lambda m, x: m[1](y := m[0](x)) + y)
    kept(nn.Linear(5, 4), nn.BatchNorm2d(3))  # its channels are not the linear layer's


def test_what_is_refused():
    total, weight, x = tenon.zeros(3), tenon.randn(3), tenon.randn(3)

    def counting(x):
        tenon.add(total, x, out=total)
        return x + total

    with pytest.raises(
        RuntimeError, match=r"freeze: `tenon::add` at .*test_freeze.py:\d+ writes into an"
    ):
        exported(counting, x).freeze()
    with pytest.raises(RuntimeError, match="freeze: the program returns a weight or a view of one"):
        exported(lambda x: (x + 1, weight[1:]), x).freeze()

    def stepping(x):
        weight.requires_grad = True
        weight.grad = None
        (x * weight).sum().backward()
        return x * 1

    with pytest.raises(RuntimeError, match=r"freeze: the program sets \.grad"):
        tenon.export(stepping, x).freeze()
