# SPDX-License-Identifier: Apache-2.0
"""Profiles of a device's work."""

import json
import time

import pytest
import reference_plugin
import tenon

pytestmark = reference_plugin.needs_reference
DEVICE = "reference"


@pytest.fixture(scope="module", autouse=True)
def plugin():
    reference_plugin.load()


def recorded():
    x = tenon.ones([10_000]).to(DEVICE)
    with tenon.profile(DEVICE) as p:
        with tenon.Stream(DEVICE):
            for _ in range(5):
                x + x
        x * x
        x.cpu()
    x + x  # not inside
    return p


def test_a_device_without_profiles_says_so():
    with pytest.raises(
        NotImplementedError, match="cpu:0 has no `profile` group; its plugin does not provide it"
    ):
        tenon.profile("cpu")


def test_records_say_what_ran_when():
    start = time.monotonic_ns()
    p = recorded()
    end = time.monotonic_ns()
    kernels = [r for r in p.records if r.kind == "kernel"]
    assert [r.name for r in kernels] == ["add"] * 5 + ["multiply"]
    assert len({r.stream for r in kernels[:5]}) == 1
    assert kernels[0].stream != 0 and kernels[5].stream == 0
    copies = [r for r in p.records if r.kind == "copy"]
    assert sum(r.bytes for r in copies) == 40_000
    slack = 5_000_000
    for record in p.records:
        assert start - slack <= record.begin_ns <= record.end_ns <= end + slack, "the host's clock"
    assert len(p) == len(p.records)


def test_totals_are_summed_by_name():
    totals = recorded().total()
    calls = {total.name: total.calls for total in totals if total.kind == "kernel"}
    assert calls == {"add": 5, "multiply": 1}
    assert [t.total_ns for t in totals] == sorted((t.total_ns for t in totals), reverse=True)


def test_it_prints_as_a_table():
    lines = repr(recorded()).split("\n")
    assert lines[0].split() == [
        "name",
        "kind",
        "calls",
        "total",
        "ms",
        "mean",
        "us",
        "share",
        "GB/s",
    ]
    add = next(line.split() for line in lines if line.startswith("add"))
    assert add[1:3] == ["kernel", "5"]
    shares = [float(cell[:-1]) for line in lines[1:] for cell in line.split() if cell.endswith("%")]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    with tenon.profile(DEVICE) as p:
        pass
    assert repr(p) == "reference:0 recorded no work"


def test_a_trace_for_chrome(tmp_path):
    p = recorded()
    p.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == len(p)
    add = next(event for event in events if event["name"] == "add")
    assert add["ph"] == "X" and add["cat"] == "kernel" and add["pid"] == "reference:0"
    assert add["tid"].startswith("stream 0x") and add["dur"] >= 0
    assert add["ts"] == pytest.approx(p.records[0].begin_ns / 1000)


def test_one_profile_at_a_time():
    x = tenon.ones([10]).to(DEVICE)
    with tenon.profile(DEVICE) as p:
        with pytest.raises(RuntimeError, match="reference:0 is being profiled already"):
            tenon.profile(DEVICE).__enter__()
        x + x
    assert len(p) == 1


def test_records_can_be_collected_on_the_way():
    x = tenon.ones([10]).to(DEVICE)
    with tenon.profile(DEVICE) as p:
        x + x
        p.collect()
        assert len(p) == 1
        x * x
    assert [r.name for r in p.records] == ["add", "multiply"]
