# SPDX-License-Identifier: Apache-2.0
"""Rows of parameter servers on every device; tests/distributed has the rest."""

import pytest
import tenon
from devices import DEVICES
from tenon import optim
from tenon.distributed import ps


@pytest.mark.parametrize("device", DEVICES)
def test_rows_arrive_on_the_device_of_ids(device):
    def work():
        table = ps.Table("t", 2, optim.SGD, lr=1.0, initial_range=0.0)
        rows = ps.DistributedEmbedding(2, table)(tenon.tensor([1, 2, 1], device=device))
        assert rows.device.type == device and tuple(rows.shape) == (3, 2)
        rows.sum().backward()
        return table.pull(tenon.tensor([1, 2])).tolist()

    with ps.local(1, servers=2) as job:
        assert job.run(work) == [[[-2.0, -2.0], [-1.0, -1.0]]]
