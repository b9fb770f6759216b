// SPDX-License-Identifier: Apache-2.0
#include "blas/blas.hpp"

#include "runtime/library.hpp"

namespace gpu::blas {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_GPU_SYMBOL(member, name, parameters) \
  {TENON_GPU_NAME(cublasLt##name, hipblasLt##name), offsetof(Library, member)},
    TENON_GPU_BLAS_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

const KernelTable<Library>& opened() {
  static const auto* table = new KernelTable<Library>{
      {vendor::kBlas, vendor::kBlasVariable, vendor::kBlasNames, vendor::kInstallBlas, kSymbols}};
  return *table;
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

const Library* library() { return opened().functions(); }
const char* library_name() { return opened().name(); }
const char* library_problem() { return opened().problem(); }

}  // namespace gpu::blas
