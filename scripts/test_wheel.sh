#!/usr/bin/env bash
# Installs a wheel where there is no compiler and nothing of this checkout, and runs programs there, as a user who has just
# read the README would:
#   scripts/test_wheel.sh dist/tenon_dl-*.whl here        a new environment of this system's Python, with no PATH but its own
#   scripts/test_wheel.sh dist/tenon_dl-*.whl [SUITE]     a new Debian or Ubuntu in a folder, with Python, pip and no more: that
#                                                         which has the wheel's version of Python (jammy 3.10, bookworm 3.11,
#                                                         noble 3.12, trixie 3.13). Needs root, for chroot.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=${1:?expected a wheel, such as dist/tenon_dl-*.whl}
case $wheel in
  *-cp310-*) matching=jammy ;;
  *-cp312-*) matching=noble ;;
  *-cp313-*) matching=trixie ;;
  *) matching=bookworm ;;
esac
suite=${2:-$matching}

if [ "$suite" = here ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  "${TENON_PYTHON:-/usr/bin/python3}" -m venv "$folder/python"
  "$folder/python/bin/pip" install -q --disable-pip-version-check "$wheel"
  cp tests/packages/bare/check.py "$folder/"
  cd "$folder"
  env -i PATH="$folder/python/bin" HOME="$folder" python check.py
  env -i PATH="$folder/python/bin" HOME="$folder" tenon --version
  exit
fi

case $suite in
  bookworm|trixie) mirror=http://deb.debian.org/debian ;;
  jammy|noble) mirror=http://archive.ubuntu.com/ubuntu ;;
  *) echo "test_wheel.sh: expected here, bookworm, trixie, jammy or noble, got $suite" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "test_wheel.sh: expected to run as root, as chroot needs it" >&2; exit 2; }
command -v debootstrap > /dev/null || { apt-get update -qq; apt-get install -y -qq --no-install-recommends debootstrap > /dev/null; }

# A system that was installed once is used again; what a run adds to it is removed before the next one.
bare=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/bare
root=$bare/$suite
leave() { umount "$root/proc" "$root/dev" 2> /dev/null || true; }
trap leave EXIT
if [ ! -e "$root/installed" ]; then
  rm -rf "$root"
  mkdir -p "$root"
  # Ubuntu's names of releases are scripts of debootstrap too; its key is not Debian's.
  options=()
  [[ $mirror == *debian.org* ]] || options=(--no-check-gpg --components=main,universe)
  debootstrap --variant=minbase "${options[@]}" --include=python3,python3-venv,ca-certificates "$suite" "$root" "$mirror" \
    > "$bare/$suite.log" || { tail -n 5 "$bare/$suite.log"; exit 1; }
  touch "$root/installed"
fi
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
rm -rf "$root/opt/tenon"
mkdir -p "$root/opt/tenon/examples"
cp "$wheel" "$root/opt/tenon/"
cp tests/packages/bare/check.py "$root/opt/tenon/"
cp examples/*.py "$root/opt/tenon/examples/"
# What the example needs besides is fetched here, as the new system knows no certificates but the usual ones.
.venv/bin/python -m pip download -q --disable-pip-version-check --only-binary :all: -d "$root/opt/tenon/others" "numpy>=1.25" scikit-learn

chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /bin/sh -eu -c '
  for tool in gcc cc c++ clang cmake; do
    if command -v "$tool" > /dev/null; then echo "expected no compiler here, found $tool"; exit 1; fi
  done
  cd /opt/tenon
  python3 -m venv python
  python/bin/pip install -q --disable-pip-version-check --no-index ./tenon_dl-*.whl
  python/bin/python check.py
  python/bin/tenon --version
  python/bin/tenon plugins doctor
  python/bin/pip install -q --disable-pip-version-check --no-index --find-links others numpy scikit-learn
  python/bin/python examples/train_digits.py --device cpu
'
