# SPDX-License-Identifier: Apache-2.0
"""What tensors without data would take is counted while they, or views of them, live."""

import gc

import tenon


def in_use():
    return tenon.memory.stats("meta")["current"]


def test_tensors_and_their_views():
    gc.collect()
    before = in_use()
    x = tenon.empty([1024, 256], device="meta")
    assert in_use() - before == x.nbytes == 1 << 20
    y, z = x[10:], x.reshape([-1]).detach()
    assert in_use() - before == 1 << 20
    del x, y
    assert in_use() - before == 1 << 20  # of the view that is left
    del z
    assert in_use() == before
    tenon.empty([0, 5], device="meta")
    assert in_use() == before


def test_results_and_what_autograd_saves():
    gc.collect()
    before = in_use()
    x = tenon.empty([1000], device="meta").requires_grad_()
    tenon.memory.reset_peak("meta")
    y = (x * 2.0).exp()
    assert in_use() - before >= 2 * 4000  # x, the result, and what the backward pass reads
    y.sum().backward()
    assert tenon.memory.stats("meta")["peak"] - before >= 3 * 4000
    del y
    assert in_use() - before == 2 * 4000  # x and its gradient
    x.grad = None
    assert in_use() - before == 4000


def test_a_tensor_gets_the_memory_of_another():
    gc.collect()
    before = in_use()
    x, y = tenon.empty([1000], device="meta"), tenon.empty([1000], device="meta")
    x.data = y
    del y
    assert in_use() - before in (4000, 8000)
    del x
    assert in_use() == before


def test_memory_and_none_are_exchanged():
    gc.collect()
    before = in_use()
    x = tenon.empty([1000], device="meta")
    x.data = tenon.ones([1000])
    assert in_use() == before
    x.data = tenon.empty([500], device="meta")
    assert in_use() - before == 2000
    x.data = tenon.empty([0], device="meta")
    assert in_use() == before
    layer = tenon.nn.Linear(10, 20).to("meta")
    assert in_use() - before == 4 * 220
    del layer
    gc.collect()
    assert in_use() == before
