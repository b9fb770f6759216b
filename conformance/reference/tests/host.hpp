// SPDX-License-Identifier: Apache-2.0
// As much of a host as the device asks for: the tests call its tables without one.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "../runtime/device.hpp"

struct tenon_err {
  tenon_status code = TENON_OK;
  std::string text;
};

namespace reference::test {

// What a kernel is called with.
struct Call {
  tenon_device device = nullptr;
  tenon_stream stream = nullptr;
};
inline thread_local Call current_call;

inline const tenon_host& host() {
  static const tenon_host table = [] {
    tenon_host made = {};
    made.struct_size = sizeof made;
    made.fail = [](tenon_err* err, tenon_status code, int64_t, const char* text, uint64_t bytes) {
      if (err) *err = {code, std::string(text, bytes)};
    };
    made.dtype_size = [](int32_t dtype) -> uint32_t {
      return dtype == TENON_DTYPE_F32 || dtype == TENON_DTYPE_I32 ? 4 : 8;
    };
    made.ctx_device = [](tenon_ctx*) { return current_call.device; };
    made.ctx_stream = [](tenon_ctx*) { return current_call.stream; };
    return made;
  }();
  return table;
}

// A device that is open, and calls that are expected to succeed.
class Runtime : public testing::Test {
 protected:
  Runtime() {
    tenon::host = &host();
    tenon_err err;
    EXPECT_EQ(kDevice.open(0, &device, &err), TENON_OK) << err.text;
  }
  ~Runtime() override { kDevice.close(device); }

  // f(err) must return TENON_OK.
  template <class F>
  static void ok(F&& f) {
    tenon_err err;
    EXPECT_EQ(f(&err), TENON_OK) << err.text;
  }

  tenon_stream stream() {
    tenon_stream made = nullptr;
    ok([&](tenon_err* err) { return kAsync.stream_create(device, 0, &made, err); });
    return made;
  }
  template <class T>
  T* memory(uint64_t count, tenon_stream on) {
    const tenon_alloc_request request = {.struct_size = sizeof request,
                                         .kind = TENON_ALLOC_DEVICE,
                                         .must_understand = 0,
                                         .bytes = count * sizeof(T),
                                         .align = 256,
                                         .stream = on};
    void* made = nullptr;
    ok([&](tenon_err* err) { return kPool.pool_alloc(device, &request, &made, err); });
    return static_cast<T*>(made);
  }
  void copy(void* dst, const void* src, uint64_t bytes, int32_t direction, tenon_stream on) {
    const tenon_copy_request request = {.struct_size = sizeof request,
                                        .direction = direction,
                                        .must_understand = 0,
                                        .dst = dst,
                                        .src = src,
                                        .bytes = bytes,
                                        .dst_offset = 0,
                                        .src_offset = 0,
                                        .stream = on};
    ok([&](tenon_err* err) { return kDevice.copy(device, &request, err); });
  }
  template <class T>
  void fill(T* dst, uint64_t count, T value, tenon_stream on) {
    ok([&](tenon_err* err) {
      return kDevice.fill(device, dst, 0, count * sizeof value, &value, sizeof value, on, err);
    });
  }

  tenon_device device = nullptr;
};

}  // namespace reference::test
