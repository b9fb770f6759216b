// SPDX-License-Identifier: Apache-2.0
#include "blame.hpp"

namespace tenon::validation {
namespace {

// As the host finds it, for messages: numbers given for tensors change nothing here.
int32_t compute_dtype(const tenon_op_def& def, const tenon_value* args, const tenon_value* outs) {
  int32_t compute = -1;
  for (uint32_t i = 0; i < def.nparams && def.compute != TENON_COMPUTE_OUTPUT; ++i) {
    if (args[i].tag != TENON_VALUE_TENSOR) continue;
    const int32_t dtype = static_cast<const tenon_tensor*>(args[i].v.p)->dtype;
    if (compute < 0)
      compute = dtype;
    else if (def.compute != TENON_COMPUTE_FIRST && def.params[i].flags & TENON_PARAM_FLAG_PROMOTE)
      compute = host->dtype_promote(compute, dtype);
  }
  if (compute < 0 && outs[0].tag == TENON_VALUE_TENSOR)
    compute = static_cast<const tenon_tensor*>(outs[0].v.p)->dtype;
  const bool is_floating = compute >= TENON_DTYPE_F8E4M3 && compute <= TENON_DTYPE_C128;
  if (compute < 0 || (def.compute == TENON_COMPUTE_PROMOTE_FLOAT && !is_floating))
    return TENON_DTYPE_F32;
  return compute;
}

// The text of a member in what op_explain says, from `at` on. Its names need no escapes.
std::string member(const std::string& json, const std::string& name, size_t at) {
  const std::string key = "\"" + name + "\":\"";
  const size_t begin = json.find(key, at);
  if (begin == json.npos) return {};
  return json.substr(begin + key.size(), json.find('"', begin + key.size()) - begin - key.size());
}

}  // namespace

std::string blame(const tenon_op* op, const tenon_value* args, tenon_device_id device,
                  const tenon_value* outs) {
  std::string json;
  auto append = [](void* user, const char* text, uint64_t bytes) {
    static_cast<std::string*>(user)->append(text, bytes);
  };
  const int32_t dtype = compute_dtype(*host->op_def(op), args, outs);
  const std::string on = std::string(" for ") + host->device_kind_name(TENON_DEVICE_KIND(device));
  if (host->op_explain(op, device, dtype, append, &json, nullptr) != TENON_OK)
    return "a kernel" + on;
  if (member(json, "route", 0) == "lowered") return "what it is lowered to" + on;
  if (member(json, "route", 0) == "host") return "what the host ran" + on;
  std::string plugins;
  bool is_one = true;
  for (size_t at = json.find("\"kernels\":["); (at = json.find("{", at)) != json.npos; ++at) {
    const std::string kernel = json.substr(at, json.find('}', at) - at);
    if (kernel.find("\"held_back\":true") != kernel.npos) break;
    if (!plugins.empty()) is_one = false;
    plugins += (plugins.empty() ? "" : " or ") + member(kernel, "plugin", 0);
    if (kernel.find("\"may_decline\":true") == kernel.npos) break;  // nothing gets past it
  }
  return (is_one ? "the kernel of plugin " : "a kernel of plugin ") + plugins + on;
}

}  // namespace tenon::validation
