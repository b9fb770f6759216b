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
@pytest.mark.parametrize("pin_memory", [False, True])
def test_batches_are_copied_ahead(device, workers, pin_memory):
    if device == "reference":
        reference_plugin.load()
    loader = data.DataLoader(Pairs(), 2, num_workers=workers, device=device, pin_memory=pin_memory)
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


def test_pinned_memory_changes_nothing_without_a_device():
    plain, pinned = (list(data.DataLoader(Pairs(), 2, pin_memory=pin)) for pin in (False, True))
    assert str(plain) == str(pinned)
    with pytest.raises(ValueError, match="pinned: expected the device that copies from it"):
        tenon.memory.pinned([4])


def test_pinned_memory_of_the_host_is_ordinary():
    x = tenon.memory.pinned([2, 3], "int32", "cpu")
    assert x.shape == (2, 3) and x.dtype == tenon.int32 and x.device.type == "cpu"


@reference_plugin.needs_reference
def test_pinned_memory_outlives_copies_from_it():
    reference_plugin.load()
    stream = tenon.Stream("reference")
    copies = []
    for number in range(20):
        x = tenon.memory.pinned([1 << 16], device="reference")
        assert x.device.type == "cpu" and x.dtype == tenon.float32
        x.fill_(float(number))
        with stream:
            copies.append(x.to("reference"))
        del x  # waits for the copy
    stream.synchronize()
    assert [copy.max().item() for copy in copies] == [copy.min().item() for copy in copies]
    assert [copy.max().item() for copy in copies] == list(map(float, range(20)))
    assert tenon.memory.pinned([0], device="reference").numel() == 0


@reference_plugin.needs_reference
def test_a_loader_keeps_its_pinned_memory(monkeypatch):
    reference_plugin.load()
    made, pinned = [], tenon.memory.pinned
    monkeypatch.setattr(
        tenon.memory, "pinned", lambda *args: made.append(args[0][0]) or pinned(*args)
    )
    loader = data.DataLoader(Pairs(), 1, device="reference", pin_memory=True)
    assert len(list(loader)) == 7
    # Rows and a number of at most three batches: in use, being copied, and being read.
    assert len(made) <= 6 and set(made) == {4096}
