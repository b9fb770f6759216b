#!/usr/bin/env bash
# The short loop: builds, then runs the tests that the changed files can break, on the CPU alone.
#   scripts/check.sh         what differs from the last commit, or the last commit where nothing does
#   scripts/check.sh BASE    what differs from BASE
# tests/areas.txt says which files are tested by what; scripts/test.sh runs everything.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build/release
changed=$({ git diff --name-only "${1:-HEAD}"; git ls-files --others --exclude-standard; } | sort -u)
[ -n "$changed" ] || changed=$(git diff --name-only HEAD~1)

scripts/build.sh release

patterns=() paths=()
while IFS='|' read -r prefix rest; do
  [[ -n $prefix && $prefix != \#* ]] || continue
  prefix=${prefix%% *} pattern=${rest% | *} python=${rest##* | }
  grep -q "^$prefix" <<< "$changed" || continue
  pattern=${pattern// /} python=${python# }
  [ "$pattern" = - ] || patterns+=("$pattern")
  [ "$python" = - ] || paths+=($python)
done < tests/areas.txt
if [ ${#patterns[@]} -eq 0 ] && [ ${#paths[@]} -eq 0 ]; then
  echo "check: no test depends on: "$changed; exit
fi

if [ ${#patterns[@]} -gt 0 ]; then
  ctest --test-dir "$build" --output-on-failure --progress -j "$(nproc)" -R "$(IFS='|'; echo "${patterns[*]}")"
fi
if [ ${#paths[@]} -gt 0 ]; then
  export TENON_BUILD_DIR=$build PYTHONPATH=$build/python TENON_TEST_DEVICES=cpu
  printf '%s\n' "${paths[@]}" | sort -u | xargs .venv/bin/python -m pytest -q -n "$(nproc)"
fi
