#!/usr/bin/env bash
# Installs wheels where there is no compiler, no network and nothing of this checkout, and runs programs there, as a user who has
# just read the README would:
#   scripts/test_wheel.sh FOLDER here        a new environment of this system's Python, with no PATH but its own
#   scripts/test_wheel.sh FOLDER SUITE ...   a new Debian or Ubuntu in a folder, with Python and no more: jammy (Python 3.10), bookworm
#                                            (3.11), noble (3.12), trixie (3.13), sid (what is newest). Of bionic and bullseye, whose
#                                            Python is too old, what needs no Python. Needs root, for chroot.
# FOLDER holds what scripts/wheel.sh has built: dist. The wheel for the version of Python at hand is taken, and all of vendors' plugins.
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=${1:?expected a folder of wheels, such as dist}
shift
[ $# -gt 0 ] || { echo "test_wheel.sh: expected here, jammy, bookworm, noble, trixie, sid, bionic or bullseye" >&2; exit 2; }
abi_of='import sys; print("cp%d%d" % sys.version_info[:2])'

# The newest wheel of an interpreter: wheel_for cp311
wheel_for() {
  local found
  found=$(ls -t "$wheels"/tenon_dl-*-"$1"-"$1"-*.whl 2> /dev/null | head -n 1)
  [ -n "$found" ] || { echo "test_wheel.sh: expected a wheel of $1 in $wheels" >&2; exit 2; }
  echo "$found"
}

test_here() {
  local python=${TENON_PYTHON:-/usr/bin/python3} folder
  folder=$(mktemp -d)
  "$python" -m venv "$folder/python"
  "$folder/python/bin/pip" install -q --disable-pip-version-check --no-index "$(wheel_for "$("$python" -c "$abi_of")")"
  cp tests/packages/bare/*.py "$folder/"
  cp -r "$wheels" "$folder/wheels"
  (
    cd "$folder"
    env -i PATH="$folder/python/bin" HOME="$folder" python check.py
    env -i PATH="$folder/python/bin" HOME="$folder" tenon --version
    env -i PATH="$folder/python/bin" HOME="$folder" python vendors.py wheels
  )
  rm -rf "$folder"
}

# A system that was installed once is used again; what a run adds to it is removed before the next one.
bare=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/bare
install_system() {
  local suite=$1 root=$2 include=python3,python3-venv,libstdc++6,ca-certificates source
  [ ! -e "$root/installed" ] || return 0
  command -v mmdebstrap > /dev/null || { apt-get update -qq; apt-get install -y -qq --no-install-recommends mmdebstrap > /dev/null; }
  # Debian knows its own keys; Ubuntu's are no package of every release, and sid's are newer than a release.
  case $suite in
    bookworm | trixie) source="deb http://deb.debian.org/debian $suite main" ;;
    bullseye) source="deb http://deb.debian.org/debian $suite main" include=libstdc++6,ca-certificates ;;
    sid) source="deb [trusted=yes check-valid-until=no] http://deb.debian.org/debian sid main" ;;
    jammy | noble) source="deb [trusted=yes] http://archive.ubuntu.com/ubuntu $suite main universe" ;;
    bionic) source="deb [trusted=yes] http://archive.ubuntu.com/ubuntu $suite main universe" include=libstdc++6,ca-certificates ;;
    *) echo "test_wheel.sh: expected here, jammy, bookworm, noble, trixie, sid, bionic or bullseye, got $suite" >&2; exit 2 ;;
  esac
  rm -rf "$root"
  mkdir -p "$bare"
  mmdebstrap --variant=minbase --include="$include" "$suite" "$root" "$source" > "$bare/$suite.log" 2>&1 || { tail -n 5 "$bare/$suite.log"; exit 1; }
  touch "$root/installed"
}

root=""
leave() { [ -z "$root" ] || umount "$root/proc" "$root/dev" 2> /dev/null || true; }
trap leave EXIT

# Of a system without a Python that Tenon serves: whether libraries find every symbol, and two plugins pass a part of the kit.
test_programs() {
  local wheel
  wheel=$(ls -t "$wheels"/tenon_dl-*.whl | head -n 1)
  .venv/bin/python -m zipfile -e "$wheel" "$root/opt/tenon/wheel"
  chmod +x "$root"/opt/tenon/wheel/tenon/bin/*
  echo "$suite: $(chroot "$root" ldd --version | head -n 1), without Python"
  unshare --net chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /bin/sh -eu -c '
    cd /opt/tenon/wheel/tenon
    for file in lib/*.so* plugins/*.so plugins/on_demand/*.so bin/*; do
      if ldd -r "$file" 2>&1 | grep -E "not found|undefined"; then echo "expected every symbol of $file here"; exit 1; fi
    done
    for plugin in null cpu; do bin/tenon-conformance --only "memory.*" "plugins/libtenon_$plugin.so"; done
  '
}

test_suite() {
  local suite=$1 python=/usr/bin/python3 version abi others
  root=$bare/$suite
  install_system "$suite" "$root"
  mountpoint -q "$root/proc" || mount --bind /proc "$root/proc"
  mountpoint -q "$root/dev" || mount --bind /dev "$root/dev"
  rm -rf "$root/opt/tenon"
  mkdir -p "$root/opt/tenon/examples"
  if [ ! -x "$root$python" ]; then
    test_programs
    leave
    return
  fi
  version=$(chroot "$root" "$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  abi=cp${version/./}
  cp "$(wheel_for "$abi")" "$root/opt/tenon/"
  mkdir "$root/opt/tenon/wheels"
  cp "$wheels"/tenon_dl_*-py3-none-*.whl "$root/opt/tenon/wheels/"
  cp tests/packages/bare/*.py "$root/opt/tenon/"
  cp examples/*.py "$root/opt/tenon/examples/"
  # What the example needs besides is fetched here, as there is no network there. Old systems have no newest wheels.
  others="$root/opt/tenon/others"
  for platform in manylinux_2_28_x86_64 manylinux_2_27_x86_64; do
    if .venv/bin/python -m pip download -q --disable-pip-version-check --only-binary :all: --python-version "$version" \
      --platform "$platform" --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d "$others" "numpy>=1.25" scikit-learn; then
      break
    fi
  done

  echo "$suite: $(chroot "$root" ldd --version | head -n 1), Python $version"
  unshare --net chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /bin/sh -eu -c '
    for tool in gcc cc c++ clang cmake; do
      if command -v "$tool" > /dev/null; then echo "expected no compiler here, found $tool"; exit 1; fi
    done
    cd /opt/tenon
    python3 -m venv python
    python/bin/pip install -q --disable-pip-version-check --no-index ./tenon_dl-*.whl
    python/bin/python check.py
    python/bin/tenon --version
    python/bin/tenon plugins doctor
    python/bin/python vendors.py wheels
    python/bin/pip install -q --disable-pip-version-check --no-index --find-links others numpy scikit-learn
    python/bin/python examples/train_digits.py --device cpu
  '
  leave
}

for suite in "$@"; do
  if [ "$suite" = here ]; then
    test_here
    continue
  fi
  [ "$(id -u)" = 0 ] || { echo "test_wheel.sh: expected to run as root, as chroot needs it" >&2; exit 2; }
  test_suite "$suite"
done
