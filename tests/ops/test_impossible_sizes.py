# SPDX-License-Identifier: Apache-2.0
"""Results that no memory holds are refused at once, before their elements are counted."""

import pytest
import tenon

RESIZING = {
    "adaptive_avg_pool2d": tenon.adaptive_avg_pool2d,
    "adaptive_max_pool2d": tenon.adaptive_max_pool2d,
    "nearest": tenon.interpolate2d,
    "bilinear": lambda x, size: tenon.interpolate2d(x, size, "bilinear"),
}


@pytest.mark.parametrize("name", RESIZING)
def test_images_of_impossible_size(name):
    x = tenon.ones((1, 2, 9, 6))
    with pytest.raises(ValueError, match="has too many elements"):
        RESIZING[name](x, [2**40, 2**40])
    for size in ([2**45, 1], [3, 2**45]):
        with pytest.raises(tenon.OutOfMemoryError, match="out of memory: requested"):
            RESIZING[name](x, size)


@pytest.mark.parametrize("name", RESIZING)
def test_images_that_grow(name):
    assert tuple(RESIZING[name](tenon.ones((1, 2, 9, 6)), [20, 13]).shape) == (1, 2, 20, 13)


@pytest.mark.parametrize("factor", [0, 3, -(2**63), 2**63 - 1, 2**40])
def test_factors_that_overflow_extents(factor):
    """Arithmetic of extents saturates, so that no product of them fits by accident."""
    for shuffle in (tenon.pixel_shuffle, tenon.pixel_unshuffle):
        with pytest.raises(ValueError, match=r"\] > \[reshape\] expected a shape of 192 elements"):
            shuffle(tenon.ones((2, 4, 4, 6)), factor)


@pytest.mark.parametrize("count", [2**62, 2**63 - 1])
def test_repetitions_that_overflow_extents(count):
    for call in (
        lambda: tenon.tile(tenon.ones((2, 4)), [count, 4]),
        lambda: tenon.repeat(tenon.ones((2, 4)), count),
        lambda: tenon.repeat(tenon.ones((2, 4)), count, axis=0),
    ):
        with pytest.raises(ValueError, match="has too many elements"):
            call()
