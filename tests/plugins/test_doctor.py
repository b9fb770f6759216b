# SPDX-License-Identifier: Apache-2.0
"""tenon plugins doctor, list, unload: what is wrong, and what to do about it."""

import hashlib
import json
import os
import re

import pytest
from plugin_support import (
    FAULTY_PLUGINS,
    SOURCE,
    announce,
    command,
    copy_plugin,
    python,
    with_epoch,
)
from tenon.cli.plugins import reasons
from tenon.cli.plugins.missing import unopened_libraries

FAULTY = os.path.join(FAULTY_PLUGINS, "libtenon_faulty.so")
needs_faulty = pytest.mark.skipif(
    not os.path.exists(FAULTY), reason="needs TENON_BUILD_DIR and the loader's tests built there"
)


def doctor(*arguments, **environment):
    """(exit code, diagnoses by name)"""
    code, out, err = command("plugins", "doctor", "--json", *arguments, **environment)
    # The loader warns of plugins in folders that cannot load; nothing else is on standard error.
    assert all(line.startswith("[tenon warn") for line in err.splitlines()), err
    return code, {each["name"]: each for each in json.loads(out)["diagnoses"]}


def test_exit_codes_follow_the_hosts_list():
    with open(os.path.join(SOURCE, "kernel_core/plugin/refusal.hpp")) as file:
        names = re.findall(r'X\(k\w+, "(\w+)", TENON_\w+\)', file.read())
    assert names[0] == "NONE"
    host = [name for name, code in reasons.EXIT_CODES.items() if code < 60]
    assert host == names[1:]
    assert [reasons.EXIT_CODES[name] for name in host] == [*range(11, 11 + len(host))]
    assert max(reasons.EXIT_CODES[name] for name in host) < 60


def test_every_reason_is_documented():
    with open(os.path.join(SOURCE, "docs/plugins.md")) as file:
        rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", file.read(), re.MULTILINE)
    assert {name: int(code) for name, code in rows} == reasons.EXIT_CODES


def test_all_is_well():
    code, found = doctor()
    assert code == 0
    assert {"cpu", "standard_ops", "null"} <= set(found)
    assert found["cpu"]["state"] == "ok" and found["cpu"]["warnings"] == []
    code, out, _ = command("plugins", "doctor")
    assert code == 0 and "0 refused" in out.splitlines()[-1]


def test_an_absent_device_of_tenon_itself_is_no_failure_unless_it_is_named():
    environment = {"TENON_CUDA_DRIVER": "libabsent_driver.so.1"}
    code, found = doctor(**environment)
    assert code == 0 and found["cuda"]["state"] == "absent"
    assert "install NVIDIA's driver, or name the file in TENON_CUDA_DRIVER" in found["cuda"]["text"]
    code, found = doctor(found["cuda"]["path"], **environment)
    assert code == reasons.EXIT_CODES["NO_DEVICE"] and found["cuda"]["state"] == "refused"


def test_absent_libraries_that_a_plugin_opens_are_a_warning(tmp_path):
    _, found = doctor(TENON_LAPACK=str(tmp_path / "absent.so"))
    assert found["lapack"]["state"] == "ok"
    assert found["lapack"]["warnings"] == [
        f"it opens a library at run time, and none of {tmp_path}/absent.so is installed; its kernels "
        "do not run until one is: correct or unset TENON_LAPACK"
    ]
    manifest = {
        "opens": {"any_of": ["libabsent.so.7", "a/b.so"], "variable": "", "hint": "use apt"}
    }
    (tmp_path / "acme.tenon.json").write_text(json.dumps(manifest))
    library = tmp_path / "libtenon_acme.so"
    assert unopened_libraries(str(library)).endswith(
        "none of libabsent.so.7, a/b.so is installed; its kernels do not run until one is: use apt"
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.so").touch()
    assert unopened_libraries(str(library)) is None
    assert unopened_libraries(str(tmp_path / "libtenon_other.so")) is None


def test_a_path(library):
    code, found = doctor(library)
    assert code == 0 and list(found) == ["null"] and found["null"]["state"] == "ok"


def test_nothing_at_the_path():
    code, out, _ = command("plugins", "doctor", "/nowhere/libtenon_acme.so")
    assert code == reasons.EXIT_CODES["NOT_FOUND"] == 11
    assert "NOT_FOUND at stage trust: no plugin can be read at /nowhere/libtenon_acme.so" in out
    assert "fix: check the path" in out


def test_refusals_by_exit_code(folder):
    text = os.path.join(folder, "libtenon_text.so")
    with open(text, "w") as file:
        file.write("hello")
    assert command("plugins", "doctor", text)[0] == reasons.EXIT_CODES["BAD_ELF"]
    null = copy_plugin(folder, "null", with_epoch(2))
    assert command("plugins", "doctor", null)[0] == reasons.EXIT_CODES["EPOCH"]
    os.chmod(null, 0o777)
    code, out, _ = command("plugins", "doctor", null)
    assert code == reasons.EXIT_CODES["WRITABLE"]
    assert f"fix: chmod go-w {null}" in out


def test_what_is_switched_off_is_no_failure(library):
    code, found = doctor(library, TENON_PLUGINS_DISABLE="null")
    assert code == 0 and found["null"]["state"] == "off" and found["null"]["reason"] == "DISABLED"


def test_a_refused_device_in_a_folder_is_found_without_naming_it(folder):
    copy_plugin(folder, "null", with_epoch(7))
    code, found = doctor(TENON_PLUGIN_PATH=folder, TENON_PLUGINS_DISABLE="opencl")
    assert code == reasons.EXIT_CODES["EPOCH"]
    assert any(each.get("reason") == "EPOCH" for each in found.values())


def test_trust_any_is_not_for_folders(folder):
    os.chmod(copy_plugin(folder, "null"), 0o777)
    environment = {"TENON_PLUGIN_PATH": folder, "TENON_PLUGIN_TRUST": "any"}
    code, found = doctor(**environment)
    assert code == reasons.EXIT_CODES["WRITABLE"]


@needs_faulty
def test_all_missing_libraries_are_named():
    path = os.path.join(FAULTY_PLUGINS, "libtenon_missing_library.so")
    code, found = doctor(path)
    assert code == reasons.EXIT_CODES["MISSING_DEP"]
    text = found["missing_library"]["text"]
    assert "libtenon_test_absent_one.so, libtenon_test_absent_two.so" in text


@needs_faulty
def test_a_driver_that_is_absent():
    code, found = doctor(FAULTY, TENON_TEST_FAULT="enumerate_no_driver")
    assert code == reasons.EXIT_CODES["NO_DEVICE"]
    assert "libfaulty_driver.so.1 is not installed" in found["faulty"]["text"]


@needs_faulty
def test_a_crash_is_survived_and_ascribed(folder):
    code, found = doctor(FAULTY, TENON_TEST_FAULT="query_crashes")
    assert code == reasons.EXIT_CODES["CRASHED"] == 60
    last = '("the faulty plugin gives up")'
    assert found["faulty"]["text"] == f"the process died of SIGABRT {last} while it loaded {FAULTY}"
    assert "TENON_PLUGINS_DISABLE=faulty" in found["faulty"]["fix"]
    # By a symbolic link as well.
    link = os.path.join(folder, "link.so")
    os.symlink(FAULTY, link)
    code, found = doctor(link, TENON_TEST_FAULT="query_crashes")
    assert code == 60 and found["faulty"]["text"].endswith(f"while it loaded {FAULTY}")
    # Among others, which are examined all the same.
    environment = {"TENON_PLUGINS": f"faulty:{FAULTY}", "TENON_TEST_FAULT": "query_crashes"}
    code, found = doctor(**environment)
    assert code == 60 and found["faulty"]["reason"] == "CRASHED"
    assert found["null"]["state"] == found["cpu"]["state"] == "ok"


@needs_faulty
def test_a_plugin_that_hangs_is_given_up():
    code, found = doctor(FAULTY, "--timeout", "2", TENON_TEST_FAULT="query_hangs")
    assert code == reasons.EXIT_CODES["TIMED_OUT"] == 61
    assert "was killed after 2 s while it loaded" in found["faulty"]["text"]


# -- hints ----------------------------------------------------------------------------------------


def package(folder, edit=None):
    """A distribution acme with a plugin null in a package."""
    os.mkdir(os.path.join(folder, "tenon_acme"))
    path = copy_plugin(os.path.join(folder, "tenon_acme"), "null", edit)
    with open(os.path.join(folder, "tenon_acme/tenon_plugin.json"), "w") as file:
        json.dump({"name": "acme", "library": "libtenon_null.so"}, file)
    announce(folder, "acme", "tenon_acme:tenon_plugin.json")
    return path, {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}


def test_pip_hint_for_a_newer_plugin(folder):
    path, environment = package(folder, with_epoch(2))
    code, out, _ = command("plugins", "doctor", path, **environment)
    assert code == reasons.EXIT_CODES["EPOCH"]
    assert "pip: pip install --upgrade .  # in a newer checkout of Tenon\n" in out


def test_pip_hint_for_an_older_plugin(folder):
    path, environment = package(folder, with_epoch(0))
    assert (
        "pip: pip install --upgrade acme\n" in command("plugins", "doctor", path, **environment)[1]
    )


def test_pip_hint_for_another_processor(folder):
    path, environment = package(folder, lambda data: data[:18] + b"\x08\0" + data[20:])
    code, out, _ = command("plugins", "doctor", path, **environment)
    assert code == reasons.EXIT_CODES["WRONG_ARCH"]
    assert "pip: pip install --force-reinstall --no-cache-dir acme\n" in out


def test_no_pip_hint_for_what_pip_did_not_bring(folder):
    code, out, _ = command("plugins", "doctor", copy_plugin(folder, "null", with_epoch(0)))
    assert code == reasons.EXIT_CODES["EPOCH"] and "pip:" not in out


def test_announcements_that_lead_nowhere_are_told(folder):
    _, environment = package(folder)
    os.remove(os.path.join(folder, "tenon_acme/tenon_plugin.json"))
    code, found = doctor(**environment)
    assert code == reasons.EXIT_CODES["NOT_FOUND"]
    assert "entry point `acme = tenon_acme:tenon_plugin.json`" in found["acme"]["text"]


# -- level ----------------------------------------------------------------------------------------


def stamp(library, **changes):
    with open(library, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    content = {"level": "L2", "kit": "1.0", "date": "2026-11-21", "sha256": digest, **changes}
    with open(library + ".level.json", "w") as file:
        json.dump(content, file)


def listed(library):
    environment = {"TENON_PLUGINS": f"null:{library}"}
    out = command("plugins", "list", **environment)[1]
    return next(line for line in out.splitlines() if line.endswith(library))


def test_level_is_shown_for_the_library_that_earned_it(library):
    assert "L2" not in listed(library)
    stamp(library)
    assert "  claims L2 (kit 1.0, 2026-11-21)  " in listed(library)
    with open(library, "ab") as file:
        file.write(b"\0")
    assert "  stale  " in listed(library) and "L2" not in listed(library)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"level": 2}', "\xff"])
def test_a_damaged_stamp_is_no_level(library, content):
    with open(library + ".level.json", "w", encoding="latin-1") as file:
        file.write(content)
    assert "  unreadable  " in listed(library)


# -- a plugin that lies in no known folder --------------------------------------------------------


def test_plugin_option(library):
    code, out, _ = command("plugins", "coverage", "null", "--plugin", library, "--json")
    assert code == 0 and json.loads(out)["device"] == "null:0"
    code, out, _ = command("plugins", "explain", "add", "--device", "null", "--plugin", library)
    assert code == 0 and "on           null:0, float32" in out
    code, _, err = command("plugins", "coverage", "acme", "--plugin", "/nowhere.so")
    assert code == 1 and err.endswith("[NOT_FOUND]\n")


# -- unload ---------------------------------------------------------------------------------------


def test_unload(library):
    code, out, _ = command("plugins", "unload", library)
    assert (code, out) == (0, "null: unloaded, and its library is unmapped\n")
    assert command("plugins", "unload", "null")[0] == 0
    code, out, _ = command("plugins", "unload", "autograd")
    assert code == reasons.EXIT_CODES["IN_USE"] and "in use" in out
    code, _, err = command("plugins", "unload", "acme")
    assert code == 1 and "no plugin named 'acme' is known" in err


@needs_faulty
def test_unload_of_what_the_system_keeps():
    rival = os.path.join(FAULTY_PLUGINS, "libtenon_rival.so")
    code, out, _ = command("plugins", "unload", rival)
    assert code == reasons.EXIT_CODES["RESIDENT"] == 62 and "keeps its library mapped" in out


@needs_faulty
def test_unload_of_a_plugin_that_does_not_stop():
    code, out, _ = command("plugins", "unload", "--json", FAULTY, TENON_TEST_FAULT="stop_fails")
    assert code == reasons.EXIT_CODES["STOP_FAILED"]
    assert json.loads(out)[0]["reason"] == "STOP_FAILED"


def test_paths_may_have_any_letters(folder):
    odd = os.path.join(folder, 'é "quoted" \\ name.so')
    os.rename(copy_plugin(folder, "null", with_epoch(3)), odd)
    code, found = doctor(odd)
    assert code == reasons.EXIT_CODES["EPOCH"] and found["null"]["path"] == odd
    assert python("-m", "tenon", "plugins", "list", TENON_PLUGIN_PATH=folder)[0] == 0
