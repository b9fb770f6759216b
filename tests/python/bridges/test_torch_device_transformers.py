# SPDX-License-Identifier: Apache-2.0
"""A small model of transformers on the device: losses of a loop beside the CPU's."""

import warnings

import pytest
from torch_device_setup import DEVICE, registered, torch

transformers = pytest.importorskip("transformers", exc_type=ImportError)
registered()


def model_and_tokens():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=2,
        vocab_size=64,
        n_positions=16,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    model = transformers.GPT2LMHeadModel(config)
    return model, [torch.randint(0, 64, (4, 12)) for _ in range(20)]


def losses(device):
    model, batches = model_and_tokens()
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    found = []
    for tokens in batches:
        loss = model(input_ids=tokens.to(device), labels=tokens.to(device)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_losses_are_those_of_the_cpu():
    torch.testing.assert_close(
        torch.tensor(losses(DEVICE)), torch.tensor(losses("cpu")), rtol=2e-4, atol=2e-5
    )
