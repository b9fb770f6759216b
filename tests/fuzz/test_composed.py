# SPDX-License-Identifier: Apache-2.0
"""A few random programs over composed tensors; more by `python -m tests.fuzz.composed`."""

import pytest
import tenon

from .composed import matrices, ragged, rows, strings
from .composed.outcome import Fault, Refused, attempt, differs
from .peers.campaign import run_cases


@pytest.mark.parametrize(
    "program, cases",
    [(matrices, 120), (ragged, 120), (rows, 40), (strings, 150)],
    ids=["matrices", "ragged", "rows", "strings"],
)
@pytest.mark.filterwarnings("ignore")
def test_dense_result_or_refusal(program, cases):
    result = run_cases(program.case, (), range(cases))
    assert not result.found, "\n".join(result.found)
    assert result.cases == cases and sum(result.compared.values()) > cases


def test_third_outcomes_are_faults():
    def crash():
        raise RuntimeError("broken")

    def silent():
        raise ValueError("")

    for function in (crash, silent):
        with pytest.raises(Fault):
            attempt(function)
    with pytest.raises(Refused, match="layout csr"):
        attempt(tenon.exp, tenon.ones([2, 2]).to_sparse("csr"))
    one = tenon.ones([2])
    assert differs(one.to_sparse(), one) is None
    assert (
        differs(one * 2.0, one) == "got np.float64(2.0), expected np.float64(1.0) at (0,) of (2,)"
    )
    assert differs(one, one.to(tenon.float64)).startswith("got float32[2]")
