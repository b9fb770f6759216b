#!/usr/bin/env bash
# Builds dist/tenon_dl-VERSION-*.whl, one for each version of Python, as PyPI takes them, and dist/tenon_dl_VENDOR-*.whl, the plugins of
# vendors, which serve every version:
#   scripts/wheel.sh                    for every CPython from 3.10 on that is found: on PATH, of pyenv, of scripts/wheel_python.sh, and that
#                                       of .venv
#   scripts/wheel.sh 3.10 /opt/python3  for these: versions, or programs
# Needs scripts/bootstrap.sh. What is not Python's is built once, linked with old libraries (scripts/wheel_libraries.sh), and auditwheel
# names each wheel after the oldest glibc that has the symbols of every library inside.
#   CMAKE_BUILD_PARALLEL_LEVEL   how many compilations at once (as many as processors and memory allow)
#   TENON_WHEEL_SYSTEM=1         links with the system's own libraries: the wheel is for systems at least as new
set -euo pipefail
cd "$(dirname "$0")/.."

# The program of a version, or nothing. One without Python.h can build nothing.
usable() { "$1" -c 'import os, sys, sysconfig
sys.exit(not (sys.version_info >= (3, 10) and sys.implementation.name == "cpython"
              and not sysconfig.get_config_var("Py_GIL_DISABLED")
              and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))))' 2> /dev/null; }
version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
program_of() {
  local program
  for program in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python3 \
    "${XDG_CACHE_HOME:-$HOME/.cache}/tenon/python/$1/bin/python3"; do
    if [ -x "$program" ] && usable "$program"; then echo "$program"; return; fi
  done
}
programs=()
if [ $# -gt 0 ]; then
  for wanted in "$@"; do
    case $wanted in
      */*) program=$wanted ;;
      *) program=$(program_of "$wanted") ;;
    esac
    if [ -z "$program" ] || ! usable "$program"; then
      echo "wheel.sh: expected a CPython of 3.10 or later with its headers, got $wanted" >&2
      exit 2
    fi
    programs+=("$program")
  done
else
  own=$(version_of .venv/bin/python)
  programs=(.venv/bin/python)
  for minor in 10 11 12 13 14 15; do
    program=$([ "3.$minor" = "$own" ] || program_of "3.$minor")
    [ -z "$program" ] || programs+=("$program")
  done
fi

tools=build/wheel_tools
stamp=$(sha256sum requirements/wheel.txt | cut -c1-16)
if [ "$(cat "$tools/stamp" 2>/dev/null)" != "$stamp" ]; then
  rm -rf "$tools"
  .venv/bin/python -m pip install -q --disable-pip-version-check --target "$tools" -r requirements/wheel.txt
  echo "$stamp" > "$tools/stamp"
fi
audit() { PATH="$PWD/$tools/bin:$PATH" PYTHONPATH="$PWD/$tools" .venv/bin/python -m auditwheel repair --wheel-dir dist "$1"; }

# The heaviest compilations take about 1.5 GB.
cores=$(nproc)
memory_jobs=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
jobs=$(( cores < memory_jobs ? cores : memory_jobs ))
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(( jobs > 0 ? jobs : 1 ))}

# scikit-build-core takes the compiler's name from Python's own configuration (x86_64-linux-gnu-g++), CMake its own (c++):
# ccache keeps what each has compiled apart.
export CC=${CC:-cc} CXX=${CXX:-c++}
export CCACHE_DEPEND=1  # as scripts/compile.sh, whose objects are found so

if [ "${TENON_WHEEL_SYSTEM:-0}" != 1 ]; then
  scripts/wheel_libraries.sh
  old=$PWD/build/wheel_libraries
  # Libraries of this system that are linked with may want a newer glibc themselves; that is not the linker's to judge.
  link="-B$old -L$old -Wl,--allow-shlib-undefined -Wl,--exclude-libs,ALL"
  export CMAKE_ARGS="${CMAKE_ARGS:-} -DCMAKE_EXE_LINKER_FLAGS='$link' -DCMAKE_SHARED_LINKER_FLAGS='$link' -DCMAKE_MODULE_LINKER_FLAGS='$link'
    -DCMAKE_CXX_STANDARD_LIBRARIES='-Wl,--as-needed -lpthread -ldl -lrt' -DTENON_YAML_CPP_ARCHIVE='$old/yaml-cpp/installed/lib/libyaml-cpp.a'"
fi

# Plugins of vendors are packages of their own (scripts/wheel_vendor.sh).
vendors=(cuda rocm ascend kunlun)
excluded="**/__pycache__"
for vendor in "${vendors[@]}"; do excluded+=";tenon/plugins/libtenon_$vendor.so;tenon/plugins/$vendor.tenon.json"; done

# The name of PyPI's platform comes with auditwheel; what pip writes has the name that PyPI refuses. The build folder stays
# (pyproject.toml) and serves all versions, of which each compiles the bindings; with ccache, whose `base_dir` holds this checkout, an
# ordinary build has compiled the rest before.
pins=$(grep -E '^(nanobind|scikit-build-core)==' requirements/dev.txt)
mkdir -p dist
for program in "${programs[@]}"; do
  version=$(version_of "$program")
  echo "wheel: Python $version ($program)"
  environment=build/wheel_python/$version
  stamp=$(echo "$program $("$program" --version) $pins" | sha256sum | cut -c1-16)
  if [ "$(cat "$environment/stamp" 2> /dev/null)" != "$stamp" ]; then
    rm -rf "$environment"
    # An interpreter need not have a pip, and that of .venv need not run in a newer one: it brings one that does.
    "$program" -m venv --without-pip "$environment"
    packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --python-version "$version" --only-binary :all: --target "$packages" pip
    # shellcheck disable=SC2086 # several pins
    "$environment/bin/python" -m pip install -q --disable-pip-version-check $pins
    echo "$stamp" > "$environment/stamp"
  fi
  built=build/wheel_unnamed
  rm -rf "$built"
  "$environment/bin/python" -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings=wheel.exclude="$excluded" -w "$built" .
  audit "$built"/tenon_dl-*.whl
done
scripts/wheel_vendor.sh "${vendors[@]}"
