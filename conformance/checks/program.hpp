// SPDX-License-Identifier: Apache-2.0
// Programs in Kernel C, for the checks of the group `compile`.
#pragma once

#include <cstring>
#include <vector>

#include "subject/device.hpp"

namespace tenon::kit {

inline constexpr const char kScale[] = R"(
TK_KERNEL void scale(TK_BUFFER(tk_f32, x), TK_BUFFER(tk_f32, out), tk_f32 factor, tk_i64 count) {
  TK_BIND(tk_f32, x);
  TK_BIND(tk_f32, out);
  for (tk_i64 i = tk_global_id(0); i < count; i += tk_global_size(0)) out[i] = x[i] * factor;
}
TK_KERNEL void where(TK_BUFFER(tk_i32, out)) {
  TK_BIND(tk_i32, out);
  tk_i64 item = tk_global_id(0) + tk_global_size(0) * (tk_global_id(1) + tk_global_size(1) * tk_global_id(2));
  out[item] = (tk_i32)(tk_global_id(0) + 100 * tk_global_id(1) + 10000 * tk_global_id(2));
}
TK_KERNEL void group_sum(TK_BUFFER(tk_i32, out)) {
  TK_LOCAL tk_i32 tile[64];
  TK_BIND(tk_i32, out);
  tk_i64 here = tk_local_id(0);
  tile[here] = (tk_i32)here;
  tk_barrier();
  if (here == 0) {
    tk_i32 sum = 0;
    for (tk_i64 i = 0; i < tk_local_size(0); ++i) sum += tile[i];
    out[tk_group_id(0)] = sum;
  }
}
)";

// A program, destroyed at the end.
class Program {
 public:
  Program(Device& device, const char* name, const char* source)
      : device_(device), api_(group(device)) {
    device.session().step(text("program_create ", name));
    tenon_program_request request{sizeof request, 0, 0, name, source, std::strlen(source)};
    Error error;
    device.check(api_.program_create(device.handle(), &request, &program_, error), error,
                 text("program_create of ", name));
  }
  ~Program() { destroy(); }
  Program(const Program&) = delete;

  static const tenon_compile_api& group(Device& device) {
    return device.plugin().need_group<tenon_compile_api>(TENON_GROUP_COMPILE);
  }
  tenon_status find(const char* name, tenon_kernel* out, tenon_err* err) {
    return api_.program_kernel(device_.handle(), program_, name, out, err);
  }
  // On a stream it is queued; without one, it has run.
  void launch(const char* name, const std::vector<tenon_launch_arg>& args, uint32_t x, uint32_t y,
              uint32_t z, uint32_t size, tenon_stream stream = nullptr) {
    tenon_kernel kernel = nullptr;
    Error error;
    device_.check(find(name, &kernel, error), error, text("program_kernel ", name));
    device_.session().step(text("kernel_launch ", name));
    tenon_launch_request request{sizeof request,
                                 static_cast<uint32_t>(args.size()),
                                 0,
                                 kernel,
                                 args.data(),
                                 {x, y, z},
                                 {size, 1, 1},
                                 stream};
    device_.check(api_.kernel_launch(device_.handle(), &request, error), error,
                  text("kernel_launch of ", name));
    if (!stream) device_.sync();
  }
  void destroy() {  // now
    if (device_.handle() && program_) api_.program_destroy(device_.handle(), program_);
    program_ = nullptr;
  }

 private:
  Device& device_;
  const tenon_compile_api& api_;
  tenon_program program_ = nullptr;
};

inline tenon_launch_arg buffer_arg(const Buffer& buffer) {
  return {TENON_LAUNCH_BUFFER, 0, buffer.memory(), 0};
}
template <class Value>
tenon_launch_arg value_arg(const Value& value) {
  return {TENON_LAUNCH_VALUE, sizeof value, &value, 0};
}

template <class Value>
std::vector<Value> values(Device& device, const Buffer& buffer) {
  std::vector<Value> result(buffer.bytes() / sizeof(Value));
  device.get(result.data(), buffer, 0, buffer.bytes());
  return result;
}

}  // namespace tenon::kit
