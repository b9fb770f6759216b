#!/usr/bin/env bash
# The tests under sanitizers: scripts/sanitize.sh asan | tsan [options of pytest]
# What reads files of others, and structures that lie, under AddressSanitizer: scripts/sanitize.sh readers MINUTES [SEED]
# CPU kernels are compiled for one instruction set, as the builds for others are of the same sources and
# take long: the widest that this processor has, or TENON_CPU_ISAS. With AddressSanitizer CC=clang CXX=clang++ compile in less time.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
preset=$what
[ "$what" != readers ] || preset=asan

flags=" $(grep -m 1 '^flags' /proc/cpuinfo || true) "
widest=baseline
[[ $flags != *" avx2 "* ]] || widest=avx2
[[ $flags != *" avx512vl "* ]] || widest=avx512
scripts/build.sh "$preset" -DTENON_CPU_ISAS="${TENON_CPU_ISAS:-$widest}"
build=$PWD/build/$preset
# Tests ask for more memory than there is, and damaged files for all of it.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1  # Python keeps memory at exit
export UBSAN_OPTIONS=print_stacktrace=1
# Tests start threads in children of processes with threads, which the runtime would end.
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:die_after_fork=0
export OPENBLAS_NUM_THREADS=1  # NumPy's threads are not instrumented

# The interpreter is not instrumented: the runtime must come first, and the C++ library with it, or the
# runtime does not find the function that throws. What it says as it ends the process is not captured.
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$build/CMakeCache.txt")
runtime=$("$compiler" -print-file-name="lib$preset.so")
[ -e "$runtime" ] || runtime=$("$compiler" -print-file-name="libclang_rt.$preset-$(uname -m).so")
preload="$runtime $("$compiler" -print-file-name=libstdc++.so)"
export PYTHONPATH="$build/python" TENON_BUILD_DIR="$build"

run_tests() {
  ctest --test-dir "$build" --output-on-failure -j 2
  export LD_PRELOAD="$preload"
  .venv/bin/python -m pytest -q --capture=sys tests/python tests/ops tests/fuzz "$@"
}

# Each kind of file for so many minutes, and calls of the predictor in random orders.
run_readers() {
  local minutes=$1 seed=${2:-$(date +%Y%m%d)} failed=0 program
  TENON_TEST_MUTATIONS=1000000 timeout "$((minutes * 60))" "$build/plugins/graph/tests/graph_test" --gtest_filter='*Mutated*' ||
    [ $? = 124 ] || failed=1
  "$build/tests/predictor/predictor_test" --gtest_filter='PredictorOrders*' || failed=1
  export LD_PRELOAD="$preload" ASAN_OPTIONS="$ASAN_OPTIONS:max_allocation_size_mb=2048:soft_rss_limit_mb=4096"
  for program in programs onnx_models saved_models language_models; do
    .venv/bin/python -m "tests.fuzz.$program" --minutes "$minutes" --seed "$seed" || failed=1
  done
  .venv/bin/python -m tests.fuzz.structures --count 1000000 --seed "$seed" || failed=1
  return $failed
}

case $what in
  readers) run_readers "${@:2}" ;;
  *) run_tests "${@:2}" ;;
esac
