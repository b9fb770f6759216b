# SPDX-License-Identifier: Apache-2.0
"""Training by torch.compile with Tenon's backend: losses of twenty steps, and what steps write, beside eager PyTorch."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

import tenon  # noqa: E402

nn = torch.nn
STEPS = 20
MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}


def model(inputs: Callable[[], Any]) -> Callable[[Callable[[], Any]], None]:
    def keep(make: Callable[[], Any]) -> None:
        MODELS[make.__name__] = (make, inputs)

    return keep


@model(lambda: torch.randn(8, 16))
def perceptron():
    return nn.Sequential(
        nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 5)
    )


@model(lambda: torch.randn(8, 16))
def dropout():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 5))


@model(lambda: torch.randn(2, 1, 28, 28))
def lenet():
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 5)),
    )


class Block(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(out)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(out)
        self.down = nn.Conv2d(channels, out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.down(x))


@model(lambda: torch.randn(4, 3, 16, 16))
def residual():
    return nn.Sequential(
        *(
            nn.Conv2d(3, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        ),
        *(Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)),
    )


class Gpt(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(32, 16), nn.Embedding(8, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 32, bias=False)

    def forward(self, x):
        length = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        h = self.tokens(x) + self.positions(torch.arange(length))
        return self.head(self.norm(self.block(h, src_mask=mask, is_causal=True))).flatten(0, 1)


@model(lambda: torch.randint(0, 32, (2, 8)))
def gpt():
    return Gpt()


class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


@model(lambda: torch.randn(4, 6, 8))
def lstm():
    return Recurrent()


def losses(net: Any, step: Callable[..., Any], x: Any, optimizer: Any) -> list[float]:
    torch.manual_seed(1)
    target = torch.randint(0, 5, (len(step(x)),))
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(step(x), target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("optimizer", "rate"), [("SGD", 1e-2), ("Adam", 1e-3)])
def test_losses_of_twenty_steps(name, optimizer, rate):
    torch.manual_seed(0)
    torch._dynamo.reset()
    make, inputs = MODELS[name]
    net, x = make(), inputs()
    other = copy.deepcopy(net)
    choose = getattr(torch.optim, optimizer)
    expected = losses(net, net, x, choose(net.parameters(), lr=rate))
    assert expected[-1] < expected[0] or name == "dropout"
    step = torch.compile(other, backend=tenon.torch.backend)
    got = losses(other, step, x, choose(other.parameters(), lr=rate))
    assert got == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert sum(report.programs > 0 for report in tenon.torch.report()[-2:]) == 2
    for buffer, one in zip(other.buffers(), net.buffers(), strict=True):
        torch.testing.assert_close(buffer, one, rtol=1e-2, atol=1e-3)


def test_gradients_of_inputs_and_parameters():
    net = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Softmax(-1), nn.Linear(8, 1))
    step = torch.compile(net, backend=tenon.torch.backend, options={"fallback": "deny"})
    found = []
    for function in (net, step):
        torch.manual_seed(0)
        x = torch.randn(3, 4, requires_grad=True)
        net.zero_grad()
        function(x).square().mean().backward()
        found.append([x.grad, *(parameter.grad.clone() for parameter in net.parameters())])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


def test_gradients_of_many_sizes():
    net = nn.Linear(4, 2)
    step = torch.compile(net, backend=tenon.torch.backend, dynamic=True)
    for batch in (2, 5, 3):
        gradients = []
        x = torch.randn(batch, 4)
        for function in (net, step):
            net.zero_grad()
            function(x).sin().sum().backward()
            gradients.append(net.weight.grad.clone())
        torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-5)


def test_calls_of_backward_passes_are_refused_by_name_where_asked():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    step = torch.compile(net, backend=tenon.torch.backend, options={"fallback": "deny"})
    with pytest.raises(Exception, match="convolution_backward: it is of a backward pass"):
        step(torch.randn(1, 1, 5, 5)).sum().backward()
