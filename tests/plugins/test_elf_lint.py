# SPDX-License-Identifier: Apache-2.0
"""The lint of `tenon plugins doctor`: what in a library will make trouble."""

import glob
import os
import random
import shutil
import subprocess

import pytest
from plugin_support import OWN_PLUGINS, SOURCE, command
from tenon.cli.plugins.elf_lint import lint

CLEAN = ["-Wl,-z,noexecstack", "-Wl,--version-script={folder}/exports.map"]
SOUND = """
#include <tenon/abi.h>
TENON_PLUGIN_NOTE("acme", "1.0.0", "{\\"kind\\":\\"service\\"}");
TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t a, uint32_t b, const tenon_host* h, tenon_err* e) {
  static const tenon_plugin plugin = {
      .struct_size = sizeof(tenon_plugin), .name = "acme", .version = "1.0.0", .vendor = "Acme"};
  return &plugin;
}
"""


@pytest.fixture
def build(folder):
    def build(source, *flags, clean=True, language="c"):
        compiler = shutil.which("c++" if language == "c++" else "cc")
        if not compiler:
            pytest.skip("needs a compiler")
        path = os.path.join(folder, "source." + ("cpp" if language == "c++" else "c"))
        with open(path, "w") as file:
            file.write(source)
        with open(os.path.join(folder, "exports.map"), "w") as file:
            file.write("{ global: tenon_plugin_query; local: *; };")
        library = os.path.join(folder, "libtenon_acme.so")
        flags = [flag.format(folder=folder) for flag in [*(CLEAN if clean else []), *flags]]
        arguments = [compiler, "-shared", "-fPIC", path, f"-I{SOURCE}/sdk/include", "-o", library]
        subprocess.run([*arguments, *flags], check=True, cwd=folder, capture_output=True)
        return library

    return build


def test_a_sound_library_has_no_warnings(build):
    assert lint(build(SOUND)) == []


@pytest.mark.parametrize("path", sorted(glob.glob(os.path.join(OWN_PLUGINS, "*.so"))))
def test_own_plugins_have_no_warnings(path):
    # A build folder's RUNPATH is its own affair; what is shipped has none outside $ORIGIN.
    assert [warning for warning in lint(path) if "looks for libraries" not in warning] == []


def test_exports(build):
    (warning,) = lint(
        build(SOUND + "int acme_helper; int acme_other(void) { return 1; }", clean=False)
    )
    assert warning.startswith(
        "it exports 2 symbols besides tenon_plugin_query: acme_helper, acme_other; "
    )
    assert "version script" in warning


def test_many_exports_are_not_all_named(build):
    source = SOUND + "".join(f"int acme_{i};" for i in range(9))
    (warning,) = lint(build(source, clean=False))
    assert "it exports 9 symbols besides" in warning
    assert "acme_0, acme_1, acme_2, acme_3, ...;" in warning


def test_unique_symbols(build):
    source = "template <class T> struct S { static int x; }; template <class T> int S<T>::x;"
    source += "int* acme() { return &S<int>::x; }"
    warnings = lint(build(source, "-fgnu-unique", clean=False, language="c++"))
    assert any(
        "it has 1 GNU_UNIQUE symbol: _ZN1SIiE1xE; the system will never unmap it" in w
        for w in warnings
    )


def test_executable_stack(build):
    (warning,) = lint(build(SOUND, "-Wl,-z,execstack"))
    assert warning == "it makes the stack executable; link with -Wl,-z,noexecstack"


def test_text_relocations(build):
    source = SOUND + 'int acme_value; __asm__(".text\\n .quad acme_value\\n");'
    (warning,) = lint(build(source, "-Wl,-z,notext"))
    assert "TEXTREL" in warning and "-fPIC" in warning


def test_runpath(build):
    (warning,) = lint(build(SOUND, "-Wl,-rpath,/opt/acme/lib:$ORIGIN/lib"))
    assert warning.startswith("it looks for libraries in /opt/acme/lib, a path of the machine")
    (warning,) = lint(build(SOUND, "-Wl,--disable-new-dtags,-rpath,/opt/acme/lib"))
    assert "/opt/acme/lib" in warning
    assert lint(build(SOUND, "-Wl,-rpath,$ORIGIN:${{ORIGIN}}/lib")) == []


@pytest.mark.parametrize("entry", ["$ORIGIN/$LIB", "/opt/$PLATFORM/lib", "$ORIGINAL"])
def test_runpath_with_variables_of_the_system(build, entry):
    (warning,) = lint(build(SOUND, f"-Wl,-rpath,{entry}"))
    assert warning.startswith(f"it looks for libraries in {entry}, with a variable other than")
    assert "write the folder out" in warning


@pytest.mark.parametrize(
    "runpath, entry", [("$ORIGIN:", "''"), (":$ORIGIN", "''"), ("lib:$ORIGIN", "'lib'")]
)
def test_runpath_into_the_current_folder(build, runpath, entry):
    (warning,) = lint(build(SOUND, f"-Wl,-rpath,{runpath}"))
    assert warning.startswith("it looks for libraries in the current folder of the program")
    assert f"has the entry {entry}" in warning


@pytest.mark.parametrize("name", ["tenon", "python3.11"])
def test_libraries_that_must_not_be_needed(build, folder, name):
    empty = os.path.join(folder, f"lib{name}.so")
    os.rename(build("int acme;", f"-Wl,-soname,lib{name}.so"), empty)
    (warning,) = lint(build(SOUND, "-Wl,--no-as-needed", empty))
    assert warning.startswith(f"it is linked with lib{name}.so")


def test_doctor_prints_warnings_and_they_are_no_failure(build):
    library = build(SOUND + "int acme_helper;", "-Wl,-z,execstack", clean=False)
    code, out, _ = command("plugins", "doctor", library)
    assert code == 0 and out.startswith("ok       acme 1.0.0  ")
    assert "warning: it exports 1 symbol besides tenon_plugin_query: acme_helper;" in out
    assert "warning: it makes the stack executable" in out


def test_files_that_are_no_libraries(folder):
    path = os.path.join(folder, "x.so")
    assert lint(path) == ["it cannot be read: No such file or directory"]
    for content in (b"", b"\x7fELF", b"hello" * 100):
        with open(path, "wb") as file:
            file.write(content)
        assert lint(path) == ["its tables cannot be read: the file is damaged"]


def test_random_bytes_are_survived(folder):
    with open(os.path.join(OWN_PLUGINS, "libtenon_null.so"), "rb") as file:
        whole = file.read()
    path = os.path.join(folder, "mutant.so")
    sections = int.from_bytes(whole[40:48], "little")
    source = random.Random(20261121)
    outcomes = set()
    for _ in range(1500):
        mutant = bytearray(whole)
        for _ in range(source.randint(1, 4)):
            begin, end = source.choice([(0, 64), (64, 1024), (sections, len(whole))])
            at = source.randrange(begin, end)
            mutant[at] = source.choice([0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)])
            if source.random() < 0.25:
                mutant[at : at + 8] = b"\xff" * len(mutant[at : at + 8])
        with open(path, "wb") as file:
            file.write(mutant[: source.randrange(len(mutant))] if source.random() < 0.1 else mutant)
        outcomes.add(tuple(lint(path)))
    assert () in outcomes and ("its tables cannot be read: the file is damaged",) in outcomes
