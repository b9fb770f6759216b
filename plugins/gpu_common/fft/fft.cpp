// SPDX-License-Identifier: Apache-2.0
#include "fft/fft.hpp"

#include "runtime/library.hpp"

namespace gpu::fft {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_GPU_SYMBOL(member, name, parameters) \
  {TENON_GPU_NAME(cufft##name, hipfft##name), offsetof(Library, member)},
    TENON_GPU_FFT_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

const KernelTable<Library>& opened() {
  static const auto* table = new KernelTable<Library>{
      {vendor::kFft, vendor::kFftVariable, vendor::kFftNames, vendor::kInstallFft, kSymbols}};
  return *table;
}

}  // namespace

const Library* library() { return opened().functions(); }
const char* library_name() { return opened().name(); }
const char* library_problem() { return opened().problem(); }

}  // namespace gpu::fft
