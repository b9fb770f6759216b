# SPDX-License-Identifier: Apache-2.0
"""Profiles: what is recorded, schedules, tables, and files that other programs read."""

import gzip
import json
import re
import threading
import time

import pytest
import reference_plugin
import tenon
from tenon import nn, profiler

ProfilerAction = profiler.ProfilerAction


@pytest.fixture
def x():
    return tenon.ones([4, 4])


def operators(p):
    return [event.name for event in p.events if event.kind == "operator"]


# -- what is recorded


def test_operators_in_order_and_off_means_off(x):
    with profiler.profile() as p:
        tenon.relu(x @ x)
    tenon.exp(x)
    assert operators(p) == ["matmul", "relu"]
    first, second = p.events
    assert first.begin_ns <= first.end_ns <= second.begin_ns <= second.end_ns
    assert not tenon._core.is_profiling()


def test_times_are_those_of_the_monotonic_clock(x):
    before = time.monotonic_ns()
    with profiler.profile() as p:
        time.sleep(0.02)
        tenon.relu(x)
        time.sleep(0.02)
    after = time.monotonic_ns()
    (event,) = p.events
    assert before + 19e6 < event.begin_ns < event.end_ns < after - 19e6


def test_the_backward_pass_is_marked(x):
    w = tenon.ones([4, 4]).requires_grad_()
    with profiler.profile() as p:
        loss = tenon.sum(tenon.exp(x @ w))
        loss.backward()
    # The last one is the gradient of the loss itself: 1.
    assert [e.name for e in p.events if not e.backward] == ["matmul", "exp", "sum", "full"]
    assert any(e.name == "matmul" and e.backward for e in p.events)


def test_shapes_and_dtypes(x):
    with profiler.profile(record_shapes=True) as p:
        tenon.concat([x, x.to(tenon.float16)], 1)
        tenon.sum(x[1])
    shapes = {event.name: event.shapes for event in p.events}
    assert shapes["concat"] == (("float32", (4, 4)), ("float16", (4, 4)))
    assert shapes["sum"] == (("float32", (4,)),)
    rows = [row.key for row in p.table("shape")]
    assert "concat(float32[4, 4] float16[4, 4])" in rows


def test_dtypes_are_those_that_mixed_precision_chooses(x):
    with profiler.profile(record_shapes=True) as p, tenon.amp.autocast():
        x @ x
    assert operators(p) == ["cast", "cast", "matmul"] or operators(p) == ["cast", "matmul"]
    assert p.events[-1].shapes[0][0] == "bfloat16"


def test_stacks_name_the_line(x, tmp_path):
    with profiler.profile(with_stack=True) as p:
        tenon.relu(x)  # the line
        for _ in range(2):
            tenon.exp(x)
    line = next(i for i, text in enumerate(open(__file__), 1) if text.endswith("# the line\n"))
    file, got, function = p.events[0].stack[0]
    assert (file, got, function) == (__file__, line, "test_stacks_name_the_line")
    assert p.events[1].stack == p.events[2].stack
    p.export_stacks(tmp_path / "stacks.txt")
    text = (tmp_path / "stacks.txt").read_text()
    assert re.search(rf"test_stacks_name_the_line \(test_profiler.py:{line}\);relu \d+\n", text)


def test_failed_calls_are_marked(x):
    with profiler.profile() as p, pytest.raises(ValueError):
        x @ tenon.ones([3, 4])
    assert any(event.name == "matmul" and event.failed for event in p.events)


def test_memory(x):
    with profiler.profile(profile_memory=True) as p:
        kept = [tenon.exp(tenon.ones([1024])) for _ in range(3)]
    assert len(p.memory) >= 3 and p.memory[0].device == "cpu:0"
    assert sum(event.memory or 0 for event in p.events) >= 2 * 4096 and len(kept) == 3
    assert "memory KiB" in repr(p.table())


def test_parts_nest(x):
    @profiler.record_function("inner")
    def inner():
        return tenon.relu(x)

    with profiler.profile() as p:
        with profiler.record_function("outer"):
            inner()
            tenon.exp(x)
    names = {event.name: event for event in p.events}
    assert names["relu"].parent is names["inner"] and names["inner"].parent is names["outer"]
    assert names["exp"].parent is names["outer"] and names["outer"].parent is None
    outer = names["outer"]
    inside = names["inner"].duration_ns + names["exp"].duration_ns
    assert outer.self_ns == outer.duration_ns - inside
    inner()  # outside of a profile


def test_modules_are_named_by_their_paths(x):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def forward(self, x):
            return self.layers(x) + 1.0

    call = nn.Module.__call__
    with profiler.profile(with_modules=True) as p:
        Block()(x)
        tenon.exp(x)
    assert nn.Module.__call__ is call
    modules = {event.name: event.module for event in p.events}
    assert modules["linear"] == "Block.layers.0" and modules["relu"] == "Block.layers.1"
    assert modules["add"] == "Block" and modules["Block.layers.0"] == "Block.layers"
    table = p.table("module")
    assert (
        table["Block"].total_ns
        >= table["Block.layers"].total_ns
        >= table["Block.layers.0"].total_ns
    )
    assert table["(no module)"].calls >= 1


def test_other_threads_are_not_recorded_and_may_record_themselves(x):
    seen = {}

    def run():
        tenon.exp(x)
        with profiler.profile() as own:
            tenon.relu(x)
        seen["own"] = operators(own)

    with profiler.profile() as p:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        tenon.sin(x)
    assert operators(p) == ["sin"] and seen == {"own": ["relu"]}


def test_what_does_not_fit_is_counted(x):
    with profiler.profile(capacity=1) as p:
        for _ in range(20000):
            tenon.relu(x)
    kept = len(p.events)
    assert 1 <= kept < 20000 and p.lost == 20000 - kept


def test_an_error_ends_the_profile(x):
    with pytest.raises(KeyError), profiler.profile():
        raise KeyError
    with profiler.profile() as p:
        tenon.relu(x)
        with pytest.raises(RuntimeError, match="expected a thread that is not recorded"):
            profiler.profile().start()
        tenon.exp(x)
    assert operators(p) == ["relu", "exp"]


@reference_plugin.needs_reference
def test_a_device_is_shown_beside_the_host(tmp_path):
    reference_plugin.load()
    x = tenon.ones([10_000]).to("reference")
    with profiler.profile(["host", "reference"]) as p:
        x + x
        tenon.synchronize("reference")
    add = next(event for event in p.events if event.track == "host" and event.name == "add")
    kernel = next(event for event in p.events if event.kind == "kernel")
    assert kernel.name == "add" and kernel.track.startswith("reference:0 stream")
    slack = 5_000_000
    assert add.begin_ns - slack <= kernel.begin_ns <= kernel.end_ns <= time.monotonic_ns() + slack
    assert {(row.key, row.kind) for row in p.table()} >= {("add", "operator"), ("add", "kernel")}
    p.export_perfetto(tmp_path / "trace.pftrace")
    p.export_html(tmp_path / "report.html")
    with pytest.raises(NotImplementedError, match="cpu:0 has no `profile` group"):
        profiler.profile(["host", "cpu"]).start()
    assert not tenon._core.is_recording()


# -- schedules


def test_schedule():
    action = profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    names = [action(step).name for step in range(10)]
    cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert names == ["NONE", *cycle, *cycle, "NONE"]
    with pytest.raises(ValueError, match="expected active >= 1 .* got active=0"):
        profiler.schedule(wait=0, warmup=0, active=0)


def test_steps_of_a_schedule(x):
    seen = []
    with profiler.profile(
        schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: seen.append([(e.name, e.kind) for e in p.events]),
    ) as p:
        for step in range(10):
            (tenon.exp if step in (2, 7) else tenon.relu)(x)
            p.step()
    assert seen == [
        [("step 2", "step"), ("exp", "operator"), ("step 3", "step"), ("relu", "operator")],
        [("step 6", "step"), ("relu", "operator"), ("step 7", "step"), ("exp", "operator")],
    ]


def test_a_loop_that_ends_early_still_saves(x):
    seen = []
    with profiler.profile(
        schedule=profiler.schedule(wait=0, warmup=0, active=5),
        on_trace_ready=lambda p: seen.append(len(p.events)),
    ) as p:
        tenon.relu(x)
        p.step()
    assert seen == [3]  # two steps, one of them empty, and the operator


# -- tables and files


def test_what_is_shown_is_what_runs_without_a_profile():
    norm, x = nn.BatchNorm2d(3), tenon.rand(4, 3, 5, 5)
    norm(x).sum().backward()
    with profiler.profile() as p:
        norm(x).sum().backward()
    names = [event.name for event in p.events]
    # One kernel for the gradient, which is made of others where there is none.
    assert "batch_norm_grad" in names and "mean" not in names


def test_tables(x):
    with profiler.profile() as p:
        for _ in range(3):
            tenon.relu(x)
        tenon.exp(x)
    table = p.table(sort_by="calls")
    assert [(row.key, row.calls) for row in table] == [("relu", 3), ("exp", 1)]
    assert [row.count for row in table] == [3, 1]
    assert table["relu"].total_ns == sum(e.duration_ns for e in p.events if e.name == "relu")
    head, *rows = table.text(rows=1).splitlines()
    assert head.split()[:3] == ["operator", "kind", "calls"] and len(rows) == 1
    with pytest.raises(ValueError, match="pass record_shapes=True to profile"):
        p.table("shape")
    with pytest.raises(ValueError, match="expected group_by to be one of operator, shape"):
        p.table("name")
    with pytest.raises(KeyError, match="there are"):
        table["log"]


@pytest.fixture
def recorded(x):
    with profiler.profile(record_shapes=True, with_modules=True, profile_memory=True) as p:
        with profiler.record_function("part </script>"):
            nn.Linear(4, 4)(x)
    return p


def test_a_chrome_trace(recorded, tmp_path):
    recorded.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [entry for entry in trace if entry["ph"] == "X"]
    assert len(slices) == len(recorded.events)
    linear = next(entry for entry in slices if entry["name"] == "linear")
    part = next(entry for entry in slices if entry["name"] == "part </script>")
    assert (
        part["ts"] <= linear["ts"] and linear["ts"] + linear["dur"] <= part["ts"] + part["dur"] + 1
    )
    assert linear["args"]["shapes"].startswith("float32[4, 4]")
    assert any(entry["ph"] == "C" for entry in trace)


def test_an_html_report(recorded, tmp_path):
    recorded.export_html(tmp_path / "report.html", title="A & B")
    page = (tmp_path / "report.html").read_text()
    assert "<title>A &amp; B</title>" in page and "{{" not in page
    assert "http" not in page.replace("http-equiv", ""), "nothing is loaded from elsewhere"
    data = json.loads(re.search(r'application/json">(.*?)</script>', page, re.S)[1])
    assert data["total"] == len(recorded.events) == len(data["events"])
    assert {table["group"] for table in data["tables"]} == {"operator", "shape", "module"}
    assert "part </script>" in data["names"] and data["memory"]


def fields(data):
    """A message of protocol buffers: [(number, value)]."""

    def number(at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    at, found = 0, []
    while at < len(data):
        key, at = number(at)
        value, at = number(at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        else:
            assert key & 7 == 0
        found.append((key >> 3, value))
    return found


def test_a_perfetto_trace(recorded, tmp_path):
    recorded.export_perfetto(tmp_path / "trace.pftrace")
    packets = [dict(fields(p)) for n, p in fields((tmp_path / "trace.pftrace").read_bytes())]
    names, open_, last, slices = {}, [], 0, []
    for packet in packets:
        for kind, interned in fields(packet.get(12, b"")):
            if kind == 2:
                entry = dict(fields(interned))
                names[entry[1]] = entry[2].decode()
        event = dict(fields(packet.get(11, b"")))
        if event.get(9) == 1:
            assert packet[8] >= last, "slices of a track are in order"
            last = packet[8]
            open_.append((names[event[10]], packet[8]))
        elif event.get(9) == 2:
            assert packet[8] >= last
            last = packet[8]
            slices.append(open_.pop()[0])
    assert not open_ and sorted(slices) == sorted(event.name for event in recorded.events)
    uuids = [dict(fields(p[60]))[1] for p in packets if 60 in p]
    assert len(uuids) == len(set(uuids)) == 3  # the process, the thread, the memory
    assert any(dict(fields(p.get(11, b""))).get(9) == 4 for p in packets)


def test_a_perfetto_trace_has_the_details(tmp_path):
    with profiler.profile(record_shapes=True, with_stack=True) as p:
        x = tenon.ones([2, 3], requires_grad=True)
        tenon.exp(x).sum().backward()
        with pytest.raises(ValueError, match="matmul"):
            x @ x
    p.export_perfetto(tmp_path / "trace.pftrace")
    packets = [dict(fields(p)) for n, p in fields((tmp_path / "trace.pftrace").read_bytes())]
    shown = []
    for packet in packets:
        values = [value for number, value in fields(packet.get(11, b"")) if number == 4]
        notes = [dict(fields(value)) for value in values]
        shown.append({note[10].decode(): note[6].decode() for note in notes})
    assert any(n.get("shapes") == "float32[2, 3]" for n in shown)
    assert any(n.get("backward") == "True" for n in shown)
    assert any(n.get("failed") == "True" for n in shown)
    assert any("test_profiler.py" in n.get("stack", "") for n in shown)
    # What was exported is what the events say.
    from tenon.profiler.events import as_dict

    wanted = [{k: str(v) for k, v in as_dict(e).items()} for e in p.events]
    assert [n for n in shown if n] == [n for n in wanted if n]


def test_a_tensorboard_trace(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with profiler.profile(
        record_shapes=True,
        with_modules=True,
        with_stack=True,
        schedule=profiler.schedule(wait=0, warmup=1, active=2),
        on_trace_ready=lambda p: p.export_tensorboard(tmp_path / "log", worker="w-1"),
    ) as p:
        for _ in range(3):
            model(tenon.ones([2, 4]))
            p.step()
    [path] = (tmp_path / "log").iterdir()
    assert re.fullmatch(r"w-1\.\d+\.pt\.trace\.json\.gz", path.name)
    trace = json.loads(gzip.decompress(path.read_bytes()))
    assert trace["schemaVersion"] == 1
    by_kind = {}
    for entry in trace["traceEvents"]:
        by_kind.setdefault(entry["cat"], []).append(entry)
    assert [e["name"] for e in by_kind["user_annotation"]] == ["ProfilerStep#1", "ProfilerStep#2"]
    linear = next(e for e in by_kind["cpu_op"] if e["name"] == "linear")
    assert linear["args"]["Input Dims"] == [[2, 4], [4, 4], [4]]
    assert linear["args"]["Input type"] == ["float32"] * 3
    assert "test_profiler.py(" in linear["args"]["Call stack"]
    modules = [e for e in by_kind["python_function"]]
    assert all(e["name"].startswith("nn.Module: ") for e in modules)
    ids = {e["args"]["Python id"]: e for e in modules}
    inner = next(e for e in modules if "Python parent id" in e["args"])
    outer = ids[inner["args"]["Python parent id"]]
    assert outer["ts"] <= inner["ts"] <= outer["ts"] + outer["dur"]
    # Two calls of one module have one number.
    assert len({e["args"]["Python module id"] for e in modules}) * 2 == len(modules)
    with pytest.raises(
        ValueError, match="expected a worker of letters, digits, _ and -, got 'a/b'"
    ):
        p.export_tensorboard(tmp_path, worker="a/b")


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(TypeError, match="expected a list of activities, got the text 'host'"):
        profiler.profile("host")
    with pytest.raises(ValueError, match="expected capacity >= 1, got 0"):
        profiler.profile(capacity=0)
    with pytest.raises(TypeError, match="record_function: expected a name, got function"):
        profiler.record_function(print.__class__ and (lambda: None))
