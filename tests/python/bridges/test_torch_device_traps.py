# SPDX-License-Identifier: Apache-2.0
"""What other devices of PyTorch got wrong, by the names of those reports; others are in test_torch_device.py."""

import warnings

import pytest
import tenon
from torch_device_setup import DEVICE, registered, torch

registered()


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), tenon.fallback("allow"):
        warnings.simplefilter("ignore")
        yield


def gradients(function, *tensors):
    found = []
    for device in (DEVICE, "cpu"):
        leaves = [each.detach().to(device).requires_grad_() for each in tensors]
        function(*leaves).square().sum().backward()
        found.append([leaf.grad.cpu() for leaf in leaves])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_directml_678_backward_passes_of_what_the_cpu_computes():
    torch.manual_seed(0)
    a, b = torch.randn(4, 3), torch.randn(5, 3)
    gradients(torch.cdist, a, b)
    gradients(lambda x: torch.linalg.svdvals(x), a)
    gradients(lambda x: torch.linalg.solve(x @ x.mT + torch.eye(4, device=x.device), x), a)
    gradients(lambda x: torch.nn.functional.embedding_bag(
        torch.tensor([[0, 2], [1, 1]], device=x.device), x, mode="sum"), a)  # fmt: skip
    gradients(lambda x, w: torch.nn.functional.conv3d(x, w, stride=(1, 2, 1), padding=1),
              torch.randn(2, 3, 4, 5, 4), torch.randn(4, 3, 2, 3, 2))  # fmt: skip
    gradients(lambda x, w: torch.nn.functional.conv_transpose3d(x, w, stride=2, padding=1),
              torch.randn(2, 3, 3, 2, 3), torch.randn(3, 2, 3, 2, 3))  # fmt: skip


def test_directml_449_what_the_cpu_computes_of_views_and_writes_into_them():
    x = torch.randn(6, 4)
    d = x.to(DEVICE)
    torch.testing.assert_close(torch.histc(d.t()[1:3], 5).cpu(), torch.histc(x.t()[1:3], 5))
    values, theirs = torch.zeros(8, 4), torch.zeros(8, 4)
    ours = values.to(DEVICE)
    indices = torch.empty(0, dtype=torch.int64)
    torch.cummax(d, 0, out=(ours[1:7], indices.to(DEVICE)))
    torch.cummax(x, 0, out=(theirs[1:7], indices))
    torch.testing.assert_close(ours.cpu(), theirs)


def test_tinygrad_13709_tensors_have_storages():
    d = torch.arange(6.0, device=DEVICE)
    storage = d.untyped_storage()
    assert storage.device.type == DEVICE and storage.nbytes() == 24
    assert d[2:].untyped_storage().data_ptr() == storage.data_ptr()
    assert d[2:].storage_offset() == 2 and d.is_set_to(d.view(6))
    again = torch.empty(0, device=DEVICE).set_(storage)
    again[0] = 9
    assert d[0].item() == 9
    assert len(storage.cpu()) == 24


def test_pt_196975_results_do_not_share_memory_that_they_should_not():
    d = torch.ones(3, device=DEVICE)
    for made in (
        d.contiguous().clone(),
        d + 0,
        d.to(torch.float32, copy=True),
        d.abs(),
        d.repeat(1),
    ):
        made.zero_()
        assert d.tolist() == [1, 1, 1]
    for view in (d.contiguous(), d.view(3, 1), d.detach(), d.to(DEVICE), d.expand(2, 3)[1]):
        assert view.untyped_storage().data_ptr() == d.untyped_storage().data_ptr()
