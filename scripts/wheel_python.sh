#!/usr/bin/env bash
# Compiles versions of CPython that the system has not, from Debian's sources, for scripts/wheel.sh:
#   scripts/wheel_python.sh 3.14 ...   into ~/.cache/tenon/python/3.14 (or XDG_CACHE_HOME)
# What is made runs pip and CMake to build a wheel and has the headers; it is not optimised, and has neither its tests nor
# pip of its own. Does nothing, quickly, where the version is there. Takes the newest sources of testing or unstable, so
# needs a Debian, whose mirror it asks.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "wheel_python.sh: expected versions, such as 3.14" >&2; exit 2; }

for version in "$@"; do
  prefix=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/python/$version
  [ ! -x "$prefix/bin/python3" ] || continue
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mirror=$(apt-cache policy | grep -oE 'https?://[^ ]+/debian/? ' | head -n 1)
  [ -n "$mirror" ] || { echo "wheel_python.sh: expected a Debian system; install Python $version with its headers" >&2; exit 2; }

  # An apt with lists of its own: the system's stay as they are.
  mkdir -p "$work"/{lists/partial,cache/archives/partial,state,source}
  echo "deb-src [trusted=yes check-valid-until=no] ${mirror% } sid main" > "$work/sources.list"
  options=(-q -q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$work/state"
           -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  (cd "$work/source" && apt-get "${options[@]}" source --download-only "python$version") || {
    echo "wheel_python.sh: expected a version that Debian has, got $version" >&2; exit 2; }
  mkdir "$work/tree"
  tar -xf "$work/source/python${version}"_*.orig.tar.xz -C "$work/tree" --strip-components=1

  mkdir -p "$prefix"
  (
    cd "$work/tree"
    # ccache keeps objects of wheels' builds; these are needed once.
    CC=cc OPT="-O1 -DNDEBUG" ./configure --prefix="$prefix" --without-ensurepip --disable-test-modules
    make -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
    make install
  ) > "$prefix/build.log" 2>&1 || { tail -n 20 "$prefix/build.log" >&2; exit 1; }
  rm -rf "$work"
done
