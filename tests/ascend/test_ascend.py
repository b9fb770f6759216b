# SPDX-License-Identifier: Apache-2.0
"""The device ascend on simulated libraries: what is missing, what fails, what the bindings say."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from vendor import programs

ROOT = Path(__file__).parents[2]
SIMULATED = {
    "TENON_ASCEND_RUNTIME": programs.LIBRARIES / "libsimulated_ascendcl.so",
    "TENON_ASCEND_OPERATORS": programs.LIBRARIES / "libsimulated_opapi.so",
}
# A build without tests/simulated, as under sanitizers, has nothing to run the device on.
if not all(path.exists() for path in SIMULATED.values()):
    pytest.skip("not built: ninja simulated_ascend", allow_module_level=True)


def run(code, **environment):
    return programs.run(SIMULATED, code, **environment)


def bindings():
    """(operator, function) of each entry, and the lines of the entry."""
    text = "\n".join(
        path.read_text() for path in sorted((ROOT / "plugins/ascend/bindings").glob("*.yaml"))
    )
    return re.findall(r"- op: (\w+)\n  call: (\w+)(\(.*\n(?:  .*\n)*)", text)


def test_bound_operators_run_on_the_device():
    output = run(
        """
        x = tenon.tensor([[1., -2.], [3., 4.]]).to("ascend")
        with tenon.fallback("deny"):
            print((x @ x).relu().sum().item(), tenon.gelu(x, approximate=True).device)
        print(tenon.plugins.explain("exp", device="ascend")["route"])
        """
    )
    assert output.split() == ["25.0", "ascend:0", "native"]


def test_views_and_positions_stay_on_the_device():
    output = run(
        """
        x = tenon.tensor([[1., 2., 3.], [4., 5., 6.]]).to("ascend")
        last = tenon.tensor([-1, 0]).to("ascend")
        with tenon.fallback("deny"):
            print((tenon.flip(x)[:, ::2] + x.transpose()[::2].transpose()).tolist())
            x.transpose()[::-1] = x.transpose() + 0
            print(x.tolist(), tenon.index_select(x, last, 1).tolist(), x[last].tolist())
            print(tenon.zeros((0, 3), device="ascend").shape, tenon.arange(3, 0, -2, device="ascend").tolist())
        """
    )
    assert output.splitlines() == [
        "[[7.0, 7.0], [7.0, 7.0]]",
        "[[3.0, 2.0, 1.0], [6.0, 5.0, 4.0]] [[1.0, 3.0], [4.0, 6.0]] [[6.0, 5.0, 4.0], [3.0, 2.0, 1.0]]",
        "(0, 3) [3, 1]",
    ]


def test_several_index_tensors_are_one_call():
    output = run(
        """
        import ctypes, os
        calls = ctypes.CDLL(os.environ["TENON_ASCEND_OPERATORS"]).simulated_calls
        random = np.random.default_rng(0)
        x = random.normal(size=(4, 4, 4, 4)).astype("float32")
        on_chip = tenon.tensor(x).to("ascend")
        for shapes in (((3, 1), (2,)), ((2, 2), (2, 2), (1, 2)), ((4,), ())):
            index = [random.integers(-4, 4, shape) for shape in shapes]
            index[0] = index[0].astype("int32")
            tensors = [tenon.tensor(one).to("ascend") for one in index]
            with tenon.fallback("deny"):
                for axis in (0, 1, -len(index)):
                    expected = x[(slice(None),) * (axis % 4) + tuple(index)]
                    got = tenon.index(on_chip, tensors, axis)
                    print(np.array_equal(got.to("cpu").numpy(), expected))
                value = random.normal(size=x[tuple(index)].shape).astype("float32")
                put = tenon.index_put(on_chip, tensors, tenon.tensor(value).to("ascend"), accumulate=True)
            expected = x.copy()
            np.add.at(expected, tuple(index), value)
            print(np.allclose(put.to("cpu").numpy(), expected, rtol=1e-5))
        print(calls(b"aclnnGatherNd"), calls(b"aclnnIndexPutImpl"), calls(b"refused"))
        """
    )
    assert output.split() == ["True"] * 12 + ["9", "3", "0"]


def test_adam_is_one_call_wherever_its_results_lie():
    output = run(
        """
        import ctypes, os
        calls = ctypes.CDLL(os.environ["TENON_ASCEND_OPERATORS"]).simulated_calls
        random = np.random.default_rng(0)
        values = [np.abs(random.normal(size=(3, 5))).astype("float32") for _ in range(4)]
        host = [tenon.tensor(value) for value in values]
        steps = {"step": 3, "lr": 0.1, "beta2": 0.99}
        calls_of = {
            "adamw": lambda *t, **k: tenon.adamw_update(*t, **steps, weight_decay=0.2, **k),
            "adam": lambda *t, **k: tenon.adam_update(*t, **steps, **k),
            "counted": lambda *t, **k: tenon.adam_update_counted(
                *t, tenon.full([], 3.0, device=t[0].device), lr=0.1, beta2=0.99, weight_decay=0.2, decoupled=True, **k),
            "decayed": lambda *t, **k: tenon.adam_update(*t, **steps, weight_decay=0.2, **k),
        }
        for name, call in calls_of.items():
            expected = call(*host)
            before = calls(b"aclnnApplyAdamWV2")
            right = []
            for operands in (None, (0, 2, 3), (1, 2, 3), (2, 3, 0)):  # in place, and where another operand lies
                chip = [tenon.tensor(value).to("ascend") for value in values]
                out = {} if operands is None else {"out": tuple(chip[i] for i in operands)}
                with tenon.fallback("deny"):
                    got = call(*chip, **out)
                right += [np.allclose(a.to("cpu").numpy(), b.numpy(), rtol=2e-5, atol=1e-6) for a, b in zip(got, expected)]
            print(name, all(right), calls(b"aclnnApplyAdamWV2") - before)
        empty = tenon.zeros((0, 3), device="ascend")
        print(*(t.shape for t in tenon.adamw_update(empty, empty, empty, empty, step=1)))
        print(calls(b"aclnnApplyAdamWV2"), calls(b"refused"))
        """
    )
    assert output.splitlines() == [
        "adamw True 4",
        "adam True 4",
        "counted True 4",
        "decayed True 0",  # from the gradient, which the function does not do
        "(0, 3) (0, 3) (0, 3)",
        "12 0",
    ]


def test_attention_is_one_call_with_its_gradients():
    output = run(
        """
        import ctypes, os
        calls = ctypes.CDLL(os.environ["TENON_ASCEND_OPERATORS"]).simulated_calls
        random = np.random.default_rng(0)
        def attend(device, dtype, shapes, causal):
            tensors = [tenon.tensor(array).to(dtype).to(device) for array in shapes]
            for tensor in tensors: tensor.requires_grad = True
            out = tenon.scaled_dot_product_attention(*tensors, causal=causal, scale=0.3)
            (out * out).sum().backward()
            return [x.to("float32").to("cpu").numpy() for x in (out.detach(), *(t.grad for t in tensors))]
        cases = [((2, 3, 5, 16), (2, 3, 7, 16)), ((4, 6, 32), (4, 6, 32)), ((2, 16), (9, 16)), ((2, 1, 2, 4, 16), (2, 1, 2, 4, 16))]
        for query, key in cases:
            arrays = [random.normal(size=shape).astype("float32") for shape in (query, key, key)]
            for causal in (False, True):
                got = attend("ascend", "float16", arrays, causal)
                # Of the same numbers, as float16 holds them; results and what is between are rounded to its eleven bits.
                expected = attend("cpu", "float32", [array.astype("float16").astype("float32") for array in arrays], causal)
                print(all(np.allclose(a, b, rtol=2e-2, atol=2e-2) for a, b in zip(got, expected)))
        # The logarithm, which gradients of other devices' kernels read.
        logarithms = []
        keep = lambda operator, arguments, results: operator == "attention" and logarithms.append(results[1])
        with tenon.utils.Observer(keep):
            for device in ("cpu", "ascend"):
                tenon.scaled_dot_product_attention(*(tenon.tensor(x).to("float16").to(device) for x in arrays), causal=True, scale=0.3)
        a, b = (x.to("cpu").numpy() for x in logarithms)
        # Scores of both are float16's.
        print(a.shape == b.shape, np.allclose(a, b, rtol=2e-3))
        print(calls(b"aclnnFusedInferAttentionScoreV2"), calls(b"refused"))
        """,
        TENON_FALLBACK="deny",
    )
    assert output.split() == ["True"] * 10 + ["9", "0"]


@pytest.mark.parametrize(
    "arguments",
    ["x, x, x", "h, h, w", "f, f, f", "h[:1], h, h", "h, h, h, mask=m"],
)
def test_attention_that_the_page_does_not_promise_is_made_of_others(arguments):
    output = run(
        f"""
        import ctypes, os
        calls = ctypes.CDLL(os.environ["TENON_ASCEND_OPERATORS"]).simulated_calls
        x = tenon.ones((3, 8), device="ascend", dtype="float16")  # features that are no multiple of 16
        h, f = (tenon.ones((3, 16), device="ascend", dtype=dtype) for dtype in ("float16", "float32"))
        w = tenon.ones((3, 32), device="ascend", dtype="float16")
        m = tenon.ones((3, 3), device="ascend", dtype="bool")
        print((tenon.scaled_dot_product_attention({arguments}) == 1).all().item())
        print(calls(b"aclnnFusedInferAttentionScoreV2"))
        """,
        TENON_FALLBACK="deny",
    )
    assert output.split() == ["True", "0"]


def test_functions_that_are_not_deterministic_are_held_back():
    output = run(
        """
        for wanted in (True, False):
            tenon.use_deterministic_algorithms(wanted)
            print(tenon.explain("conv2d_weight_grad", "ascend", "float32")["route"])
        """
    )
    assert output.split() == ["lowered", "native"]


def test_each_binding_names_a_page_and_serves_other_calls_than_the_rest():
    entries = bindings()
    assert len(entries) == len(set(entries))
    assert len({operator for operator, *_ in entries}) >= 150
    for _, function, lines in entries:
        assert re.search(r"  source: ops-(?:math|nn)/\S+/aclnn\S+\.md\n", lines), function


def test_each_function_is_called_by_samples():
    """An entry that no call reaches would say more than is true."""
    functions = sorted(
        {function for _, function, _ in bindings()}
        | {"aclnnInplaceCopy", "aclnnFlip", "aclnnApplyAdamWV2"}
        | {"aclnnFusedInferAttentionScoreV2"}
    )
    environment = {name: str(value) for name, value in SIMULATED.items()}
    result = subprocess.run(
        [sys.executable, Path(__file__).with_name("run_samples.py"), *functions],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert result.stdout == "never called:\n", result.stdout + result.stderr


@pytest.mark.parametrize("variable", sorted(SIMULATED))
def test_a_library_that_is_missing_is_named(variable):
    code = 'print(tenon.ones(3).to("ascend").exp().sum().item())'
    output = run(code, **{variable: "/nowhere/lib.so"})
    if variable == "TENON_ASCEND_RUNTIME":
        assert "AscendCL was not found (/nowhere/lib.so" in output
        assert "source its set_env.sh, or set TENON_ASCEND_RUNTIME" in output
    else:  # operators run on the host
        assert float(output) == pytest.approx(3 * 2.718281828, rel=1e-6)


def test_a_function_that_is_missing_turns_its_operator_off(tmp_path):
    """A library that has none of the functions of aclnn, only what makes parameters."""
    source = tmp_path / "old.c"
    names = [
        f"acl{verb}{kind}"
        for verb in ("Create", "Destroy")
        for kind in ("Tensor", "TensorList", "Scalar", "IntArray", "BoolArray")
    ]
    source.write_text("".join(f"void* {name}(void) {{ return 0; }}\n" for name in names))
    library = tmp_path / "libold.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    output = run(
        """
        x = tenon.ones(3).to("ascend")
        print(x.exp().sum().item(), tenon.plugins.explain("exp", device="ascend")["route"])
        """,
        TENON_ASCEND_OPERATORS=library,
    )
    value, route = output.split()
    assert float(value) == pytest.approx(3 * 2.718281828, rel=1e-6)
    assert route != "native"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ("aclnnExp:1:161002", "[tenon::exp] > ascend: aclnnExpGetWorkspaceSize returned 161002"),
        ("aclrtMemcpy:2:507899", "ascend: aclrtMemcpy returned 507899"),
        ("aclrtSynchronizeStream:1:507015", "ascend: "),
    ],
)
def test_failures_are_errors_that_name_the_function(failure, text):
    output = run(
        """
        x = tenon.ones(3).to("ascend")
        print(x.exp().tolist())
        """,
        SIMULATED_FAIL=failure,
    )
    assert "InternalError" in output
    assert text in output


def test_memory_that_runs_out_is_a_memory_error():
    output = run(
        """
        try:
            tenon.zeros(100_000_000, device="ascend")
        except MemoryError as error:
            print("MemoryError", error)
        print(tenon.ones(3, device="ascend").sum().item())
        """,
        SIMULATED_ASCEND_MEMORY_MB=64,
    )
    assert output.startswith("MemoryError")
    assert "aclrtMalloc returned 207001 (EL0004: the device is out of memory)" in output
    assert output.split()[-1] == "3.0"


def test_the_host_cannot_read_the_memory_of_the_device():
    code = """
        import ctypes
        x = tenon.ones(3).to("ascend")
        ctypes.string_at(x.data_ptr(), 4)
    """
    program = "import tenon\n" + textwrap.dedent(code)
    environment = {name: str(value) for name, value in SIMULATED.items()}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env={**os.environ, **environment}
    )
    assert result.returncode < 0  # a signal


def test_streams_keep_the_order_that_events_ask_for():
    output = run(
        """
        first, second = tenon.Stream("ascend"), tenon.Stream("ascend")
        x = tenon.ones((64, 64), device="ascend")
        right = 0
        for _ in range(20):
            with first:
                y = x @ x
                event = tenon.Event("ascend")
                event.record(first)
            with second:
                second.wait(event)
                z = y + 1
            second.synchronize()
            right += int((z == 65).all().item())
        print(right)
        """,
        SIMULATED_DELAY_US=2000,
    )
    assert output.split() == ["20"]


def test_graphs_replay_what_a_stream_was_given():
    output = run(
        """
        x, y = tenon.ones((8, 8), device="ascend"), tenon.rand((8, 8), device="ascend")
        x @ y
        graph = tenon.Graph("ascend")
        with graph.capture():
            z = (x @ y).floor_divide(0.5) + tenon.arange(8, device="ascend")
        for number in (1.0, 2.0, 3.0):
            fresh = tenon.full((8, 8), number, device="ascend")
            x.copy_(fresh)
            graph.replay()
            expected = (fresh @ y).floor_divide(0.5).to("cpu") + tenon.arange(8)
            print(tenon.allclose(z.to("cpu"), expected, rtol=1e-6).item())
        """,
        TENON_FALLBACK="deny",
        SIMULATED_DELAY_US=500,
    )
    assert output.split() == ["True"] * 3


@pytest.mark.parametrize(
    "statement, text",
    [
        ("x.to('cpu')", "a copy between host and device while its stream is captured"),
        ("tenon.synchronize('ascend')", "sync"),
    ],
)
def test_what_cannot_be_captured_is_refused_by_name(statement, text):
    output = run(
        f"""
        x = tenon.ones(8, device="ascend")
        graph = tenon.Graph("ascend")
        try:
            with graph.capture():
                {statement}
        except Exception as error:
            print(type(error).__name__, error)
        print((x + 1).sum().item())
        """
    )
    assert text in output and output.endswith("16.0\n"), output


def test_a_profile_names_the_functions_and_their_times():
    output = run(
        """
        x = tenon.ones((64, 64), device="ascend")
        with tenon.profile("ascend") as profile:
            for _ in range(3):
                y = x @ x + 1
        records = [record for record in profile.records if record.name.startswith("aclnn")]
        assert all(a.end_ns <= b.begin_ns for a, b in zip(records, records[1:])), records
        print(*(record.name for record in records))
        """
    )
    assert output.split() == ["aclnnMatmul", "aclnnAdd"] * 3, output


MARKS = programs.LIBRARIES / "libsimulated_mstx.so"


def test_operators_have_their_names_in_the_timeline_of_msprof(tmp_path):
    timeline = tmp_path / "timeline"
    run(
        """
        x = tenon.ones((8, 8), device="ascend")
        with tenon.Stream("ascend") as stream:
            y = (x @ x).exp()
            stream.synchronize()
        graph = tenon.Graph("ascend")
        with graph.capture():
            z = x @ x
        graph.replay()
        tenon.synchronize("ascend")
        """,
        TENON_ASCEND_MARKS=MARKS,
        SIMULATED_MSPROF=timeline,
        SIMULATED_DELAY_US=300,
    )
    ranges = [line.split("|") for line in timeline.read_text().splitlines()]
    assert {domain for domain, *_ in ranges} == {"tenon"}
    times = {}
    for _, name, *numbers in ranges:
        times.setdefault(name, []).append([int(number) for number in numbers])
    # Where its stream is captured the product is on the host alone.
    (begin, end, *chip), (_, _, *captured) = sorted(times["tenon::matmul: aclnnMatmul"])
    assert begin <= end and begin <= chip[0] < chip[1]
    assert captured == [0, 0]
    ((_, _, *later),) = times["tenon::exp: aclnnExp"]
    assert chip[1] <= later[0]


@pytest.mark.parametrize(
    "environment, text",
    [
        ({}, "mstxDomainCreateA made no domain"),
        ({"TENON_ASCEND_MARKS": "/nowhere/lib.so"}, "names no library: /nowhere/lib.so"),
        (
            {"TENON_ASCEND_MARKS": SIMULATED["TENON_ASCEND_OPERATORS"]},
            "the library lacks mstxDomainCreateA",
        ),
    ],
)
def test_without_marks_a_warning_says_why(environment, text):
    code = "import tenon; print((tenon.ones(3, device='ascend') + 1).tolist())"
    variables = SIMULATED | {"TENON_ASCEND_MARKS": MARKS} | environment
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **{name: str(value) for name, value in variables.items()}},
    )
    assert result.stdout == "[2.0, 2.0, 2.0]\n", result.stderr
    assert result.stderr.count("operators are not marked") == 1
    assert text in result.stderr


@pytest.mark.parametrize("access", ["0", "1"])
def test_chips_that_reach_each_other_copy_directly(access):
    """In the order of the streams of both, whose work is late; chips that do not reach each other copy through the host."""
    output = run(
        """
        import ctypes
        there = "ascend:1"
        sources, targets = tenon.Stream("ascend:0"), tenon.Stream(there)
        x, y = tenon.zeros([5000], device="ascend:0"), tenon.zeros([5000], device=there)
        for round in range(4):
            for streams in ((), (sources,), (targets,), (sources, targets)):
                y.fill_(-1.0)
                for stream in streams:
                    stream.__enter__()
                x.fill_(float(round))
                x.add_(1.0)
                y.sub_(1.0)
                y.copy_(x)
                x.fill_(-2.0)
                y.add_(1.0)
                values = y.cpu()
                for stream in reversed(streams):
                    stream.synchronize()
                    stream.__exit__(None, None, None)
                assert values.min().item() == values.max().item() == round + 2, (round, len(streams))
        """
        f"""
        failures = ctypes.CDLL("{programs.LIBRARIES}/libsimulated_failures.so")
        print(failures.simulated_calls(b"aclrtDeviceCanAccessPeer"), failures.simulated_calls(b"aclrtDeviceEnablePeerAccess"))
        """,
        SIMULATED_ASCEND_DEVICES="2",
        SIMULATED_ASCEND_PEERS=access,
        SIMULATED_DELAY_US="500",
    )
    assert output.split() == ["1", access]


@pytest.mark.parametrize(
    "failure, expected",
    [
        ("aclrtDeviceEnablePeerAccess:1:107002", "[True]"),
        ("aclrtDeviceCanAccessPeer:1:207000", "[True]"),
        (
            "aclrtMemcpy:2:507899",
            "aclrtMemcpy returned 507899",
        ),  # the first brings the tensor to the chip
    ],
)
def test_a_refusal_of_access_is_a_detour_and_a_failed_copy_an_error(failure, expected):
    output = run(
        """
        x = tenon.tensor([1., 2.]).to("ascend:0")
        try:
            print([x.to("ascend:1").tolist() == [1., 2.]])
        except RuntimeError as error:
            print(error)
        """,
        SIMULATED_ASCEND_DEVICES="2",
        SIMULATED_FAIL=failure,
    )
    assert expected in output
