# SPDX-License-Identifier: Apache-2.0
"""Times that follow from formulas come out exactly."""

import pytest
import tenon
import tenon.distributed as dist
from tenon.distributed.pipelines.schedules import schedule_of
from tenon.distributed.planning import (
    Compute,
    StepTrace,
    Transfer,
    Wait,
    play_schedule,
    predict,
    simulate,
)
from tenon.distributed.planning.calibration import _line
from tenon.distributed.planning.simulator import Await, Call, Receive, Send, Work

M, P = (8, 12, 24), (2, 3, 4)


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("m", M)
def test_bubbles_are_those_of_formulas(p, m):
    """(p - 1) / m of the time in which ranks work, (p - 1) / (v m) interleaved, (p - 1) / (3 m) with split passes."""

    def bubble(name, chunks=None):
        return play_schedule(schedule_of(name, p, m, chunks)).bubble

    assert bubble("GPipe") == pytest.approx((p - 1) / m, rel=1e-12)
    assert bubble("1F1B") == pytest.approx((p - 1) / m, rel=1e-12)
    assert bubble("ZB-H1") == pytest.approx((p - 1) / (3 * m), rel=1e-12)
    if m % p == 0:
        for chunks in (2, 3):
            want = (p - 1) / (chunks * m)
            assert bubble("interleaved", chunks) == pytest.approx(want, rel=1e-12)


def test_a_pipeline_waits_for_messages():
    """Of GPipe the first micro-batch crosses p - 1 links each way, and the links are free for the others."""
    timeline = play_schedule(schedule_of("GPipe", 3, 4), message=0.5)
    assert timeline.end == pytest.approx(3 * 4 + 3 * 2 + 4 * 0.5)
    assert timeline.busy(0) == 12.0


def test_calls_overlap_with_work_and_meet_on_links():
    both = (0, 1)
    timeline = simulate(
        {
            0: [Work(1.0), Call("g", both, 2.0, 1), Work(3.0), Await(1), Work(1.0)],
            1: [Work(2.0), Call("g", both, 2.0, 1), Work(1.0), Await(1), Call("h", (1,), 1.0)],
        }
    )
    assert timeline.ends == {0: 5.0, 1: 5.0}
    assert timeline.overlap(0) == 2.0 and timeline.sending(0) == 2.0 and timeline.busy(1) == 3.0
    # A link carries one thing at a time, what was complete first.
    queue = simulate({0: [Call("g", (0,), 2.0, 1), Call("h", (0,), 3.0, 2), Await(2), Await(1)]})
    assert queue.end == 5.0
    sent = simulate({0: [Send(1, "a", 2.0), Work(1.0)], 1: [Receive("a"), Work(1.0)]})
    assert sent.ends == {0: 1.0, 1: 3.0}


def test_circles_are_named():
    with pytest.raises(ValueError, match=r"wait for each other: rank 0 in Receive\(key='a'\)"):
        simulate({0: [Receive("a")]})
    with pytest.raises(ValueError, match="rank 0 in Call.*; rank 1 in Receive"):
        simulate({0: [Call("g", (0, 1), 1.0)], 1: [Receive("b"), Call("g", (0, 1), 1.0)]})


def test_tasks_that_no_program_can_mean_are_named():
    with pytest.raises(ValueError, match=r"rank 0 to wait for a call that it has begun and not"):
        simulate({0: [Await(3)]})
    with pytest.raises(
        ValueError, match=r"expected rank 0 to be one of its call's ranks, got Call"
    ):
        simulate({0: [Call("g", (1, 2), 1.0)]})


def trace_of(*events):
    return StepTrace(4, 0, events, 0, 0)


def test_a_prediction_is_its_formula():
    product = Compute("tenon::matmul", (), 2_000_000, 100)
    copy = Compute("tenon::clone", (), 10, 4_000)
    bucket = Transfer("all_reduce", "dp", 4, 600, 500, number=1)
    machine = dist.Machine(
        flops=1e6, bandwidth=1e3, overhead=0.5, links={"dp": dist.Link(2, 0.1, 0.01)}
    )
    # 2.5 s and 4.5 s of computing; three other ranks and 600 bytes on the link
    found = predict(trace_of(product, bucket, copy, Wait(1)), machine)
    assert found.computing == pytest.approx(7.0) and found.sending == pytest.approx(6.3)
    assert found.seconds == pytest.approx(2.5 + 6.3) and found.overlap == pytest.approx(4.5)
    late = predict(trace_of(product, bucket, Wait(1), copy), machine)
    assert late.seconds == pytest.approx(2.5 + 6.3 + 4.5) and late.overlap == 0


def test_machines_are_files(tmp_path):
    machine = dist.Machine(
        2e9, 1e9, 1e-6, {"tp": dist.Link(2, 1e-5, 1e-9, {"all_reduce": (2e-5, 3e-9)})}, {"k": 1e-3}
    )
    machine.save(tmp_path / "machine.json")
    loaded = dist.Machine.load(tmp_path / "machine.json")
    assert loaded == machine and "tp, 2 ranks" in repr(loaded)
    other = tmp_path / "other.json"
    for text in (
        "{}",
        "[]",
        "{",
        '{"version": 1, "links": {"a": 3}}',
        '{"version": 2, "links": {}}',
    ):
        other.write_text(text)
        with pytest.raises(ValueError, match="expected a file of version 1 that dist.calibrate"):
            dist.Machine.load(other)
    with pytest.raises(ValueError, match="expected bits_per_second above 0, got 0"):
        dist.Link.of(0)
    with pytest.raises(ValueError, match="expected a link of 'dp' or 'world' in the machine"):
        predict(trace_of(Transfer("all_reduce", "dp", 4, 600, 600)), machine)


def test_lines_through_times():
    alpha, beta = _line([(0, 1.0), (10, 2.0), (100, 11.0)])
    assert (alpha, beta) == (pytest.approx(1.0), pytest.approx(0.1))
    assert _line([(1, 0.001), (100, 1.0)])[0] >= 0.0


def test_ranks_agree_on_what_they_measure():
    def work():
        mesh = dist.init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
        trace = dist.trace_step.__globals__["StepTrace"]
        kinds = (("x", tenon.distributed.planning.events.TensorKind((8, 8), "float32")),)
        traced = trace(2, 0, (Compute("tenon::negative", kinds, 64, 512),), 0, 0)
        return dist.calibrate(mesh, traces=traced, sizes=(1 << 10, 1 << 13), patience=0.0)

    with dist.local(2, timeout=60.0) as ranks:
        one, other = ranks.run(work)
    assert one == other and one.links["dp"].size == 2 and len(one.kernels) == 1
    assert set(one.links["dp"].calls) >= {"all_reduce", "all_gather", "reduce_scatter"}
    assert one.flops > 0 and one.bandwidth > 0 and one.overhead > 0
