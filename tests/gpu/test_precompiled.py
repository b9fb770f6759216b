# SPDX-License-Identifier: Apache-2.0
"""Programs that were compiled ahead of time, on the simulated libraries: with them no compiler is needed, and without a
sound file everything is as it was."""

import os
import struct
import sys
from pathlib import Path

import precompile
import pytest

CALLS = """
    x = tenon.arange(24, dtype="float32", device=KIND).reshape(4, 6)
    print((x * x + 1).sum(1).to("cpu").numpy().tolist(), x.sort(1)[0, :2].to("cpu").numpy().tolist())
"""
RESULT = "[61.0, 457.0, 1285.0, 2545.0] [0.0, 1.0]"
VARIABLES = {"cuda": "TENON_CUDA", "hip": "TENON_ROCM"}


@pytest.fixture
def programs(run, kind, tmp_path):
    """The programs of CALLS, and what the simulated compiler made of them."""
    result = run(CALLS, XDG_CACHE_HOME=str(tmp_path / "first"))
    assert result.returncode == 0, result.stderr
    found = list(precompile.entries(tmp_path / f"first/tenon/{kind}"))
    assert len(found) > 3
    return {precompile.hash_of(source): binary for source, binary in found}


@pytest.fixture
def run_with(run, kind, tmp_path):
    """Runs CALLS with a file of programs and a cache that is empty, by default without a compiler."""

    def run_with(path, **environment):
        own = {f"{VARIABLES[kind]}_PROGRAMS": str(path), "XDG_CACHE_HOME": str(tmp_path / "second")}
        return run(CALLS, **own, **environment)

    return run_with


@pytest.fixture
def no_compiler(kind):
    return {f"{VARIABLES[kind]}_COMPILER": "/nonexistent/compiler.so"}


def test_no_compiler_is_needed(programs, run_with, no_compiler, tmp_path):
    precompile.write_programs(tmp_path / "all.programs", programs)
    result = run_with(tmp_path / "all.programs", **no_compiler)
    assert result.returncode == 0, result.stderr
    assert RESULT in result.stdout
    assert not (tmp_path / "second").exists()  # nothing was compiled


def test_what_is_missing_is_compiled(programs, run_with, no_compiler, tmp_path):
    some = dict(list(programs.items())[1:])
    precompile.write_programs(tmp_path / "some.programs", some)
    assert (
        "the compiler was not found" in run_with(tmp_path / "some.programs", **no_compiler).stderr
    )
    result = run_with(tmp_path / "some.programs")
    assert RESULT in result.stdout
    assert len(list((tmp_path / "second").rglob("*.bin"))) == 1


def test_an_image_that_the_driver_refuses_is_compiled(programs, run_with, tmp_path):
    precompile.write_programs(
        tmp_path / "bad.programs", dict.fromkeys(programs, b"no program" * 10)
    )
    result = run_with(tmp_path / "bad.programs")
    assert RESULT in result.stdout, result.stderr
    assert len(list((tmp_path / "second").rglob("*.bin"))) == len(programs)


DAMAGES = {
    "it is too short": lambda data: data[:9],
    "it is of another kind": lambda data: b"NOTTENON" + data[8:],
    "it is cut off": lambda data: data[:8] + struct.pack("<Q", 2**60) + data[16:],
    "an image lies outside of it": lambda data: data[:-1],
    "its entries are not in order": lambda data: data[:16] + data[48:80] + data[16:48] + data[80:],
}


@pytest.mark.parametrize("fault", DAMAGES)
def test_a_damaged_file_is_not_used(fault, programs, run_with, tmp_path):
    path = tmp_path / "damaged.programs"
    # Without padding at the end, so that every byte counts.
    precompile.write_programs(
        path, {key: image[: len(image) // 16 * 16] for key, image in programs.items()}
    )
    path.write_bytes(DAMAGES[fault](path.read_bytes()))
    result = run_with(path)
    assert RESULT in result.stdout, result.stderr
    assert (
        f"the precompiled programs {path} are not used: {fault}; install them again"
        in result.stderr
    )


def test_a_file_that_is_not_there_is_none(run_with, tmp_path):
    result = run_with(tmp_path / "absent.programs")
    assert RESULT in result.stdout
    assert "precompiled" not in result.stderr


@pytest.mark.parametrize("kind", ["hip"], indirect=True)
def test_programs_of_several_architectures_are_bundled(
    run, run_with, no_compiler, kind, tmp_path, monkeypatch
):
    result = run(CALLS, XDG_CACHE_HOME=str(tmp_path / "first"))
    assert result.returncode == 0, result.stderr
    arguments = [str(tmp_path / "first/tenon/hip"), str(tmp_path / "all.programs"), "--ptx", ""]
    libraries = Path(os.environ["TENON_BUILD_DIR"]) / "tests/simulated/lib"
    compiler = ["--compiler", str(libraries / "libsimulated_hiprtc.so")]
    monkeypatch.setattr("sys.argv", ["precompile.py", *arguments, *compiler])
    with pytest.raises(SystemExit, match="expected one vendor, got sm_80, gfx90a"):
        monkeypatch.setattr("sys.argv", [*sys.argv, "--architectures", "sm_80,gfx90a"])
        precompile.main()
    monkeypatch.setattr("sys.argv", [*sys.argv, "--architectures", "gfx1100,gfx90a"])
    assert precompile.main() == 0
    result = run_with(tmp_path / "all.programs", **no_compiler)
    assert RESULT in result.stdout, result.stderr
    # A device whose architecture none of them has needs the compiler.
    other = run_with(tmp_path / "all.programs", SIMULATED_ARCHITECTURE="gfx942", **no_compiler)
    assert "the compiler was not found" in other.stderr
