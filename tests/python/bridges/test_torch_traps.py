# SPDX-License-Identifier: Apache-2.0
"""What other bridges of PyTorch got wrong, by the names of those reports, where no other file here has a test for it.

Elsewhere: what is not persistent is read from files (test_torch_archive.py); attention and normalisation stay whole, inputs and buffers that
are written, open batches (test_torch_load.py); fallbacks, running statistics, `out=` into views, shallow copies (test_torch_device.py).
"""

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import tenon  # noqa: E402

nn, F = torch.nn, torch.nn.functional
Module: Any = nn.Module


@pytest.fixture(autouse=True)
def quiet():
    torch._dynamo.reset()
    # A device that another test has registered turns it on, and what torch.compile has traced cannot be exchanged.
    torch.__future__.set_swap_module_params_on_conversion(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def exported(model, *inputs, **options):
    return tenon.torch.load(torch.export.export(model.eval(), inputs, **options))


def compiled(model):
    return torch.compile(model, backend=tenon.torch.backend)


def close(ours, theirs):
    ours = torch.from_dlpack(ours) if isinstance(ours, tenon.Tensor) else ours
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


class Gate(Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gate", torch.tensor([0.5, 2.0]), persistent=False)

    def forward(self, x):
        return x * self.gate


def test_torch_mlir_4744_a_buffer_that_is_not_persistent_is_there():
    x = torch.randn(3, 2)
    close(exported(Gate(), x)(tenon.from_dlpack(x)), Gate()(x))
    close(compiled(Gate())(x), Gate()(x))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_tvm_18339_recurrent_layers(kind):
    layer, x = kind(4, 3, num_layers=2, bidirectional=True, batch_first=True), torch.randn(2, 5, 4)
    program = exported(layer, x)
    found = program(tenon.from_dlpack(x))
    close(found[0], layer(x)[0].detach())


def test_tvm_18574_products_and_means():
    class Net(Module):
        def forward(self, x, y):
            return torch.mm(x, y), x.mean(), x.mean(1, keepdim=True), torch.mv(x, y[:, 0])

    x, y = torch.randn(3, 4), torch.randn(4, 2)
    for ours, theirs in zip(
        exported(Net(), x, y)(tenon.from_dlpack(x), tenon.from_dlpack(y)), Net()(x, y), strict=True
    ):
        close(ours, theirs)


def test_xla_7845_constants_of_the_code():
    class Net(Module):
        def forward(self, x):
            return x + torch.tensor([1.0, 2.0]) + torch.arange(2) * torch.ones(())

    x = torch.randn(3, 2)
    close(exported(Net(), x)(tenon.from_dlpack(x)), Net()(x))
    close(compiled(Net())(x), Net()(x))


class Counter(Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        x.mul_(2)
        return x + self.count


def test_pt_108432_the_first_call_writes_once():
    model, x = Counter(), torch.ones(2)
    with torch.no_grad():
        y = compiled(model)(x)
    assert model.count.item() == 1 and x.tolist() == [2, 2] and y.tolist() == [3, 3]
    with torch.no_grad():
        compiled(model)(x)
    assert model.count.item() == 2 and x.tolist() == [4, 4]


def test_pt_104984_weights_are_read_at_each_call():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    step = compiled(model)
    close(step(x), model(x))
    with torch.no_grad():
        model.weight.mul_(3)
    close(step(x), model(x))
    model.weight.data = torch.randn(2, 3)
    close(step(x), model(x))
    model.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    close(step(x), x.sum(1, keepdim=True).expand(4, 2))
    program = exported(model, x)
    with torch.no_grad():
        model.bias.add_(5)
    close(program(tenon.from_dlpack(x)), model(x).detach())


def test_pt_114189_gradients_reach_what_each_result_depends_on():
    class Net(Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.a(x).relu(), self.b(x).tanh(), x.detach() + 1

    model, x = Net(), torch.randn(2, 3, requires_grad=True)
    one, two, rest = compiled(model)(x)
    assert one.requires_grad and two.requires_grad and not rest.requires_grad
    two.sum().backward()
    assert model.b.weight.grad.abs().sum() > 0
    assert model.a.weight.grad is None or model.a.weight.grad.abs().sum() == 0
    found, x.grad = x.grad, None
    model(x)[1].sum().backward()
    close(found, x.grad)


def test_pt_194719_gradients_lie_as_their_parameters():
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last).requires_grad_()
    compiled(model)(x).square().sum().backward()
    wanted = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    wanted.load_state_dict(model.state_dict())
    y = x.detach().clone().requires_grad_()
    wanted(y).square().sum().backward()
    close(model.weight.grad, wanted.weight.grad)
    assert model.weight.grad.stride() == wanted.weight.grad.stride()
    close(x.grad, y.grad)


def test_torchdynamo_14_truths():
    class Net(Module):
        def forward(self, x, m):
            return m & (x > 0), torch.where(m, x, -x), (~m).sum(), m.any()

    x, m = torch.randn(3, 4), torch.rand(3, 4) > 0.5
    for found in (exported(Net(), x, m)(*map(tenon.from_dlpack, (x, m))), compiled(Net())(x, m)):
        for ours, theirs in zip(found, Net()(x, m), strict=True):
            ours = torch.from_dlpack(ours) if isinstance(ours, tenon.Tensor) else ours
            assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)


def test_a_parameter_does_not_lose_its_gradient_without_a_word():
    parameter = nn.Parameter(torch.ones(2))
    with pytest.raises((BufferError, RuntimeError, ValueError), match="grad"):
        tenon.from_dlpack(parameter)
    assert tenon.from_dlpack(parameter.detach()).tolist() == [1, 1]
