// SPDX-License-Identifier: Apache-2.0
// The functions of NVRTC and HIPRTC.
//
// Sources of the signatures: the NVRTC reference (13.0) and the HIPRTC reference (6.4).
// tests/gpu/declarations compares them with the headers.
#pragma once

#include <cstddef>

namespace gpu {

using CompilerResult = int;  // nvrtcResult, hiprtcResult: 0 is success
using CompilerHandle = void*;

// X(result, member, CUDA's name, HIP's name, parameters)
// clang-format off
#define TENON_GPU_COMPILER_FUNCTIONS(X)                                                                     \
  X(const char*, error_text, nvrtcGetErrorString, hiprtcGetErrorString, (CompilerResult))                   \
  X(CompilerResult, version, nvrtcVersion, hiprtcVersion, (int* major, int* minor))                         \
  X(CompilerResult, create, nvrtcCreateProgram, hiprtcCreateProgram,                                        \
    (CompilerHandle* out, const char* source, const char* name, int headers, const char* const* texts,      \
     const char* const* names))                                                                             \
  X(CompilerResult, destroy, nvrtcDestroyProgram, hiprtcDestroyProgram, (CompilerHandle* program))          \
  X(CompilerResult, compile, nvrtcCompileProgram, hiprtcCompileProgram,                                     \
    (CompilerHandle program, int count, const char* const* options))                                        \
  X(CompilerResult, log_bytes, nvrtcGetProgramLogSize, hiprtcGetProgramLogSize, (CompilerHandle, size_t* bytes)) \
  X(CompilerResult, log, nvrtcGetProgramLog, hiprtcGetProgramLog, (CompilerHandle, char* out))              \
  X(CompilerResult, code_bytes, nvrtcGetCUBINSize, hiprtcGetCodeSize, (CompilerHandle, size_t* bytes))      \
  X(CompilerResult, code, nvrtcGetCUBIN, hiprtcGetCode, (CompilerHandle, char* out))
// clang-format on

struct CompilerFunctions {
#define TENON_GPU_MEMBER(result, member, cuda, hip, parameters) result(*member) parameters;
  TENON_GPU_COMPILER_FUNCTIONS(TENON_GPU_MEMBER)
#undef TENON_GPU_MEMBER
};

}  // namespace gpu
