#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the binaries of one revision, once, when it is released: tests/abi/kept/build.sh revision0
# Nothing runs this later: what every build must load is what was shipped, not what can be built again.
set -eu
cd "$(dirname "$0")/$1"
export SOURCE_DATE_EPOCH=0
link="-shared -fPIC -s -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack -Wl,--build-id=none -Wl,--no-undefined"
map=$(mktemp) && trap 'rm -f "$map"' EXIT
echo '{ global: tenon_plugin_query; local: *; };' > "$map"
for source in *.c; do
  gcc -std=c11 -Os -Wall -Wextra -fvisibility=hidden -Iinclude $link -Wl,--version-script="$map" "$source" \
    -o "${source%.c}.so"
done
for source in *.cpp; do
  g++ -std=c++20 -Os -Wall -Wextra -Wno-missing-field-initializers -fvisibility=hidden -fno-gnu-unique -Iinclude \
    $link -Wl,--version-script="$map" "$source" -o "${source%.cpp}.so"
done
for source in kept_*.rs; do
  rustc --edition 2021 --crate-type cdylib -C opt-level=s -C panic=abort -C strip=symbols -C lto \
    -C link-arg=-lc -C link-arg=-Wl,-z,now -C link-arg=-Wl,--build-id=none "$source" -o "${source%.rs}.so"
done
sha256sum ./*.so > SHA256SUMS
ls -l ./*.so
