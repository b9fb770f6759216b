// SPDX-License-Identifier: Apache-2.0
#include "cudnn.hpp"

#include <iterator>

#include "library.hpp"

namespace gpu::dnn {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_CUDNN_SYMBOL(result, member, name, parameters) {#name, offsetof(Library, member)},
    TENON_CUDNN_FUNCTIONS(TENON_CUDNN_SYMBOL)
#undef TENON_CUDNN_SYMBOL
};

struct Opened {
  Library functions = {};
  KernelLibrary library = open_kernel_library("cuDNN", "TENON_CUDA_DNN", "libcudnn.so.9",
                                              "install cuDNN 9 (pip install nvidia-cudnn-cu13, or "
                                              "NVIDIA's package cudnn9), or name the file "
                                              "in TENON_CUDA_DNN",
                                              kSymbols, std::size(kSymbols), &functions);
};

const Opened& opened() {
  static const Opened* instance = new Opened;  // the library stays open until the process ends
  return *instance;
}

}  // namespace

const Library* library() { return opened().library ? &opened().functions : nullptr; }
const char* library_problem() { return library() ? nullptr : opened().library.problem.c_str(); }

}  // namespace gpu::dnn
