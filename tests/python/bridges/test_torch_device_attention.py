# SPDX-License-Identifier: Apache-2.0
"""Attention of one operator on PyTorch's device, with its gradients, beside the CPU's; and memory that is pinned."""

import pytest
import tenon
from torch_device_setup import DEVICE, registered, torch

registered()
F = torch.nn.functional
FUSED = "_scaled_dot_product_fused_attention_overrideable"


def told():
    """How often attention was told as one operator, forwards and backwards."""
    counted = tenon.torch.report().device.operators
    return counted[FUSED], counted[f"{FUSED}_backward"]


def outcome(device, tensors, mask, **settings):
    leaves = [each.detach().to(device).requires_grad_() for each in tensors]
    bias = None if mask is None else mask.detach().to(device)
    if bias is not None and bias.is_floating_point():
        leaves.append(bias.requires_grad_())
    out = F.scaled_dot_product_attention(*leaves[:3], bias, **settings)
    (out * torch.linspace(0.5, 1.5, out.shape[-1], device=device)).sum().backward()
    return [out.detach().cpu(), *(each.grad.cpu() for each in leaves)]


MASKS = {
    "none": lambda: (None, {}),
    "causal": lambda: (None, {"is_causal": True}),
    "scaled": lambda: (None, {"scale": 0.3}),
    "boolean": lambda: (torch.rand(2, 1, 5, 6) > 0.3, {}),
    "blind row": lambda: (torch.arange(5)[:, None].expand(5, 6) > 0, {}),
    "added": lambda: (torch.randn(2, 3, 5, 6), {}),
    "added to all": lambda: (torch.randn(5, 6), {}),
    "of heads": lambda: (torch.randn(1, 3, 1, 6), {"scale": 0.5}),
}


@pytest.mark.parametrize("name", MASKS)
def test_values_and_gradients_are_those_of_the_cpu(name):
    torch.manual_seed(0)
    tensors = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4), torch.randn(2, 3, 6, 7)
    mask, settings = MASKS[name]()
    before = told()
    ours = outcome(DEVICE, tensors, mask, **settings)
    assert all(now >= then for now, then in zip(told(), before, strict=True))
    theirs = outcome("cpu", tensors, mask, **settings)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_it_is_one_operator_and_others_are_taken_apart():
    torch.manual_seed(0)
    before = told()
    shape = 1, 2, 9, 11  # no other test has it
    outcome(DEVICE, [torch.randn(shape) for _ in range(3)], None)
    assert told() == (before[0] + 1, before[1] + 1)
    for tensors, settings in (
        ([torch.randn(2, 9, 11)] * 3, {}),
        ([torch.randn(shape)] * 3, {"dropout_p": 0.5}),
        ([torch.randn(1, 4, 9, 8)] + [torch.randn(1, 2, 9, 8)] * 2, {"enable_gqa": True}),
        ([torch.randn(2, 2, 3, 8)] + [torch.randn(1, 2, 3, 8)] * 2, {}),
    ):
        ours = outcome(DEVICE, tensors, None, **settings)
        if not settings.get("dropout_p"):
            for one, other in zip(ours, outcome("cpu", tensors, None, **settings), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert told() == (before[0] + 1, before[1] + 1)


def test_a_program_may_take_it_apart_and_differentiate_twice():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 4, 3)
    before, found = told(), []
    for device in (DEVICE, "cpu"):
        leaf = x.detach().to(device).requires_grad_()
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            out = F.scaled_dot_product_attention(leaf, leaf, leaf)
        (grad,) = torch.autograd.grad(out.square().sum(), leaf, create_graph=True)
        grad.square().sum().backward()
        found.append(leaf.grad.cpu())
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-4)
    assert told() == before


def test_inputs_that_lie_otherwise_and_half_precision():
    torch.manual_seed(0)
    rows = torch.randn(2, 5, 3, 3, 4)  # batch, length, of which, heads, features

    def run(device, dtype):
        leaf = rows.detach().to(device, dtype).requires_grad_()
        q, k, v = (each.transpose(1, 2) for each in leaf.unbind(2))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        out.transpose(1, 2).reshape(2, 5, 12).square().sum().backward()
        return out.detach().cpu(), leaf.grad.cpu()

    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
        for one, other in zip(run(DEVICE, dtype), run("cpu", dtype), strict=True):
            torch.testing.assert_close(one, other, rtol=tolerance * 10, atol=tolerance)


def test_multihead_attention_trains():
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    twin = torch.nn.MultiheadAttention(8, 2, batch_first=True).to(DEVICE)
    twin.load_state_dict(layer.state_dict())
    x = torch.randn(2, 5, 8)
    for one, device in ((layer, "cpu"), (twin, DEVICE)):
        y = x.to(device)
        one(y, y, y, need_weights=False)[0].square().sum().backward()
    for ours, theirs in zip(twin.parameters(), layer.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-5)


# -- pinned memory --------------------------------------------------------------------------------------------


def test_pinned_or_ordinary_memory_is_copied_alike():
    x = torch.arange(12.0).reshape(3, 4)
    kept = x.pin_memory()
    assert kept.device.type == "cpu" and torch.equal(kept, x)
    for part in (kept, kept[1:, ::2], kept.t(), kept[:0]):
        for non_blocking in (False, True):
            d = part.to(DEVICE, non_blocking=non_blocking)
            torch.testing.assert_close(d.cpu(), part)
    back = torch.empty(3, 4).pin_memory()
    back.copy_(kept.to(DEVICE) * 2, non_blocking=True)
    torch.accelerator.synchronize()
    torch.testing.assert_close(back, x * 2)
    assert isinstance(torch.empty(2).pin_memory().is_pinned(), bool)
    assert not x.is_pinned()


def test_loaders_pin_their_batches():
    data = torch.utils.data.TensorDataset(torch.arange(10.0))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    found = [batch.to(DEVICE, non_blocking=True).cpu() for (batch,) in loader]
    assert torch.cat(found).tolist() == list(range(10))


def test_memory_of_the_device_is_not_pinned():
    with pytest.raises(ValueError, match="pin_memory=False"):
        torch.empty(2, device=DEVICE, pin_memory=True)
