#!/usr/bin/env bash
# Brings versions of CPython that the system has not, with their headers, for scripts/wheel.sh:
#   scripts/wheel_python.sh 3.14 ...   into ~/.cache/tenon/python/3.14 (or XDG_CACHE_HOME)
# They are those of Debian's unstable, unpacked and not installed, and run with the C library of that system, which the
# system at hand need not have; what they start are programs of the system at hand. Does nothing, quickly, where the
# version is there. Needs a Debian, whose mirror it asks.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "wheel_python.sh: expected versions, such as 3.14" >&2; exit 2; }

for version in "$@"; do
  root=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/python/$version
  [ ! -x "$root/bin/python3" ] || continue
  mirror=$(apt-cache policy | grep -oE 'https?://[^ ]+/debian/? ' | head -n 1)
  [ -n "$mirror" ] || { echo "wheel_python.sh: expected a Debian system; install Python $version with its headers" >&2; exit 2; }
  command -v mmdebstrap > /dev/null || { apt-get update -qq; apt-get install -y -qq --no-install-recommends mmdebstrap > /dev/null; }
  rm -rf "$root"
  mkdir -p "$root"
  mmdebstrap --variant=extract --include="base-files,python$version,libpython$version-dev" sid "$root/system" \
    "deb [trusted=yes check-valid-until=no] ${mirror% } sid main" > "$root/unpack.log" 2>&1 || {
    tail -n 5 "$root/unpack.log" >&2
    echo "wheel_python.sh: expected a version that Debian has, got $version" >&2
    exit 2
  }
  # A program beside those of its system, so that Python finds its library from where it lies. A virtual environment has
  # a link to it: argv[0] is the link, beside which the environment's settings are.
  cat > "$root/system/usr/bin/python-here" << 'END'
#!/bin/sh
bin=$(dirname "$(readlink -f "$0")")
exec "$bin/../lib64/ld-linux-x86-64.so.2" --library-path "$bin/../lib/x86_64-linux-gnu" --argv0 "$0" "$bin/python-VERSION" "$@"
END
  sed -i "s/python-VERSION/python$version/" "$root/system/usr/bin/python-here"
  chmod +x "$root/system/usr/bin/python-here"
  # The header of the version asks for that of the architecture by a folder that compilers search only where it is installed.
  cp "$root/system/usr/include/x86_64-linux-gnu/python$version/pyconfig.h" "$root/system/usr/include/python$version/"
  mkdir "$root/bin"
  ln -s ../system/usr/bin/python-here "$root/bin/python3"
done
