# SPDX-License-Identifier: Apache-2.0
"""Batches that a DataLoader copies to a device."""

import collections

import pytest
import reference_plugin
import tenon
from tenon import data

Pair = collections.namedtuple("Pair", "rows rest")


class Pairs(data.Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, index):
        return Pair(tenon.full([1000], float(index)), {"name": str(index), "list": (index,)})


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("reference", marks=reference_plugin.needs_reference)],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_copied_ahead(device, workers):
    if device == "reference":
        reference_plugin.load()
    loader = data.DataLoader(Pairs(), 2, num_workers=workers, device=device)
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == 4 and loader.state_dict()["batches"] == 0
        for number, batch in enumerate(batches):
            assert isinstance(batch, Pair) and batch.rows.device.type == device
            expected = [float(n) for n in range(2 * number, min(7, 2 * number + 2))]
            assert batch.rows.sum(1).tolist() == [1000 * value for value in expected]
            assert batch.rest["list"][0].device.type == device
            assert batch.rest["name"] == [str(int(value)) for value in expected]
    batches = iter(loader)
    next(batches)
    assert loader.state_dict()["batches"] == 1, "what is ahead has not been given out"
    batches.close()
