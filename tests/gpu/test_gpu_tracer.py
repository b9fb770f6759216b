# SPDX-License-Identifier: Apache-2.0
"""Profiles of GPUs with the times of CUPTI and roctracer, on stand-ins of these; and with those of events where they are missing,
refuse, or are of a version whose records are not known."""

import re

import pytest

TRACER = {"cuda": "TENON_CUDA_TRACER", "hip": "TENON_ROCM_TRACER"}
TITLE = {"cuda": "CUPTI", "hip": "roctracer"}
START = {"cuda": "cuptiSubscribe", "hip": "roctracer_enable_domain_activity_expl"}

COMMON = """
import collections, ctypes, os, re, time
variable = {"cuda": "TENON_CUDA_DRIVER", "hip": "TENON_ROCM_DRIVER"}[KIND]
failures = ctypes.CDLL(os.path.join(os.path.dirname(os.environ[variable]), "libsimulated_failures.so"))
failures.simulated_calls.restype = ctypes.c_uint64
def calls(name):
    return failures.simulated_calls(name.encode())
def events():
    return calls({"cuda": "cuEventElapsedTime", "hip": "hipEventElapsedTime"}[KIND])
def traced():
    return calls({"cuda": "cuptiActivityEnable", "hip": "roctracer_open_pool_expl"}[KIND])
x = tenon.ones([1000], device=KIND)
x + x, x * x
tenon.synchronize(KIND)
"""


@pytest.fixture
def passes(run):
    """Runs the code, and gives what it printed and what was logged."""

    def check(code, **environment):
        result = run(COMMON + "\n".join(line[8:] for line in code.split("\n")), **environment)
        assert result.returncode == 0, result.stderr
        return result.stdout, result.stderr

    return check


def test_every_piece_of_work_is_recorded_without_events(passes):
    passes(
        """
        stream = tenon.Stream(KIND)
        with tenon.profile(KIND) as p:
            with stream:
                for _ in range(5):
                    x + x
                stream.synchronize()
            y = x * x
            y.copy_(x)
            host = y.cpu()
            back = host.to(KIND)
            z = y.reshape(10, 100) @ x.reshape(100, 10)
        x + x  # not inside
        tenon.synchronize(KIND)
        assert traced() and not events()
        kernels = [r for r in p.records if r.kind == "kernel"]
        assert len({r.stream for r in kernels[:5]}) == 1 and kernels[0].stream != 0
        assert {r.stream for r in kernels[5:]} == {0}
        assert len({r.name for r in kernels[:5]}) == 1 and "add" in kernels[0].name, kernels
        # The call of a library, and the kernel that it chose.
        assert re.fullmatch(r"\\w+: simulated_library_kernel", kernels[-1].name), kernels[-1]
        moved = collections.Counter((r.kind, r.name, r.bytes) for r in p.records if r.kind != "kernel")
        assert moved["copy", "copy to host", 4000] == 1 and moved["copy", "copy to device", 4000] == 1, moved
        assert all(r.begin_ns <= r.end_ns for r in p.records)
        assert [r.begin_ns for r in p.records] == sorted(r.begin_ns for r in p.records)
        """
    )


def test_times_of_the_device_are_on_the_clock_of_the_host(passes):
    """Each piece of work lies between two readings of the host's clock; the library's own is 7,000 seconds ahead."""
    passes(
        """
        windows = []
        with tenon.profile(KIND) as p:
            for _ in range(20):
                before = time.monotonic_ns()
                x + x
                tenon.synchronize(KIND)
                windows.append((before, time.monotonic_ns()))
        kernels = [r for r in p.records if r.kind == "kernel"]
        assert len(kernels) == len(windows)
        # Both clocks are read one after the other: a thread that loses the processor between them is late by a time slice.
        slack = 2_000_000
        for (before, after), r in zip(windows, kernels):
            assert before - slack <= r.begin_ns <= r.end_ns <= after + slack, (before, r, after)
        late = [r for r in kernels if r.end_ns - r.begin_ns > 0]
        assert len(late) == len(kernels)
        """,
        SIMULATED_DELAY_US="3000",
    )


def test_buffers_that_come_late_and_in_pieces_lose_nothing(passes):
    """Some 20,000 records: several buffers of a MiB, on a thread of the library, those of work before those of calls."""
    passes(
        """
        with tenon.profile(KIND) as p:
            for _ in range(3):
                for _ in range(1500):
                    y = x + x
                p.collect()
            empty = tenon.zeros([1000], device=KIND)
        names = collections.Counter(r.name for r in p.records)
        assert max(names.values()) == 4500, names
        assert names["tenon_full_f32"] == 1, names
        """,
        SIMULATED_DELAY_US="5",
    )


@pytest.mark.parametrize("kind", ["cuda"], indirect=True)
def test_records_wait_for_the_call_that_they_belong_to(passes):
    """Roctracer's come in the order in which they were written."""
    passes(
        """
        with tenon.profile(KIND) as p:
            for _ in range(20):
                y = x + x
            tenon.synchronize(KIND)
            seen = []
            for _ in range(16):
                p.collect()
                seen.append(len(p))
        assert seen[0] == 0 and seen[-1] == 20, seen
        """,
        SIMULATED_TRACER_HOLD="8",
    )


@pytest.mark.parametrize("kind", ["cuda"], indirect=True)
@pytest.mark.parametrize("variable", ["SIMULATED_TRACER_DROP", "SIMULATED_TRACER_UNTIMED"])
def test_dropped_records_are_told(passes, variable):
    """Roctracer waits for room instead, and always knows the times."""
    stdout, stderr = passes(
        """
        with tenon.profile(KIND) as p:
            for _ in range(100):
                y = x + x
        print(len(p.records))
        """,
        **{variable: "10"},
    )
    told = [int(n) for n in re.findall(r"(\d+) records of this profile were dropped", stderr)]
    assert sum(told) >= 10 and int(stdout) + sum(told) >= 100, (stdout, stderr)
    assert "it is incomplete" in stderr


@pytest.mark.parametrize("kind", ["cuda"], indirect=True)
def test_longer_records_and_unknown_kinds_are_passed_over(passes):
    """A later release of a known version: records grow at their end. Those of roctracer have one size."""
    passes(
        """
        with tenon.profile(KIND) as p:
            for _ in range(10):
                y = x + x
            y.cpu()
        assert [r.kind for r in p.records] == ["kernel"] * 10 + ["copy"], p.records
        assert len({r.name for r in p.records[:10]}) == 1
        """,
        SIMULATED_TRACER_NEW="1",
    )


RECORDED_BY_EVENTS = """
        with tenon.profile(KIND) as p:
            y = x + x
            y.cpu()
        assert [r.kind for r in p.records] == ["kernel", "copy"], p.records
        assert events()
        """


def test_a_version_that_is_not_known_is_not_used(passes, kind):
    version = {"cuda": "140000", "hip": "5"}[kind]
    _, stderr = passes(RECORDED_BY_EVENTS, SIMULATED_TRACER_VERSION=version, TENON_LOG="info")
    expected = {
        "cuda": "CUPTI has version 140000; expected 19 to 99 (CUDA 12) or 130000 to 139999 (CUDA 13)",
        "hip": "roctracer has version 5.1; expected 4.1 or a later 4",
    }[kind]
    assert "profiles have the times of events: " + expected in stderr


def test_without_the_library_profiles_have_the_times_of_events(passes, kind):
    _, stderr = passes(
        RECORDED_BY_EVENTS, **{TRACER[kind]: "libabsent_tracer.so", "TENON_LOG": "info"}
    )
    assert f"{TITLE[kind]} was not found (libabsent_tracer.so: cannot open" in stderr
    assert f"name the file in {TRACER[kind]}" in stderr
    _, stderr = passes(RECORDED_BY_EVENTS, **{TRACER[kind]: "libm.so.6", "TENON_LOG": "info"})
    assert re.search(rf"{TITLE[kind]} lacks \w+; install", stderr)


def test_a_library_that_does_not_start_is_a_warning(passes, kind):
    """As CUPTI's own, where the driver is not NVIDIA's."""
    _, stderr = passes(RECORDED_BY_EVENTS, SIMULATED_FAIL=f"{START[kind]}:1:999")
    assert f"profiles have the times of events: {TITLE[kind]}: {START[kind]} returned 999" in stderr


def test_a_library_that_stops_working_is_an_error(passes, kind):
    """The clock has been decided by then: times of events would be of another one."""
    stdout, _ = passes(
        """
        with tenon.profile(KIND) as p:
            x + x
        assert len(p.records) == 1
        try:
            with tenon.profile(KIND):
                pass
        except RuntimeError as error:
            print(error)
        with tenon.profile(KIND) as p:
            x + x
        assert len(p.records) == 1
        """,
        # Twice for the decision with ROCm, which starts two domains, and once or twice for the first profile.
        SIMULATED_FAIL=f"{START[kind]}:{3 if kind == 'cuda' else 5}:39",
    )
    assert f"profile_start: {TITLE[kind]}: {START[kind]} returned 39" in stdout
    if kind == "cuda":
        assert "another profiler of this process uses CUPTI, stop it first" in stdout


def test_kernels_of_a_replayed_graph_are_recorded_one_by_one(passes):
    passes(
        """
        stream = tenon.Stream(KIND)
        graph = tenon.Graph(KIND)
        with graph.capture():
            y = x + x
            z = y * x
        with tenon.profile(KIND) as p:
            graph.replay()
            graph.replay()
        names = [r.name for r in p.records]
        assert len(names) == 4 and all(name.startswith("graph: tenon_") for name in names), names
        assert names[:2] == names[2:] and names[0] != names[1]
        """
    )


def test_devices_have_records_of_their_own(passes):
    """And what others in the process have done is in no profile."""
    passes(
        """
        there = tenon.ones([500], device=KIND + ":1")
        there + there
        driver = ctypes.CDLL(os.environ[variable])
        tracer = ctypes.CDLL(os.environ[{"cuda": "TENON_CUDA_TRACER", "hip": "TENON_ROCM_TRACER"}[KIND]])
        # Another profiler's number, of the plugin's kind: it says nothing to the plugin.
        def push():
            if KIND == "cuda":
                assert tracer.cuptiActivityPushExternalCorrelationId(5, ctypes.c_uint64(1)) == 0
            else:
                assert tracer.roctracer_activity_push_external_correlation_id(ctypes.c_uint64(1)) == 0
        def fill_outside():
            if KIND == "cuda":
                context = ctypes.c_void_p()
                assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
                assert driver.cuCtxSetCurrent(context) == 0
                memory = ctypes.c_void_p()
                assert driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64)) == 0
                assert driver.cuMemsetD8Async(memory, 1, ctypes.c_size_t(64), None) == 0
                assert driver.cuCtxSynchronize() == 0
            else:
                memory = ctypes.c_void_p()
                assert driver.hipMalloc(ctypes.byref(memory), ctypes.c_size_t(64)) == 0
                assert driver.hipMemsetD8Async(memory, 1, ctypes.c_size_t(64), None) == 0
                assert driver.hipDeviceSynchronize() == 0
        with tenon.profile(KIND + ":0") as first:
            x + x
            fill_outside()
            push()
            fill_outside()
            with tenon.profile(KIND + ":1") as second:
                there * there
                there * there
                x.to(KIND + ":1")
            there * there  # its profile has ended, the other one has not
            x + x
        assert [r.kind for r in first.records] == ["kernel"] * 2, first.records
        assert [r.kind for r in second.records] == ["kernel"] * 2 + ["copy"], second.records
        assert second.records[2].name == "copy from another device" and second.records[2].bytes == 4000
        """,
        SIMULATED_PEERS="1",
    )
