# SPDX-License-Identifier: Apache-2.0
"""Training steps of Tenon and PyTorch, which name modules and optimisers alike."""

from __future__ import annotations

import contextlib
import importlib


def parts(library, work, values, device="cpu"):
    """The library, its layers, and the model, which starts from those values on the device."""
    module, nn = importlib.import_module(library), importlib.import_module(f"{library}.nn")
    model = work.model(nn)
    for name, parameter in model.named_parameters():
        parameter.data = module.tensor(values[name])
    model.to(device)
    return module, nn, model


def region(library, module, work, device="cpu"):
    """What a forward pass runs in."""
    if not work.autocast:
        return contextlib.nullcontext()
    if library == "torch":
        return module.autocast(device, dtype=module.bfloat16)
    return module.amp.autocast()


def training_step(library, work, values, x, target, device="cpu"):
    module, nn, model = parts(library, work, values, device)
    optim = importlib.import_module(f"{library}.optim")
    optimizer = getattr(optim, work.optimizer)(model.parameters(), **work.options)
    loss_of = nn.CrossEntropyLoss() if isinstance(work.target, int) else nn.MSELoss()
    x, target = module.tensor(x).to(device), module.tensor(target).to(device)

    def step():
        with region(library, module, work, device):
            loss = loss_of(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def forward_step(library, work, values, x, _threads):
    module, _, model = parts(library, work, values)
    x = module.tensor(x)
    model.eval()

    def step():
        with module.no_grad():
            return model(x)

    return step
