# SPDX-License-Identifier: Apache-2.0
"""The report of who holds the memory of a device."""

import gc
import sys
import types

import pytest
import tenon
from tenon import nn
from tenon.runtime import memory


class Cache:
    def __init__(self):
        self.items = [tenon.ones([501, 500])]
        self.one = tenon.ones([502, 500])


def holders_of(report, shape):
    (found,) = [each for each in report.holdings if shape in each.tensors]
    return found.holders


@pytest.fixture(autouse=True)
def _without_collections(frozen_heap):
    """A report that finds itself among the holders until the next collection would be found out. Each piece of memory
    costs walks over all objects that are not frozen."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_holders_are_named(monkeypatch):
    cache, net = Cache(), nn.Linear(303, 301)
    module = types.ModuleType("a_module")
    module.KEPT = tenon.zeros([1000, 999])
    monkeypatch.setitem(sys.modules, "a_module", module)
    by_name = {"table": tenon.ones([503, 500])}

    def close(inner=None):
        closed = tenon.ones([504, 500])
        return lambda: closed

    function = close()
    big = tenon.rand(2001, 500)
    part = big[:10]
    net(tenon.rand(4, 303)).sum().backward()
    report = memory.holders(top=40)
    assert holders_of(report, "float32[1000, 999]") == ("global `KEPT` of a_module",)
    assert holders_of(report, "float32[501, 500]") == (
        "an element of a list: attribute `items` of Cache",
    )
    assert holders_of(report, "float32[502, 500]") == ("attribute `one` of Cache",)
    assert holders_of(report, "float32[503, 500]")[0].startswith("item 'table' of a dict")
    assert holders_of(report, "float32[504, 500]") == (
        "a variable that an inner function closes over",
    )
    names = holders_of(report, "float32[2001, 500]")
    assert {name.split("(")[0] for name in names} == {
        "`big` in test_holders_are_named ",
        "`part` in test_holders_are_named ",
    }
    assert "float32[10, 500]" in next(
        each.tensors for each in report.holdings if "float32[2001, 500]" in each.tensors
    )
    weights = [each for each in report.holdings if "float32[301, 303]" in each.tensors]
    assert {each.holders for each in weights} == {
        ("attribute `weight` of Linear",),
        ("the gradient of attribute `weight` of Linear",),
    }
    assert report.seen <= report.in_use and part is not None and function and by_name and cache


def test_what_a_backward_pass_has_saved_is_the_rest():
    before = memory.holders(top=1)
    y = tenon.rand(500, 1000).requires_grad_().exp().sin()
    after = memory.holders(top=1)
    grown = (after.in_use - after.seen) - (before.in_use - before.seen)
    assert grown >= 500 * 1000 * 4  # the result of exp, which both gradients need
    assert "that no object of Python holds: saved for backward passes" in str(after)
    assert after.holdings[0].bytes >= y.nbytes and len(after.holdings) == 1
