// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include "dtypes.hpp"
#include "element.hpp"

#include <algorithm>
#include <cassert>

namespace tenon::kernel_c {

void Launch::buffer(const tenon_tensor* tensor, int64_t elements) {
  assert(count_ < kMax);
  const int64_t bytes = elements * dtype_text(tensor->dtype).bytes;
  tenon_launch_arg& arg = args_[count_++];
  arg = {TENON_LAUNCH_BUFFER, 0, tensor->data, tensor->byte_offset};
  if (device_.opaque_memory)
    arg.offset += static_cast<uint64_t>(bytes);
  else
    arg.p = static_cast<const char*>(tensor->data) + bytes;
}

void Launch::buffer(void* scratch) {
  assert(count_ < kMax);
  args_[count_++] = {TENON_LAUNCH_BUFFER, 0, scratch, 0};
}

void Launch::value(const void* data, uint32_t bytes) {
  const uint32_t place = (used_ + 15) & ~15u;
  assert(count_ < kMax && place + bytes <= kValueBytes);
  std::memcpy(values_ + place, data, bytes);
  args_[count_++] = {TENON_LAUNCH_VALUE, bytes, values_ + place, 0};
  used_ = place + bytes;
}

void Launch::number(int dtype, const tenon_value& number) {
  if (is_complex(dtype)) return value(element_of(number, dtype).bytes, dtype_text(dtype).bytes);
  const bool is_float = number.tag == TENON_VALUE_FLOAT;
  if (dtype == TENON_DTYPE_F64)
    return value(is_float ? number.v.f : static_cast<double>(number.v.i));
  if (is_floating(dtype))
    return value(is_float ? static_cast<float>(number.v.f) : static_cast<float>(number.v.i));
  int64_t whole = is_float ? static_cast<int64_t>(number.v.f) : number.v.i;
  if (dtype == TENON_DTYPE_BOOL) whole = is_float ? number.v.f != 0 : number.v.i != 0;
  value(&whole, dtype_text(dtype).bytes);  // the low bytes come first on every platform we serve
}

tenon_status Launch::run(tenon_kernel kernel, int64_t elements, int64_t cost) {
  const tenon_compile_limits& limits = device_.limits;
  const uint32_t units = std::max(limits.compute_units, 1u);
  if (device_.host_like()) {
    // Fat items; a short launch is one item, because waking others costs more than it saves.
    const int64_t most = std::clamp<int64_t>(elements, 1, int64_t{units} * 4);
    const int64_t shares = std::clamp<int64_t>(elements * cost / 4096, 1, most);
    return run_exactly(kernel, {static_cast<uint32_t>(shares), 1, 1}, {1, 1, 1});
  }
  const uint32_t size = std::min(limits.max_group_size, 256u);
  const int64_t groups = std::clamp<int64_t>((elements + size - 1) / size, 1, int64_t{units} * 64);
  return run_exactly(kernel, {static_cast<uint32_t>(groups), 1, 1}, {size, 1, 1});
}

tenon_status Launch::run_groups(tenon_kernel kernel, int64_t groups, uint32_t size) {
  const uint32_t units = std::max(device_.limits.compute_units, 1u);
  const int64_t most = std::max<int64_t>(int64_t{units} * 256, 1024);
  return run_exactly(kernel, {static_cast<uint32_t>(std::clamp<int64_t>(groups, 1, most)), 1, 1},
                     {size, 1, 1});
}

tenon_status Launch::run_exactly(tenon_kernel kernel, const uint32_t (&groups)[3],
                                 const uint32_t (&size)[3]) {
  const tenon_launch_request request = {.struct_size = sizeof request,
                                        .nargs = count_,
                                        .must_understand = 0,
                                        .kernel = kernel,
                                        .args = args_,
                                        .groups = {groups[0], groups[1], groups[2]},
                                        .group_size = {size[0], size[1], size[2]},
                                        .stream = host->ctx_stream(ctx_)};
  return device_.api->kernel_launch(device_.handle, &request, err_);
}

}  // namespace tenon::kernel_c
