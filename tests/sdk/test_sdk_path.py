# SPDX-License-Identifier: Apache-2.0
"""tenon.sdk_path(): what the first cmake command of every guide is given."""

import os
import shutil
import subprocess

import pytest
import tenon

PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(asks LANGUAGES CXX)
find_package(Tenon REQUIRED)
get_target_property(includes Tenon::sdk INTERFACE_INCLUDE_DIRECTORIES)
message(STATUS "includes ${includes}")
if(NOT COMMAND tenon_add_plugin OR NOT COMMAND tenon_add_operators OR NOT Tenon_CODEGEN)
  message(FATAL_ERROR "the SDK is not complete")
endif()
foreach(file tenon/abi.h tenon/ops.hpp)
  find_file(found_${file} ${file} PATHS ${includes} NO_DEFAULT_PATH REQUIRED)
endforeach()
"""


def test_the_folder_has_a_cmake_package():
    """In an installation, and in a build tree."""
    folder = os.path.join(tenon.sdk_path(), "lib", "cmake", "Tenon")
    assert {"TenonConfig.cmake", "TenonTargets.cmake"} <= set(os.listdir(folder))


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_find_package_finds_it(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    done = subprocess.run(
        ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={tenon.sdk_path()}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_build_installs_the_sdk_by_itself():
    """Without a test or a person that calls `cmake --install`: it is a target of the build."""
    build = os.environ.get("TENON_BUILD_DIR", "")
    if not os.path.isfile(os.path.join(build, "build.ninja")):
        pytest.skip("needs TENON_BUILD_DIR of a build with Ninja")
    done = subprocess.run(
        ["ninja", "-C", build, "-t", "query", "sdk/all"], check=True, capture_output=True, text=True
    )
    assert "tenon_package_sdk" in done.stdout
