# SPDX-License-Identifier: Apache-2.0
"""torch.signal.windows of tenon.compat.torch. SciPy is the oracle."""

import numpy as np
import pytest
import tenon
from tenon.compat import torch

scipy_windows = pytest.importorskip("scipy.signal.windows")

windows = torch.signal.windows

# Arguments here, and in SciPy.
ARGUMENTS = {
    "bartlett": ({}, ()),
    "blackman": ({}, ()),
    "cosine": ({}, ()),
    "exponential": ({"tau": 2.5}, (None, 2.5)),
    "gaussian": ({"std": 1.7}, (1.7,)),
    "general_cosine": ({"a": [0.4, 0.3, 0.2, 0.1]}, ([0.4, 0.3, 0.2, 0.1],)),
    "general_hamming": ({"alpha": 0.7}, (0.7,)),
    "hamming": ({}, ()),
    "hann": ({}, ()),
    "kaiser": ({"beta": 8.6}, (8.6,)),
    "nuttall": ({}, ()),
}


@pytest.mark.parametrize("sym", [True, False], ids=["symmetric", "periodic"])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_values(name, sym):
    ours, theirs = ARGUMENTS[name]
    for length in (0, 1, 2, 5, 16):
        got = getattr(windows, name)(length, **ours, sym=sym, dtype=tenon.float64)
        want = getattr(scipy_windows, name)(length, *theirs, sym=sym)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-15)


def test_a_centre_of_its_own():
    got = windows.exponential(5, center=1.0, tau=2.0, sym=False, dtype=tenon.float64)
    want = scipy_windows.exponential(5, 1.0, 2.0, sym=False)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


def test_what_they_are_made_of():
    assert windows.hann(4).dtype == tenon.float32
    assert windows.hann(4, dtype="float64", requires_grad=True).requires_grad
    assert set(windows.__all__) == set(ARGUMENTS)


def test_refusals():
    with pytest.raises(ValueError, match="hann.*expected M, a length of at least 0, got -1"):
        windows.hann(-1)
    with pytest.raises(ValueError, match="expected a floating dtype, got int64"):
        windows.hann(3, dtype="int64")
    with pytest.raises(ValueError, match="expected tau above 0, got 0"):
        windows.exponential(3, tau=0)
    with pytest.raises(ValueError, match=r"no center for a symmetric window.*sym=False"):
        windows.exponential(3, center=1.0)
    with pytest.raises(ValueError, match="expected std above 0, got -1"):
        windows.gaussian(3, std=-1)
    with pytest.raises(ValueError, match="expected beta of at least 0, got -1"):
        windows.kaiser(3, beta=-1)
    with pytest.raises(ValueError, match="at least one coefficient"):
        windows.general_cosine(3, a=[])
