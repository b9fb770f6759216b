// SPDX-License-Identifier: Apache-2.0
// The vendor's library of matrix products, cuBLASLt or hipBLASLt, opened at run time. Both have the
// same functions under different prefixes; the numbers of their enumerations differ and are in
// vendor.hpp.
//
// Sources of the signatures: the cuBLAS reference (13.1), section cuBLASLt, and the hipBLASLt API
// reference (0.10). tests/gpu/declarations compares them with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/driver.hpp"
#include "runtime/vendor.hpp"

namespace gpu::blas {

using Status = int;  // cublasStatus_t, hipblasStatus_t: 0 is success
using Handle = void*;
using MatmulDesc = void*;
using Layout = void*;
using Preference = void*;

struct Algorithm {
  uint64_t words[vendor::blas_number::kAlgorithmWords];
};

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

// X(member, name without the vendor's prefix, parameters)
// clang-format off
#define TENON_GPU_BLAS_FUNCTIONS(X)                                                                   \
  X(create, Create, (Handle* out))                                                                    \
  X(destroy, Destroy, (Handle))                                                                       \
  X(desc_create, MatmulDescCreate, (MatmulDesc* out, int compute_type, int scale_type))               \
  X(desc_destroy, MatmulDescDestroy, (MatmulDesc))                                                    \
  X(desc_set, MatmulDescSetAttribute, (MatmulDesc, int attribute, const void* value, size_t bytes))   \
  X(layout_create, MatrixLayoutCreate, (Layout* out, int type, uint64_t rows, uint64_t columns, int64_t ld)) \
  X(layout_destroy, MatrixLayoutDestroy, (Layout))                                                    \
  X(layout_set, MatrixLayoutSetAttribute, (Layout, int attribute, const void* value, size_t bytes))   \
  X(preference_create, MatmulPreferenceCreate, (Preference* out))                                     \
  X(preference_destroy, MatmulPreferenceDestroy, (Preference))                                        \
  X(preference_set, MatmulPreferenceSetAttribute, (Preference, int attribute, const void* value, size_t bytes)) \
  X(heuristic, MatmulAlgoGetHeuristic,                                                                \
    (Handle, MatmulDesc, Layout a, Layout b, Layout c, Layout d, Preference, int wanted,              \
     HeuristicResult* results, int* count))                                                           \
  X(matmul, Matmul,                                                                                   \
    (Handle, MatmulDesc, const void* alpha, const void* a, Layout, const void* b, Layout,             \
     const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace,     \
     size_t workspace_bytes, Stream))
// clang-format on

struct Library {
#define TENON_GPU_MEMBER(member, name, parameters) Status(*member) parameters;
  TENON_GPU_BLAS_FUNCTIONS(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
};

// cublasLtEpilogue_t and hipblasLtEpilogue_t agree on this one.
inline constexpr uint32_t kEpilogueBias = 4;

// cudaDataType_t and hipDataType agree on these; -1: no floating-point or complex type of the library.
int data_type(int dtype);

// Opens the library at the first call. NULL: it is absent, and library_problem says what to install.
const Library* library();
const char* library_name();     // "cuBLASLt (libcublasLt.so.13.1.0)"; NULL: absent
const char* library_problem();  // NULL: none

}  // namespace gpu::blas
