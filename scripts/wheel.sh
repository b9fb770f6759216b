#!/usr/bin/env bash
# Builds dist/tenon_dl-VERSION-*.whl for the Python of .venv, as PyPI takes it: auditwheel looks at the symbols of every
# library inside, and names the wheel after the oldest glibc that has them. Needs scripts/bootstrap.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=build/wheel_tools
stamp=$(sha256sum requirements/wheel.txt | cut -c1-16)
if [ "$(cat "$tools/stamp" 2>/dev/null)" != "$stamp" ]; then
  rm -rf "$tools"
  .venv/bin/python -m venv "$tools"
  "$tools/bin/python" -m pip install -q --disable-pip-version-check -r requirements/wheel.txt
  echo "$stamp" > "$tools/stamp"
fi

# The name of PyPI's platform comes with auditwheel; what pip writes has the name that PyPI refuses.
built=build/wheel_unnamed
rm -rf "$built"
.venv/bin/python -m pip wheel -q --no-deps --no-build-isolation -w "$built" .
PATH="$PWD/$tools/bin:$PATH" "$tools/bin/auditwheel" repair --wheel-dir dist "$built"/tenon_dl-*.whl
