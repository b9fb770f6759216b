// SPDX-License-Identifier: Apache-2.0
#include "dnn/cudnn.hpp"

#include "runtime/library.hpp"
#include "runtime/vendor.hpp"

namespace gpu::dnn {
namespace {

constexpr Symbol kSymbols[] = {
#define TENON_CUDNN_SYMBOL(result, member, name, parameters) {#name, offsetof(Library, member)},
    TENON_CUDNN_FUNCTIONS(TENON_CUDNN_SYMBOL)
#undef TENON_CUDNN_SYMBOL
};

const KernelTable<Library>& opened() {
  static const auto* table = new KernelTable<Library>{
      {vendor::kDnn, vendor::kDnnVariable, vendor::kDnnNames, vendor::kInstallDnn, kSymbols}};
  return *table;
}

}  // namespace

const Library* library() { return opened().functions(); }

bool is_available() { return library() != nullptr; }
const char* library_name() { return opened().name(); }
const char* library_problem() { return opened().problem(); }
const char* error_text(Status status) { return library()->error_text(status); }

Status create_handle(Handle* out) { return library()->create(out); }
void destroy_handle(Handle handle) { library()->destroy(handle); }
Status set_stream(Handle handle, Stream stream) { return library()->set_stream(handle, stream); }

}  // namespace gpu::dnn
