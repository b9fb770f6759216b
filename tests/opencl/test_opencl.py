# SPDX-License-Identifier: Apache-2.0
"""The OpenCL device from Python: what a program sees of the driver, of streams and of profiles."""

import os
import shutil
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import tenon


def why_not():
    try:
        tenon.device("opencl")
    except tenon.DeviceError as error:
        return str(error)
    return None


REASON = why_not()
needs_driver = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def in_new_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", "import tenon\n" + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


NAMED = """
    assert tenon.ones([2]).sum().item() == 2
    try:
        tenon.device("opencl")
    except tenon.DeviceError as error:
        print(error)
"""


def test_an_absent_library_is_named_when_the_device_is():
    result = in_new_process(NAMED, TENON_OPENCL_LIBRARY="libabsent_opencl.so.1")
    assert result.returncode == 0, result.stderr
    assert "driver library libabsent_opencl.so.1 not found" in result.stdout
    assert "[NO_DEVICE]" in result.stdout


@needs_driver
def test_an_unknown_platform_is_answered_with_those_there_are():
    result = in_new_process(NAMED, TENON_OPENCL_PLATFORM="no such platform")
    assert "got 'no such platform'; there are 0 (" in result.stdout, result.stderr


@needs_driver
def test_operators_run_without_the_host():
    code = """
        import numpy as np
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        y = tenon.tensor(x).to("opencl")
        np.testing.assert_allclose((y @ y.T).cpu().numpy(), x @ x.T)
        np.testing.assert_allclose(y[:, ::2].sum(0).cpu().numpy(), x[:, ::2].sum(0))
    """
    result = in_new_process(code, TENON_FALLBACK="deny")
    assert result.returncode == 0, result.stderr


@needs_driver
def test_events_order_streams():
    first, second = tenon.Stream("opencl"), tenon.Stream("opencl")
    x = tenon.ones([1000], device="opencl")
    for round in range(20):
        with first:
            y = x * round
            for _ in range(10):
                y = y + 1
        second.wait(first)
        with second:
            z = (y * 2).cpu()
        np.testing.assert_array_equal(z.numpy(), np.full(1000, 2.0 * (round + 10)))


@needs_driver
def test_threads_work_side_by_side():
    results = {}

    def work(number):
        with tenon.Stream("opencl"):
            x = tenon.full([1000], float(number), device="opencl")
            for _ in range(50):
                x = x + 1
            results[number] = x.cpu().numpy()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_array_equal(results[number], np.full(1000, number + 50.0))


@needs_driver
def test_profiles_name_kernels():
    x = tenon.ones([100_000], device="opencl")
    (x + x).cpu()
    with tenon.profile("opencl") as profile:
        for _ in range(5):
            x + x
        x.cpu()
    assert len(profile.records) >= 6
    assert all(record.end_ns >= record.begin_ns for record in profile.records)
    kinds = [record.kind for record in profile.records]
    assert kinds.count("kernel") == 5 and kinds.count("copy") == 1


@needs_driver
def test_running_out_of_memory_is_an_error_and_no_end():
    with pytest.raises(MemoryError, match="opencl: alloc .* B: "):
        tenon.zeros([1 << 45], dtype="uint8", device="opencl")
    assert tenon.ones([3], device="opencl").sum().item() == 3


@needs_driver
def test_a_group_that_found_no_memory_is_one_kernel_when_there_is_some():
    code = """
        x = tenon.ones([1000], device="opencl")
        function = lambda x: ((x * 2 + 1).relu() - 0.5).exp()
        with tenon.no_grad():
            program = tenon.export(function, (x,))
            expected = function(x).cpu()
        taken, size = [], 1 << 28
        while size >= 1 and len(taken) < 64:
            try:
                taken.append(tenon.empty([size], dtype="uint8", device="opencl"))
            except MemoryError:
                size //= 2
            if sum(each.numel() for each in taken) > 1 << 30:
                print("no limit")
                raise SystemExit
        assert "one by one" in program.plan() and "out of memory" in program.plan()
        del taken
        tenon.memory.trim()
        assert "one kernel" in program.plan()
        with tenon.no_grad():
            assert (program(x).cpu() == expected).all()
    """
    result = in_new_process(code, POCL_MEMORY_LIMIT="1")  # GiB; other drivers do not know it
    assert result.returncode == 0, result.stderr
    if "no limit" in result.stdout:
        pytest.skip("only pocl can be given so little memory that it is used up in a moment")


@needs_driver
def test_a_forked_child_is_told_that_drivers_do_not_fork():
    x = tenon.ones([3], device="opencl")
    child = os.fork()
    if child == 0:
        try:
            tenon.ones([3], device="opencl")
        except tenon.DeviceError as error:
            os._exit(7 if "before this process was forked" in str(error) else 2)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert x.sum().item() == 3


@needs_driver
def test_unloading_leaves_nothing_mapped():
    code = """
        import gc
        x = tenon.ones([4], device="opencl") * 2
        assert x.sum().item() == 8
        del x
        gc.collect()
        tenon.plugins.unload("kernel_c")
        tenon.plugins.unload("opencl")
        assert not [line for line in open("/proc/self/maps") if "libtenon_opencl" in line]
        assert tenon.ones([4], device="opencl").sum().item() == 4
    """
    result = in_new_process(code)
    assert result.returncode == 0, result.stderr


# The driver's library, which denies that the device has float64.
WITHOUT_FLOAT64 = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
int clGetDeviceInfo(void *device, unsigned name, size_t size, void *value, size_t *needed) {
  int (*real)(void *, unsigned, size_t, void *, size_t *) = dlsym(RTLD_NEXT, "clGetDeviceInfo");
  int status = real(device, name, size, value, needed);
  if (name == 0x1032 && value) memset(value, 0, size); /* CL_DEVICE_DOUBLE_FP_CONFIG */
  return status;
}
"""


@needs_driver
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_without_float64_complex128_is_refused_and_complex64_computed(tmp_path):
    source, library = tmp_path / "driver.c", tmp_path / "libdriver.so"
    source.write_text(WITHOUT_FLOAT64)
    driver = os.environ.get("TENON_OPENCL_LIBRARY", "libOpenCL.so.1")
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-o",
        library,
        source,
        "-ldl",
        "-Wl,--no-as-needed",
        f"-l:{driver}",
    ]
    subprocess.run(command, check=True)
    result = in_new_process(
        """
        x = tenon.tensor([3 + 4j, -1j]).to("opencl")
        print(abs(x * x / x).to("cpu").numpy().tolist(), x.log().dtype)
        wide = tenon.tensor([3 + 4j], dtype=tenon.complex128).to("opencl")
        for call in (lambda: wide + wide, lambda: wide.sum(), lambda: x.to("complex128"), lambda: wide.to("complex64")):
            try:
                print(call())
            except Exception as error:
                print(error)
        """,
        TENON_OPENCL_LIBRARY=str(library),
        TENON_FALLBACK="deny",
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "[5.0, 1.0] complex64"
    refusal = (
        "expected a dtype that this device can compute in, got complex128, whose parts are float64; "
        "make it complex64 on the host, before it is moved here"
    )
    for op, line in zip(("add", "sum", "cast", "cast"), lines[1:], strict=True):
        assert f"[{op}" in line and refusal in line
