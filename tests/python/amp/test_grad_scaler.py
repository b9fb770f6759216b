# SPDX-License-Identifier: Apache-2.0
"""Loss scaling, master weights, and steps that do not happen."""

import math

import pytest
import reference_plugin
import tenon
from devices import DEVICES
from tenon import amp, nn, optim


def parameter(value, dtype="float32", device="cpu"):
    return nn.Parameter(tenon.tensor(value, dtype=dtype, device=device))


def set_grad(param, value):
    param.grad = tenon.tensor(value, dtype=param.dtype, device=param.device)


# -- the operators


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan, None])
def test_check_finite_and_unscale(dtype, bad):
    grad = tenon.arange(0, 2000).cast(tenon.dtype(dtype))
    if bad is not None:
        grad[1234] = bad
    expected = grad * 0.5
    inverse, found = tenon.tensor(0.5), tenon.tensor(0.0)
    tenon.check_finite_and_unscale(grad, inverse, found, out=(grad, found))
    assert found.item() == (0.0 if bad is None else 1.0)
    assert repr(grad.tolist()) == repr(expected.tolist())
    tenon.check_finite_and_unscale(tenon.ones([3]), inverse, found, out=(tenon.empty([3]), found))
    assert found.item() == (0.0 if bad is None else 1.0), "what was found before stays"


def test_check_finite_and_unscale_refuses_other_numbers():
    with pytest.raises(ValueError, match="expected inverse_scale to be one number, got shape"):
        tenon.check_finite_and_unscale(tenon.ones([2]), tenon.ones([2]), tenon.tensor(0.0))
    wide = tenon.check_finite_and_unscale(
        tenon.tensor([4.0]), tenon.tensor(0.5, dtype="float64"), tenon.tensor(0.0, dtype="float64")
    )
    assert [each.dtype.name for each in wide] == ["float32", "float64"] and wide[0].item() == 2.0


def test_the_scale_never_becomes_infinite():
    scale, tracker = tenon.update_loss_scaling(
        tenon.tensor(3e38), tenon.tensor(4.0), tenon.tensor(0.0), growth_interval=5
    )
    assert scale.item() == pytest.approx(3e38) and tracker.item() == 0.0


# -- the scaler


def test_gradients_are_unscaled_and_the_scale_grows():
    w = parameter([1.0, 2.0])
    optimizer = optim.SGD([w], lr=1.0)
    scaler = amp.GradScaler(init_scale=8.0, growth_interval=2)
    for scale in (8.0, 8.0, 16.0):
        assert scaler.get_scale() == scale
        w.grad = None
        scaler.scale(tenon.sum(w * w)).backward()
        before = w.detach().clone()
        assert w.grad.tolist() == (before * 2 * scale).tolist()
        scaler.step(optimizer)
        assert w.tolist() == (before - before * 2).tolist()
        scaler.update()


def test_a_bad_step_is_left_out():
    w = parameter([1.0, 2.0])
    optimizer = optim.Adam([w], lr=0.1)
    scaler = amp.GradScaler(init_scale=4.0)
    for grad in ([4.0, 4.0], [math.inf, 1.0], [1.0, math.nan]):
        scaler.scale(tenon.sum(w))
        set_grad(w, grad)
        scaler.step(optimizer)
        scaler.update()
    assert optimizer.state[w]["step"] == 1
    assert w.tolist() == pytest.approx([0.9, 1.9]) and scaler.get_scale() == 1.0


def test_backoff_waits_for_its_interval():
    w = parameter([1.0])
    optimizer = optim.SGD([w], lr=0.1)
    scaler = amp.GradScaler(init_scale=4.0, backoff_interval=2)
    scales = []
    for grad in (math.inf, 1.0, math.inf, math.inf):
        scaler.scale(tenon.sum(w))
        set_grad(w, [grad])
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [4.0, 4.0, 4.0, 2.0]


def test_clipping_between_unscale_and_step():
    w = parameter([3.0, 4.0])
    optimizer = optim.SGD([w], lr=1.0)
    scaler = amp.GradScaler(init_scale=1024.0)
    scaler.scale(tenon.sum(w * w) / 2).backward()
    scaler.unscale_(optimizer)
    assert nn.utils.clip_grad_norm_([w], 1.0).item() == pytest.approx(5.0)
    scaler.step(optimizer)
    assert w.tolist() == pytest.approx([2.4, 3.2])


def test_several_optimizers_share_the_scale():
    a, b = parameter([1.0]), parameter([1.0])
    first, second = optim.SGD([a], lr=1.0), optim.SGD([b], lr=1.0)
    scaler = amp.GradScaler(init_scale=2.0)
    scaler.scale([tenon.sum(a), tenon.sum(b)])
    set_grad(a, [math.inf])
    set_grad(b, [2.0])
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert a.tolist() == [1.0] and b.tolist() == [0.0], "each by its own gradients"
    assert scaler.get_scale() == 1.0


def test_an_optimizer_does_not_get_the_state_of_one_that_is_gone():
    scaler = amp.GradScaler(init_scale=4.0)
    for _ in range(20):  # one of them has the address of one before
        p = nn.Parameter(tenon.ones([1]))
        optimizer = optim.SGD([p], lr=1.0)
        scaler.scale(p.sum()).backward()
        scaler.unscale_(optimizer)
        assert p.grad.tolist() == [1.0]
        del optimizer


def test_calls_out_of_order_are_refused():
    w = parameter([1.0])
    optimizer = optim.SGD([w], lr=1.0)
    scaler = amp.GradScaler()
    with pytest.raises(RuntimeError, match="has no parameter with a gradient; call backward"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"expected step\(\) or unscale_\(\) of an optimizer"):
        scaler.update()
    scaler.scale(tenon.sum(w)).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="SGD was unscaled already"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="SGD was stepped already"):
        scaler.step(optimizer)
    with pytest.raises(TypeError, match="expected a Tensor or a list of them, got str"):
        scaler.scale("loss")
    with pytest.raises(ValueError, match="expected backoff_factor between 0 and 1, got 2"):
        amp.GradScaler(backoff_factor=2)
    with pytest.raises(TypeError, match="its closure computes many gradients"):
        optim.LBFGS([w]).step(lambda: None, found_inf=tenon.tensor(0.0))


def test_a_scaler_that_is_off_does_nothing():
    w = parameter([1.0])
    optimizer = optim.SGD([w], lr=1.0)
    scaler = amp.GradScaler(enabled=False)
    scaler.scale(tenon.sum(w)).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0] and scaler.get_scale() == 1.0 and scaler.state_dict() == {}


def test_a_scaler_goes_on_from_its_state():
    w = parameter([1.0])
    optimizer = optim.SGD([w], lr=0.0)

    def run(scaler, grads):
        for grad in grads:
            scaler.scale(tenon.sum(w))
            set_grad(w, [grad])
            scaler.step(optimizer)
            scaler.update()

    whole = amp.GradScaler(init_scale=64.0, growth_interval=3)
    run(whole, [1.0, math.inf, 1.0, 1.0, 1.0])
    first = amp.GradScaler(init_scale=64.0, growth_interval=3)
    run(first, [1.0, math.inf, 1.0])
    second = amp.GradScaler(init_scale=1.0)
    second.load_state_dict(first.state_dict())
    run(second, [1.0, 1.0])
    assert second.state_dict() == whole.state_dict()
    with pytest.raises(ValueError, match="'tracker'.* are missing"):
        second.load_state_dict({"scale": 1.0})


# -- steps under a condition that the host does not wait for


@pytest.fixture
def behind_host(monkeypatch):
    monkeypatch.setattr(optim.optimizer, "runs_behind_host", lambda device: True)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.Adam(p, lr=0.1),
        lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.RMSprop(p, lr=0.1, centered=True, momentum=0.5),
        lambda p: optim.NAdam(p, lr=0.1),
        lambda p: optim.AdamW(p, lr=0.1, multi_precision=True),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_conditional_step_equals_one_left_out(behind_host, make, dtype):
    grads = [
        [math.inf, 1.0],
        [1.0, 2.0],
        [math.nan, 0.0],
        [0.5, -1.0],
        [math.inf, math.inf],
        [1.0, 1.0],
    ]

    def run(conditional):
        w = parameter([1.0, 2.0], dtype)
        optimizer = make([w])
        for grad in grads:
            set_grad(w, grad)
            is_bad = not all(map(math.isfinite, grad))
            if conditional:
                optimizer.step(found_inf=tenon.tensor(float(is_bad)))
            elif not is_bad:
                optimizer.step()
        state = optimizer.state_dict()["state"]
        return w.tolist(), {
            name: value.tolist() if isinstance(value, tenon.Tensor) else value
            for name, value in (state[0] if state else {}).items()
        }

    assert run(True) == run(False)


def test_a_scaler_on_a_device_behind_the_host(behind_host):
    w = parameter([1.0, 2.0])
    optimizer = optim.Adam([w], lr=0.1)
    scaler = amp.GradScaler(init_scale=4.0)
    for grad in ([math.inf, 1.0], [4.0, 4.0]):
        scaler.scale(tenon.sum(w))
        set_grad(w, grad)
        scaler.step(optimizer)
        scaler.update()
    assert w.tolist() == pytest.approx([0.9, 1.9])
    assert optimizer.state_dict()["state"][0]["step"] == 1 and scaler.get_scale() == 2.0


@pytest.mark.parametrize("device", DEVICES)
def test_a_scaler_on_every_device(device):
    w = parameter([1.0, 2.0], device=device)
    optimizer = optim.SGD([w], lr=0.5)
    scaler = amp.GradScaler(init_scale=4.0)
    for grad in ([8.0, 8.0], [math.inf, 1.0]):
        scaler.scale(tenon.sum(w))
        set_grad(w, grad)
        scaler.step(optimizer)
        scaler.update()
    assert w.tolist() == [0.0, 1.0] and scaler.get_scale() == 2.0


@reference_plugin.needs_reference
def test_a_step_of_a_device_with_streams_is_left_out():
    reference_plugin.load()
    assert optim.optimizer.runs_behind_host(tenon.device("reference"))
    w = parameter([1.0, 2.0], device="reference")
    optimizer = optim.Adam([w], lr=0.1)
    scaler = amp.GradScaler(init_scale=4.0)
    for grad in ([math.inf, 1.0], [4.0, 4.0], [1.0, math.nan]):
        scaler.scale(tenon.sum(w))
        set_grad(w, grad)
        scaler.step(optimizer)
        scaler.update()
    assert w.tolist() == pytest.approx([0.9, 1.9]) and scaler.get_scale() == 1.0
    assert optimizer.state_dict()["state"][0]["step"] == 1


# -- master weights


def test_small_updates_are_not_lost():
    w = parameter([1.0], "bfloat16")
    plain = parameter([1.0], "bfloat16")
    optimizers = optim.SGD([w], lr=1.0, multi_precision=True), optim.SGD([plain], lr=1.0)
    for _ in range(100):
        for param, optimizer in zip((w, plain), optimizers):
            set_grad(param, [0.001])
            optimizer.step()
    assert plain.tolist() == [1.0], "each update is below half a unit in the last place"
    # bfloat16 has steps of 0.0039 here, and its gradient of 0.001 is off by up to 0.2 %.
    assert w.tolist() == [pytest.approx(0.9, abs=0.004)]
    master = optimizers[0].state[w]["master"]
    assert master.dtype == tenon.float32 and master.tolist() == [pytest.approx(0.9, abs=1e-3)]


def test_master_weights_are_saved_and_may_be_turned_on_later():
    w = parameter([1.0, 2.0], "float16")
    optimizer = optim.Adam([w], lr=0.01)
    set_grad(w, [1.0, 1.0])
    optimizer.step()
    assert optimizer.state[w]["m"].dtype == tenon.float16
    optimizer.multi_precision = True
    optimizer.step()
    assert {k: v.dtype.name for k, v in optimizer.state[w].items() if k != "step"} == {
        "m": "float32",
        "v": "float32",
        "master": "float32",
    }
    other = parameter(w.tolist(), "float16")
    second = optim.Adam([other], lr=0.01, multi_precision=True)
    second.load_state_dict(optimizer.state_dict())
    for param, each in ((w, optimizer), (other, second)):
        set_grad(param, [0.1, -0.1])
        each.step()
    assert other.tolist() == w.tolist()
    assert second.state[other]["master"].tolist() == optimizer.state[w]["master"].tolist()
    assert "multi_precision=True" in repr(optimizer)
    with pytest.raises(ValueError, match="LBFGS: expected multi_precision=False"):
        optim.LBFGS([other]).multi_precision = True


def test_norms_of_float16_gradients_do_not_overflow():
    w = parameter([300.0, 400.0], "float16")
    set_grad(w, [300.0, 400.0])
    assert nn.utils.clip_grad_norm_([w], 1.0).item() == pytest.approx(500.0)
    # float16 rounds to 11 bits: its relative error is up to 4.9e-4.
    assert w.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-3)


@pytest.mark.parametrize("bad", [None, math.nan])
def test_complex_gradients_are_unscaled(bad):
    param = nn.Parameter(tenon.tensor([1.0 + 0j]))
    optimizer, scaler = optim.SGD([param], lr=1.0), amp.GradScaler(init_scale=4.0)
    param.grad = tenon.tensor([complex(4.0, -8.0 if bad is None else bad)])
    scaler.step(optimizer)
    scaler.update()
    assert param.tolist() == ([0 + 2j] if bad is None else [1 + 0j])
