// SPDX-License-Identifier: Apache-2.0
#include "fft/fft.hpp"

#include <iterator>

#include "runtime/library.hpp"

namespace gpu::fft {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_GPU_SYMBOL(member, name, parameters) \
  {TENON_GPU_NAME(cufft##name, hipfft##name), offsetof(Library, member)},
    TENON_GPU_FFT_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

struct Opened {
  Library functions = {};
  KernelLibrary library =
      open_kernel_library(vendor::kFft, vendor::kFftVariable, vendor::kFftNames,
                          vendor::kInstallFft, kSymbols, std::size(kSymbols), &functions);
};

const Opened& opened() {
  static const Opened* instance = new Opened;  // the library stays open until the process ends
  return *instance;
}

}  // namespace

const Library* library() { return opened().library ? &opened().functions : nullptr; }
const char* library_name() { return library() ? opened().library.name.c_str() : nullptr; }
const char* library_problem() { return library() ? nullptr : opened().library.problem.c_str(); }

}  // namespace gpu::fft
