#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh release [-DOPTION=VALUE ...]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
options=("${@:2}")

# The heaviest compilations take about 1.5 GB; use as many jobs as cores and memory allow.
cores=$(nproc)
memory_jobs=$(awk '/MemAvailable/ {print int($2 / 1572864)}' /proc/meminfo)
jobs=$(( cores < memory_jobs ? cores : memory_jobs ))
[ "$jobs" -ge 1 ] || jobs=1

cmake --preset "$preset" -DPython_EXECUTABLE="$PWD/.venv/bin/python" "${options[@]}" > "/tmp/tenon-configure.$$" 2>&1 || {
  cat "/tmp/tenon-configure.$$"; rm -f "/tmp/tenon-configure.$$"; exit 1; }
rm -f "/tmp/tenon-configure.$$"
scripts/compile.sh "build/$preset" -j "$jobs"
