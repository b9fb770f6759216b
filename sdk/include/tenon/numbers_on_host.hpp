// SPDX-License-Identifier: Apache-2.0
// Primitives that take no tensors, for a device whose library has no function for them: the host makes the numbers, and
// they are copied.
#pragma once

#include <tenon/unbox.h>
#include <tenon/philox.hpp>
#include <tenon/plugin.hpp>

#include <type_traits>
#include <vector>

namespace tenon {

template <class Number>
tenon_status copy_numbers(const tenon_device_api& api, tenon_device device, tenon_stream stream,
                          const Number* numbers, const tenon_tensor& out, tenon_err* err) {
  const tenon_copy_request request = {.struct_size = sizeof request,
                                      .direction = TENON_COPY_HOST_TO_DEVICE,
                                      .must_understand = 0,
                                      .dst = out.data,
                                      .src = numbers,
                                      .bytes = static_cast<uint64_t>(out.numel) * sizeof(Number),
                                      .dst_offset = 0,
                                      .src_offset = 0,
                                      .stream = stream,
                                      .src_device = nullptr};
  return api.copy(device, &request, err);
}

// `Number`: the type of the elements. A step of 0 is a fill of the runtime. Throws std::bad_alloc.
template <class Number>
tenon_status iota_of(const tenon_device_api& api, tenon_device device, tenon_stream stream,
                     const tenon_value& start, const tenon_value& step, const tenon_tensor& out,
                     tenon_err* err) {
  const bool of_floats = start.tag == TENON_VALUE_FLOAT || step.tag == TENON_VALUE_FLOAT;
  const auto number = [&](int64_t i) {
    if (of_floats)
      return static_cast<Number>(tenon_arg_float(&start) +
                                 static_cast<double>(i) * tenon_arg_float(&step));
    // Unsigned integers wrap around.
    return static_cast<Number>(
        static_cast<int64_t>(static_cast<uint64_t>(start.v.i) +
                             static_cast<uint64_t>(i) * static_cast<uint64_t>(step.v.i)));
  };
  const uint64_t bytes = static_cast<uint64_t>(out.numel) * sizeof(Number);
  if (tenon_arg_float(&step) == 0) {
    const Number value = number(0);
    return api.fill(device, out.data, 0, bytes, &value, sizeof value, stream, err);
  }
  // One byte for each, as std::vector<bool> has no array.
  std::vector<std::conditional_t<std::is_same_v<Number, bool>, char, Number>> numbers(
      static_cast<size_t>(out.numel));
  for (int64_t i = 0; i < out.numel; ++i) numbers[static_cast<size_t>(i)] = number(i);
  return copy_numbers(api, device, stream, numbers.data(), out, err);
}

// The boxed kernels. The device's copies must have read the host's memory when they return.

// primitive_iota of bool, integers, float32 and float64.
inline tenon_status iota_on_host(const tenon_device_api& api, tenon_ctx* ctx,
                                 const tenon_value* args, tenon_value* outs, tenon_err* err) try {
  const tenon_tensor& out = *tenon_out_tensor(&outs[0]);
  if (out.numel == 0) return TENON_OK;
  const auto run = [&](auto of) {
    return iota_of<decltype(of)>(api, host->ctx_device(ctx), host->ctx_stream(ctx), args[1],
                                 args[2], out, err);
  };
  switch (out.dtype) {
    case TENON_DTYPE_BOOL:
      return run(bool{});
    case TENON_DTYPE_U8:
      return run(uint8_t{});
    case TENON_DTYPE_I8:
      return run(int8_t{});
    case TENON_DTYPE_U16:
      return run(uint16_t{});
    case TENON_DTYPE_I16:
      return run(int16_t{});
    case TENON_DTYPE_U32:
      return run(uint32_t{});
    case TENON_DTYPE_I32:
      return run(int32_t{});
    case TENON_DTYPE_U64:
      return run(uint64_t{});
    case TENON_DTYPE_I64:
      return run(int64_t{});
    case TENON_DTYPE_F32:
      return run(float{});
    case TENON_DTYPE_F64:
      return run(double{});
    default:
      return fail(err, TENON_UNSUPPORTED,
                  "primitive_iota: expected bool, an integer or a float of "
                  "32 or 64 bits; the host converts to others");
  }
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

// primitive_random: words of 32 bits, in the order that every device has.
inline tenon_status random_on_host(const tenon_device_api& api, tenon_ctx* ctx, tenon_value* outs,
                                   tenon_err* err) try {
  const tenon_tensor& out = *tenon_out_tensor(&outs[0]);
  const auto count = static_cast<size_t>(out.numel);
  uint64_t seed = 0, first = 0;
  host->random_reserve(ctx, (count + 3) / 4, &seed, &first);
  if (count == 0) return TENON_OK;
  std::vector<int64_t> words(count);
  std::array<uint32_t, 4> block{};
  for (size_t i = 0; i < count; ++i) {
    if (i % 4 == 0) block = philox(seed, first + i / 4);
    words[i] = block[i % 4];
  }
  return copy_numbers(api, host->ctx_device(ctx), host->ctx_stream(ctx), words.data(), out, err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

}  // namespace tenon
