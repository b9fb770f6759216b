# SPDX-License-Identifier: Apache-2.0
"""The vendor's plugin of the examples: its own address space, two boards, memory that runs out."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tenon

TOY = next(
    (p for p in os.environ.get("TENON_TEST_PLUGINS", "").split(os.pathsep) if "toy" in p), None
)
pytestmark = pytest.mark.skipif(not TOY, reason="TENON_TEST_PLUGINS does not name the toy plugin")


@pytest.fixture(scope="module", autouse=True)
def plugin():
    tenon.load_plugin(TOY)


def in_new_process(code, **environment):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"import tenon\ntenon.load_plugin({TOY!r})\n" + textwrap.dedent(code),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def test_data_come_back_as_they_went():
    array = np.random.default_rng(0).normal(size=(3, 4))
    for dtype in ("float32", "float64", "int64", "bool"):
        expected = array.astype(dtype)
        np.testing.assert_array_equal(tenon.tensor(expected).to("toy").to("cpu").numpy(), expected)


def test_host_code_cannot_touch_device_memory():
    result = in_new_process("""
        import ctypes
        x = tenon.ones([4], device="toy")
        ctypes.string_at(x.data_ptr(), 4)
    """)
    assert result.returncode == -11, result.stderr


class Names(dict):
    """What an expression may name: its tensors, then everything of tenon."""

    def __missing__(self, name):
        return getattr(tenon, name)


@pytest.mark.parametrize(
    "call",
    [
        "exp(x)",
        "-x",
        "abs(x)",
        "relu(x)",
        "x + y",
        "x - y",
        "x * y",
        "x / (y * y + 1.0)",
        "maximum(x, y)",
        "minimum(x, y)",
        "where(x > y, x, y)",
        "x.sum()",
        "sum(x, [0])",
        "sum(x, [1], keepdim=True)",
        "mean(x, [0, 1])",
        "max(x, [-1])",
        "min(x)",
        "matmul(x, y.transpose())",
        "x.transpose().contiguous()",
        "matmul(z, y.transpose())",
        "matmul(z, z.transpose())",
        "x.flip([1]) + y",
        "x + x[0]",
        "2.0 * x + 1",
        "(x > 0).to(float32)",
        "x.to(float64) * 2",
        "softmax(x)",
        "tanh(x)",
    ],
)
def test_results_equal_those_of_the_host(call):
    def evaluate(device):
        rng = np.random.default_rng(0)
        shapes = {"x": (3, 4), "y": (3, 4), "z": (2, 3, 4)}
        tensors = {
            n: tenon.tensor(rng.normal(size=s).astype(np.float32), device=device)
            for n, s in shapes.items()
        }
        return eval(call, {}, Names(tensors))

    result = evaluate("toy")
    assert str(result.device) == "toy:0"
    np.testing.assert_allclose(
        result.to("cpu").numpy(), evaluate("cpu").numpy(), rtol=1e-5, atol=1e-6
    )


def test_boards_are_two_devices():
    x = tenon.arange(6, dtype=tenon.float32).to("toy:0")
    y = x.to("toy:1")
    assert [str(x.device), str(y.device)] == ["toy:0", "toy:1"]
    y += 1
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and y.tolist() == [1, 2, 3, 4, 5, 6]
    with pytest.raises((ValueError, RuntimeError), match="toy"):
        x + y
    with pytest.raises(Exception, match="toy:2|2 devices|index"):
        x.to("toy:2")


def test_gradients_live_on_the_device():
    x = tenon.tensor([1.0, -2.0], device="toy", requires_grad=True)
    (x * x).sum().backward()
    assert str(x.grad.device) == "toy:0" and x.grad.tolist() == [2.0, -4.0]


def test_training_needs_nothing_of_the_host():
    """Random numbers, whole numbers and all."""
    with tenon.fallback("deny"):
        tenon.manual_seed(0)
        model = tenon.nn.Sequential(
            tenon.nn.Linear(4, 8), tenon.nn.GELU(), tenon.nn.Dropout(0.1), tenon.nn.Linear(8, 3)
        ).to("toy")
        optimizer = tenon.optim.Adam(model.parameters(), lr=0.1)
        x = tenon.normal([30, 4], device="toy")
        labels = tenon.argmax(x[:, :3], 1)
        for _ in range(20):
            loss = tenon.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert loss.item() < 0.4


def test_too_large_an_allocation_is_a_memory_error_and_the_device_lives_on():
    with pytest.raises(MemoryError, match="out of board memory"):
        tenon.empty([1 << 29], device="toy")
    assert tenon.ones([2], device="toy").tolist() == [1.0, 1.0]


def test_memory_of_freed_tensors_is_used_again():
    for _ in range(8):
        tenon.ones([1 << 27], device="toy")  # 512 MiB each, on a board with 1 GiB


def test_memory_that_runs_out_in_the_middle_is_reported():
    result = in_new_process(
        """
        from tenon import nn
        try:
            kept = [tenon.ones([1 << 20], device="toy") for _ in range(50)]
        except MemoryError as error:
            print("refused:", error)
        print(tenon.ones([3]).sum().item())
    """,
        TOY_FAIL_ALLOC_AFTER="3",
    )
    assert result.returncode == 0, result.stderr
    assert "refused:" in result.stdout and "out of board memory" in result.stdout
    assert result.stdout.endswith("3.0\n")


def test_every_allocation_may_fail_without_harm():
    code = """
        from tenon import nn
        try:
            model = nn.Linear(4, 2).to("toy")
            model(tenon.ones([3, 4], device="toy")).sum().backward()
        except MemoryError:
            print("refused")
    """
    for limit in (0, 1, 2, 4, 8, 12, 16):
        result = in_new_process(code, TOY_FAIL_ALLOC_AFTER=str(limit))
        assert result.returncode == 0, (limit, result.stderr)


def test_the_plugin_is_unloaded_when_nothing_uses_it_and_loads_again():
    result = in_new_process(
        """
        from tenon import plugins
        x = tenon.ones([2], device="toy")
        try:
            plugins.unload("toy")
        except RuntimeError as error:
            print(error)
        del x
        plugins.unload("toy")
        print(open("/proc/self/maps").read().count("libtenon_toy"))
        tenon.load_plugin(PATH)
        print(tenon.ones([2], device="toy").tolist())
    """.replace("PATH", repr(TOY))
    )
    assert result.returncode == 0, result.stderr
    assert "in use" in result.stdout
    assert result.stdout.endswith("\n0\n[1.0, 1.0]\n")
