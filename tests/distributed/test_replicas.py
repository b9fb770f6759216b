# SPDX-License-Identifier: Apache-2.0
"""Plain tensors beside sharded ones have to be the same on all ranks: with TENON_CHECK_REPLICAS=1 ranks compare them."""

import pytest
from ranks import Processes

PROGRAM = """
    from tenon.distributed import Shard
    dist.init_process_group(timeout=30)
    mesh = dist.init_device_mesh("cpu", (size,))
    x = dist.distribute_tensor(tenon.ones([4, 4]), mesh, [Shard(0)])
    same, differs = tenon.arange(4).to(tenon.float32), tenon.full([4], float(rank))
    print((x * same).full_tensor().sum().item())
    print((x + tenon.arange(16).reshape([4, 4]).to(tenon.float32).T).full_tensor().sum().item())
    try:
        print((x * differs).full_tensor().sum().item())
    except RuntimeError as error:
        print(error)
    print((x * same).full_tensor().sum().item())  # ranks are where they were
    y = x.detach().requires_grad_()
    (y * same).sum().backward()
    print((y.grad.full_tensor() if isinstance(y.grad, dist.DTensor) else y.grad).sum().item())
"""


@pytest.mark.parametrize("word", ["1", "0"])
def test_plain_tensors_that_differ_are_told(word):
    with Processes(2, PROGRAM, TENON_CHECK_REPLICAS=word) as processes:
        for output, errors in processes.finish():
            first, second, third, fourth, last = output.splitlines() or [errors] * 5
            assert (first, second, fourth, last) == ("24.0", "136.0", "24.0", "24.0"), errors
            if word == "1":
                assert third.startswith(
                    "[multiply] of sharded tensors: expected plain tensors beside them that are the same"
                )
                assert (
                    "got different ones, of shape (4,) here; make them with distribute_tensor()"
                    in third
                )
            else:
                assert float(third) >= 0  # believed
