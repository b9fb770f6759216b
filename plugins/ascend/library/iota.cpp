// SPDX-License-Identifier: Apache-2.0
// primitive_iota, which also fills: aclnnArange takes an end instead of a count, and no step of 0. So a step of 0 is a
// fill of the runtime, and other numbers are made on the host and copied.
#include <new>
#include <type_traits>
#include <vector>

#include "handwritten.hpp"
#include "runtime/device.hpp"

namespace ascend {
namespace {

template <class T>
tenon_status iota(tenon_device device, tenon_stream stream, const tenon_value& start,
                  const tenon_value& step, const tenon_tensor& out, tenon_err* err) {
  const bool of_floats = start.tag == TENON_VALUE_FLOAT || step.tag == TENON_VALUE_FLOAT;
  const auto number = [&](int64_t i) {
    if (of_floats)
      return static_cast<T>(tenon_arg_float(&start) +
                            static_cast<double>(i) * tenon_arg_float(&step));
    // Unsigned integers wrap around.
    return static_cast<T>(
        static_cast<int64_t>(static_cast<uint64_t>(start.v.i) +
                             static_cast<uint64_t>(i) * static_cast<uint64_t>(step.v.i)));
  };
  const uint64_t bytes = static_cast<uint64_t>(out.numel) * sizeof(T);
  if (tenon_arg_float(&step) == 0) {
    const T value = number(0);
    return fill(device, out.data, 0, bytes, &value, sizeof value, stream, err);
  }
  // One byte for each, as std::vector<bool> has no array.
  std::vector<std::conditional_t<std::is_same_v<T, bool>, char, T>> numbers(
      static_cast<size_t>(out.numel));
  for (int64_t i = 0; i < out.numel; ++i) numbers[static_cast<size_t>(i)] = number(i);
  const tenon_copy_request request = {.struct_size = sizeof request,
                                      .direction = TENON_COPY_HOST_TO_DEVICE,
                                      .must_understand = 0,
                                      .dst = out.data,
                                      .src = numbers.data(),
                                      .bytes = bytes,
                                      .dst_offset = 0,
                                      .src_offset = 0,
                                      .stream = stream};
  return copy(device, &request, err);
}

tenon_status run_iota(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                      uint32_t, tenon_err* err) try {
  const tenon_tensor& out = *tenon_out_tensor(&outs[0]);
  if (out.numel == 0) return TENON_OK;
  const auto run = [&](auto of) {
    return iota<decltype(of)>(host->ctx_device(ctx), host->ctx_stream(ctx), args[1], args[2], out,
                              err);
  };
  switch (out.dtype) {
    case TENON_DTYPE_BOOL:
      return run(bool{});
    case TENON_DTYPE_U8:
      return run(uint8_t{});
    case TENON_DTYPE_I8:
      return run(int8_t{});
    case TENON_DTYPE_I16:
      return run(int16_t{});
    case TENON_DTYPE_I32:
      return run(int32_t{});
    case TENON_DTYPE_I64:
      return run(int64_t{});
    case TENON_DTYPE_F32:
      return run(float{});
    default:
      return run(double{});
  }
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

}  // namespace

const HandwrittenKernel kPrimitiveIota = {
    .op = "tenon::primitive_iota",
    .traits = 0,
    .dtype_mask = (kReal | bit(TENON_DTYPE_BOOL)) & ~bit(TENON_DTYPE_F16) & ~bit(TENON_DTYPE_BF16),
    .run = run_iota,
    .can_run = nullptr,
};

}  // namespace ascend
