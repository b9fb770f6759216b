// SPDX-License-Identifier: Apache-2.0
#include "blas/blas.hpp"

#include <iterator>

#include "runtime/library.hpp"

namespace gpu::blas {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_GPU_SYMBOL(member, name, parameters) \
  {TENON_GPU_NAME(cublasLt##name, hipblasLt##name), offsetof(Library, member)},
    TENON_GPU_BLAS_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

struct Opened {
  Library functions = {};
  KernelLibrary library =
      open_kernel_library(vendor::kBlas, vendor::kBlasVariable, vendor::kBlasNames,
                          vendor::kInstallBlas, kSymbols, std::size(kSymbols), &functions);
};

const Opened& opened() {
  static const Opened* instance = new Opened;  // the library stays open until the process ends
  return *instance;
}

}  // namespace

int data_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return 0;
    case TENON_DTYPE_F64:
      return 1;
    case TENON_DTYPE_F16:
      return 2;
    case TENON_DTYPE_C64:
      return 4;
    case TENON_DTYPE_C128:
      return 5;
    case TENON_DTYPE_BF16:
      return 14;
    default:
      return -1;
  }
}

const Library* library() { return opened().library ? &opened().functions : nullptr; }
const char* library_name() { return library() ? opened().library.name.c_str() : nullptr; }
const char* library_problem() { return library() ? nullptr : opened().library.problem.c_str(); }

}  // namespace gpu::blas
