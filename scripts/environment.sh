#!/usr/bin/env bash
# Makes FOLDER a Python environment with the packages that requirement files name, and says nothing when it is one
# already: a stamp in it holds the pins and the interpreter. TENON_PYTHON names another interpreter.
#   scripts/environment.sh FOLDER REQUIREMENTS... [PACKAGE==VERSION...]
#
# uv installs them: it fetches and unpacks side by side, so that the peers of the benchmarks (7 GB) take a
# minute instead of forty and the packages for development seconds instead of a minute. It does not read
# pip's configuration; where it finds no index, pip may.
set -euo pipefail
folder=$1
shift
python=${TENON_PYTHON:-/usr/bin/python3}
uv=uv==0.13.9

wanted=()
pins=""
for each in "$@"; do
  if [ -f "$each" ]; then
    wanted+=(-r "$each")
    pins+=$(cat "$each")
    # Files that a file includes are pins as well.
    for included in $(sed -n 's/^-r //p' "$each"); do pins+=$(cat "$(dirname "$each")/$included"); done
  else
    wanted+=("$each")
    pins+=$each
  fi
done
stamp=$( (echo "$pins" "$uv"; "$python" --version) | sha256sum | cut -c1-16)
[ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ] || exit 0

echo "environment: creating $folder" >&2
rm -rf "$folder"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install -q --disable-pip-version-check "$uv"
"$folder/bin/uv" pip install -q --system-certs --python "$folder/bin/python" "${wanted[@]}" || {
  echo "environment: uv could not install them; pip tries" >&2
  "$folder/bin/python" -m pip install -q --disable-pip-version-check "${wanted[@]}"
}
echo "$stamp" > "$folder/stamp"
