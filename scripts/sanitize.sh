#!/usr/bin/env bash
# The tests under sanitizers: scripts/sanitize.sh asan | tsan
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1

scripts/build.sh "$preset"
build=$PWD/build/$preset
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1  # Python keeps memory at exit
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1
ctest --test-dir "$build" --output-on-failure -j 2

# The interpreter is not instrumented: the runtime must come first, and the C++ library with it, or the
# runtime does not find the function that throws.
runtime="$(g++ -print-file-name="lib$preset.so") $(g++ -print-file-name=libstdc++.so)"
LD_PRELOAD="$runtime" PYTHONPATH="$build/python" TENON_BUILD_DIR="$build" \
  .venv/bin/python -m pytest -q tests/python tests/ops "${@:2}"
