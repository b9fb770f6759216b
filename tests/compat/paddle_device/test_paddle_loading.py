# SPDX-License-Identifier: Apache-2.0
"""Device plugins that are wrong: each is refused with the reason, and nothing else suffers."""

import os
import shutil

import numpy as np
import pytest
import tenon
from paddle_support import LIBRARIES, library, run_python
from tenon.compat import paddle

pytestmark = pytest.mark.skipif(
    not LIBRARIES.exists(), reason="TENON_BUILD_DIR has no stand-in plugins"
)

REFUSALS = [
    (
        "faulty_old_layout",
        RuntimeError,
        r"another layout of C_DeviceInterface: expected one of 920 bytes, got one of 912",
    ),
    ("faulty_new_layout", RuntimeError, r"expected one of 920 bytes, got one of at least 936"),
    ("faulty_reserved", RuntimeError, r"got a function at byte 736, which is reserved"),
    (
        "faulty_no_deallocate",
        RuntimeError,
        r"left required functions NULL: device_memory_deallocate",
    ),
    ("faulty_no_copy", RuntimeError, r"NULL: memory_copy_h2d, memory_copy_d2h"),
    ("faulty_no_type", RuntimeError, r"without naming a device_type"),
    (
        "faulty_old_version",
        RuntimeError,
        r"expected custom runtime version 0\.1\.1 or newer, got 0\.1\.0",
    ),
    ("faulty_throws", tenon.InternalError, r"InitPlugin threw: no driver on this machine"),
    ("faulty_initialize_fails", tenon.DeviceError, r"initialize failed with C_FAILED"),
    ("faulty_count_fails", tenon.DeviceError, r"get_device_count failed with C_INTERNAL_ERROR"),
    (
        "faulty_bad_name",
        ValueError,
        r"device_type: expected .* like \[a-z\]\[a-z0-9_\]\*, got 'Stand-In'",
    ),
    ("faulty_no_entry", tenon.NotFoundError, r"exports no InitPlugin"),
    (
        "faulty_cxx_interface",
        tenon.DeviceError,
        r"undefined symbol: _ZNK3phi13CustomContext4WaitEv; it uses PaddlePaddle's C\+\+ interface",
    ),
]


@pytest.mark.parametrize("name, error, text", REFUSALS, ids=[case[0] for case in REFUSALS])
def test_refused_with_the_reason(name, error, text):
    for _ in range(2):  # the library stays mapped: the second time must say the same
        with pytest.raises(error, match=text) as raised:
            paddle.load_device_plugin(library(name))
        assert f"load Paddle device plugin {library(name)}" in str(raised.value)
    assert "faulty" not in {plugin["device"] for plugin in paddle.device_plugins()}
    assert not any(str(device).startswith("faulty") for device in tenon.devices())


def test_a_file_that_is_not_there_or_no_library():
    with pytest.raises(tenon.NotFoundError, match="there is no such file"):
        paddle.load_device_plugin("/nowhere/libx.so")
    with pytest.raises(tenon.DeviceError, match="cannot be opened"):
        paddle.load_device_plugin(__file__)


def test_drifted_kernels_are_refused_and_not_called():
    paddle.load_device_plugin(library("standin_drifted"))
    (plugin,) = (p for p in paddle.device_plugins() if p["device"] == "standin_drifted")
    assert plugin["refusals"] == [
        "kernel relu: it is registered for backend 'standin_drfited', but the plugin provides "
        "'standin_drifted'",
        "kernel sum: expected (Tensor; IntArray, DataType, bool) -> (Tensor), got "
        "(Tensor; int64[], bool) -> (Tensor) (attribute 0: expected IntArray, got int64[]); "
        "it was written for another version of the kernel",
        "kernel argsort: expected (Tensor; int, bool, bool) -> (Tensor, Tensor), got "
        "(Tensor; int, bool) -> (Tensor, Tensor) (attribute 2: expected bool, got none); "
        "it was written for another version of the kernel",
    ]
    with tenon.fallback("allow"):
        x = tenon.tensor(np.array([2, 3, 1], np.int32), device="standin_drifted")
        assert tenon.argsort(x).tolist() == [2, 0, 1]
        assert tenon.sum(x.to(tenon.float32)).item() == 6
    assert tenon.relu(tenon.tensor([-1.0, 1.0], device="standin_drifted")).tolist() == [0, 1]


def test_a_second_plugin_of_the_same_type_is_refused(tmp_path):
    paddle.load_device_plugin(library("standin"))
    paddle.load_device_plugin(library("standin"))  # the same file: nothing to do
    copy = shutil.copy(library("standin"), tmp_path / "libother.so")
    with pytest.raises(
        ValueError, match="device type 'standin' is already provided by .*libstandin.so"
    ):
        paddle.load_device_plugin(copy)


@pytest.fixture
def root(tmp_path):
    """A CUSTOM_DEVICE_ROOT with a good plugin between bad ones."""
    for name in ("faulty_throws", "standin", "faulty_old_layout"):
        shutil.copy(library(name), tmp_path)
    (tmp_path / "libbroken.so").write_text("no library")
    (tmp_path / "readme.txt").write_text("not looked at")
    return str(tmp_path)


def test_a_folder_is_loaded_past_what_is_bad_in_it(root):
    program = """
import tenon
from tenon.compat import paddle
for path, error in paddle.load_all().items():
    print(path.split("/")[-1], "loaded" if error is None else type(error).__name__)
print(tenon.tensor([1.0, 2.0], device="standin").tolist())
"""
    code, out, err = run_python(program, CUSTOM_DEVICE_ROOT=root)
    assert code == 0, err
    assert out.splitlines() == [
        "libbroken.so DeviceError",
        "libfaulty_old_layout.so RuntimeError",
        "libfaulty_throws.so InternalError",
        "libstandin.so loaded",
        "[1.0, 2.0]",
    ]


def test_the_folder_of_the_environment_loads_when_a_device_is_not_known(root):
    program = """
import tenon
print(tenon.tensor([1.0, 2.0], device="standin").tolist())
try:
    tenon.device("nonesuch")
except tenon.NotFoundError as error:
    print(error)
"""
    code, out, err = run_python(program, CUSTOM_DEVICE_ROOT=root)
    assert code == 0, err
    assert out.splitlines()[0] == "[1.0, 2.0]"
    assert "nonesuch" in out.splitlines()[1]
    code, out, err = run_python("import tenon; tenon.ones([2]) + 1", CUSTOM_DEVICE_ROOT="/nowhere")
    assert code == 0, err


def test_the_command_line_lists_it(root):
    program = "from tenon.cli import main; import sys; sys.exit(main(['plugins', 'list']))"
    code, out, err = run_python(
        "import tenon; tenon.device('standin')\n" + program, CUSTOM_DEVICE_ROOT=root
    )
    assert code == 0, err
    assert "paddle_standin" in out and os.path.join(root, "libstandin.so") in out
