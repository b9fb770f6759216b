#!/usr/bin/env bash
# What takes hours: scripts/nightly.sh [STAGE ...], or make nightly STAGES="clang aarch64"
# Without a stage all of them run. Each stage installs what it needs, writes build/nightly/STAGE.log and
# goes on to the next; a table at the end says which passed. The exit status is 1 if one failed.
#
#   exhaustive  make test with every case on every device, and a hundred killed workers of data loaders and savers of checkpoints
#   large       tensors of more than 2^31 elements (16 GiB of memory)
#   distributed what distributed training has to show (tests/distributed/run all): every sharding rule on every sample, layouts of
#               checkpoints and a hundred jobs killed while they save, faults, norms, volumes; bars of time want a quiet machine,
#               those of links need root
#   guard       ratios between Tenon's own paths; wants a quiet machine
#   mutation    counts how many small wrong changes the tests notice
#   fuzz        the differential fuzzer, operator by operator, for NIGHTLY_FUZZ_MINUTES (60), with a new seed every day
#   peers       installs PyTorch, PaddlePaddle, JAX, SciPy and more (3 GB), runs all tests that need one, and
#               holds the library beside them for NIGHTLY_PEER_MINUTES (5) for each part, with a new seed every day
#   bridges     on the peers: PyTorch's own samples on the guide's plugin as a device of PyTorch (560 of 703 entries at least), models that
#               train there, calls of ATen beside their lines, 160 exported models (152 at least),
#               suites of einops, opt_einsum, the packages of the array API, SciPy and scikit-learn, methods beside
#               PyTorch's, and damaged models of Paddle and PyTorch for NIGHTLY_FUZZ_MINUTES
#   asan, tsan  the tests under sanitizers
#   readers     a build with AddressSanitizer reads damaged programs, models of ONNX, Paddle and PyTorch and language models, each for
#               NIGHTLY_FUZZ_MINUTES, a million structures that lie, and calls the predictor in random orders
#   gcc, clang  the tests of a build by g++ 13 or later and by clang
#   compilers   the sources read by g++ 11 to 14 and clang 14 to 19, as far as syntax, types and templates go
#   aarch64     cross-built, the C++ tests run by qemu
#   array_api   the test suite of the array API standard, at a pinned commit
#   onnx        the suite of cases that ONNX has for backends
#   networks    on the peers: models of timm, transformers and scikit-learn as models of ONNX in a predictor, beside ONNX Runtime and what
#               they were made from; what a run of the day has done is not done again
#   soak        predictors at work for NIGHTLY_SOAK_MINUTES (10): memory that does not grow, right results
#   llm         answers of language models bit for bit in every order, chunk and cache; a server with broken clients for
#               NIGHTLY_SOAK_MINUTES; damaged models, tokenizers, templates and requests, each for NIGHTLY_FUZZ_MINUTES; a million
#               steps of the cache and draws of each option of sampling
#   wheel       wheels for every Python that is found, for 3.14 and of vendors' plugins, installed and used without a compiler: in a new
#               environment, in bare systems of their versions of Python, and in old systems as far as they need no Python
#   tidy        clang-tidy over the core and the plugins
set -euo pipefail
cd "$(dirname "$0")/.."
all=(exhaustive large distributed guard mutation fuzz peers bridges asan readers tsan gcc clang compilers aarch64 array_api onnx networks soak llm wheel tidy)

install() {
  local missing=() package sudo=""
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# The newest compiler that the system's packages have, from `least` on: newest_package g++- 13 16
newest_package() {
  local version
  for ((version = $3; version >= $2; version--)); do
    # A name that packages only mention has no candidate.
    if apt-cache policy "$1$version" | grep -qE 'Candidate: [^(]'; then echo "$1$version"; return; fi
  done
  echo "expected a package $1$2 or newer; this system has none" >&2
  return 1
}

# Builds with another compiler and runs the C++ tests and those of operators and bindings.
test_compiler() {  # name of the build, C compiler, C++ compiler
  # Presets name their build folder, so this one is given instead.
  cmake -S . -B "build/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="$PWD/.venv/bin/python" \
    -DCMAKE_C_COMPILER="$2" -DCMAKE_CXX_COMPILER="$3"
  scripts/compile.sh "build/$1" -j "${NIGHTLY_JOBS:-$(nproc)}"
  # Budgets of instructions are those of one compiler.
  ctest --test-dir "build/$1" --output-on-failure -j "$(nproc)" -E instructions
  TENON_BUILD_DIR="$PWD/build/$1" PYTHONPATH="$PWD/build/$1/python" TENON_TEST_DEVICES=cpu \
    .venv/bin/python -m pytest -q -n "$(nproc)" tests/ops tests/python
}

stage_exhaustive() { TENON_TEST_EXHAUSTIVE=1 TENON_TEST_KILLS=100 make test; }
stage_large() {
  make build
  TENON_TEST_LARGE=1 PYTHONPATH=build/release/python .venv/bin/python -m pytest -q tests/python/tensor/test_huge_tensors.py
}
stage_distributed() { make build; tests/distributed/run all; }
stage_guard() { make build; benchmarks/run guard --strict; }
stage_mutation() { make mutation; }
stage_fuzz() {
  make build
  TENON_BUILD_DIR=$PWD/build/release PYTHONPATH=build/release/python .venv/bin/python -m tests.fuzz \
    --seed "$(date +%Y%m%d)" --minutes "${NIGHTLY_FUZZ_MINUTES:-60}" --each
}
# Peers lie in the user's cache, named after their pins, as those of the benchmarks do. Says which Python has them.
peers_python() {
  local pins peers
  pins=$(cat requirements/peers.txt requirements/dev.txt benchmarks/peers.txt | sha256sum | cut -c1-12)
  peers=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/tested-peers-$pins
  scripts/environment.sh "$peers" requirements/peers.txt
  echo "$peers/bin/python"
}
stage_peers() {
  make build
  local python
  python=$(peers_python)
  export TENON_BUILD_DIR=$PWD/build/release PYTHONPATH=$PWD/build/release/python TENON_TEST_DEVICES=cpu
  git grep -lE 'importorskip|peers' 'tests/python/*test_*.py' 'tests/fuzz/test_*.py' 'tests/compat/test_*.py' 'tests/docs/test_*.py' 'tests/ops/test_*.py' |
    xargs "$python" -m pytest -q -n "$(nproc)"
  "$python" -m tests.fuzz.peers --seed "$(date +%Y%m%d)" --minutes "${NIGHTLY_PEER_MINUTES:-5}"
}
stage_bridges() {
  make build
  local python failed=0
  python=$(peers_python)
  export TENON_BUILD_DIR=$PWD/build/release PYTHONPATH=$PWD/build/release/python
  cmake --install build/release --prefix "$PWD/build/sdk" > /dev/null
  cmake -S examples/custom_device -B build/custom_device -G Ninja -DCMAKE_PREFIX_PATH="$PWD/build/sdk"
  scripts/compile.sh build/custom_device
  "$python" -m tests.bridges.torch_device build/custom_device/libtenon_toy.so --at-least 560 || failed=1
  "$python" -m tests.bridges.torch_device build/custom_device/libtenon_toy.so --models || failed=1
  "$python" -m tests.bridges.aten_calls --samples 4 --each 10 || failed=1
  "$python" -m tests.bridges.torch_models --timm 100 --transformers 40 --own 20 --at-least 0.95 || failed=1
  "$python" -m tests.bridges.array_suites || failed=1
  "$python" -m tests.bridges.alias_names || failed=1
  "$python" -m tests.fuzz.peers.methods || failed=1
  "$python" -m tests.fuzz.saved_models --seed "$(date +%Y%m%d)" --minutes "${NIGHTLY_FUZZ_MINUTES:-60}" || failed=1
  return $failed
}
stage_asan() { make asan; }
stage_readers() { scripts/sanitize.sh readers "${NIGHTLY_FUZZ_MINUTES:-60}"; }
stage_tsan() { make tsan; }
stage_gcc() {
  local package
  package=$(newest_package g++- 13 20)
  install "$package"
  test_compiler gcc "${package/g++/gcc}" "$package"
}
stage_clang() {
  install clang
  test_compiler clang clang clang++
}
stage_compilers() {
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  make build
  $sudo scripts/compilers.sh
}
stage_aarch64() { scripts/aarch64.sh; }
stage_array_api() { make build; scripts/array_api.sh; }
# The packages of ONNX lie in the user's cache, as peers do.
stage_onnx() {
  make build
  local suite=${XDG_CACHE_HOME:-$HOME/.cache}/tenon/onnx-suite-1.23.2
  scripts/environment.sh "$suite" onnx==1.23.2
  export PYTHONPATH=$PWD/build/release/python
  "$suite/bin/python" tests/onnx/backend_suite.py --least 1860
  "$suite/bin/python" tests/onnx/backend_suite.py --kind simple,pytorch-converted,pytorch-operator,real --least 147
  .venv/bin/python -m tests.fuzz.onnx_models --seed "$(date +%Y%m%d)" --minutes "${NIGHTLY_FUZZ_MINUTES:-60}"
}
stage_networks() {
  make build
  local python
  python=$(peers_python)
  "$python" -m pip install -q --disable-pip-version-check timm==1.0.31 onnxscript skl2onnx==1.20.0 scikit-learn==1.9.1
  export PYTHONPATH=$PWD/build/release/python
  "$python" tests/onnx/model_suite.py --results "build/nightly/onnx_models-$(date +%Y%m%d).jsonl"
}
stage_soak() {
  make build
  PYTHONPATH=build/release/python .venv/bin/python tests/predictor/soak.py --minutes "${NIGHTLY_SOAK_MINUTES:-10}" \
    --seed "$(date +%Y%m%d)"
}
stage_llm() {
  make build
  local failed=0
  export PYTHONPATH=$PWD/build/release/python TENON_BUILD_DIR=$PWD/build/release
  TENON_TEST_EXHAUSTIVE=1 TENON_TEST_DEVICES=cpu .venv/bin/python -m pytest -q -n "$(nproc)" \
    tests/python/llm/test_cache.py tests/python/llm/test_sampling.py || failed=1
  .venv/bin/python tests/python/llm/determinism.py --seed "$(date +%Y%m%d)" || failed=1
  .venv/bin/python tests/python/llm/soak.py --minutes "${NIGHTLY_SOAK_MINUTES:-10}" --seed "$(date +%Y%m%d)" || failed=1
  .venv/bin/python -m tests.fuzz.language_models --minutes "${NIGHTLY_FUZZ_MINUTES:-60}" --seed "$(date +%Y%m%d)" || failed=1
  return $failed
}
stage_wheel() {
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  rm -f dist/tenon_dl-*.whl
  rm -f dist/tenon_dl_*.whl
  scripts/wheel_python.sh 3.14
  make wheel
  scripts/test_wheel.sh dist here
  local suites=(bullseye bionic) suite
  for suite in cp310:jammy cp311:bookworm cp312:noble cp313:trixie cp314:sid; do
    ! compgen -G "dist/tenon_dl-*-${suite%:*}-*.whl" > /dev/null || suites+=("${suite#*:}")
  done
  $sudo scripts/test_wheel.sh dist "${suites[@]}"
}
stage_tidy() {
  install clang-tidy
  make build
  git ls-files 'kernel_core/*.cpp' 'plugins/autograd/*.cpp' 'plugins/standard_ops/*.cpp' |
    grep -v /tests/ | xargs -n 1 -P "$(nproc)" clang-tidy -p build/release --quiet --warnings-as-errors='bugprone-*'
}

if [ "${1:-}" = --stage ]; then  # in a process of its own, so that `set -e` holds in it
  "stage_$2"
  exit
fi

chosen=("$@")
[ ${#chosen[@]} -gt 0 ] || chosen=("${all[@]}")
for stage in "${chosen[@]}"; do
  [[ " ${all[*]} " == *" $stage "* ]] || { echo "nightly: expected stages among: ${all[*]}; got '$stage'" >&2; exit 2; }
done

scripts/bootstrap.sh
mkdir -p build/nightly
failed=0 table=()
for stage in "${chosen[@]}"; do
  echo "== $stage (build/nightly/$stage.log)"
  began=$SECONDS result=passed
  bash scripts/nightly.sh --stage "$stage" > "build/nightly/$stage.log" 2>&1 || {
    result=FAILED failed=1
    tail -n 20 "build/nightly/$stage.log"
  }
  table+=("$(printf '%-11s %-7s %5d min' "$stage" "$result" $(((SECONDS - began + 59) / 60)))")
done
echo
printf '%s\n' "${table[@]}"
exit $failed
