#!/usr/bin/env bash
# Builds dist/tenon_dl-VERSION-*.whl for the Python of .venv, as PyPI takes it: auditwheel looks at the symbols of every
# library inside, and names the wheel after the oldest glibc that has them. Needs scripts/bootstrap.sh.
#   CMAKE_BUILD_PARALLEL_LEVEL   how many compilations at once (as many as processors and memory allow)
set -euo pipefail
cd "$(dirname "$0")/.."

tools=build/wheel_tools
stamp=$(sha256sum requirements/wheel.txt | cut -c1-16)
if [ "$(cat "$tools/stamp" 2>/dev/null)" != "$stamp" ]; then
  rm -rf "$tools"
  .venv/bin/python -m pip install -q --disable-pip-version-check --target "$tools" -r requirements/wheel.txt
  echo "$stamp" > "$tools/stamp"
fi

# The heaviest compilations take about 1.5 GB.
cores=$(nproc)
memory_jobs=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
jobs=$(( cores < memory_jobs ? cores : memory_jobs ))
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(( jobs > 0 ? jobs : 1 ))}

# scikit-build-core takes the compiler's name from Python's own configuration (x86_64-linux-gnu-g++), CMake its own (c++):
# ccache keeps what each has compiled apart.
export CC=${CC:-cc} CXX=${CXX:-c++}

# The name of PyPI's platform comes with auditwheel; what pip writes has the name that PyPI refuses. Its build folder stays
# (pyproject.toml), and with ccache, whose `base_dir` holds this checkout, an ordinary build has compiled all of it before.
built=build/wheel_unnamed
rm -rf "$built"
.venv/bin/python -m pip wheel -q --no-deps --no-build-isolation -w "$built" .
mkdir -p dist
PATH="$PWD/$tools/bin:$PATH" PYTHONPATH="$PWD/$tools" .venv/bin/python -m auditwheel repair --wheel-dir dist "$built"/tenon_dl-*.whl
