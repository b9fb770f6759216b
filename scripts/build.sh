#!/usr/bin/env bash
# Configures and builds one preset:
#   scripts/build.sh release [-DOPTION=VALUE ...]
#   scripts/build.sh release --demo   what `make demo` runs and no more: no tests, no conformance kit, no plugins that
#                                     training on the CPU and OpenCL has no use for, CPU kernels for this processor
#                                     alone. A complete build stays complete.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
options=("${@:2}")
partial=build/$preset/partial  # marks a build that lacks what only tests need

# The highest x86-64 level that the dynamic loader finds here names the instruction set.
instruction_set() {
  case $(/lib64/ld-linux-x86-64.so.2 --help 2>/dev/null | grep -o 'x86-64-v[34] (supported' | head -1) in
    x86-64-v4*) echo avx512 ;;
    x86-64-v3*) echo avx2 ;;
    *) echo baseline ;;
  esac
}

# The folders of plugins/ that the demo does without, separated by semicolons.
list_unused_plugins() {
  local folder used=" amp autograd cpu graph kernel_c null opencl profiler standard_ops " unused=()
  for folder in plugins/*/CMakeLists.txt; do
    folder=$(basename "$(dirname "$folder")")
    [[ $used == *" $folder "* ]] || unused+=("$folder")
  done
  (IFS=';'; echo "${unused[*]}")
}

if [ "${options[0]:-}" = --demo ]; then
  options=("${options[@]:1}")
  if [ -e "$partial" ] || [ ! -e "build/$preset/CMakeCache.txt" ]; then
    options=(-DTENON_BUILD_TESTS=OFF -DTENON_BUILD_CONFORMANCE=OFF -DTENON_BUILD_COMPAT=OFF
             "-DTENON_WITHOUT_PLUGINS=$(list_unused_plugins)"
             "-DTENON_CPU_ISAS=$(instruction_set)" "${options[@]}")
    mkdir -p "build/$preset"
    touch "$partial"
  fi
elif [ -e "$partial" ]; then
  options=(-U TENON_BUILD_TESTS -U TENON_BUILD_CONFORMANCE -U TENON_BUILD_COMPAT -U TENON_WITHOUT_PLUGINS -U TENON_CPU_ISAS "${options[@]}")
  rm "$partial"
fi

# The heaviest compilations take about 1.5 GB; use as many jobs as cores and memory allow.
cores=$(nproc)
memory_jobs=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
jobs=$(( cores < memory_jobs ? cores : memory_jobs ))
[ "$jobs" -ge 1 ] || jobs=1

cmake --preset "$preset" -DPython_EXECUTABLE="$PWD/.venv/bin/python" "${options[@]}" > "/tmp/tenon-configure.$$" 2>&1 || {
  cat "/tmp/tenon-configure.$$"; rm -f "/tmp/tenon-configure.$$"; exit 1; }
rm -f "/tmp/tenon-configure.$$"
scripts/compile.sh "build/$preset" -j "$jobs"
