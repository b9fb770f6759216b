#!/usr/bin/env bash
# Compiles a configured folder: scripts/compile.sh FOLDER [options of cmake --build]
# A terminal shows one line that overwrites itself; a file or a CI job gets a line a minute. What the
# compiler printed is in FOLDER/build.log, and the errors of a failed build are shown in full.
set -euo pipefail
folder=$1
log=$folder/build.log

# ccache needs no preprocessor where the compiler lists what it read, as Ninja has it do.
CCACHE_DEPEND=1 cmake --build "$folder" "${@:2}" > "$log" 2>&1 &
compiler=$!
trap 'kill "$compiler" 2> /dev/null; exit 130' INT TERM

progress() { grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -1; }
seconds=0
while kill -0 "$compiler" 2> /dev/null; do
  sleep 1
  seconds=$((seconds + 1))
  if [ -t 1 ]; then
    printf '\r\e[Kbuild: %s %s, %d s' "$folder" "$(progress || true)" "$seconds"
  elif [ $((seconds % 60)) -eq 0 ]; then
    echo "build: $folder $(progress || true), $((seconds / 60)) min"
  fi
done
[ ! -t 1 ] || printf '\r\e[K'

if ! wait "$compiler"; then
  # Ninja prints each failure as a block that ends where the next file begins.
  awk '/^FAILED: /{shown = 1} /^\[[0-9]+\/[0-9]+\] /{shown = 0} shown' "$log"
  grep -q '^FAILED: ' "$log" || tail -n 40 "$log"
  echo "build: $folder failed; everything that was printed is in $log" >&2
  exit 1
fi
warnings=$(grep -c ' warning: ' "$log" || true)
[ "$warnings" = 0 ] || echo "build: $warnings compiler warnings, see $log"
echo "build: $folder is complete"
