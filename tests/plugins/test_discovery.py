# SPDX-License-Identifier: Apache-2.0
"""Where plugins are found: announced by distributions, in the system's folder. What the environment
names is tested in C++."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import tenon
from plugin_support import OWN_PLUGINS, SOURCE, announce, copy_plugin, python

ANNOUNCED = """
from tenon.host import entry_points
for text, location, problem in entry_points.announced():
    if text.startswith("acme"):
        print(problem)
"""


@pytest.fixture
def package(folder):
    """A package that must not be imported, with a plugin below it."""
    path = os.path.join(folder, "tenon_acme")
    os.makedirs(os.path.join(path, "lib"))
    with open(os.path.join(path, "__init__.py"), "w") as file:
        file.write("raise RuntimeError('must not be imported')")
    copy_plugin(os.path.join(path, "lib"), "null")
    return path


def run(folder, program, **environment):
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    code, out, err = python("-c", program, PYTHONPATH=path, **environment)
    assert code == 0, err
    return out.strip()


def known(folder):
    program = "import tenon; print([p['path'] for p in tenon.plugins.list()])"
    return run(folder, program)


def write_manifest(package, content):
    with open(os.path.join(package, "tenon_plugin.json"), "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))


def test_a_manifest_names_one_library(folder, package):
    copy_plugin(os.path.join(package, "lib"), "autograd")  # beside it, and not announced
    write_manifest(package, {"name": "acme", "library": "lib/libtenon_null.so", "later": [1]})
    announce(folder, "acme", "tenon_acme:tenon_plugin.json")
    assert run(folder, ANNOUNCED) == "None"
    paths = known(folder)
    assert os.path.join(package, "lib/libtenon_null.so") in paths
    assert os.path.join(package, "lib/libtenon_autograd.so") not in paths


def test_the_manifest_that_the_sdk_writes_is_one(folder, package):
    for name in ("libtenon_null.so", "null.tenon.json"):
        shutil.copy(os.path.join(OWN_PLUGINS, name), package)
    announce(folder, "null", "tenon_acme:null.tenon.json")
    assert os.path.join(package, "libtenon_null.so") in known(folder)


def test_a_folder_may_be_announced(folder, package):
    announce(folder, "acme", "tenon_acme:lib")
    assert os.path.join(package, "lib/libtenon_null.so") in known(folder)


@pytest.mark.parametrize(
    "content, problem",
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[]", 'expected {"name": "acme", "library": "..."}'),
        ({"name": "acme"}, 'expected {"name": "acme", "library": "..."}'),
        ({"name": "other", "library": "x.so"}, 'expected {"name": "acme", "library": "..."}'),
        ({"name": "acme", "library": 7}, 'expected {"name": "acme", "library": "..."}'),
        ({"name": "acme", "library": "x.so"}, "does not exist"),
        ({"name": "acme", "library": "../x.so"}, "outside its package"),
        ({"name": "acme", "library": "/lib/x.so"}, "outside its package"),
    ],
)
def test_a_manifest_that_is_wrong_is_passed_over_and_told(folder, package, content, problem):
    write_manifest(package, content)
    announce(folder, "acme", "tenon_acme:tenon_plugin.json")
    assert problem in run(folder, ANNOUNCED)
    assert package not in known(folder)


def test_entry_points_that_are_wrong_are_passed_over(folder):
    announce(folder, "acme", "no_such_package:tenon_plugin.json")
    assert run(folder, ANNOUNCED) == "there is no package no_such_package"
    info = os.path.join(folder, "binary-1.0.dist-info")
    os.mkdir(info)
    with open(os.path.join(info, "entry_points.txt"), "wb") as file:
        file.write(b"[tenon.plugins]\n\xff\xfe = \xff\n")
    known(folder)


def test_the_systems_folder_is_known():
    # In a mount namespace of its own, so that no other process sees the folder.
    script = f"""
    set -e
    mount -t tmpfs none /mnt; mkdir /mnt/upper /mnt/work
    mount -t overlay overlay -o lowerdir=/usr/lib,upperdir=/mnt/upper,workdir=/mnt/work /usr/lib
    mkdir -p /usr/lib/tenon/plugins
    echo mounted
    cp {OWN_PLUGINS}/libtenon_null.so /usr/lib/tenon/plugins/
    exec {sys.executable} -m tenon plugins list
    """
    if not shutil.which("unshare"):
        pytest.skip("needs unshare")
    result = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True)
    if "mounted" not in result.stdout:
        pytest.skip("needs a mount namespace: " + result.stderr)
    assert "/usr/lib/tenon/plugins/libtenon_null.so" in result.stdout, result.stderr


def test_tenon_is_reserved_for_the_hosts_own(folder):
    """The namespace: operators of the host's own, and no other plugin's under its name."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if not compiler:
        pytest.skip("needs a compiler")

    def build(name, schema):
        source = os.path.join(folder, f"{name}.cpp")
        with open(os.path.join(SOURCE, "tests/plugins/broken/reserved.cpp")) as file:
            text = file.read()
        with open(source, "w") as file:
            file.write(text.replace("@name@", name).replace("@schema@", schema))
        library = os.path.join(folder, f"libtenon_{name}.so")
        command = [compiler, "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", source]
        subprocess.run([*command, f"-I{SOURCE}/sdk/include", "-o", library], check=True)
        return library

    program = "import sys, tenon; tenon.load_plugin(sys.argv[1])"
    code, _, err = python("-c", program, build("newcomer", "tenon::newcomer(Tensor x) -> Tensor"))
    assert code != 0
    assert (
        "operator tenon::newcomer: the namespace tenon is reserved for the host's own plugins"
        in err
    )
    assert err.rstrip().endswith("[BAD_TABLE]")
    # The host's own operator, defined once more as it is, is nothing new.
    code, _, err = python("-c", program, build("again", "tenon::sin(Tensor x) -> Tensor"))
    assert code == 0, err
    # And otherwise than it is.
    code, _, err = python("-c", program, build("other", "tenon::sin(Tensor y) -> Tensor"))
    assert code != 0 and "is reserved" in err


DESCRIBE = """
#include <dlfcn.h>
#include <stdio.h>
#include <tenon/abi.h>
static void print(void* user, const char* text, uint64_t bytes) {
  (void)user;
  fwrite(text, 1, bytes, stdout);
}
int main(int count, char** arguments) {
  void* library = dlopen(arguments[count - 1], RTLD_NOW);
  if (!library) return puts(dlerror()), 1;
  const tenon_host* (*get)(uint32_t) = (const tenon_host* (*)(uint32_t))dlsym(library, "tenon_host_get");
  get(TENON_ABI_EPOCH)->plugin_describe(print, 0);
  return 0;
}
"""


def test_set_group_id_programs_take_no_advice(folder, library):
    """The environment is the caller's, the rights are another's."""
    if os.geteuid() != 0 or not shutil.which("cc"):
        pytest.skip("needs a compiler, and root, who can give files away")
    source, program = os.path.join(folder, "describe.c"), os.path.join(folder, "describe")
    with open(source, "w") as file:
        file.write(DESCRIBE)
    subprocess.run(["cc", source, f"-I{SOURCE}/sdk/include", "-o", program, "-ldl"], check=True)
    host = os.path.join(os.path.dirname(OWN_PLUGINS), "lib/libtenon.so")
    os.mkdir(os.path.join(folder, "more"))
    other = copy_plugin(os.path.join(folder, "more"), "autograd")
    environment = {
        **os.environ,
        "TENON_PLUGINS": f"null:{library}",
        "TENON_PLUGIN_PATH": os.path.dirname(other),
    }

    def describe():
        result = subprocess.run(
            [program, host], check=True, capture_output=True, text=True, env=environment
        )
        return result.stdout

    assert library in describe() and other in describe()
    os.chown(program, -1, 65534)
    os.chmod(program, 0o2755)
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        pytest.skip("needs a file system that honours set-group-id")
    assert library not in describe() and other not in describe()
    assert OWN_PLUGINS in describe()


def test_a_bare_name_is_no_path(library, monkeypatch):
    """Plugins are never searched for, and so not in the current folder either."""
    folder, name = os.path.split(library)
    monkeypatch.chdir(folder)
    for options in ({}, {"isolated": True}, {"overrides": True}):
        with pytest.raises(
            tenon.NotFoundError, match="expected a path, got the bare name"
        ) as error:
            tenon.load_plugin(name, **options)
        assert f"write ./{name} or the full path" in str(error.value)
    program = "import pathlib, tenon; tenon.load_plugin({}); print(tenon.device('null'))"
    for path in (repr(f"./{name}"), f"pathlib.Path({name!r})"):
        search = os.path.dirname(tenon.sdk_path())
        code, out, err = python("-c", program.format(path), PYTHONPATH=search)
        assert (code, out) == (0, "null:0\n"), err


def test_a_path_ends_where_it_ends(library):
    for call in (
        tenon.load_plugin,
        tenon.plugins.add_folder,
        tenon.plugins.unload,
        tenon.plugins.allow_overrides,
    ):
        with pytest.raises(ValueError, match="expected a text without NUL"):
            call(f"{library}\0.txt")
