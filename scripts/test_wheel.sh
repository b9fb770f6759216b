#!/usr/bin/env bash
# Installs a wheel where there is no compiler and nothing of this checkout: a new Debian or Ubuntu in a folder, with
# Python, pip and no more. Then runs programs there, as a user who has just read the README would. Needs root, for chroot.
#   scripts/test_wheel.sh dist/tenon_dl-*.whl [bookworm|trixie|jammy|noble]
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=${1:?expected a wheel, such as dist/tenon_dl-*.whl}
suite=${2:-bookworm}
case $suite in
  bookworm|trixie) mirror=http://deb.debian.org/debian ;;
  jammy|noble) mirror=http://archive.ubuntu.com/ubuntu ;;
  *) echo "test_wheel.sh: expected bookworm, trixie, jammy or noble, got $suite" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "test_wheel.sh: expected to run as root, as chroot needs it" >&2; exit 2; }
command -v debootstrap > /dev/null || { apt-get update -qq; apt-get install -y -qq --no-install-recommends debootstrap > /dev/null; }

root=$PWD/build/bare/$suite
leave() { umount "$root/proc" "$root/dev" 2> /dev/null || true; }
trap leave EXIT
if [ ! -e "$root/installed" ]; then
  rm -rf "$root"
  # Ubuntu's names of releases are scripts of debootstrap too; its key is not Debian's.
  check=()
  [[ $mirror == *debian.org* ]] || check=(--no-check-gpg --components=main,universe)
  debootstrap --variant=minbase "${check[@]}" --include=python3,python3-venv,ca-certificates "$suite" "$root" "$mirror" > "build/bare-$suite.log" || {
    tail -n 5 "build/bare-$suite.log"; exit 1; }
  touch "$root/installed"
fi
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
rm -rf "$root/opt/tenon"
mkdir -p "$root/opt/tenon/examples"
cp "$wheel" "$root/opt/tenon/"
cp tests/packages/bare/check.py "$root/opt/tenon/"
cp examples/*.py "$root/opt/tenon/examples/"

chroot "$root" /bin/sh -eu -c '
  for tool in gcc cc c++ clang cmake; do
    if command -v "$tool" > /dev/null; then echo "expected no compiler here, found $tool"; exit 1; fi
  done
  cd /opt/tenon
  python3 -m venv python
  python/bin/pip install -q --disable-pip-version-check ./tenon_dl-*.whl
  python/bin/python check.py
  python/bin/tenon --version
  python/bin/tenon plugins doctor
  python/bin/pip install -q --disable-pip-version-check "numpy>=1.25" scikit-learn
  python/bin/python examples/train_digits.py --device cpu
'
