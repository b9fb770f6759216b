# SPDX-License-Identifier: Apache-2.0
"""Device plugins that are wrong: each is refused with the reason, and nothing else suffers."""

import hashlib
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
def root(trusted):
    """A CUSTOM_DEVICE_ROOT with a good plugin between bad ones."""
    for name in ("faulty_throws", "standin", "faulty_old_layout"):
        shutil.copy(library(name), trusted)
    for name, text in (("libbroken.so", "no library"), ("readme.txt", "not looked at")):
        with open(os.path.join(trusted, name), "w") as file:
            file.write(text)
    return trusted


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


# -- the rules for plugins' files: docs/plugins.md

NAMED = """
import sys, tenon
from tenon.compat import paddle
try:
    paddle.load_device_plugin(sys.argv[1])
    x = tenon.tensor([1.0, 2.0], device="standin")
    print((x + x).tolist(), [plugin["path"] for plugin in paddle.device_plugins()])
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
UNKNOWN = """
import warnings, tenon
warnings.simplefilter("always")
try:
    x = tenon.tensor([1.0, 2.0], device="standin")
    print((x + x).tolist())
except tenon.NotFoundError as error:
    print("NotFoundError")
"""


@pytest.fixture
def plugin(trusted):
    """A good plugin, alone in a folder that no other user can change."""
    return shutil.copy(library("standin"), trusted)


def pinned(*paths):
    """Settings under which exactly the files `paths` may be loaded."""
    lock = os.path.join(os.path.dirname(paths[0]), "lock")
    with open(lock, "w") as file:
        for path in paths:
            with open(path, "rb") as content:
                file.write(f"{hashlib.sha256(content.read()).hexdigest()}  {path}\n")
    return {"TENON_PLUGIN_POLICY": "pinned", "TENON_PLUGIN_LOCK": lock}


def loading(program, path, **environment):
    environment.setdefault("TENON_PLUGIN_TRUST", "")
    program = f"import sys; sys.argv[1:] = [{path!r}]\n{program}"
    code, out, err = run_python(program, **environment)
    assert code == 0, err
    return out.strip(), err


def test_a_plugin_that_others_can_change_is_refused(plugin):
    assert loading(NAMED, plugin)[0].startswith("[2.0, 4.0]")
    os.chmod(plugin, 0o666)
    out, _ = loading(NAMED, plugin)
    assert out.startswith(f"PolicyError: load Paddle device plugin {plugin}")
    assert "can be changed by everyone" in out and out.endswith("[WRITABLE]")
    # The user vouches for what the program names, and for nothing that lies in a folder.
    assert loading(NAMED, plugin, TENON_PLUGIN_TRUST="any")[0].startswith("[2.0, 4.0]")
    folder = {"CUSTOM_DEVICE_ROOT": os.path.dirname(plugin), "TENON_PLUGIN_TRUST": "any"}
    out, err = loading(UNKNOWN, plugin, **folder)
    assert out == "NotFoundError" and "[WRITABLE]" in err


def test_the_folder_of_the_environment_must_be_trusted(plugin, trusted):
    folder = {"CUSTOM_DEVICE_ROOT": trusted}
    assert loading(UNKNOWN, plugin, **folder)[0] == "[2.0, 4.0]"
    os.chmod(trusted, 0o777)
    out, err = loading(UNKNOWN, plugin, TENON_PLUGIN_TRUST="any", **folder)
    assert out == "NotFoundError" and "[NOT_ALLOWED_DIR]" in err


def test_a_policy_holds_for_the_folder_of_the_environment(plugin, trusted):
    folder = {"CUSTOM_DEVICE_ROOT": trusted}
    assert loading(UNKNOWN, plugin, **folder, **pinned(plugin))[0] == "[2.0, 4.0]"
    out, err = loading(
        UNKNOWN, plugin, **folder, TENON_PLUGIN_POLICY="pinned", TENON_PLUGIN_LOCK="/no/lock"
    )
    assert out == "NotFoundError" and "[NOT_PINNED]" in err
    out, err = loading(UNKNOWN, plugin, **folder, TENON_PLUGIN_POLICY="signed")
    assert out == "NotFoundError" and "[CANNOT_VERIFY]" in err


def test_a_policy_holds_for_a_named_plugin(plugin):
    settings = pinned(plugin)
    out, _ = loading(NAMED, plugin, **settings)
    assert out == f"[2.0, 4.0] ['{plugin}']"  # its path, though a copy was examined and loaded
    with open(plugin, "ab") as file:
        file.write(b"\0")
    out, _ = loading(NAMED, plugin, **settings)
    assert "is not what was pinned" in out and out.endswith("[NOT_PINNED]")


FROM_C = """
import ctypes, os, sys, tenon
from tenon.compat import paddle
library = ctypes.CDLL(os.path.join(os.path.dirname(paddle.__file__), "base", "libpaddle.so"))
sink_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
sink = sink_type(lambda _, text, size: print(ctypes.string_at(text, size).decode()))
tenon.plugins.list()
for load in library.tenon_paddle_load_device_text, library.tenon_paddle_load_found_device_text:
    print(load(os.fsencode(sys.argv[1]), sink, None))
"""


def test_callers_from_c_have_a_function_for_each_rule(plugin):
    """Both take a path, a sink and its data, as programs that were built earlier call the first."""
    assert loading(FROM_C, plugin)[0] == "0\n0"
    os.chmod(plugin, 0o666)
    out = loading(FROM_C, plugin, TENON_PLUGIN_TRUST="any")[0]
    assert out == "0\n0", "it is loaded already"
    out = loading(FROM_C, plugin)[0]
    assert out.count("[WRITABLE]\n7") == 2
    swapped = FROM_C.replace("load_device_text, library.", "load_found_device_text, library.")
    swapped = swapped.replace("load_found_device_text:", "load_device_text:")
    out = loading(swapped, plugin, TENON_PLUGIN_TRUST="any")[0]
    assert out.endswith("[WRITABLE]\n7\n0"), "what was found in a folder is not vouched for"


def test_a_path_ends_where_it_ends(plugin):
    with pytest.raises(ValueError, match="path: expected one without NUL"):
        paddle.load_device_plugin(plugin + "\0.txt")
