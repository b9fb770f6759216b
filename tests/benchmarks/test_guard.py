# SPDX-License-Identifier: Apache-2.0
"""What the guard concludes from rates, without timing anything."""

import guard
import pytest
from _protocol import Times
from guard import LIMITS, Limit, conclude, every_call, judge, reason_to_skip, relative_rate

FAST = Limit("GEMM bfloat16", "GEMM float32", 1.5, "avx512_bf16")


def rows_of(rate, limit=FAST, reason=""):
    return judge([limit], lambda _: rate, lambda _: reason)


def test_every_limit_compares_calls_that_run():
    calls = every_call()
    for limit in LIMITS:
        assert 0 < limit.least < 5
        for name in (limit.call, limit.beside):
            work, call = calls[name]
            assert work > 0
            call()


def test_a_rate_below_its_limit_is_a_warning_and_with_strict_a_failure(capsys):
    rows = rows_of(0.63)
    assert not rows[0]["holds"]
    assert "TOO SLOW" in capsys.readouterr().out
    assert conclude(rows, strict=False) == 0
    warning = capsys.readouterr().err
    assert "guard: warning: expected every rate above its limit, got 1 below" in warning
    assert "GEMM bfloat16 beside GEMM float32 (0.63)" in warning
    assert conclude(rows, strict=True) == 1
    assert "guard: failure" in capsys.readouterr().err


def test_rates_at_their_limit_hold_in_silence(capsys):
    assert conclude(rows_of(1.5), strict=True) == 0
    assert capsys.readouterr().err == ""


def test_a_row_that_is_skipped_says_why(capsys):
    rows = rows_of(0.1, reason="needs 2 processors")
    assert rows[0]["holds"] and rows[0]["rate"] is None
    assert "skipped: needs 2 processors" in capsys.readouterr().out


def test_rows_that_come_too_late_are_not_measured(monkeypatch):
    monkeypatch.setattr(guard, "BUDGET", -1.0)
    assert rows_of(0.1)[0]["skipped"] == "not measured within -1 s"


def test_limits_apply_where_the_instructions_and_the_processors_are(monkeypatch):
    assert reason_to_skip(FAST, {"avx512_bf16"}, busy=0) == ""
    assert "no avx512_bf16" in reason_to_skip(FAST, set(), busy=0)
    two = Limit("GEMM, large", "GEMM, large", 1.3, threads=2)
    monkeypatch.setattr(guard.os, "sched_getaffinity", lambda _: {0})
    assert reason_to_skip(two, set(), busy=0) == "needs 2 processors"
    monkeypatch.setattr(guard.os, "sched_getaffinity", lambda _: {0, 1})
    assert reason_to_skip(two, set(), busy=0) == ""
    assert "other processes use 100%" in reason_to_skip(two, set(), busy=1.0)


def test_the_better_of_the_median_and_the_best_rounds_counts():
    times = Times({"call": [1.0, 1.0, 2.0], "beside": [3.0, 3.0, 3.0]}, True, 0.0)
    assert relative_rate(times, work=2.0) == pytest.approx(6.0)
    times = Times({"call": [3.0, 3.0, 1.0], "beside": [3.0, 3.0, 3.0]}, True, 0.0)
    assert relative_rate(times, work=2.0) == pytest.approx(6.0)
