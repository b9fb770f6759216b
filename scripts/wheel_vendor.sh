#!/usr/bin/env bash
# Builds dist/tenon_dl_VENDOR-*.whl: the plugin of a vendor's devices as a package of its own, which every version of Python can install
# beside tenon-dl. An entry point tells Tenon where the plugin lies. scripts/wheel.sh, which calls this, has built the plugins.
#   scripts/wheel_vendor.sh cuda|rocm|ascend|kunlun ...
# Programs that scripts/wheel_gpu.sh has compiled ahead of time go into the package. A package without them compiles programs when they are
# first needed.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=build/wheel_tools built=build/wheel/python/tenon/plugins version=$(cat VERSION)
[ $# -gt 0 ] || { echo "wheel_vendor.sh: expected cuda, rocm, ascend or kunlun" >&2; exit 2; }
mkdir -p dist
for vendor in "$@"; do
  case $vendor in
    cuda | rocm | ascend | kunlun) ;;
    *) echo "wheel_vendor.sh: expected cuda, rocm, ascend or kunlun, got $vendor" >&2; exit 2 ;;
  esac
  [ -e "$built/libtenon_$vendor.so" ] || { echo "wheel_vendor.sh: $built has no libtenon_$vendor.so; run scripts/wheel.sh first" >&2; exit 2; }
  package=build/tenon_$vendor
  rm -rf "$package"
  cp -r "plugins/$vendor/package" "$package"
  cp scripts/wheel_vendor_setup.py "$package/setup.py"
  cp LICENSE "$package/"
  echo "$version" > "$package/VERSION"
  { echo "tenon-dl==$version"; cat "plugins/$vendor/package/requirements.txt" 2> /dev/null || true; } > "$package/requirements.txt"
  mkdir "$package/tenon_$vendor/plugins"
  cp "$built/libtenon_$vendor.so" "$built/$vendor.tenon.json" "$package/tenon_$vendor/plugins/"
  programs=build/programs/$vendor.programs
  [ ! -e "$programs" ] || cp "$programs" "$package/tenon_$vendor/"
  PYTHONPATH="$PWD/$tools" .venv/bin/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$package/wheel" "$package"
  PATH="$PWD/$tools/bin:$PATH" PYTHONPATH="$PWD/$tools" .venv/bin/python -m auditwheel repair --wheel-dir dist "$package"/wheel/*.whl
done
