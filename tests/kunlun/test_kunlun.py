# SPDX-License-Identifier: Apache-2.0
"""The device kunlun on simulated libraries: what is missing, what fails, copies of any strides, what the bindings say."""

import re
import subprocess
from pathlib import Path

import pytest
from vendor import programs

ROOT = Path(__file__).parents[2]
SIMULATED = {
    "TENON_KUNLUN_RUNTIME": programs.LIBRARIES / "libsimulated_xpurt.so",
    "TENON_KUNLUN_OPERATORS": programs.LIBRARIES / "libsimulated_xpuapi.so",
}
# A build without tests/simulated, as under sanitizers, has nothing to run the device on.
if not all(path.exists() for path in SIMULATED.values()):
    pytest.skip("not built: ninja simulated_kunlun", allow_module_level=True)


def run(code, **environment):
    return programs.run(SIMULATED, code, **environment)


def test_operators_run_on_the_device():
    output = run(
        """
        x = tenon.tensor([[1., -2.], [3., 4.]]).to("kunlun")
        with tenon.fallback("deny"):
            print((x @ x).relu().sum().item(), tenon.gelu(x, approximate=True).device)
            # Neither function exists in XDNN: both are made of primitives that do.
            print(tenon.sort(x, axis=1).tolist(), tenon.prelu(x, x[0]).device)
        print(tenon.plugins.explain("exp", device="kunlun")["route"])
        """
    )
    assert output.split("\n") == [
        "25.0 kunlun:0",
        "[[-2.0, 1.0], [3.0, 4.0]] kunlun:0",
        "native",
        "",
    ]


def test_copies_keep_any_strides_on_the_device():
    output = run(
        """
        x = np.arange(2 * 3 * 4).reshape(2, 3, 4)
        wrong = []
        for dtype in ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool"):
            t = tenon.tensor(x % 2 if dtype == "bool" else x).astype(dtype).to("kunlun")
            with tenon.fallback("deny"):
                for view in (t, t[:, ::-1], t[::-1, :, ::-2], t.permute((2, 0, 1)), t[:1].expand((5, 3, 4)), t[0, 1, 2]):
                    copy = view.contiguous()
                    into = tenon.zeros_like(view)[..., ::-1] if view.ndim else tenon.zeros_like(view)
                    into.copy_(view)
                    wide = view.astype("float32")
                    if not (copy.tolist() == view.cpu().tolist() == into.tolist() and wide.tolist() == view.cpu().astype("float32").tolist()):
                        wrong.append((dtype, view.shape))
        print(wrong)
        """
    )
    assert output == "[]\n"


@pytest.mark.parametrize("variable", sorted(SIMULATED))
def test_a_library_that_is_missing_is_named(variable):
    code = 'print(tenon.ones(3).to("kunlun").exp().sum().item())'
    output = run(code, **{variable: "/nowhere/lib.so"})
    if variable == "TENON_KUNLUN_RUNTIME":
        assert "XRE was not found (/nowhere/lib.so" in output
        assert "install XRE and XDNN of Kunlun, or set TENON_KUNLUN_RUNTIME" in output
    else:  # operators run on the host
        assert float(output) == pytest.approx(3 * 2.718281828, rel=1e-6)


def test_a_function_of_another_type_is_off_and_never_called(tmp_path):
    """A version of XDNN whose sizes have 32 bits: exp<float> has the same name in C++, but another one in the library."""
    source = tmp_path / "old.cpp"
    source.write_text(
        """
        namespace baidu::xpu::api {
        struct Context {};
        Context* create_context() { return new Context; }
        void destroy_context(Context* ctx) { delete ctx; }
        template <typename T> int exp(Context*, const T*, T*, int) { __builtin_trap(); }
        template int exp<float>(Context*, const float*, float*, int);
        }
        """
    )
    library = tmp_path / "libold.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-o", library, source], check=True)
    output = run(
        """
        x = tenon.ones(3).to("kunlun")
        print(x.exp().sum().item(), tenon.plugins.explain("exp", device="kunlun")["route"])
        """,
        TENON_KUNLUN_OPERATORS=library,
    )
    value, route = output.split()
    assert float(value) == pytest.approx(3 * 2.718281828, rel=1e-6)
    assert route != "native"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ("exp:1:4", "[tenon::exp] > kunlun: exp<float> returned 4 (not implemented)"),
        ("xpu_memcpy:2:-708", "kunlun: xpu_memcpy returned -708 (see xpu/defs.h)"),
        ("kernel:1:-714", "kunlun: xpu_wait returned -714 (a kernel failed)"),
        ("create_context:1:1", "kunlun: create_context returned nothing"),
    ],
)
def test_failures_are_errors_that_name_the_function(failure, text):
    output = run(
        """
        x = tenon.ones(3).to("kunlun")
        print(x.exp().tolist())
        """,
        SIMULATED_FAIL=failure,
    )
    assert "InternalError" in output
    assert text in output


def test_a_chip_that_died_leaves_the_process_and_other_devices_alive():
    output = run(
        """
        x = tenon.ones(3).to("kunlun")
        for _ in range(2):
            try:
                print(x.exp().tolist())
            except tenon.InternalError as error:
                print("-714" in str(error))
        print(tenon.ones(3).exp().sum().item() > 8)
        """,
        SIMULATED_FAIL="kernel:1:-714",
    )
    assert output.split() == ["True", "True", "True"]


def test_memory_that_runs_out_is_a_memory_error():
    output = run(
        """
        try:
            tenon.zeros(100_000_000, device="kunlun")
        except MemoryError as error:
            print("MemoryError", error)
        print(tenon.ones(3, device="kunlun").sum().item())
        """,
        SIMULATED_KUNLUN_MEMORY_MB=64,
    )
    assert output.startswith("MemoryError")
    assert "xpu_malloc returned -705 (device memory not enough)" in output
    assert output.split()[-1] == "3.0"


def test_each_binding_names_a_header_and_says_what_it_assumes():
    text = "".join(p.read_text() for p in (ROOT / "plugins/kunlun/bindings").glob("*.yaml"))
    entries = text.count("\n- op: ")
    assert entries > 130
    assert len(re.findall(r"\n  source: xpu/refactor/\w+\.h\n", text)) == entries
    # No header says what NaN gives where a maximum is taken.
    for entry in re.split(r"\n- op: ", text)[1:]:
        if re.search(r"(broadcast|reduce)_(max|min)<", entry):
            assert 'assumes: "NaN where' in entry, entry


def test_streams_keep_the_order_that_events_ask_for():
    output = run(
        """
        first, second = tenon.Stream("kunlun"), tenon.Stream("kunlun")
        x = tenon.ones((64, 64), device="kunlun")
        right = 0
        for number in range(20):
            with first:
                y = x.clone()
                y.copy_(x @ x + number)
                event = tenon.Event("kunlun")
                event.record(first)
            with second:
                second.wait(event)
                z = y.clone() + 1
            second.synchronize()
            right += int((z == 65 + number).all().item())
        print(right, event.query())
        """,
        SIMULATED_DELAY_US=2000,
    )
    assert output.split() == ["20", "True"]


def test_chips_work_beside_one_another_and_copy_to_each_other():
    """Late work shows a copy that does not wait for the other chip."""
    output = run(
        """
        import threading
        right = [0, 0]
        def train(chip):
            here, there = tenon.device(f"kunlun:{chip}"), tenon.device(f"kunlun:{1 - chip}")
            for number in range(10):
                x = tenon.full((64, 64), 1.0 + number, device=here)
                with tenon.Stream(here):
                    y = x @ x
                    moved = y.to(there)
                    back = moved[::2].T.to(here)
                right[chip] += str(moved.device) == str(there) and (back == 64 * (1 + number) ** 2).all().item()
        with tenon.fallback("deny"):
            threads = [threading.Thread(target=train, args=(chip,)) for chip in range(2)]
            [each.start() for each in threads]
            [each.join() for each in threads]
        print(right)
        x = tenon.ones(3, device="kunlun:0")
        try:
            print(x + x.to("kunlun:1"))
        except ValueError as error:
            print(error)
        try:
            tenon.ones(3, device="kunlun:2")
        except Exception as error:
            print(error)
        """,
        SIMULATED_KUNLUN_DEVICES=2,
        SIMULATED_DELAY_US=500,
    )
    lines = output.split("\n")
    assert lines[0] == "[10, 10]"
    assert "all tensors on one device, got `y` on kunlun:1 and others on kunlun:0" in lines[1]
    assert "kunlun:2" in lines[2]


def test_a_profile_names_the_functions_and_their_times():
    output = run(
        """
        x = tenon.ones((64, 64), device="kunlun:0")
        with tenon.profile("kunlun:0") as here, tenon.profile("kunlun:1") as there:
            for _ in range(3):
                y = x @ x + 1
            with tenon.Stream("kunlun:0"):
                y.clone().to("kunlun:1")
        records = here.records
        assert all(a.end_ns <= b.begin_ns for a, b in zip(records, records[1:])), records
        kernels = [record for record in records if record.kind == "kernel"]
        late = [record for record in kernels if record.end_ns - record.begin_ns > 100_000]
        assert len(late) >= 4, kernels  # of seven that begin up to 2 ms late
        print(*(record.name.split("<")[0] for record in kernels))
        print([(record.name, record.kind, record.bytes) for record in there.records])
        """,
        SIMULATED_KUNLUN_DEVICES=2,
        SIMULATED_DELAY_US=2000,
    )
    assert output.split("\n")[:2] == [
        "fc broadcast_add fc broadcast_add fc broadcast_add strided_copy",
        "[('copy', 'copy', 16384)]",
    ]


@pytest.mark.parametrize("failure", ["", "xpu_memcpy_peer:1:-712", "xpu_memcpy_peer:1:-708"])
def test_a_copy_between_chips_is_one_of_the_runtime(failure):
    """Chips that cannot reach each other (-712, not supported) copy through the host; other failures are errors."""
    output = run(
        """
        import ctypes
        x = tenon.tensor(np.arange(1000, dtype=np.float32)).to("kunlun:0")
        y = x.to("kunlun:1")
        print((y.cpu().numpy() == np.arange(1000)).all(), y.device)
        """
        f"""
        print(ctypes.CDLL("{programs.LIBRARIES}/libsimulated_failures.so").simulated_calls(b"xpu_memcpy"))
        """,
        SIMULATED_KUNLUN_DEVICES=2,
        SIMULATED_FAIL=failure,
    )
    if failure.endswith("708"):
        assert "InternalError" in output and "xpu_memcpy_peer returned -708" in output
        return
    copies = 4 if failure else 2  # to the first chip and from the second; and through the host
    assert output.split() == ["True", "kunlun:1", str(copies)]


@pytest.mark.parametrize("size", [2, 4])
def test_collectives_of_chips_go_through_the_host(size):
    output = run(
        f"""
        import threading
        from tenon import collective
        id, size = collective.create_id("kunlun"), {size}
        """
        """
        right = [None] * size
        def work(rank):
            device = f"kunlun:{rank}"
            with collective.Communicator(device, id, rank, size) as comm:
                x = tenon.full((1000,), 1.0 + rank, dtype="float16", device=device) * 2
                total = comm.all_reduce(x)
                joined = comm.all_gather(x[:2])
                from_last = comm.broadcast(x.clone(), root=size - 1)
                right[rank] = (
                    str(total.device) == device,
                    (total == size * (size + 1)).all().item(),
                    joined.tolist() == [2.0 + 2 * each for each in range(size) for _ in range(2)],
                    (from_last == 2 * size).all().item(),
                )
        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        print(right == [(True,) * 4] * size, right)
        """,
        SIMULATED_KUNLUN_DEVICES=size,
        SIMULATED_DELAY_US=500,
    )
    assert output.startswith("True"), output


def test_each_chip_has_its_own_memory():
    output = run(
        """
        large = [tenon.zeros(10_000_000, device=f"kunlun:{chip}") for chip in (0, 1)]  # 40 of 64 MiB each
        print([str(each.device) for each in large])
        try:
            tenon.zeros(10_000_000, device="kunlun:1")
        except MemoryError as error:
            print("kunlun:1" in str(error), "xpu_malloc returned -705" in str(error))
        """,
        SIMULATED_KUNLUN_DEVICES=2,
        SIMULATED_KUNLUN_MEMORY_MB=64,
    )
    assert output.split("\n")[:2] == ["['kunlun:0', 'kunlun:1']", "True True"]


def test_copies_from_pinned_memory_run_beside_the_program():
    output = run(
        f"""
        import ctypes
        waits = lambda: ctypes.CDLL("{programs.LIBRARIES}/libsimulated_failures.so").simulated_calls(b"xpu_wait")
        """
        """
        numbers = np.arange(100_000, dtype=np.float32)
        pinned = tenon.memory.pinned([100_000], device="kunlun")
        pinned.copy_(tenon.tensor(numbers))
        with tenon.Stream("kunlun"):
            for source in (pinned, tenon.tensor(numbers)):
                before = waits()
                x = source.to("kunlun")
                print(waits() - before)
                print(((x + 1).cpu().numpy() == numbers + 1).all())
        """,
        SIMULATED_DELAY_US=2000,
    )
    assert output.split() == ["0", "True", "1", "True"]


def test_without_streams_of_the_runtime_there_are_none(tmp_path):
    source, library = tmp_path / "old.c", tmp_path / "libold.so"
    names = "device_count device_get_attr set_device malloc free host_alloc host_free memcpy wait"
    source.write_text(
        "#include <dlfcn.h>\nstatic void* of(const char* name) { static void* library; if (!library) library = "
        f'dlopen("{SIMULATED["TENON_KUNLUN_RUNTIME"]}", RTLD_NOW); return dlsym(library, name); }}\n'
        + "".join(
            f'long xpu_{name}(long a, long b, long c, long d) {{ return ((long (*)(long, long, long, long))of("xpu_{name}"))'
            "(a, b, c, d); }\n"
            for name in names.split()
        )
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    output = run(
        """
        x = tenon.ones(4, device="kunlun")
        print(tenon.runtime.capabilities("kunlun"))
        """,
        TENON_KUNLUN_RUNTIME=library,
    )
    assert output.startswith("kunlun:0: ") and "streams" not in output, output
