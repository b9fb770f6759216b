# SPDX-License-Identifier: Apache-2.0
"""Copies between two GPUs: by the driver, in the order of the streams of both, and through the host where it refuses."""

import pytest

COPY = {"cuda": "cuMemcpyPeerAsync", "hip": "hipMemcpyPeerAsync"}
ENABLE = {"cuda": "cuCtxEnablePeerAccess", "hip": "hipDeviceEnablePeerAccess"}

COUNT = """
    import ctypes, os
    variable = {"cuda": "TENON_CUDA_DRIVER", "hip": "TENON_ROCM_DRIVER"}[KIND]
    folder = os.path.dirname(os.environ[variable])
    failures = ctypes.CDLL(os.path.join(folder, "libsimulated_failures.so"))
    failures.simulated_calls.restype = ctypes.c_uint64
    def calls(name):
        return failures.simulated_calls(name.encode())
"""


@pytest.mark.parametrize("access", ["0", "1"])
def test_the_driver_copies_and_is_asked_for_access_once(run, kind, access):
    code = (
        COUNT
        + f"""
    first = tenon.arange(1000, device=KIND)
    for _ in range(3):
        second = first.to(KIND + ":1")
        assert str(second.device) == KIND + ":1" and second.tolist() == list(range(1000))
    back = (second + 1).to(KIND + ":0")
    assert back.tolist() == list(range(1, 1001))
    print(calls("{COPY[kind]}"), calls("{ENABLE[kind]}"))
    if KIND == "hip":  # a refusal stays behind for no other library
        assert ctypes.CDLL(os.environ[variable]).hipGetLastError() == 0
    """
    )
    result = run(code, SIMULATED_PEERS=access)
    assert result.returncode == 0, result.stderr
    # One request in each direction, if the driver says that there is a way. HIP promises no copy without one.
    copies = "0" if kind == "hip" and access == "0" else "4"
    assert result.stdout.split() == [copies, "2" if access == "1" else "0"]


@pytest.mark.parametrize("failure", ["{copy}:1:217", "{copy}:1:705", "{copy}:1:801"])
def test_a_copy_that_the_driver_refuses_goes_through_the_host(run, kind, failure):
    code = (
        COUNT
        + f"""
    x = tenon.arange(1000, device=KIND)
    assert x.to(KIND + ":1").tolist() == list(range(1000))
    print(calls("{COPY[kind]}"))
    """
    )
    result = run(code, SIMULATED_PEERS="1", SIMULATED_FAIL=failure.format(copy=COPY[kind]))
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["1"]


def test_access_that_is_refused_does_not_stop_the_copy(run, kind):
    code = """
    x = tenon.arange(1000, device=KIND)
    assert x.to(KIND + ":1").tolist() == list(range(1000))
    """
    result = run(code, SIMULATED_PEERS="1", SIMULATED_FAIL=f"{ENABLE[kind]}:1:711")
    assert result.returncode == 0, result.stderr


def test_a_copy_that_fails_says_between_which_devices(run, kind):
    code = """
    x = tenon.arange(1000, device=KIND)
    try:
        x.to(KIND + ":1")
    except RuntimeError as error:
        print(error)
    """
    result = run(code, SIMULATED_PEERS="1", SIMULATED_FAIL=f"{COPY[kind]}:1:999")
    assert result.returncode == 0, result.stderr
    assert "copy 8000 B from device 0" in result.stdout and "(999)" in result.stdout


def test_copies_are_in_the_order_of_the_streams_of_both_devices(run):
    """Work is up to 1 ms late: a copy that waits for one of the streams too little takes another round's numbers."""
    code = """
    there = KIND + ":1"
    sources, targets = tenon.Stream(KIND), tenon.Stream(there)
    x, y = tenon.zeros([5000], device=KIND), tenon.zeros([5000], device=there)
    for round in range(6):
        for streams in ((), (sources,), (targets,), (sources, targets)):
            for _ in range(8):  # later than the work on the source, on no stream of the target
                y.fill_(-1.0)
            for stream in streams:
                stream.__enter__()
            x.fill_(float(round))
            x.add_(1.0)         # late on the source
            if round % 2:       # late on the target; without it, the copy is the first there
                y.sub_(1.0)
            y.copy_(x)
            x.fill_(-2.0)       # may not come before the copy
            y.add_(1.0)         # nor this
            values = y.cpu()
            for stream in reversed(streams):
                stream.synchronize()
                stream.__exit__(None, None, None)
            assert values.min().item() == values.max().item() == round + 2, (round, len(streams))
    """
    result = run(code, SIMULATED_DELAY_US="1000", SIMULATED_SEED="3", SIMULATED_PEERS="1")
    assert result.returncode == 0, result.stderr


def test_a_copy_is_no_part_of_a_recording(run):
    code = """
    x, y = tenon.ones([8], device=KIND), tenon.zeros([8], device=KIND + ":1")
    graph = tenon.Graph(KIND + ":1")
    try:
        with graph.capture():
            y.copy_(x)
    except RuntimeError as error:
        print(error)
    """
    result = run(code)
    assert result.returncode == 0, result.stderr
    assert "copy 32 B from device 0 to device 1 while its stream is captured" in result.stdout
    assert "copy before the capture or after it" in result.stdout
