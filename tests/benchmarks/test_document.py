# SPDX-License-Identifier: Apache-2.0
"""Figures get from results into a document, and only between its markers."""

import json

import _document
import pytest
from _targets import Target, above, counter, share, times, to


def row(case, ours, numpy, group="", **more):
    seconds = {"tenon": {"median": ours, "best": ours}, "numpy": {"median": numpy, "best": numpy}}
    ratios = {"numpy": {"median": ours / numpy, "best": ours / numpy}}
    return {"case": case, "group": group, "seconds": seconds, "ratios": ratios, **more}


@pytest.fixture
def results(tmp_path):
    work = {"amount": 12e6, "unit": "B", "rate": 12e9, "best_rate": 12e9}
    limit = {"name": "bandwidth", "rate": 24e9, "share": 0.5}
    overhead = {
        "date": "2026-01-02T03:04:05+00:00",
        "machine": {"processor": "a chip", "processors": 2},
        "command": "python overhead.py",
        "versions": {"tenon": "0.1.0", "numpy": "2.4.6"},
        "use_by_others": 0.0,
        "results": [row("x + y", 60e-9, 240e-9), row("m.T", 110e-9, 55e-9)],
    }
    bound = {"results": [row("add", 1e-3, 2e-3, "large", work=work, limit=limit)]}
    (tmp_path / "overhead.json").write_text(json.dumps(overhead))
    (tmp_path / "memory_bound.json").write_text(json.dumps(bound))
    return tmp_path


def document(results, text):
    return _document.MARKER.sub(lambda match: _document.rendered(results, match), text)


def test_a_table_replaces_what_lay_between_its_markers(results):
    got = document(results, "before\n<!-- table: overhead rows=^x -->\nold\n<!-- end -->\nafter\n")
    assert got == (
        "before\n<!-- table: overhead rows=^x -->\n"
        "|  | Tenon | NumPy | ratio |\n| --- | --- | --- | --- |\n"
        "| `x + y` | 60.0 ns | 240 ns | 0.25 |\n<!-- end -->\nafter\n"
    )
    assert document(results, got) == got


def test_rates_stand_beside_their_limit(results):
    got = document(results, "<!-- table: memory_bound -->\n<!-- end -->")
    assert "| add | 1.00 ms | 2.00 ms | 0.50 | 12.0 GB/s | 50% |" in got


def test_without_results_the_document_stays(results, capsys):
    text = "<!-- table: nothing -->\nold\n<!-- end -->"
    assert document(results, text) == text
    assert "nothing: no results" in capsys.readouterr().err


def test_a_summary_names_where_a_peer_is_faster(results):
    got = document(results, "<!-- summary: overhead -->\n<!-- end -->")
    assert "|  | 2 | 0.71 | 1 | m.T 2.00 |" in got


def test_the_machine_is_named(results):
    got = document(results, "<!-- machine: overhead -->\n<!-- end -->")
    assert (
        "2026-01-02; a chip, 2 processors; Tenon 0.1.0, NumPy 2.4.6. `python overhead.py`." in got
    )


def median(name, time, **counters):
    """As Google Benchmark writes it."""
    kind = {"run_name": name, "aggregate_name": "median", "time_unit": "ns"}
    return {**kind, "real_time": time, **counters}


def test_cpp_benchmarks_of_two_things_stand_side_by_side(results):
    both = [median("hot<Pool>/real_time", 300.0), median("hot<OpenMp>/real_time", 600.0)]
    (results / "pool.json").write_text(json.dumps({"benchmarks": both}))
    got = document(results, "<!-- cpp: pool -->\n<!-- end -->")
    assert "|  | Pool | OpenMp |" in got
    assert "| `hot` | 300 ns | 600 ns |" in got


def test_targets_tell_how_many_rows_meet_them(results, monkeypatch):
    every = Target("calls", "at most half", "overhead", "", to("numpy"), 0.5)
    first = Target("calls", "the sum at most half", "overhead", "^x", to("numpy"), 0.5)
    missing = Target("calls", "something else", "nothing", "", to("numpy"), 0.5)
    monkeypatch.setattr(_document, "TARGETS", (every, first, missing))
    got = document(results, "<!-- targets: calls -->\n<!-- end -->")
    assert "| calls | at most half | 2.00 (m.T) | 1 of 2 |" in got
    assert "| calls | the sum at most half | 0.25 | yes |" in got
    assert "| calls | something else | not measured |  |" in got


def test_targets_compare_rows_of_one_benchmark(results, monkeypatch):
    rows = [median("bare", 5.0), median("call/real_time", 30.0), median("gpt", 9.0, holes=0.04)]
    (results / "cpp.json").write_text(json.dumps({"benchmarks": rows}))
    monkeypatch.setattr(
        _document,
        "TARGETS",
        (
            Target("cpp", "above", "cpp", "^call", above("bare"), 30),
            Target("cpp", "times", "cpp", "^call", times("bare"), 5),
            Target("cpp", "holes", "cpp", "^gpt", counter("holes", 100), 5),
            Target("cpp", "python's", "overhead", "^x", times("m.T"), 1.0),
        ),
    )
    got = document(results, "<!-- targets: cpp -->\n<!-- end -->")
    assert "| cpp | above | 25.00 | yes |" in got
    assert "| cpp | times | 6.00 | no |" in got
    assert "| cpp | holes | 4.00 | yes |" in got
    assert "| cpp | python's | 0.55 | yes |" in got


def test_numbers_have_three_digits():
    cases = {0.0123: "0.0123", 1.234: "1.23", 12.34: "12.3", 1234.5: "1,234", 0: "0"}
    assert [_document.number(each) for each in cases] == list(cases.values())


def test_a_share_is_asked_of_rows_that_wait_for_memory():
    limit = {"name": "bandwidth", "rate": 24e9, "share": 0.5}
    rows = [
        row("add", 1e-3, 2e-3, limit=limit, parameters={"bound": ""}),
        row("sort", 1e-3, 2e-3, limit=limit, parameters={"bound": "comparisons: 4 GB/s"}),
    ]
    target = Target("memory-bound", "", "memory_bound", "", share, at_least=0.9)
    assert target.measured({"results": rows}) == [(0.5, "add")]
