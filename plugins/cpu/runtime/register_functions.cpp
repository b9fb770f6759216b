// SPDX-License-Identifier: Apache-2.0
#include "register_functions.hpp"

#include <tenon/services/register_functions.h>

#include <cstring>
#include <map>
#include <string_view>

namespace tenon::cpu {
namespace {

const RegisterFunctions* functions = nullptr;

// By operator: of generated kernels, which alone broadcast.
std::map<std::string_view, tenon_boxed_fn>& kernels_by_operator() {
  static std::map<std::string_view, tenon_boxed_fn> kernels;
  return kernels;
}

bool has_attribute(const RegisterFunction& function, const tenon_value* args, uint32_t nargs) {
  if (function.attribute < 0) return true;
  if (nargs <= function.operands) return false;
  const tenon_value& value = args[function.operands];
  if (value.tag == TENON_VALUE_FLOAT) return value.v.f == function.attribute;
  return (value.tag == TENON_VALUE_BOOL || value.tag == TENON_VALUE_INT) &&
         value.v.i == function.attribute;
}

int32_t find(const tenon_kernel_def* kernel, const tenon_value* args, uint32_t nargs, int32_t dtype,
             tenon_register_function* out) {
  const auto own = kernels_by_operator().find(kernel->op);
  if (own == kernels_by_operator().end() || own->second != kernel->boxed) return 0;
  for (size_t i = 0; i < functions->count; ++i) {
    const RegisterFunction& each = functions->first[i];
    if (each.dtype != dtype || std::strcmp(each.op, kernel->op) != 0 ||
        !has_attribute(each, args, nargs))
      continue;
    *out = {each.code, functions->bytes, each.operands};
    return 1;
  }
  return 0;
}

constexpr tenon_register_functions_api kApi = {.struct_size = sizeof(tenon_register_functions_api),
                                               .version = TENON_REGISTER_FUNCTIONS_VERSION,
                                               .find = find};

}  // namespace

void set_register_functions(const RegisterFunctions* chosen,
                            const std::vector<tenon_kernel_def>& kernels) {
  functions = chosen;
  kernels_by_operator().clear();
  for (const tenon_kernel_def& kernel : kernels)
    if (kernel.traits & TENON_KERNEL_BROADCAST)
      kernels_by_operator().emplace(kernel.op, kernel.boxed);
}

tenon_status offer_register_functions(const tenon_host* host, tenon_err* err) {
  return host->service_register(TENON_REGISTER_FUNCTIONS_SERVICE, TENON_REGISTER_FUNCTIONS_VERSION,
                                &kApi, err);
}

}  // namespace tenon::cpu
