#!/usr/bin/env bash
# Formatters, linters and type checks, as .pre-commit-config.yaml lists them:
#   scripts/lint.sh           checks every file
#   scripts/lint.sh --fix     formats every file first
# The type check reads the stubs of the operators, which the build generates.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONPATH  # mypy would check the installed package instead of the one here

if [ "${1:-}" = --fix ]; then
  .venv/bin/ruff check --quiet --fix . || true  # what it cannot fix is reported below
  .venv/bin/ruff format --quiet .
  .venv/bin/pre-commit run --all-files --hook-stage manual clang-format-fix > /dev/null || true  # it says so if it changes files
fi

if [ ! -e build/release/python/tenon/_operators.pyi ]; then
  echo "lint: generating the stubs of the operators"
  cmake --preset release -DPython_EXECUTABLE="$PWD/.venv/bin/python" > /dev/null
  cmake --build build/release --target tenon_generated > /dev/null
fi
.venv/bin/pre-commit run --all-files
