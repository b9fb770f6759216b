# SPDX-License-Identifier: Apache-2.0
"""Executors of aclnn that run again: with the addresses of the call, and only where nothing else differs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from vendor import programs

SIMULATED = {
    "TENON_ASCEND_RUNTIME": programs.LIBRARIES / "libsimulated_ascendcl.so",
    "TENON_ASCEND_OPERATORS": programs.LIBRARIES / "libsimulated_opapi.so",
}
if not all(path.exists() for path in SIMULATED.values()):
    pytest.skip("not built: ninja simulated_ascend", allow_module_level=True)

COUNTS = """
import ctypes, gc, os
counts = ctypes.CDLL(os.environ["TENON_ASCEND_OPERATORS"]).simulated_calls
counts.restype = ctypes.c_uint64
runtime = ctypes.CDLL(os.environ["TENON_ASCEND_RUNTIME"])
def calls(name):
    return counts(name.encode())
def to(values, dtype="float32"):
    return tenon.tensor(values, dtype=dtype).to("ascend")
"""


def run(code, executors=64, **environment):
    output = programs.run(SIMULATED, COUNTS + code, TENON_ASCEND_EXECUTORS=executors, **environment)
    return output.split()


@pytest.mark.parametrize("executors, plans", [(64, 1), (0, 5)])
def test_calls_that_differ_in_addresses_alone_are_planned_once(executors, plans):
    output = run(
        """
xs = [to([float(i), 2.0]) for i in range(5)]
sums = [x + xs[4] for x in xs[:4]] + [xs[3] + xs[0]]
print(calls("aclnnAdd"), [s.tolist()[0] for s in sums], calls("refused"))
""",
        executors,
    )
    assert output == [str(plans), "[4.0,", "5.0,", "6.0,", "7.0,", "3.0]", "0"]


# Each line differs from the one before it in one thing that the executor depends on.
DIFFERENCES = {
    "function": ("x + y", "x * y"),
    "scalar": ("x.clip(0.0, 1.5)", "x.clip(0.0, 2.5)"),
    "dtype of a scalar": ("tenon.full((4,), 1, dtype='float32', device='ascend') / 2", "x / 2.5"),
    "number": ("tenon.tril(m, 0)", "tenon.tril(m, 1)"),
    "flag": ("tenon.sort(x, descending=False)", "tenon.sort(x, descending=True)"),
    "text": ("tenon.gelu(x, approximate=False)", "tenon.gelu(x, approximate=True)"),
    "axis": ("tenon.cumsum(m, 0)", "tenon.cumsum(m, 1)"),
    "list": ("tenon.sum(m, 0)", "tenon.sum(m, 1)"),
    "margins": ("tenon.pad(x, [1, 2])", "tenon.pad(x, [2, 1])"),
    "shape": ("m.reshape(2, 8) @ m.reshape(8, 2)", "m.reshape(1, 16) @ m.reshape(16, 1)"),
    "strides": ("m @ w", "tenon.linear(m, w)"),
    "dtype": ("x + y", "i + i"),
    "length of a list": ("tenon.concat([x, y])", "tenon.concat([x, y, x])"),
    "tensor that is absent": (
        "tenon.layer_norm(m)",
        "tenon.layer_norm(m, x, y)",
    ),
    "which tensor is absent": ("tenon.layer_norm(m, x)", "tenon.layer_norm(m, None, x)"),
    "tensors that are one": ("x * y", "x * x"),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_what_else_differs_is_planned(what):
    first, second = DIFFERENCES[what]
    code = f"""
x, y = to([1.0, -2.0, 3.0, 0.5]), to([4.0, 5.0, 6.0, 7.0])
m, w, i = to(np.arange(16.0).reshape(4, 4)), to(np.arange(16.0).reshape(4, 4) % 3), to([1, 2, 3, 4], "int32")
for _ in range(2):
    print(*({first}).to("cpu").reshape(-1).tolist(), *({second}).to("cpu").reshape(-1).tolist())
print(calls("refused"))
"""
    output = run(code, 64)
    assert output == run(code, 0)
    assert output[-1] == "0"
    half = len(output) // 2
    assert output[:half] == output[half:-1]


def test_addresses_that_coincide_are_planned():
    """CANN leaves out copies onto the same address, so that such an executor serves no others."""
    output = run(
        """
x, y = to([1.0, 2.0]), to([3.0, 4.0])
print((x * x).tolist(), calls("aclnnMul"), (x * y).tolist(), calls("aclnnMul"), (y * y).tolist(), calls("aclnnMul"))
"""
    )
    assert output == ["[1.0,", "4.0]", "1", "[3.0,", "8.0]", "2", "[9.0,", "16.0]", "2"]


def test_the_mode_of_determinism_is_part_of_the_plan():
    output = run(
        """
x = to([1.0, 2.0])
for mode in (0, 0, 1, 1, 0):
    assert runtime.aclrtSetSysParamOpt(0, ctypes.c_int64(mode)) == 0
    x + x
    print(calls("aclnnAdd"))
print(calls("refused"))
"""
    )
    assert output == ["1", "1", "2", "2", "2", "0"]


def test_more_executors_than_are_kept_end_when_their_work_has():
    output = run(
        """
ended = []
with tenon.Stream("ascend") as stream:
    x = [tenon.ones(8 + i, device="ascend") for i in range(24)]
    results = []
    for turn in range(8):
        results += [x[i] + x[i] for i in range(3 * turn, 3 * turn + 3)]
    ended.append(calls("aclDestroyAclOpExecutor"))  # nothing was waited for
    stream.synchronize()
    for turn in range(8):
        results += [x[i] * x[i] for i in range(3 * turn, 3 * turn + 3)]
        stream.synchronize()
    ended.append(calls("aclDestroyAclOpExecutor"))
kept = calls("aclSetAclOpExecutorRepeatable") - ended[1]
print(ended[0], ended[1] > 10, 0 < kept <= 2 * 6, calls("refused"))
print(all((y == 2).all().item() for y in results[:24]), all((y == 1).all().item() for y in results[24:]))
""",
        executors=6,
        SIMULATED_DELAY_US=20000,
    )
    assert output == ["0", "True", "True", "0", "True", "True"]


def test_executors_end_with_their_stream():
    output = run(
        """
with tenon.Stream("ascend") as stream:
    x = tenon.ones(4, device="ascend")
    y = x.exp() + x
stream.synchronize()
made = calls("aclSetAclOpExecutorRepeatable")
del stream, x, y
gc.collect()
print(made > 0, calls("aclDestroyAclOpExecutor") == made, calls("refused"))
""",
        SIMULATED_DELAY_US=300,
    )
    assert output == ["True", "True", "0"]


def test_threads_have_executors_of_their_own():
    output = run(
        """
import threading
x = to([1.0, 2.0])
wrong = []
def work(number):
    for i in range(50):
        if ((x + number) * number).tolist() != [(1 + number) * number, (2 + number) * number]:
            wrong.append((number, i))
threads = [threading.Thread(target=work, args=(float(n),)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(wrong), calls("refused"))
"""
    )
    assert output == ["0", "0"]


def test_recorded_calls_are_planned_and_stay_right():
    output = run(
        """
x, y = tenon.ones(8, device="ascend"), tenon.ones(8, device="ascend")
stream = tenon.Stream("ascend")
graph = tenon.Graph("ascend")
x * y
with graph.capture():
    z = x * y
for value in (2.0, 3.0):
    x.copy_(tenon.full(8, value, device="ascend"))
    (y * y).sum().item()
    graph.replay()
    print(z.sum().item())
print(calls("refused"))
""",
        SIMULATED_DELAY_US=200,
    )
    assert output == ["16.0", "24.0", "0"]


def test_a_function_that_cannot_run_again_is_planned_each_time():
    output = run(
        """
x, image = to([1.0, 2.0]), to(np.ones((1, 1, 4, 4)))
for _ in range(3):
    x + x
    tenon.avg_pool2d(image, 2)
print(calls("aclnnAdd"), calls("aclnnAvgPool2d"), calls("aclSetAclOpExecutorRepeatable"), calls("refused"))
""",
        SIMULATED_FAIL="aclSetAclOpExecutorRepeatable:1:561000",
    )
    assert output == ["3", "3", "1", "0"]  # neither is tried again


@pytest.mark.parametrize(
    "failure, text",
    [
        ("aclSetTensorAddr:1:561103", "aclnnAdd: aclSetTensorAddr returned 561103"),
        ("run aclnnAdd:2:561000", "aclnnAdd returned 561000"),
    ],
)
def test_an_executor_that_failed_is_not_used_again(failure, text):
    output = " ".join(
        run(
            """
x = to([1.0, 2.0])
x + x
try:
    x + x
except RuntimeError as error:
    print(error)
print((x + x).tolist(), (x + x).tolist(), calls("aclnnAdd"))
""",
            SIMULATED_FAIL=failure,
        )
    )
    assert text in output
    assert output.endswith("[2.0, 4.0] [2.0, 4.0] 2")


def test_samples_give_the_same_bits():
    """All samples of operators, one after another in one process: calls of one shape and other arguments follow each other."""
    results = []
    for executors in (0, 256):
        environment = {name: str(value) for name, value in SIMULATED.items()}
        result = subprocess.run(
            [sys.executable, Path(__file__).with_name("run_samples.py"), "--digest"],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, **environment, "TENON_ASCEND_EXECUTORS": str(executors)},
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert "simulated aclnn" not in result.stderr
        results.append(result.stdout.splitlines())
    assert len(results[0]) > 500
    assert [pair for pair in zip(*results, strict=True) if pair[0] != pair[1]] == []
