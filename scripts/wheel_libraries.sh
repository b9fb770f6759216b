#!/usr/bin/env bash
# Prepares build/wheel_libraries: what a wheel is linked with, so that it asks the system for nothing newer than glibc 2.27 and
# the libstdc++ of GCC 8, whatever the system is that builds it. It is compiled as everything else is, by the system's compiler
# with its headers; scripts/wheel.sh gives the linker this folder first. Does nothing, quickly, when all is there.
#
# - glibc 2.27 and libstdc++ 8 are Ubuntu 18.04's. Only their lists of symbols, start files and non-shared parts are used.
# - libstdc++.so is a script of the linker: what the old library lacks comes from the archive of the compiler.
# - wheel_shims.c is what the archive and the headers want of a newer glibc.
# - yaml-cpp is compiled from Debian's source, as position-independent code, which Debian's archive is not.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(uname -m)" = x86_64 ] || { echo "wheel_libraries.sh: expected x86_64, got $(uname -m)" >&2; exit 2; }

ubuntu=http://archive.ubuntu.com/ubuntu/pool/main
debian=http://deb.debian.org/debian/pool/main
sources=(
  "5b813d4512491cd8fb30b2eb9192349ee75ffe3c9f21ae136cc7b2429f70c3b2 $ubuntu/g/glibc/libc6_2.27-3ubuntu1.6_amd64.deb"
  "96ae7d2cf38f0547ca3cccb3344c8802fdf5bcd71c4b6d9aed09558ac8cc87db $ubuntu/g/glibc/libc6-dev_2.27-3ubuntu1.6_amd64.deb"
  "4dbd1ffa20011329608f584ff329a10507cfa78c3f76fa34e6f479f9680b64f4 $ubuntu/g/gcc-8/libstdc++6_8.4.0-1ubuntu1~18.04_amd64.deb"
  "dc63708605404e0b963e0ca3a9619d1c8270eda2839603e6fa0384e5e51e5312 $debian/y/yaml-cpp/yaml-cpp_0.7.0+dfsg.orig.tar.xz"
)
folder=$PWD/build/wheel_libraries
stamp=$(sha256sum scripts/wheel_libraries.sh scripts/wheel_shims.c <("${CXX:-c++}" --version) | sha256sum | cut -c1-16)
[ "$(cat "$folder/stamp" 2> /dev/null)" != "$stamp" ] || exit 0
rm -rf "$folder"
mkdir -p "$folder/root" "$folder/yaml-cpp/source"

# Python downloads, as a system that can build need not have curl.
for source in "${sources[@]}"; do
  read -r sum address <<< "$source"
  file=$folder/${address##*/}
  python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' "$address" "$file"
  echo "$sum  $file" | sha256sum -c --quiet
  case $file in
    *.deb) dpkg-deb -x "$file" "$folder/root" ;;
    *) tar -xf "$file" -C "$folder/yaml-cpp/source" --strip-components=1 ;;
  esac
  rm "$file"
done

# Scripts of the linker and links name the folders of a system.
shared=$folder/root/lib/x86_64-linux-gnu other=$folder/root/usr/lib/x86_64-linux-gnu
cp "$other"/{crt1,Scrt1,crti,crtn}.o "$other"/lib{c,pthread,mvec}_nonshared.a "$folder/"
for library in c m pthread; do
  sed -e "s: /lib/x86_64-linux-gnu/: $shared/:g; s: /usr/lib/x86_64-linux-gnu/: $other/:g" "$other/lib$library.so" > "$folder/lib$library.so"
done
ln -s "$shared/libdl.so.2" "$folder/libdl.so"
ln -s "$shared/librt.so.1" "$folder/librt.so"
archive=$("${CXX:-c++}" -print-file-name=libstdc++.a)
echo "GROUP ( $other/libstdc++.so.6 $archive $folder/libwheel_shims.a AS_NEEDED ( $shared/libdl.so.2 $shared/libpthread.so.0 ) )" > "$folder/libstdc++.so"

"${CC:-cc}" -std=c11 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -c scripts/wheel_shims.c -o "$folder/wheel_shims.o"
ar rcs "$folder/libwheel_shims.a" "$folder/wheel_shims.o"

# shellcheck disable=SC2046 # an option, or none
cmake -S "$folder/yaml-cpp/source" -B "$folder/yaml-cpp/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
  -DYAML_BUILD_SHARED_LIBS=OFF -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF -DYAML_CPP_BUILD_CONTRIB=OFF \
  $(command -v ccache > /dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache) \
  -DCMAKE_INSTALL_PREFIX="$folder/yaml-cpp/installed" -DCMAKE_INSTALL_LIBDIR=lib > "$folder/yaml-cpp/configure.log"
scripts/compile.sh "$folder/yaml-cpp/build" --target install
echo "$stamp" > "$folder/stamp"
