# SPDX-License-Identifier: Apache-2.0
"""The pass as a user sees it."""

import tenon
import tenon_acme  # noqa: F401

x = tenon.linspace(-2.0, 2.0, 6)


def folded(function):
    program = tenon.export(function, x, passes=())
    changed = program.optimize(["fold_scales"])
    assert tenon.allclose(changed(x), function(x), rtol=1e-6)
    return str(changed).count("tenon::multiply(") if "multiply" in str(changed) else 0


def test_three_scales_become_one():
    assert folded(lambda t: t * 2.0 * 3.0 * 0.5 + 1.0) == 1


def test_a_scale_that_is_read_stays():
    def function(t):
        double = t * 2.0
        return double * 3.0 + double

    assert folded(function) == 2


def test_it_says_what_it_did():
    changed = tenon.export(lambda t: t * 2.0 * 3.0, x, passes=["fold_scales"])
    assert changed.changes() == "pass fold_scales: of 2 steps 1 are left\n"
