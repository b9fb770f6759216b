# SPDX-License-Identifier: Apache-2.0
"""pack and unpack on every device: all bytes, and numbers beside and on the borders between two."""

import numpy as np
import pytest
import tenon

PACKED = (tenon.float4_e2m1_x2, tenon.int4_x2, tenon.uint4_x2)
BORDERS = np.concatenate(
    [np.arange(-20, 20, 0.25), np.arange(-20, 20, 0.25) + 1e-3, [-0.0, 1e30, -1e30]]
)
VALUES = {
    tenon.float4_e2m1_x2: [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6],
    tenon.int4_x2: [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1],
    tenon.uint4_x2: list(range(16)),
}


@pytest.mark.parametrize("packed", PACKED, ids=str)
def test_every_byte_unpacks_to_its_two_numbers(device, packed):
    every = tenon.tensor(np.arange(256, dtype=np.uint8)).to(device).bitcast(packed)
    got = tenon.unpack(every, tenon.float32).to("cpu").numpy()
    table = np.array(VALUES[packed], np.float32)
    expected = np.stack([table[np.arange(256) % 16], table[np.arange(256) // 16]], -1).reshape(-1)
    np.testing.assert_array_equal(got, expected)
    assert (np.signbit(got) == np.signbit(expected)).all()


@pytest.mark.parametrize("packed", PACKED, ids=str)
def test_numbers_become_the_nearest_one_halves_the_even_one(device, packed):
    x = np.append(BORDERS, np.nan).astype(np.float32)
    x = x if x.size % 2 == 0 else np.append(x, np.float32(0))
    got = tenon.unpack(tenon.pack(tenon.tensor(x).to(device), packed), tenon.float32)
    table = np.array(VALUES[packed], np.float32)
    for value, found in zip(x, got.to("cpu").numpy(), strict=True):
        if np.isnan(value):
            assert found == 0
            continue
        distance = np.abs(table - np.clip(np.float64(value), table.min(), table.max()))
        nearest = np.flatnonzero(
            distance == distance.min()
        )  # two: the pattern of the even one ends in 0
        even = [i for i in nearest if len(nearest) == 1 or i % 2 == 0]
        assert found in table[even], (value, found)


def test_rows_and_strides_keep_their_place(device):
    x = tenon.tensor(np.arange(48, dtype=np.float32).reshape(6, 8) % 7).to(device)
    packed = tenon.pack(x.T[::2], tenon.int4_x2)
    assert packed.shape == (4, 3)
    np.testing.assert_array_equal(
        tenon.unpack(packed).to("cpu").numpy(), x.to("cpu").numpy().T[::2].astype(np.int8)
    )
