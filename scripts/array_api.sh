#!/usr/bin/env bash
# The test suite of the array API standard against the built package:
#   scripts/array_api.sh [pytest's arguments]
# The suite is taken from GitHub at a pinned commit, with the stubs of the standard that it compares
# signatures with, and what it imports from PyPI, into build/array_api. ARRAY_API_TESTS names a checkout
# to use instead. A test that fails and is not in tests/array_api/known_failures.txt makes this fail.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
version=2025.12
suite_commit=55fcc60179efa2680ddd6cd926ddf17b83530e2b
work=$PWD/build/array_api
mkdir -p "$work"

suite=${ARRAY_API_TESTS:-$work/suite}
if [ -z "${ARRAY_API_TESTS:-}" ] && [ "$(git -C "$suite" rev-parse HEAD 2>/dev/null)" != "$suite_commit" ]; then
  rm -rf "$suite"
  git clone -q https://github.com/data-apis/array-api-tests "$suite"
  git -C "$suite" checkout -q "$suite_commit"
  git -C "$suite" submodule -q update --init  # the stubs, at the commit that the suite names
fi

scripts/environment.sh "$work/venv" requirements/array_api.txt

known=$PWD/tests/array_api/known_failures.txt
export PYTHONPATH=$PWD/$build/python ARRAY_API_TESTS_MODULE=tenon.array_api ARRAY_API_TESTS_VERSION=$version
cd "$suite"
"$work/venv/bin/python" -m pytest array_api_tests -q -n "$(nproc)" --max-examples 20 --disable-deadline \
  -p no:cacheprovider --xfails-file "$known" "$@"
