# SPDX-License-Identifier: Apache-2.0
"""Device plugins in processes of their own: the same results, and a crash that is only an error."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

LIBRARIES = os.path.join(
    os.environ.get("TENON_BUILD_DIR", "build/release"), "plugins/isolated/tests/libraries"
)
TOY = os.path.abspath(os.path.join(LIBRARIES, "libtenon_toy.so"))
BRITTLE = os.path.abspath(os.path.join(LIBRARIES, "libtenon_brittle.so"))
pytestmark = pytest.mark.skipif(
    not (os.path.exists(TOY) and os.path.exists(BRITTLE)),
    reason="TENON_BUILD_DIR names no build with tests",
)

PRELUDE = f"""
import os, signal, subprocess, sys, threading, time
import numpy as np
import tenon
from tenon import nn, plugins

TOY, BRITTLE = {TOY!r}, {BRITTLE!r}

def process_of(name):
    path = next(entry["path"] for entry in plugins.list() if entry["name"] == name)
    return int(path.rpartition(" ")[2])

def error_of(call):
    try:
        call()
    except Exception as error:
        return f"{{type(error).__name__}}: {{error}}"
    return "no error"

def order(number):
    return tenon.tensor([float(number), 1.0], device="brittle")

def wait_until_dead(process):
    while os.path.exists(f"/proc/{{process}}"):
        time.sleep(0.001)
"""


def run(code, **environment):
    """What the code prints, run in a program of its own."""
    result = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TENON_PLUGIN_TRUST": "any", **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


# ---- the same results ------------------------------------------------------------------------

EXPRESSIONS = [
    "exp(x)", "-x", "abs(x)", "relu(x)", "sqrt(x * x)", "tanh(x)", "square(x)", "reciprocal(x)",
    "x + y", "x - y", "x * y", "x / (y * y + 1.0)", "x + 1", "2 * x", "x ** 2.0", "1.0 - x",
    "maximum(x, y)", "minimum(x, y)", "where(x > y, x, y)", "where(x > 0.0, x, 0.5)", "lerp(x, y, 0.25)",
    "x > y", "x == x", "isfinite(x)", "x[1]", "x[:, 1:3] + 1.0", "x.transpose() + y.transpose()",
    "x.flip([1]) + y", "x + x[0]", "x + row", "column * x", "x.transpose().contiguous()",
    "x.sum()", "sum(x, [0])", "sum(x, [1], keepdim=True)", "mean(x, [0, 1])", "max(x, [-1])", "min(x)",
    "matmul(x, y.transpose())", "matmul(z, y.transpose())", "matmul(z, z.transpose())", "z.reshape([6, 4])",
    "(x > 0).to(float32)", "x.to(float64) * 2", "x.to(int32)", "x.to(float16) + 0.1", "x.to(complex64) * 2j",
    "x.to(int64) + 3", "softmax(x)", "log_softmax(x)", "gelu(x)", "layer_norm(x, normalized_ndim=1)", "cumsum(x, 0)",
    "concat([x, y, row.reshape([1, 4])], 0)", "stack([x, y])", "x.split(2)[0] + 1.0", "sort(x)", "argmax(x, 1)",
    "gather(x, index, 1)", "nonzero(x > 0)", "x[x > 0]", "einsum('ij,kj->ik', x, y)", "full([2, 3], 7.0, device=DEVICE)",
    "arange(5, device=DEVICE)", "uniform([5], device=DEVICE)", "normal([3, 2], device=DEVICE) + uniform([2], device=DEVICE)",
    "dropout(x, 0.5)", "conv2d(image, kernel)", "max_pool2d(image, 2)", "clip(x, -0.5, 0.5)", "x.to('cpu') + 1.0",
    "x.to('toy:1') * 2.0", "zeros([0, 3], device=DEVICE) + 1.0", "norm(x)", "batch_norm_out(image)",
]  # fmt: skip

EVALUATE = """
DEVICE = "toy"
plugins.load(TOY, isolated=ISOLATED)

class Names(dict):
    def __missing__(self, name):
        return getattr(tenon, name)

def batch_norm_out(image):
    layer = nn.BatchNorm2d(2).to(DEVICE)
    return layer(image)

def tensor(*shape):
    return tenon.tensor(rng.normal(size=shape).astype(np.float32), device=DEVICE)

for expression in EXPRESSIONS:
    rng = np.random.default_rng(0)
    tenon.manual_seed(5)
    names = Names(
        x=tensor(3, 4), y=tensor(3, 4), z=tensor(2, 3, 4), row=tensor(4), column=tensor(3, 1),
        index=tenon.tensor([[0, 1], [2, 3], [-1, 0]], device=DEVICE),
        image=tensor(1, 2, 6, 6), kernel=tensor(3, 2, 3, 3), DEVICE=DEVICE, batch_norm_out=batch_norm_out)
    try:
        result = eval(expression, {}, names)
        host = result.to("cpu")
        print(expression, result.device, result.dtype, result.shape, host.contiguous().tolist())
    except Exception as error:
        print(expression, type(error).__name__, error)
print(sorted((row["op"], row["lowered"], row["host"]) for row in tenon.fallback_report("toy")))
print(sorted(plugins.coverage("toy", "float32").items()))
print(tenon.random.get_state(DEVICE))
"""


def evaluate(isolated, expressions, **environment):
    code = f"EXPRESSIONS = {expressions!r}\nISOLATED = {isolated}\n"
    return run(code + EVALUATE, **environment).split("\n")


@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_results_equal_those_in_process(policy):
    expected = evaluate(False, EXPRESSIONS, TENON_FALLBACK=policy)
    actual = evaluate(True, EXPRESSIONS, TENON_FALLBACK=policy)
    good = [line for line in expected if " toy:" in line.partition("[")[0] or " cpu:" in line]
    assert len(good) > len(EXPRESSIONS) // 2
    for mine, theirs in zip(actual, expected):
        assert mine == theirs
    assert len(actual) == len(expected)


def test_results_of_unknown_shape_come_back():
    assert (
        run("""
        plugins.load(BRITTLE, isolated=True)
        tenon.fallback("deny")
        x = tenon.tensor([0.0, 5.0, 0.0, 7.0], device="brittle")
        print(tenon.nonzero(x).tolist(), tenon.nonzero(tenon.zeros([3], device="cpu").to("brittle")).shape)
        tenon.fallback("allow")
        print(tenon.nonzero(x.reshape([2, 2])).tolist())  # the kernel declines matrices
    """)
        == "[[1], [3]] (0, 1)\n[[0, 1], [1, 1]]"
    )


def test_random_numbers_continue_where_the_program_stands():
    code = """
        plugins.load(BRITTLE, isolated=ISOLATED)
        tenon.manual_seed(42)
        draw = lambda count: tenon.uniform([count], device="brittle").tolist()
        print(draw(3), draw(2))
        state = tenon.random.get_state("brittle")
        print(state, draw(2))
        tenon.random.set_state(state, "brittle")
        print(draw(2))
        tenon.manual_seed(7)
        print(draw(1))
    """
    assert run(code.replace("ISOLATED", "True")) == run(code.replace("ISOLATED", "False"))


def test_networks_train():
    code = """
        plugins.load(TOY, isolated=ISOLATED)
        tenon.manual_seed(1)
        rng = np.random.default_rng(0)
        x = tenon.tensor(rng.normal(size=(32, 8)).astype(np.float32), device="toy")
        target = tenon.tensor(rng.integers(0, 3, size=32), device="toy")
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to("toy")
        optimizer = tenon.optim.SGD(model.parameters(), lr=0.5)
        for step in range(30):
            loss = nn.functional.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item())
    """
    losses = run(code.replace("ISOLATED", "True")).split()
    assert losses == run(code.replace("ISOLATED", "False")).split()
    assert float(losses[-1]) < 0.9 * float(losses[0])


def test_large_copies_arrive_whole():
    assert run("""
        plugins.load(TOY, isolated=True)
        for count in (1, 65535, 65536, 65537, 1000003):  # around the size of a piece
            array = np.random.default_rng(count).integers(0, 1 << 30, size=count, dtype=np.int32)
            there = tenon.tensor(array).to("toy")
            print((there.to("toy:1").to("cpu").numpy() == array).all())
    """) == "\n".join(["True"] * 5)


def test_threads_call_together():
    assert (
        run("""
        plugins.load(TOY, isolated=True)
        wrong = []
        def work(seed):
            array = np.random.default_rng(seed).normal(size=(50, 60)).astype(np.float32)
            for _ in range(50):
                x = tenon.tensor(array, device="toy")
                if not np.array_equal(((x + 1.0) * x).to("cpu").numpy(), (array + np.float32(1)) * array):
                    wrong.append(seed)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(wrong)
    """)
        == "[]"
    )


def test_policies_of_the_program_apply():
    output = run("""
        plugins.load(BRITTLE, isolated=True)
        x = order(0)
        with tenon.fallback("deny"):
            print(error_of(lambda: tenon.exp(x)))
        with tenon.fallback("deny,brittle:exp=allow"):
            print(tenon.exp(x).tolist()[0])
    """)
    refused, value = output.split("\n")
    assert refused.startswith("PolicyError: [exp] brittle:0 has no kernel for float32")
    assert value == "1.0"


# ---- the end of a process ---------------------------------------------------------------------


def test_killed_from_outside():
    output = run("""
        plugins.load(BRITTLE, isolated=True)
        host = tenon.arange(4, dtype=tenon.float32)
        x, y = host.to("brittle"), order(2)
        process = process_of("brittle")
        os.kill(process, signal.SIGKILL)
        wait_until_dead(process)
        for call in (lambda: -x, lambda: x.to("cpu"), lambda: host.to("brittle"), lambda: x + 1.0,
                     lambda: tenon.synchronize("brittle"), lambda: tenon.zeros([1 << 22], device="brittle")):
            print(error_of(call).replace(str(process), "PROCESS"))
        print(error_of(lambda: plugins.unload("brittle")))
        del x, y
        print(host.tolist(), (host + 1.0).tolist())
        plugins.unload("brittle")
        plugins.load(BRITTLE, isolated=True)
        print((-host.to("brittle")).tolist(), process_of("brittle") != process)
    """).split("\n")
    death = (
        "plugin brittle 0.9.0 (isolated process PROCESS) died: signal 9 (Killed); "
        "its tensors are lost; let go of them, unload it and load it again"
    )
    assert output[0] == f"DeviceError: [negative] > {death}"
    for line in output[1:6]:
        assert line.startswith("DeviceError: ") and line.endswith(death), line
    assert output[6].startswith("RuntimeError: plugin brittle is in use") and "IN_USE" in output[6]
    assert output[7:] == [
        "[0.0, 1.0, 2.0, 3.0] [1.0, 2.0, 3.0, 4.0]",
        "[-0.0, -1.0, -2.0, -3.0] True",
    ]


@pytest.mark.parametrize(
    "number, ending",
    [
        (1001, "died: signal 11 (Segmentation fault)"),
        (1003, "died: it exited with code 3"),
    ],
)
def test_kernels_that_break(number, ending):
    output = run(f"""
        plugins.load(BRITTLE, isolated=True)
        x = order({number})
        process = process_of("brittle")
        for _ in range(2):
            print(error_of(lambda: -x).replace(str(process), "PROCESS"))
        del x
        plugins.unload("brittle")
        plugins.load(BRITTLE, isolated=True)
        print((-order(2)).tolist())
    """).split("\n")
    for line in output[:2]:
        assert line == (
            f"DeviceError: [negative] > plugin brittle 0.9.0 (isolated process PROCESS) {ending}; "
            "its tensors are lost; let go of them, unload it and load it again"
        )
    assert output[2] == "[-2.0, -1.0]"


def test_kernels_that_throw_fail_and_go_on():
    output = run("""
        plugins.load(BRITTLE, isolated=True)
        x, process = order(1004), process_of("brittle")
        print(error_of(lambda: -x))
        print(x.tolist()[0], (-order(2)).tolist(), process_of("brittle") == process)
    """).split("\n")
    assert output[0] == (
        "InternalError: an exception of unknown type escaped from [tenon::negative] "
        "the kernel of plugin brittle for brittle"
    )
    assert output[1] == "1004.0 [-2.0, -1.0] True"


def test_kernels_that_hang():
    output = run("""
        plugins.load(BRITTLE, isolated=True, deadline=0.5)
        x, process = order(1002), process_of("brittle")
        start = time.monotonic()
        print(error_of(lambda: -x).replace(str(process), "PROCESS"))
        print(0.4 < time.monotonic() - start < 5, os.path.exists(f"/proc/{process}"))
    """).split("\n")
    assert output[0] == (
        "DeviceError: [negative] > plugin brittle 0.9.0 (isolated process PROCESS) did not answer within "
        "0.5 s and was ended; its tensors are lost; let go of them, unload it and load it again"
    )
    assert output[1] == "True False"


def test_the_deadline_comes_from_the_environment_too():
    code = """
        print(error_of(lambda: plugins.load(BRITTLE, isolated=True)))
        print("did not answer within 0.25 s" in error_of(lambda: -order(1002)))
    """
    assert run(code, TENON_ISOLATED_DEADLINE="0.25") == "no error\nTrue"
    refused = run(code, TENON_ISOLATED_DEADLINE="soon").split("\n")[0]
    assert "TENON_ISOLATED_DEADLINE: expected a number of seconds, got 'soon'" in refused


def test_damaged_shared_memory_harms_nobody_else():
    output = run("""
        plugins.load(BRITTLE, isolated=True, deadline=1)
        host, x, process = tenon.arange(4), order(1007), process_of("brittle")
        error = "no error"  # at first: the noise spreads while it answers
        while error == "no error":
            error = error_of(lambda: -x)
        print(error.replace(str(process), "PROCESS"))
        print(host.tolist())
        del x
        plugins.unload("brittle")
    """).split("\n")
    # Either an answer makes no sense, or none comes in time.
    assert "plugin brittle 0.9.0 (isolated process PROCESS) " in output[0]
    assert output[1] == "[0, 1, 2, 3]"


def test_errors_of_kernels_are_errors_here():
    output = run("""
        plugins.load(BRITTLE, isolated=True)
        print(error_of(lambda: -order(1005)))
        print((-order(2)).tolist())
    """)
    assert output == "IndexError: brittle: no such thing\n[-2.0, -1.0]"


def test_two_plugins_do_not_share_their_fate():
    assert (
        run("""
        plugins.load(BRITTLE, isolated=True)
        plugins.load(TOY, isolated=True)
        x = tenon.ones([2], device="toy")
        print("signal 11" in error_of(lambda: -order(1001)), (x + 1.0).tolist())
    """)
        == "True [2.0, 2.0]"
    )


def test_kernels_of_others_run_over_there():
    code = """
        more = os.path.join(os.path.dirname(BRITTLE), "more")
        if BEFORE: tenon.load_plugin(os.path.join(more, "libtenon_brittle_kernels.so"))
        else: plugins.add_folder(more)
        plugins.load(BRITTLE, isolated=True)
        ran_in = tenon.square(order(2)).to("cpu").tolist()[0]
        print(ran_in == process_of("brittle"), ran_in)
    """
    # What runs over there takes consent from the environment.
    consent = {"TENON_OVERRIDES": "brittle_kernels"}
    assert run(code.replace("BEFORE", "False"), **consent).startswith("True ")
    # Known to this process only: not called, with addresses of another.
    assert run(code.replace("BEFORE", "True"), **consent) == "False 4.0"


# ---- loading and unloading --------------------------------------------------------------------


def test_unloading_waits_for_tensors_and_ends_the_process():
    output = run("""
        plugins.load(TOY, isolated=True)
        x, process = tenon.ones([2], device="toy"), process_of("toy")
        print(error_of(lambda: plugins.unload("toy")))
        print((x + 1.0).tolist())  # it goes on
        del x
        plugins.unload("toy")
        print(os.path.exists(f"/proc/{process}"), "toy" in str(tenon.devices()))
        for _ in range(40):  # more often than there is room for plugins
            plugins.load(TOY, isolated=True)
            x = tenon.ones([2], device="toy")
            del x
            plugins.unload("toy")
        plugins.load(TOY)
        print(tenon.ones([2], device="toy").tolist())
    """).split("\n")
    assert "in use" in output[0] and "1 memory block" in output[0]
    assert output[1:] == ["[2.0, 2.0]", "False False", "[1.0, 1.0]"]


def test_nothing_is_left_of_a_refused_plugin():
    output = run("""
        def children():  # zombies too
            count = 0
            for entry in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{entry}/stat") as file:
                        count += int(file.read().rpartition(")")[2].split()[1]) == os.getpid()
                except OSError:
                    pass
            return count
        print(error_of(lambda: plugins.load("/nowhere/libtenon_acme.so", isolated=True)))
        os.environ["BRITTLE_LOAD"] = "refuse"
        print(error_of(lambda: plugins.load(BRITTLE, isolated=True)))
        os.environ["BRITTLE_LOAD"] = "crash"
        print(error_of(lambda: plugins.load(BRITTLE, isolated=True)))
        standard_ops = next(e["path"] for e in plugins.list() if e["name"] == "standard_ops")
        print(error_of(lambda: plugins.load(standard_ops, isolated=True)))
        plugins.load(TOY)
        print(error_of(lambda: plugins.load(TOY, isolated=True)))
        print(error_of(lambda: plugins.load(TOY, deadline=3)))
        print(children())
        del os.environ["BRITTLE_LOAD"]
        plugins.load(BRITTLE, isolated=True)
        print(children())
    """).split("\n")
    assert "isolated > " in output[0] and "[NOT_FOUND]" in output[0]
    assert output[1].startswith("DeviceError: ") and "brittle: no driver here" in output[1]
    assert BRITTLE + " (isolated process" in output[2] and "died: signal 11" in output[2]
    assert "plugin standard_ops brings no device, and only devices can be isolated" in output[3]
    assert "toy" in output[4] and "[NAME_TAKEN]" in output[4]
    assert output[5] == "ValueError: deadline: only isolated plugins have one; pass isolated=True"
    assert output[6:] == ["0", "1"]


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_process_ends_with_the_program(end):
    code = f"""
        loader = threading.Thread(target=lambda: plugins.load(TOY, isolated=True))
        loader.start()
        loader.join()  # the thread that loaded it is gone, the process is not
        assert (tenon.ones([1], device="toy") + 1.0).item() == 2.0
        print(process_of("toy"), flush=True)
        {end}
    """
    process = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        env={**os.environ, "TENON_PLUGIN_TRUST": "any"},
    ).stdout.strip()
    assert process.isdigit()
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{process}"):
        assert time.monotonic() < deadline, f"process {process} outlived its program"
        time.sleep(0.005)


def test_forked_children_are_told():
    output = run("""
        plugins.load(TOY, isolated=True)
        plugins.load(BRITTLE, isolated=True)
        x = tenon.ones([2], device="toy")
        child = os.fork()
        if child == 0:
            print(error_of(lambda: x.to("cpu")))
            print(error_of(lambda: tenon.ones([1], device="brittle")))  # not opened before
            print(error_of(lambda: plugins.load(TOY, isolated=True)), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print((x + 1.0).tolist())
    """).split("\n")
    assert output[0] != "no error"  # the device is lost, as without isolation
    assert "serves the process that loaded it and not its forked children" in output[1]
    assert "a forked child cannot load plugins" in output[2]
    assert output[3] == "[2.0, 2.0]"


def test_interrupts_are_for_the_program():
    assert (
        run("""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
        plugins.load(BRITTLE, isolated=True)
        os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None
        try:
            os.killpg(0, signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            print("interrupted", (-order(2)).tolist())
    """)
        == "interrupted [-2.0, -1.0]"
    )


def test_the_program_refuses_to_be_started_by_hand():
    import tenon

    host = os.path.join(tenon.sdk_path(), "bin", "tenon-plugin-host")
    result = subprocess.run([host], capture_output=True, text=True)
    assert result.returncode == 2 and "isolated=True" in result.stderr
