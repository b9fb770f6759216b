# SPDX-License-Identifier: Apache-2.0
"""TENON_PLUGIN_POLICY: which bytes are loaded."""

import os
import shutil
import struct
import subprocess

import pytest
from plugin_support import FAULTY_PLUGINS, command, copy_plugin, python
from tenon.cli.plugins.elf_lint import DT_AUXILIARY, DT_NEEDED, DT_RPATH, DT_RUNPATH
from tenon.cli.plugins.missing import companions

LOAD = """
import sys, tenon
try:
    tenon.load_plugin(sys.argv[1])
    print("loaded", tenon.ones(2).sum().item())
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


def load(path, **environment):
    code, out, err = python("-c", LOAD, path, **environment)
    assert code == 0, err
    return out.strip()


def test_any_is_the_default_and_a_word(library):
    assert load(library).startswith("loaded")
    assert load(library, TENON_PLUGIN_POLICY="any").startswith("loaded")
    assert load(library, TENON_PLUGIN_POLICY="").startswith("loaded")


def test_an_unknown_policy_loads_nothing(library):
    text = load(library, TENON_PLUGIN_POLICY="strict")
    assert "expected any, pinned or signed, got 'strict'" in text
    assert text.endswith("[CANNOT_VERIFY]")


def test_own_plugins_are_part_of_the_host():
    code, out, _ = python(
        "-c", "import tenon; print(tenon.ones(2).sum().item())", TENON_PLUGIN_POLICY="pinned"
    )
    assert (code, out) == (0, "2.0\n")


def test_own_plugins_that_are_loaded_by_their_path_are_part_of_the_host(tmp_path):
    """The interpreter of operator files lies below the host's own folder."""
    file = tmp_path / "acme.yaml"
    file.write_text(
        "namespace: acme_policy\nops:\n- op: twice\n  doc: Twice.\n  sig: (Tensor x) -> Tensor\n"
        "  kind: elementwise\n  dtypes: {compute: promote_float, allow: floating}\n  expr: x + x\n  example: twice([1.]) ~= [2.]\n"
    )
    program = "import tenon, sys; print(tenon.ops.load(sys.argv[1]).twice(tenon.ones(2)).tolist())"
    code, out, err = python("-c", program, file, TENON_PLUGIN_POLICY="pinned")
    assert (code, out) == (0, "[2.0, 2.0]\n"), err


def test_the_policy_plugin_is_loaded_only_for_a_policy(library):
    program = "import tenon, sys; tenon.load_plugin(sys.argv[1]); print([p['name'] for p in tenon.plugins.list() if p['state'] == 'loaded'])"
    assert "'policy'" not in python("-c", program, library)[1]
    text = load(library, TENON_PLUGIN_POLICY="pinned", TENON_PLUGINS_DISABLE="policy")
    assert "TENON_PLUGIN_POLICY=pinned needs the plugin 'policy' beside the host" in text
    assert text.endswith("[CANNOT_VERIFY]")


# -- pinned ---------------------------------------------------------------------------------------


@pytest.fixture
def pinned(folder):
    return {"TENON_PLUGIN_POLICY": "pinned", "TENON_PLUGIN_LOCK": os.path.join(folder, "lock")}


def test_pinned_needs_a_lock(library, pinned):
    text = load(library, **pinned)
    assert f"{library} is not pinned: there is no lock file {pinned['TENON_PLUGIN_LOCK']}" in text
    assert text.startswith("PolicyError") and text.endswith("[NOT_PINNED]")
    text = load(library, TENON_PLUGIN_POLICY="pinned", TENON_PLUGIN_LOCK="lock")
    assert "to its full path [NOT_PINNED]" in text


def test_pinned_loads_what_the_lock_lists(folder, library, pinned):
    code, out, err = command("plugins", "lock", library, **pinned)
    assert code == 0, err
    assert out.endswith("lock: 1 plugin\n")
    assert load(library, **pinned).startswith("loaded")
    # sha256sum and the lock understand each other, both ways.
    subprocess.run(["sha256sum", "-c", "--quiet", pinned["TENON_PLUGIN_LOCK"]], check=True)
    lines = subprocess.run(["sha256sum", library], check=True, capture_output=True).stdout
    with open(pinned["TENON_PLUGIN_LOCK"], "rb") as file:
        assert file.read() == lines
    # The same bytes elsewhere.
    os.mkdir(os.path.join(folder, "moved"))
    moved = shutil.move(library, os.path.join(folder, "moved", "other_name.so"))
    assert load(moved, **pinned).startswith("loaded")


def test_pinned_refuses_other_bytes(library, pinned):
    assert command("plugins", "lock", library, **pinned)[0] == 0
    with open(library, "ab") as file:
        file.write(b"\0")
    text = load(library, **pinned)
    assert "is not what was pinned: expected sha256 " in text and ", got " in text
    assert text.endswith(f"run `tenon plugins lock {library}` [NOT_PINNED]")
    assert command("plugins", "lock", library, **pinned)[0] == 0
    assert load(library, **pinned).startswith("loaded")


def test_pinned_refuses_what_the_lock_does_not_list(folder, library, pinned):
    other = copy_plugin(folder, "autograd")
    assert command("plugins", "lock", other, **pinned)[0] == 0
    text = load(library, **pinned)
    assert "does not list its sha256 " in text and text.endswith("[NOT_PINNED]")


def test_pinned_refuses_a_lock_that_others_can_change(folder, library, pinned):
    assert command("plugins", "lock", library, **pinned)[0] == 0
    os.chmod(pinned["TENON_PLUGIN_LOCK"], 0o666)
    text = load(library, **pinned)
    assert "can be changed by everyone" in text and text.endswith("[CANNOT_VERIFY]")
    os.chmod(pinned["TENON_PLUGIN_LOCK"], 0o644)
    os.chmod(folder, 0o1777)
    assert load(library, TENON_PLUGIN_TRUST="any", **pinned).endswith("[CANNOT_VERIFY]")


def test_pinned_holds_for_devices_in_folders(folder, library, pinned):
    program = "import tenon; print(tenon.device('null'))"
    code, _, err = python(
        "-c", program, TENON_PLUGIN_PATH=folder, TENON_PLUGINS=f"null:{library}", **pinned
    )
    assert code != 0 and "[NOT_PINNED]" in err


def test_lock_lists_known_plugins_of_others(folder, library, pinned):
    code, out, _ = command("plugins", "lock", TENON_PLUGINS=f"null:{library}", **pinned)
    assert code == 0 and library in out and "libtenon_cpu" not in out
    # Paths are added; without paths, the lock is written anew.
    other = copy_plugin(folder, "autograd")
    command("plugins", "lock", other, **pinned)
    with open(pinned["TENON_PLUGIN_LOCK"]) as file:
        assert len(file.readlines()) == 2
    code, out, _ = command("plugins", "lock", **pinned)
    assert code == 0 and out.endswith("lock: 0 plugins\n")


def test_lock_says_what_is_wrong(folder, pinned):
    code, _, err = command("plugins", "lock", "/nowhere.so", **pinned)
    assert code == 1 and "there is no file /nowhere.so" in err
    with open(pinned["TENON_PLUGIN_LOCK"], "w") as file:
        file.write("hello\n")
    code, _, err = command("plugins", "lock", __file__, **pinned)
    assert code == 1 and "expected lines of sha256sum" in err
    code, _, err = command("plugins", "lock", "--output", "/nonexistent/lock")
    assert code == 1 and "choose another with --output" in err


def test_lock_escapes_names_as_sha256sum_does(folder, pinned):
    odd = os.path.join(folder, "a\\b\nc.so")
    shutil.copy(copy_plugin(folder, "null"), odd)
    assert command("plugins", "lock", odd, **pinned)[0] == 0
    assert command("plugins", "lock", odd, **pinned)[0] == 0  # and it reads its own
    lines = subprocess.run(["sha256sum", odd], check=True, capture_output=True).stdout
    with open(pinned["TENON_PLUGIN_LOCK"], "rb") as file:
        assert file.read() == lines
    assert load(odd, **pinned).startswith("loaded")


@pytest.fixture
def bringing(folder):
    """A plugin that brings two libraries along, and refuses to load once it has found them."""
    if not os.path.isdir(FAULTY_PLUGINS):
        pytest.skip("TENON_BUILD_DIR has no test plugins")
    beside = os.path.join(folder, "beside")
    os.mkdir(beside)
    for which in ("one", "two"):
        name = f"libtenon_test_absent_{which}.so"
        shutil.copy(os.path.join(FAULTY_PLUGINS, "../absent", name), beside)
    return shutil.copy(os.path.join(FAULTY_PLUGINS, "libtenon_brings_along.so"), folder)


def test_lock_lists_what_a_plugin_brings_along(folder, bringing, pinned):
    assert load(bringing).endswith("[QUERY_FAILED]")
    code, out, err = command("plugins", "lock", bringing, **pinned)
    assert code == 0 and out.endswith("lock: 3 plugins\n"), err
    assert os.path.join(folder, "beside", "libtenon_test_absent_two.so") in out
    assert load(bringing, **pinned).endswith("[QUERY_FAILED]")  # all three were accepted
    with open(os.path.join(folder, "beside", "libtenon_test_absent_two.so"), "ab") as file:
        file.write(b"\0")
    text = load(bringing, **pinned)
    assert f"({bringing} brings it along)" in text and text.endswith("[NOT_PINNED]")


def test_lock_lists_what_the_system_would_load(folder):
    """Auxiliary libraries, and what a library needs and finds by the RPATH of one that needs it."""
    if not os.path.isdir(FAULTY_PLUGINS):
        pytest.skip("TENON_BUILD_DIR has no test plugins")
    one, two = (
        os.path.join(folder, "beside", f"libtenon_test_mutual_{n}.so") for n in ("one", "two")
    )
    shutil.copytree(os.path.join(FAULTY_PLUGINS, "../mutual"), os.path.join(folder, "beside"))
    plugin = shutil.copy(os.path.join(FAULTY_PLUGINS, "libtenon_needs_mutual.so"), folder)
    assert companions(one) == [two, one], "each is the other's auxiliary"

    set_aside = 0x6FFFFEF0
    change_dynamic_tag(plugin, DT_RUNPATH, DT_RPATH)
    change_dynamic_tag(plugin, DT_NEEDED, set_aside, kept=1)
    change_dynamic_tag(one, DT_RUNPATH, set_aside)
    change_dynamic_tag(two, DT_AUXILIARY, set_aside)
    assert companions(plugin) == [one, two]
    change_dynamic_tag(plugin, DT_RPATH, DT_RUNPATH)
    assert companions(plugin) == [one], "RUNPATH is for the library itself"


def change_dynamic_tag(path, old, new, kept=0):
    """Give entries of the library's dynamic section another meaning, but for the first `kept`."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    (table,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    for i in range(count):
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", data, table + 56 * i)
        for at in range(offset, offset + size, 16) if kind == 2 else ():
            if struct.unpack_from("<Q", data, at) == (old,) and (kept := kept - 1) < 0:
                struct.pack_into("<Q", data, at, new)
    with open(path, "wb") as file:
        file.write(data)


# -- signed ---------------------------------------------------------------------------------------


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make_keys(folder, name, algorithm="ed25519"):
    """A private key, and its public half in the folder of keys."""
    keys = os.path.join(folder, "keys")
    os.makedirs(keys, mode=0o755, exist_ok=True)
    private = os.path.join(folder, f"{name}.private.pem")
    openssl("genpkey", "-algorithm", algorithm, "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", os.path.join(keys, f"{name}.pem"))
    return private


def sign(path, private):
    # As docs/plugins.md tells vendors.
    openssl("pkeyutl", "-sign", "-inkey", private, "-rawin", "-in", path, "-out", path + ".sig")


@pytest.fixture
def signed(folder):
    if not shutil.which("openssl"):
        pytest.skip("needs the command openssl")
    return {"TENON_PLUGIN_POLICY": "signed", "TENON_PLUGIN_KEYS": os.path.join(folder, "keys")}


def test_signed_loads_what_a_known_key_has_signed(folder, library, signed):
    make_keys(folder, "another")
    sign(library, make_keys(folder, "vendor"))
    assert load(library, **signed).startswith("loaded")
    device = "import tenon; print(tenon.device('null'))"
    assert python("-c", device, TENON_PLUGINS=f"null:{library}", **signed)[0] == 0


def test_signed_refuses_other_bytes(folder, library, signed):
    sign(library, make_keys(folder, "vendor"))
    with open(library, "ab") as file:
        file.write(b"\0")
    text = load(library, **signed)
    assert "is by none of the 1 keys in" in text and text.endswith("[BAD_SIGNATURE]")


def test_signed_refuses_unknown_keys_and_damaged_signatures(folder, library, signed):
    private = make_keys(folder, "vendor")
    os.rename(os.path.join(folder, "keys", "vendor.pem"), os.path.join(folder, "vendor.pem"))
    make_keys(folder, "another")
    sign(library, private)
    assert load(library, **signed).endswith("[BAD_SIGNATURE]")
    os.rename(os.path.join(folder, "vendor.pem"), os.path.join(folder, "keys", "vendor.pem"))
    assert load(library, **signed).startswith("loaded")
    with open(library + ".sig", "r+b") as file:
        file.write(b"\0\0\0\0")
    assert load(library, **signed).endswith("[BAD_SIGNATURE]")
    os.truncate(library + ".sig", 0)
    assert "is not signed: there is no" in load(library, **signed)


def test_signed_takes_no_keys_of_other_kinds(folder, library, signed):
    private = make_keys(folder, "vendor", "rsa")
    openssl("dgst", "-sha256", "-sign", private, "-out", library + ".sig", library)
    assert load(library, **signed).endswith("[BAD_SIGNATURE]")


def test_signed_needs_a_signature_and_keys(folder, library, signed):
    text = load(library, **signed)
    assert "is not signed: there is no" in text and text.endswith("[BAD_SIGNATURE]")
    sign(library, make_keys(folder, "vendor"))
    os.remove(os.path.join(folder, "keys", "vendor.pem"))
    assert "expected public keys, as .pem files, in" in load(library, **signed)
    text = load(library, TENON_PLUGIN_POLICY="signed")
    assert "needs TENON_PLUGIN_KEYS" in text and text.endswith("[CANNOT_VERIFY]")
    text = load(library, TENON_PLUGIN_POLICY="signed", TENON_PLUGIN_KEYS="keys")
    assert "the full path of a folder" in text


def test_signed_refuses_keys_that_others_can_change(folder, library, signed):
    sign(library, make_keys(folder, "vendor"))
    os.chmod(signed["TENON_PLUGIN_KEYS"], 0o777)
    text = load(library, **signed)
    assert f"can be changed by everyone, by way of {signed['TENON_PLUGIN_KEYS']}" in text
    assert text.endswith("[CANNOT_VERIFY]")


def test_without_libcrypto_nothing_is_verified(folder, library):
    broken = os.path.join(folder, "broken")
    os.mkdir(broken)
    with open(os.path.join(broken, "libcrypto.so.3"), "w"):
        pass
    text = load(library, TENON_PLUGIN_POLICY="pinned", LD_LIBRARY_PATH=broken)
    assert "needs libcrypto.so.3, which cannot be loaded; install OpenSSL 3" in text
    assert text.endswith("[CANNOT_VERIFY]")
