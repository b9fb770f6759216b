# SPDX-License-Identifier: Apache-2.0
"""Training with PyTorch on a device plugin: losses of twenty steps beside those of the CPU, and a checkpoint in between."""

import copy
import math
import warnings

import pytest
import tenon
from torch_device_setup import DEVICE, registered, torch

registered()
nn = torch.nn
F = torch.nn.functional
STEPS = 20


def perceptron():
    model = nn.Sequential(
        nn.Linear(16, 32),
        nn.GELU(),
        nn.LayerNorm(32),
        nn.Linear(32, 32),
        nn.Tanh(),
        nn.Linear(32, 5),
    )
    return model, lambda: (torch.randn(8, 16), torch.randint(0, 5, (8,)))


def convolutional():
    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 8, 3, stride=2), nn.SiLU(), nn.AvgPool2d(2)),
        *(nn.ConvTranspose2d(8, 4, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5)),
    )
    return model, lambda: (torch.randn(4, 1, 14, 14), torch.randint(0, 5, (4,)))


class Block(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rest = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        batch, length, width = x.shape
        parts = (
            self.qkv(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        )
        mixed = F.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.rest(self.second(x))


class Gpt(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, words=17, width=16, length=8):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width, 2), Block(width, 2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))


def gpt():
    return Gpt(), lambda: (torch.randint(0, 17, (4, 8)), torch.randint(0, 17, (4, 8)))


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, 3e-3),
    "adamw-foreach": lambda p: torch.optim.AdamW(p, 3e-3, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3),
}


def losses(make, optimizer, device, *, clip=False):
    torch.manual_seed(1)
    model, batches = make()
    data = [batches() for _ in range(STEPS)]
    model.to(device)
    step = OPTIMIZERS[optimizer](model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(step, STEPS)
    found = []
    for x, y in data:
        result = model(x.to(device))
        loss = F.cross_entropy(result.flatten(0, -2), y.to(device).flatten())
        step.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        step.step()
        schedule.step()
        found.append(loss.item())
    return found, model.cpu().state_dict()


@pytest.mark.parametrize(
    "make, optimizer",
    [
        (perceptron, "sgd"),
        (perceptron, "rmsprop"),
        (convolutional, "sgd"),
        (convolutional, "adam"),
        (gpt, "sgd"),
        (gpt, "adamw-foreach"),
    ],
)
def test_losses_are_those_of_the_cpu(make, optimizer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, weights = losses(make, optimizer, DEVICE, clip=optimizer == "sgd")
        theirs, expected = losses(make, optimizer, "cpu", clip=optimizer == "sgd")
    assert all(map(math.isfinite, ours)) and ours[0] != ours[-1]
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=2e-4, atol=2e-5)
    if optimizer != "sgd":  # others follow the sign of gradients that are zero but for rounding
        return
    for name in expected:
        torch.testing.assert_close(weights[name], expected[name], rtol=5e-3, atol=5e-4)


def test_training_goes_on_from_a_checkpoint(tmp_path):
    torch.manual_seed(0)
    model, batches = perceptron()
    model.to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)

    def step(model, optimizer, batch):
        x, y = (each.to(DEVICE) for each in batch)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    data = [batches() for _ in range(6)]
    for batch in data[:3]:
        step(model, optimizer, batch)
    path = tmp_path / "checkpoint.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    expected = [step(model, optimizer, batch) for batch in data[3:]]
    twin, _ = perceptron()
    twin.to(DEVICE)
    other = torch.optim.AdamW(twin.parameters(), 1e-2)
    read = torch.load(path)
    twin.load_state_dict(read["model"])
    other.load_state_dict(read["optimizer"])
    assert [step(twin, other, batch) for batch in data[3:]] == expected


def test_gradients_are_accumulated_and_checkpointed():
    torch.manual_seed(0)
    model, batches = perceptron()
    twin = copy.deepcopy(model).to(DEVICE)
    x, y = batches()
    for one, device in ((model, "cpu"), (twin, DEVICE)):
        for _ in range(2):
            hidden = torch.utils.checkpoint.checkpoint(one[:3], x.to(device), use_reentrant=False)
            F.cross_entropy(one[3:](hidden), y.to(device)).backward()
    for ours, theirs in zip(twin.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers_learn_as_on_the_cpu(kind, bias):
    torch.manual_seed(0)
    layer = getattr(nn, kind)(4, 5, 2, bias=bias, batch_first=True, bidirectional=True)
    x = torch.randn(3, 6, 4)
    found = {}
    for device in ("cpu", DEVICE):
        copied = copy.deepcopy(layer).to(device)
        given = x.to(device).detach().requires_grad_()
        out, state = copied(given)
        ends = state if kind == "LSTM" else [state]
        (out.square().mean() + sum(each.sin().sum() for each in ends)).backward()
        grads = [given.grad, *(each.grad for each in copied.parameters())]
        found[device] = [each.detach().cpu() for each in (out, *ends, *grads)]
    for ours, theirs in zip(found[DEVICE], found["cpu"], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    report = tenon.torch.report().device
    assert not any("_thnn" in name for name in report.on_cpu)
