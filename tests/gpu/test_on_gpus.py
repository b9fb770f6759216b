# SPDX-License-Identifier: Apache-2.0
"""A step's profile by the vendor's tracing library, and copies between two GPUs, on the machine's own: tests/gpu/run runs this.
TENON_TEST_GPU names the kind of device, "cuda" by default. What is skipped says what it needs."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tenon

KIND = os.environ.get("TENON_TEST_GPU", "cuda")


@pytest.fixture(scope="module", autouse=True)
def gpu():
    try:
        tenon.device(KIND)
    except tenon.DeviceError as error:
        pytest.skip(f"needs a GPU: {str(error)[:200]}")


@pytest.fixture
def pair():
    count = sum(device.type == KIND for device in tenon.devices())
    if count < 2:
        pytest.skip(f"needs two GPUs, found {count}")
    return f"{KIND}:0", f"{KIND}:1"


@pytest.mark.parametrize("count", [1, 1000, 3_000_001])
def test_a_copy_between_two_gpus_is_whole(pair, count):
    first, second = pair
    values = np.random.default_rng(count).standard_normal(count).astype("float32")
    x = tenon.tensor(values).to(first)
    there = (x * 2).to(second)  # while the first may still multiply
    x.fill_(0.0)
    back = (there + 1).to(first)
    np.testing.assert_array_equal(there.cpu().numpy(), values * 2)
    np.testing.assert_array_equal(back.cpu().numpy(), values * 2 + 1)


def test_copies_between_two_gpus_keep_the_order_of_streams(pair):
    first, second = pair
    x, y = tenon.zeros([1 << 22], device=first), tenon.zeros([1 << 22], device=second)
    sources, targets = tenon.Stream(first), tenon.Stream(second)
    for round in range(20):
        with sources, targets:
            x.fill_(float(round))
            for _ in range(10):
                x.add_(1.0)
            y.copy_(x)
            x.fill_(-1.0)
            y.add_(1.0)
            sources.synchronize()
            targets.synchronize()
        assert y.min().item() == y.max().item() == round + 11


STEP = """
    import json, sys, time
    import tenon
    from tenon import nn, optim
    tenon.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 10)).to(KIND)
    optimizer = optim.AdamW(model.parameters())
    x = tenon.normal([64, 256]).to(KIND)
    target = tenon.randint(0, 10, [64]).to(KIND)
    def step():
        optimizer.zero_grad()
        tenon.cross_entropy(model(x), target).backward()
        optimizer.step()
    for _ in range(3):
        step()
    tenon.synchronize(KIND)
    begin = time.monotonic_ns()
    with tenon.profile(KIND) as p:
        step()
        loss = tenon.cross_entropy(model(x), target).item()
    end = time.monotonic_ns()
    print(json.dumps({"begin": begin, "end": end, "records": [list(r) for r in p.records]}))
    print(p, file=sys.stderr)
"""


def test_the_profile_of_a_step_has_the_times_of_the_tracing_library():
    result = subprocess.run(
        [sys.executable, "-c", f"KIND = {KIND!r}\n" + textwrap.dedent(STEP)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "TENON_LOG": "info"},
    )
    assert result.returncode == 0, result.stderr
    if "profiles have the times of events" in result.stderr:
        lines = [line for line in result.stderr.split("\n") if "the times of events" in line]
        pytest.skip(lines[0][:300])
    print(result.stderr[-3000:])
    found = json.loads(result.stdout)
    records = [dict(zip(("name", "kind", "begin", "end", "bytes"), r)) for r in found["records"]]
    kernels = [r for r in records if r["kind"] == "kernel"]
    # Two products forward and three backward at least, each one kernel of a library or of ours.
    assert len(kernels) >= 5, records
    assert [r["bytes"] for r in records if r["kind"] == "copy"][-1] == 4, "the loss"
    # A millisecond for the two clocks, which are read one after the other.
    slack = 1_000_000
    for r in records:
        assert found["begin"] - slack <= r["begin"] < r["end"] <= found["end"] + slack, r
    busy = sum(r["end"] - r["begin"] for r in records)
    assert busy <= found["end"] - found["begin"] + slack, "one stream does one thing at a time"
