# SPDX-License-Identifier: Apache-2.0
"""Nothing leaks: objects, reference counts, memory; and threads may share tensors."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
import tenon

X = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
I = tenon.tensor([0, 1])  # noqa: E741
ARRAY = np.ones(3, np.float32)


def raises(function):
    try:
        function()
    except (TypeError, ValueError, IndexError):
        return
    raise AssertionError("expected an error")


CASES = {
    "add": lambda: X + X,
    "scalar": lambda: 2 * X + 1.5,
    "keyword": lambda: tenon.sum(X, axis=[0, 1], keepdim=True),
    "several results": lambda: tenon.topk(X, 1).values,
    "list results": lambda: X.split([1, 1]),
    "many arguments": lambda: tenon.concat([X] * 50),
    "view": lambda: X[0:1],
    "element": lambda: X[0, 1],
    "advanced": lambda: X[I, None, [1, 0]],
    "mask": lambda: X[X > 2],
    "assign": lambda: X.clone().__setitem__((slice(None), [0]), 5),
    "method object": lambda: X.sum,
    "item": lambda: X.sum().item(),
    "tolist": lambda: X.tolist(),
    "attributes": lambda: (X.shape, X.dtype, X.device, X.strides, X.T),
    "iteration": lambda: [row for row in X],
    "from list": lambda: tenon.tensor([[1, 2], [3, 4]]),
    "from array": lambda: tenon.from_numpy(ARRAY),
    "to numpy": lambda: X.numpy(),
    "memoryview": lambda: memoryview(X),
    "dlpack": lambda: tenon.from_dlpack(X),
    "unused capsule": lambda: X.__dlpack__(max_version=(1, 0)),
    "repr": lambda: repr(X),
    "wrong argument": lambda: raises(lambda: tenon.add(X, [1])),
    "missing argument": lambda: raises(lambda: tenon.add(X)),
    "wrong shape": lambda: raises(lambda: X + tenon.zeros(3)),
    "wrong index": lambda: raises(lambda: X[7]),
    "out": lambda: tenon.add(X, 0, out=X),
    "in place": lambda: X.clone().add_(1),
    "subclass": lambda: type("Sub", (tenon.Tensor,), {})(X),
    "requires grad": lambda: (X.clone().requires_grad_() * 2).sum().backward(),
    "hook": lambda: X.clone().requires_grad_().register_hook(lambda grad: grad).remove(),
}


@pytest.mark.parametrize("name", CASES)
def test_reference_counts_return(name, frozen_heap):
    call = CASES[name]
    for _ in range(20):
        call()
    gc.collect()
    watched = [X, I, ARRAY, tenon.float32, tenon.add, tenon.Tensor, None]
    objects = len(gc.get_objects())
    before = [sys.getrefcount(item) for item in watched[:-1]]
    for _ in range(200):
        call()
    gc.collect()
    after = [sys.getrefcount(item) for item in watched[:-1]]
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) < 20
    assert len(gc.get_objects()) - objects < 100


def test_weak_references():
    x = tenon.tensor([1.0])
    gone = weakref.ref(x)
    assert gone() is x
    del x
    assert gone() is None


def test_memory_is_given_back():
    tenon.zeros(1)
    stats = tenon.memory.stats()
    key = next(k for k in ("current_bytes", "current") if k in stats)
    before = tenon.memory.stats()[key]
    for _ in range(100):
        x = tenon.zeros((256, 256))
        y = (x + 1)[3:].reshape(-1)
        del x, y
    assert tenon.memory.stats()[key] - before < 1 << 20


def test_threads_share_tensors():
    x = tenon.ones((300, 300))  # large enough for the GIL to be released
    results, errors = [], []

    def work(seed):
        try:
            for i in range(30):
                y = x * (seed + i) + x
                results.append(y[0, 0].item() == seed + i + 1)
                y += 1
                assert y[-1].tolist()[0] == seed + i + 2
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and all(results) and len(results) == 120
