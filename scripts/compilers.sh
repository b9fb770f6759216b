#!/usr/bin/env bash
# Reads the sources with every compiler that docs/support.md names, as far as an error of the sources shows: syntax, types and templates
# (scripts/compile_with.py). The stages gcc and clang of scripts/nightly.sh build and test with the newest of each.
#   scripts/compilers.sh [COMPILER ...]      g++-11 to g++-14 and clang++-14 to clang++-19
#   TENON_COMPILERS_ONLY='^plugins/cpu/'     files whose path fits this regular expression
# Needs a build in build/release, and root. What the system's packages have is installed; the others come with a Debian 13 that is unpacked into
# a folder, with its headers of glibc, yaml-cpp, GoogleTest and the rest. Python's headers are those of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
all=(g++-{11,12,13,14} clang++-{14,15,16,17,18,19})
[ $# -gt 0 ] || set -- "${all[@]}"
[ "$(id -u)" = 0 ] || { echo "compilers.sh: expected to run as root, as chroot needs it" >&2; exit 2; }

# Mounts are seen by this process and its children alone, and end with it.
[ "${TENON_COMPILERS_UNSHARED:-0}" = 1 ] || TENON_COMPILERS_UNSHARED=1 exec unshare -m "$0" "$@"

headers=(libyaml-cpp-dev libxbyak-dev libprotozero-dev libgtest-dev libbenchmark-dev libssl-dev opencl-c-headers libdnnl-dev)
package_of() { echo "${1/clang++/clang}"; }
# Packages that the system can install; a name that others only mention has no candidate.
installable=$(apt-cache policy $(for compiler in "${all[@]}" "$@"; do package_of "$compiler"; done) |
  awk '/^[^ ]/ {name = $1} /Candidate: [^(]/ {print " " name}')
is_here() { command -v "$1" > /dev/null || grep -qxF " $(package_of "$1"):" <<< "$installable"; }
missing=() is_root_needed=false
for compiler in "$@"; do
  if ! is_here "$compiler"; then
    is_root_needed=true
  elif ! command -v "$compiler" > /dev/null; then
    missing+=("$(package_of "$compiler")")
  fi
done
[ ${#missing[@]} -eq 0 ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null

# One folder for all that this system lacks. Nothing is configured in it: compilers run without.
root=""
if $is_root_needed; then
  there=()
  for compiler in "${all[@]}" "$@"; do is_here "$compiler" || there+=("$(package_of "$compiler")"); done
  packages=$(printf '%s\n' base-files "${headers[@]}" "${there[@]}" | sort -u | paste -sd,)
  root=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/compilers-$(sha256sum <<< "$packages" | cut -c1-12)
  if [ ! -e "$root/unpacked" ]; then
    command -v mmdebstrap > /dev/null || { apt-get update -qq; apt-get install -y -qq --no-install-recommends mmdebstrap > /dev/null; }
    mirror=$(apt-cache policy | grep -oE 'https?://[^ ]+/debian/? ' | head -n 1)
    [ -n "$mirror" ] || { echo "compilers.sh: expected a Debian system, whose mirror has ${there[*]}" >&2; exit 2; }
    rm -rf "$root"
    mmdebstrap --variant=extract --include="$packages" trixie "$root" "deb ${mirror% } trixie main"
    touch "$root/unpacked"
  fi
  python_headers=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
  for folder in "$PWD" "$(readlink -f .venv)" "$python_headers"; do
    mkdir -p "$root$folder"
    mount --rbind "$folder" "$root$folder"
  done
  mkdir -p "$root/dev" "$root/proc"
  mount --bind /dev "$root/dev"
  mount --bind /proc "$root/proc"
fi

failed=0
for compiler in "$@"; do
  echo "== $compiler"
  from=()
  is_here "$compiler" || from=(--root "$root")
  .venv/bin/python scripts/compile_with.py "$compiler" "${from[@]}" --only "${TENON_COMPILERS_ONLY:-}" --jobs "${NIGHTLY_JOBS:-$(nproc)}" || failed=1
done
exit $failed
