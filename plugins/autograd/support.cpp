// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <tenon/services/parts.h>

#include <atomic>
#include <string_view>

namespace tenon::autograd {

const char* short_name(const char* name) {
  constexpr std::string_view kOwn = "tenon::";
  return std::string_view(name).starts_with(kOwn) ? name + kOwn.size() : name;
}

namespace {

const tenon_parts_api* parts() {
  static std::atomic<const tenon_parts_api*> found{nullptr};
  const tenon_parts_api* api = found.load(std::memory_order_acquire);
  if (!api) {
    api = static_cast<const tenon_parts_api*>(
        host->service_find(TENON_PARTS_SERVICE, TENON_PARTS_VERSION));
    found.store(api, std::memory_order_release);
  }
  return api;
}

}  // namespace

[[gnu::cold]] uint32_t version_of_elements(const tenon_tensor* tensor) {
  const tenon_parts_kind* kind = parts() ? parts()->kind(tensor) : nullptr;
  return host->tensor_version(kind ? parts()->part(tensor, kind->values) : tensor);
}

bool is_composed_below(const tenon_tensor& tensor) {
  if (!(tensor.flags & TENON_TENSOR_COMPOSED)) return false;
  const tenon_parts_kind* kind = parts() ? parts()->kind(&tensor) : nullptr;
  return kind && kind->layer >= 0;
}

tenon_status alias_composed(tenon_tensor* tensor, tenon_tensor** out, tenon_err* err) {
  const tenon_parts_api* api = parts();
  const tenon_parts_kind* kind = api ? api->kind(tensor) : nullptr;
  if (!kind)
    return fail(err, TENON_UNSUPPORTED,
                "expected a tensor with memory, or one of a kind of the parts plugin, got another "
                "one that is composed of others");
  return api->with_values(tensor, api->part(tensor, kind->values), out, err);
}

}  // namespace tenon::autograd
