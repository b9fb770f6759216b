# SPDX-License-Identifier: Apache-2.0
"""A device plugin as a device of PyTorch: memory, views, copies, calls, and what went wrong in bridges of others."""

import copy
import io
import subprocess
import sys
import warnings

import pytest
import tenon
from torch_device_setup import DEVICE, registered, torch

registered()
nn = torch.nn


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def on_device(value):
    return value.to(DEVICE)


def close(ours, theirs, **tolerances):
    torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True, **tolerances)


# -- memory and copies ----------------------------------------------------------------------------------------


DTYPES = [
    torch.bool,
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_return_as_they_went(dtype):
    for shape in ((), (0,), (3,), (2, 0, 3), (2, 3, 4)):
        x = torch.arange(24)[: max(1, torch.Size(shape).numel())].to(dtype)
        x = x[: torch.Size(shape).numel()].reshape(shape)
        d = on_device(x)
        assert d.device.type == DEVICE and d.dtype == dtype and d.shape == x.shape
        close(d, x)
        close(d.clone(), x)


def test_copies_convert_and_broadcast():
    x = torch.tensor([[1.5, -2.5, 3.0]])
    d = torch.empty(2, 3, dtype=torch.int32, device=DEVICE)
    d.copy_(x)
    close(d, x.to(torch.int32).expand(2, 3))
    host = torch.empty(3, 2, dtype=torch.float64)
    host.copy_(d.t())
    assert host.tolist() == x.to(torch.int32).expand(2, 3).t().tolist()
    d[:, 1] = on_device(torch.tensor([7.0, 8.0]))
    assert d[:, 1].cpu().tolist() == [7, 8]


def test_from_board_to_board():
    x = torch.randn(3, 4)
    other = x.to(f"{DEVICE}:1")
    assert other.device.index == 1
    back = on_device(x).to(f"{DEVICE}:1")
    close(back.t(), x.t())
    close((other + back).to(f"{DEVICE}:0"), 2 * x)


def test_views_share_their_storage():
    x = torch.randn(4, 6)
    d = on_device(x)
    views = [
        lambda t: t[1:3, ::2],
        lambda t: t.t(),
        lambda t: t.view(3, 8),
        lambda t: t.reshape(2, 12)[1],
        lambda t: t.expand(2, 4, 6),
        lambda t: t.unfold(1, 2, 2),
        lambda t: t.as_strided((2, 3), (7, 2), 1),
        lambda t: t.diagonal(1),
        lambda t: t.permute(1, 0).unsqueeze(1),
        lambda t: t.narrow(0, 1, 2).select(1, 3),
        lambda t: t.view(torch.int32),
    ]
    for view in views:
        assert view(d).untyped_storage().data_ptr() == d.untyped_storage().data_ptr()
        close(view(d), view(x))
    d.t()[2].mul_(3)
    x.t()[2].mul_(3)
    close(d, x)


def test_resize_and_set():
    d = on_device(torch.arange(6.0))
    d.resize_(2, 2)
    assert d.cpu().tolist() == [[0, 1], [2, 3]]
    d.resize_(3, 4)
    assert d.shape == (3, 4) and d.flatten()[:6].cpu().tolist() == [0, 1, 2, 3, 4, 5]
    e = torch.empty(0, device=DEVICE)
    e.set_(d.untyped_storage(), 2, (2,), (3,))
    assert e.cpu().tolist() == [2, 5]
    with pytest.raises(ValueError, match="expected a storage on"):
        e.set_(torch.zeros(3).untyped_storage(), 0, (3,), (1,))


def test_numbers_of_tensors():
    d = on_device(torch.tensor([[1.5, 2.0]]))
    assert d.sum().item() == 3.5 and float(d[0, 1]) == 2.0 and bool(d[0, 0] > 1)
    assert d.tolist() == [[1.5, 2.0]]
    assert "1.5" in repr(d) and DEVICE in repr(d)
    with pytest.raises(RuntimeError):
        d.item()


def test_memory_is_released_and_full_memory_is_an_error():
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 50, device=DEVICE)
    close(on_device(torch.ones(2)) + 1, torch.full((2,), 2.0))


# -- calls ----------------------------------------------------------------------------------------------------


def test_wrapped_numbers_and_promotion():
    for x in (torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.0]), torch.tensor([True, False])):
        d = on_device(x)
        for function in (
            lambda t: t + 1,
            lambda t: t * 2.5,
            lambda t: 3 - t.to(torch.int32),
            lambda t: t / 2,
            lambda t: t > 1,
            lambda t: t + torch.tensor(2.5),
            lambda t: t * t[0],
            lambda t: torch.where(t > 1, t, 0),
        ):
            ours, theirs = function(d), function(x)
            assert ours.dtype == theirs.dtype
            close(ours, theirs)


def test_the_same_call_with_another_number():
    d = on_device(torch.ones(3))
    assert [(d * number).sum().item() for number in (2.0, 5.0, 7.0)] == [6.0, 15.0, 21.0]
    assert [torch.add(d, d, alpha=k).sum().item() for k in (1, 2, 3)] == [6.0, 9.0, 12.0]
    assert [d.clamp(max=k).sum().item() for k in (0.5, 0.25, 2.0)] == [1.5, 0.75, 3.0]


def test_a_step_size_is_read_from_each_call():
    told = tenon.torch.report().device.operators
    d = on_device(torch.ones(3))
    for alpha in (0.5, 0.25):  # the second call's tape serves all others
        d.add_(d, alpha=alpha)
    before = told["add.Tensor"]
    for alpha in (0.5, 1.0, 2.0, 0.125):
        d = torch.ones(3, device=DEVICE)
        d.add_(d, alpha=alpha)
        assert d.cpu().tolist() == [1 + alpha] * 3
    assert told["add.Tensor"] == before


def test_autocast_and_loss_scaling():
    layer = nn.Linear(4, 2).to(DEVICE)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=8.0)
    x = on_device(torch.randn(3, 4))
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        y = layer(x)
        assert y.dtype == torch.bfloat16
        loss = nn.functional.mse_loss(y, torch.zeros_like(y))
        assert loss.dtype == torch.float32
    before = layer.weight.detach().cpu().clone()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert layer.weight.grad.dtype == torch.float32
    assert not torch.equal(layer.weight.detach().cpu(), before)


def test_out_into_a_view_and_into_other_shapes():
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    place = torch.zeros(4, 6, device=DEVICE)
    torch.add(on_device(a), on_device(b), out=place[1:3, ::2])
    expected = torch.zeros(4, 6)
    expected[1:3, ::2] = a + b
    close(place, expected)
    small = torch.empty(0, device=DEVICE)
    torch.mul(on_device(a), on_device(b), out=small)
    close(small, a * b)
    wide = torch.empty(2, 3, dtype=torch.float64, device=DEVICE)
    torch.add(on_device(a), on_device(b), out=wide)
    close(wide, (a + b).double())
    overlapping = on_device(torch.arange(6.0))
    torch.add(overlapping[:5], 1, out=overlapping[1:])
    assert overlapping.cpu().tolist() == [0, 1, 2, 3, 4, 5]


def test_in_place_forms():
    x = torch.randn(3, 4)
    d = on_device(x)
    same = d
    for step in (
        lambda t: t.add_(1),
        lambda t: t.mul_(t),
        lambda t: t.clamp_(0.1, 2.0),
        lambda t: t.sqrt_(),
        lambda t: t.masked_fill_(t > 1, 0.5),
        lambda t: t.zero_(),
        lambda t: t.fill_(3),
        lambda t: t.addcmul_(t, t, value=0.5),
    ):
        step(d), step(x)
        close(d, x)
    assert same is d
    with pytest.raises(RuntimeError, match="can't be cast"):
        on_device(torch.ones(2, dtype=torch.int64)).add_(0.5)


def test_masks_and_indices():
    x = torch.randn(4, 5)
    d = on_device(x)
    mask = x > 0
    close(d[on_device(mask)], x[mask])
    close(d[mask], x[mask])
    close(d.nonzero(), x.nonzero())
    close(d[on_device(torch.tensor([2, 0]))], x[[2, 0]])
    close(d[:, torch.tensor([1, 1])], x[:, [1, 1]])
    d[on_device(mask)] = 0.0
    x[mask] = 0.0
    close(d, x)
    d[on_device(torch.tensor([0, 3])), on_device(torch.tensor([1, 2]))] += 2
    x[torch.tensor([0, 3]), torch.tensor([1, 2])] += 2
    close(d, x)


def test_complex_numbers():
    x = torch.randn(3, 4, dtype=torch.complex64)
    d = on_device(x)
    close(d.conj(), x.conj())
    close(d.conj() * d, x.conj() * x)
    close(torch.view_as_real(d), torch.view_as_real(x))
    close(d.imag, x.imag)
    close(d.conj().imag + 1, x.conj().imag + 1)


def test_tensors_of_two_devices_are_refused():
    d = on_device(torch.ones(3))
    with pytest.raises((RuntimeError, ValueError)):
        d + torch.ones(3)


# -- what went wrong in bridges of others ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["allow"])
def test_what_runs_on_the_cpu_fills_its_results(policy):
    x = torch.randn(5, 3)
    with tenon.fallback(policy):
        close(
            torch.linalg.qr(on_device(x))[1].abs(),
            torch.linalg.qr(x)[1].abs(),
            rtol=1e-4,
            atol=1e-4,
        )
        out = torch.empty(0, device=DEVICE)
        torch.cummax(on_device(x), 0, out=(out, torch.empty(0, dtype=torch.int64, device=DEVICE)))
        close(out, torch.cummax(x, 0)[0])
        close(torch.histc(on_device(x), 4), torch.histc(x, 4))


def test_the_cpu_is_denied_by_the_name_of_the_call():
    x = on_device(torch.randn(4, 4))
    with tenon.fallback("deny"):
        with pytest.raises(tenon.PolicyError, match=r"\[aten::histc.*histc=allow"):
            torch.histc(x, 4)
    with tenon.fallback(f"deny,{DEVICE}:histc=allow"):
        torch.histc(x, 4)
    counted = tenon.torch.report().device
    assert counted.on_cpu["aten::histc"] >= 1 and counted.copied_bytes >= 64
    assert "aten::histc" in str(tenon.torch.report())


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_move(momentum):
    torch.manual_seed(0)
    ours, theirs = (
        nn.BatchNorm2d(3, momentum=momentum).to(DEVICE),
        nn.BatchNorm2d(3, momentum=momentum),
    )
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5)
        close(ours(on_device(x)), theirs(x), rtol=1e-4, atol=1e-5)
    close(ours.running_mean, theirs.running_mean)
    close(ours.running_var, theirs.running_var)
    assert ours.num_batches_tracked.item() == 3
    x = torch.randn(4, 3, 5, 5)
    close(ours.eval()(on_device(x)), theirs.eval()(x), rtol=1e-4, atol=1e-5)


def test_gradients_of_views():
    x = torch.randn(4, 6)
    functions = [
        lambda t: (t[1:3, ::2] * t[0, :3]).sum(),
        lambda t: t.t().reshape(3, 8).pow(2).sum(),
        lambda t: t.unfold(1, 3, 1).mul(2).sum(),
        lambda t: t.expand(2, 4, 6).mean(),
        lambda t: (t.diagonal() * 3).sum(),
        lambda t: torch.cat([t, t[:1]]).cumsum(0).sum(),
        lambda t: t[torch.tensor([0, 0, 2])].square().sum(),
        lambda t: t.masked_fill(t > 0, 0).square().sum(),
        lambda t: t.as_strided((2, 2), (1, 6)).sum(),
    ]
    for function in functions:
        ours, theirs = on_device(x).requires_grad_(), x.clone().requires_grad_()
        function(ours).backward(), function(theirs).backward()
        close(ours.grad, theirs.grad)


def test_writes_in_place_are_seen_by_gradients():
    x = torch.randn(3, 4)
    results = []
    for t in (on_device(x), x.clone()):
        leaf = t.requires_grad_()
        y = leaf * 2
        y[1] = 0
        y.t()[0].mul_(3)
        (y * y).sum().backward()
        results.append(leaf.grad.cpu())
    close(results[0], results[1])
    leaf = on_device(x).requires_grad_()
    y = leaf.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_shallow_copies():
    x = torch.randn(3, 4)
    parameter = nn.Parameter(on_device(x))
    twin = copy.deepcopy(parameter)
    with torch.no_grad():
        twin.zero_()
    close(parameter.detach(), x)
    detached = parameter.detach()
    with torch.no_grad():
        detached.add_(1)
    close(parameter.detach(), x + 1)
    parameter.data = on_device(x)
    close(parameter.detach(), x)
    layer = nn.Linear(4, 2)
    layer.twin = nn.Linear(4, 2)
    layer.twin.weight = layer.weight
    weight = layer.weight
    layer.to(DEVICE)
    assert layer.twin.weight is layer.weight
    assert layer.weight is weight and weight.device.type == DEVICE
    layer.cpu()
    assert layer.weight.device.type == "cpu"


def test_kinds_of_shapes_do_not_share_what_was_learned():
    for shape in ((4, 6), (2, 3), (5, 1), (0, 3)):
        x = torch.randn(shape)
        close(torch.nn.functional.pad(on_device(x), (1, 2)), torch.nn.functional.pad(x, (1, 2)))
        close(on_device(x).sum(0), x.sum(0))
        close(torch.softmax(on_device(x), -1), torch.softmax(x, -1))
        close(on_device(x).var(0, correction=0), x.var(0, correction=0))


# -- generators -----------------------------------------------------------------------------------------------


def test_seeds_give_numbers_again():
    def draw():
        return torch.cat(
            [
                torch.rand(5, device=DEVICE),
                torch.randn(5, device=DEVICE),
                torch.empty(5, device=DEVICE).exponential_(2.0),
                torch.randint(0, 9, (5,), device=DEVICE).float(),
                torch.bernoulli(torch.full((5,), 0.5, device=DEVICE)),
                torch.randperm(5, device=DEVICE).float(),
            ]
        ).cpu()

    torch.manual_seed(3)
    first = draw()
    state = torch.toy.get_rng_state()
    second = draw()
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(draw(), first)
    torch.toy.set_rng_state(state)
    assert torch.equal(draw(), second)


def test_a_generator_of_ones_own():
    torch.manual_seed(5)
    default = torch.rand(4, device=DEVICE)
    generator = torch.Generator(device=DEVICE).manual_seed(7)
    torch.manual_seed(5)
    a = torch.rand(4, device=DEVICE, generator=generator)
    assert torch.equal(torch.rand(4, device=DEVICE).cpu(), default.cpu())
    b = torch.rand(4, device=DEVICE, generator=generator)
    generator.manual_seed(7)
    assert torch.equal(torch.rand(4, device=DEVICE, generator=generator).cpu(), a.cpu())
    assert torch.equal(torch.rand(4, device=DEVICE, generator=generator).cpu(), b.cpu())
    with pytest.raises((ValueError, RuntimeError)):
        torch.rand(4, device=DEVICE, generator=torch.Generator())


def test_dropout_drops_and_scales():
    torch.manual_seed(0)
    x = torch.ones(2000, device=DEVICE, requires_grad=True)
    y = nn.functional.dropout(x, 0.25)
    y.sum().backward()
    kept = (y.detach() != 0).float().mean().item()
    assert 0.7 < kept < 0.8
    assert torch.equal(x.grad.cpu(), y.detach().cpu())


# -- streams, the accelerator, checkpoints --------------------------------------------------------------------


def test_the_accelerator_is_found():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == DEVICE
    assert torch.accelerator.device_count() == torch.toy.device_count() == 2
    torch.accelerator.synchronize()
    with torch.toy.device(1):
        assert torch.empty(1, device=DEVICE).device.index == 1
    assert torch.empty(1, device=DEVICE).device.index == 0
    with pytest.raises(IndexError, match="0 to 1, got 5"):
        torch.empty(1, device=f"{DEVICE}:5")


def test_streams_and_events():
    stream = torch.Stream(device=DEVICE)
    event = torch.Event(device=DEVICE)
    x = torch.randn(64)
    with stream:
        y = on_device(x) * 2
        event.record(stream)
    event.synchronize()
    assert event.query()
    stream.synchronize()
    close(y, x * 2)


def test_checkpoints():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    x = on_device(torch.randn(5, 3))
    model(x).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "x": x[1:]}, file)
    file.seek(0)
    read = torch.load(file)
    assert read["x"].device.type == DEVICE and torch.equal(read["x"].cpu(), x[1:].cpu())
    twin = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(DEVICE)
    twin.load_state_dict(read["model"])
    assert torch.equal(twin(x).cpu(), model(x).cpu())
    file.seek(0)
    host = torch.load(file, map_location="cpu")
    close(model[0].weight.detach(), host["model"]["0.weight"])


# -- registration ---------------------------------------------------------------------------------------------


def test_a_second_kind_is_refused():
    assert tenon.torch.device.register(DEVICE) is torch.toy
    with pytest.raises(RuntimeError, match="one kind of device in a process, got 'cpu'"):
        tenon.torch.device.register("cpu")


def test_kinds_and_names_are_checked_before_anything_is_built():
    program = """
import tenon, torch
for arguments, kind in ((("nowhere",), Exception), (("cpu:0",), ValueError)):
    try:
        tenon.torch.device.register(*arguments)
    except kind as error:
        print(type(error).__name__, error)
try:
    tenon.torch.device.register("cpu", name="nn")
except ValueError as error:
    print(error)
torch.utils.rename_privateuse1_backend("other")
try:
    tenon.torch.device.register("cpu")
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "nowhere" in lines[0]
    assert "expected a kind of devices, such as 'cpu', got 'cpu:0'" in lines[1]
    assert "expected a name that PyTorch has not, got 'nn'" in lines[2]
    assert "got 'other', which another package has registered" in lines[3]


def test_a_program_may_end_right_behind_a_backward_pass():
    """The threads of PyTorch's engine have ended before the interpreter ends."""
    program = """
import os, tenon, torch
tenon.plugins.load(os.environ["TENON_TEST_PLUGINS"].split(":")[0])
tenon.torch.device.register("toy")
torch.nn.Linear(8, 1).to("toy")(torch.randn(4, 8).to("toy")).sum().backward()
"""
    runs = [
        subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
        for _ in range(6)  # at once, so that threads wait for processors
    ]
    assert [run.communicate(timeout=300)[1] for run in runs] == [""] * 6
    assert [run.returncode for run in runs] == [0] * 6
