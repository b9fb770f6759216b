# SPDX-License-Identifier: Apache-2.0
"""Growth is judged where constant costs no longer hide it."""

import pytest
from scaling import SWEEPS, exponent


def test_the_exponent_is_that_of_the_upper_half():
    sizes = [10**i for i in range(7)]
    assert exponent([(n, 5e-8 + 1e-9 * n) for n in sizes]) == pytest.approx(1, abs=0.02)
    assert exponent([(n, 5e-8 + 1e-12 * n * n) for n in sizes]) == pytest.approx(2, abs=0.02)
    assert exponent([(n, 5e-8) for n in sizes]) == pytest.approx(0, abs=1e-9)
    assert exponent([(10, 1.0), (100, 10.0)]) == pytest.approx(1)


def test_a_sweep_grows():
    for sweep in SWEEPS.values():
        assert list(sweep.n) == sorted(set(sweep.n))
        assert [case.parameters["n"] for case in sweep.cases(quick=False)] == list(sweep.n)
