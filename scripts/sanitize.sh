#!/usr/bin/env bash
# The tests under sanitizers: scripts/sanitize.sh asan | tsan
# CPU kernels are compiled for one instruction set, as the builds for others are of the same sources and
# take long: the widest that this processor has, or TENON_CPU_ISAS.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1

flags=" $(grep -m 1 '^flags' /proc/cpuinfo || true) "
widest=baseline
[[ $flags != *" avx2 "* ]] || widest=avx2
[[ $flags != *" avx512vl "* ]] || widest=avx512
scripts/build.sh "$preset" -DTENON_CPU_ISAS="${TENON_CPU_ISAS:-$widest}"
build=$PWD/build/$preset
# Tests ask for more memory than there is.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1  # Python keeps memory at exit
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1
export OPENBLAS_NUM_THREADS=1  # NumPy's threads are not instrumented
ctest --test-dir "$build" --output-on-failure -j 2

# The interpreter is not instrumented: the runtime must come first, and the C++ library with it, or the
# runtime does not find the function that throws. What it says as it ends the process is not captured.
runtime="$(g++ -print-file-name="lib$preset.so") $(g++ -print-file-name=libstdc++.so)"
export LD_PRELOAD="$runtime" PYTHONPATH="$build/python" TENON_BUILD_DIR="$build"
.venv/bin/python -m pytest -q --capture=sys tests/python tests/ops tests/fuzz "${@:2}"
[ "$preset" != asan ] || .venv/bin/python -m tests.fuzz.structures --count 1000000
