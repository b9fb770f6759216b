// SPDX-License-Identifier: Apache-2.0
#include "dnn/cudnn.hpp"

#include <iterator>

#include "runtime/library.hpp"
#include "runtime/vendor.hpp"

namespace gpu::dnn {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_CUDNN_SYMBOL(result, member, name, parameters) {#name, offsetof(Library, member)},
    TENON_CUDNN_FUNCTIONS(TENON_CUDNN_SYMBOL)
#undef TENON_CUDNN_SYMBOL
};

struct Opened {
  Library functions = {};
  KernelLibrary library =
      open_kernel_library(vendor::kDnn, vendor::kDnnVariable, vendor::kDnnNames,
                          vendor::kInstallDnn, kSymbols, std::size(kSymbols), &functions);
};

const Opened& opened() {
  static const Opened* instance = new Opened;  // the library stays open until the process ends
  return *instance;
}

}  // namespace

const Library* library() { return opened().library ? &opened().functions : nullptr; }

bool is_available() { return library() != nullptr; }
const char* library_name() { return library() ? opened().library.name.c_str() : nullptr; }
const char* library_problem() { return library() ? nullptr : opened().library.problem.c_str(); }
const char* error_text(Status status) { return library()->error_text(status); }

Status create_handle(Handle* out) { return library()->create(out); }
void destroy_handle(Handle handle) { library()->destroy(handle); }
Status set_stream(Handle handle, Stream stream) { return library()->set_stream(handle, stream); }

}  // namespace gpu::dnn
