// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

namespace opencl_test {
namespace {

class OpenclProgram : public DeviceTest {
 protected:
  void expect_launch_fails(tenon_status code, const char* part,
                           const tenon_launch_request& request) {
    EXPECT_FAILS(code, part, compile()->kernel_launch(device_, &request, err));
  }
};

constexpr char kScale[] = R"(
TK_KERNEL void scale(TK_BUFFER(tk_f32, x), TK_BUFFER(tk_f32, out), tk_f32 factor, tk_i64 count) {
  TK_BIND(tk_f32, x);
  TK_BIND(tk_f32, out);
  for (tk_i64 i = tk_global_id(0); i < count; i += tk_global_size(0)) out[i] = x[i] * factor;
}
TK_KERNEL void nothing(TK_BUFFER(tk_f32, x), TK_BUFFER(tk_i32, out)) {
  TK_BIND(tk_f32, x);
  TK_BIND(tk_i32, out);
  out[0] = x == 0;
}
)";

TEST_F(OpenclProgram, RunsWithBuffersFromTheirMiddle) {
  tenon_kernel scale = kernel(build(kScale), "scale");
  char* x = static_cast<char*>(device_copy(std::vector<float>{1, 2, 3, 4, 5}));
  char* out = static_cast<char*>(device_copy(std::vector<float>(5, 0)));
  launch(scale, {buffer(x + 4), buffer(out + 8), value(2.5f), value(int64_t{3})}, 2, 1);
  EXPECT_EQ(values<float>(out, 5), (std::vector<float>{0, 0, 5, 7.5, 10}));
}

TEST_F(OpenclProgram, NullBuffersStayNull) {
  void* out = device_copy(std::vector<int32_t>{0});
  launch(kernel(build(kScale), "nothing"), {buffer(nullptr), buffer(out)}, 1, 1);
  EXPECT_EQ(values<int32_t>(out, 1)[0], 1);
}

TEST_F(OpenclProgram, TheCompilersMessageIsHandedOn) {
  tenon_program program = nullptr;
  const std::string source = "TK_KERNEL void f(tk_i32 x) {\n  this is no C;\n}";
  tenon_program_request request = {sizeof request, 0, 0, "acme/broken", source.data(),
                                   source.size()};
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "opencl: program acme/broken does not compile: ",
               compile()->program_create(device_, &request, &program, err));
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "acme/broken:2:",  // the source's own line
               compile()->program_create(device_, &request, &program, err));
  request.must_understand = uint64_t{1} << 63;
  EXPECT_FAILS(TENON_UNSUPPORTED, "does not know",
               compile()->program_create(device_, &request, &program, err));
  request = {sizeof request, 0, 0, "acme/empty", nullptr, 0};
  EXPECT_FAILS(TENON_INVALID_ARGUMENT, "got no source",
               compile()->program_create(device_, &request, &program, err));
  EXPECT_EQ(program, nullptr);
}

TEST_F(OpenclProgram, MissingKernelsAreNotFound) {
  tenon_kernel found = nullptr;
  tenon_program program = build(kScale, "acme/scale");
  EXPECT_FAILS(TENON_NOT_FOUND, "program acme/scale: expected one of its kernels (",
               compile()->program_kernel(device_, program, "absent", &found, err));
  EXPECT_EQ(kernel(program, "scale"), kernel(program, "scale"));
}

TEST_F(OpenclProgram, WrongLaunchesAreErrors) {
  tenon_kernel scale = kernel(build(kScale), "scale");
  void* x = device_copy(std::vector<float>{1});
  float two = 2;
  int64_t count = 1;
  std::vector<tenon_launch_arg> good = {buffer(x), buffer(x), value(two), value(count)};
  tenon_launch_request request = request_for(scale, good, 1, 1);
  request.must_understand = uint64_t{1} << 63;
  expect_launch_fails(TENON_UNSUPPORTED, "does not know", request);
  request = request_for(scale, good, 0, 1);
  expect_launch_fails(TENON_INVALID_ARGUMENT, "at least 1 in each direction", request);
  request = request_for(scale, good, 1, 1 << 20);
  expect_launch_fails(TENON_INVALID_ARGUMENT, "got 1048576 x 1 x 1", request);
  auto few = std::vector(good.begin(), good.begin() + 3);
  expect_launch_fails(TENON_INVALID_ARGUMENT, "that make 6 of OpenCL's (a buffer makes two), got 5",
                      request_for(scale, few, 1, 1));
  // Values where a buffer and its offset belong. Sizes of values are checked by the better drivers
  // only.
  auto wrong_kind = good;
  wrong_kind[0] = value(two);
  wrong_kind.insert(wrong_kind.begin(), value(two));
  expect_launch_fails(TENON_INVALID_ARGUMENT,
                      "argument 0: expected what the kernel declares, got a value of 4 B",
                      request_for(scale, wrong_kind, 1, 1));
  auto wrong_memory = good;
  wrong_memory[1].p = &two;
  expect_launch_fails(TENON_INVALID_ARGUMENT, "argument 1: expected memory of this device",
                      request_for(scale, wrong_memory, 1, 1));
  launch(scale, good, 1, 1);
  EXPECT_EQ(values<float>(x, 1)[0], 2.0f);
}

TEST_F(OpenclProgram, MayBeDestroyedWhileItsLaunchesAreQueued) {
  tenon_program_request request = {sizeof request, 0, 0, "test/scale", kScale, sizeof kScale - 1};
  tenon_program program = nullptr;
  EXPECT_OK(compile()->program_create(device_, &request, &program, err));
  tenon_kernel scale = kernel(program, "scale");
  tenon_stream stream = new_stream();
  void* x = device_copy(std::vector<float>{1});
  for (int i = 0; i < 100; ++i)
    launch(scale, {buffer(x), buffer(x), value(1.0f), value(int64_t{1})}, 1, 1, stream);
  launch(scale, {buffer(x), buffer(x), value(3.0f), value(int64_t{1})}, 1, 1, stream);
  compile()->program_destroy(device_, program);
  EXPECT_EQ(values<float>(x, 1, stream)[0], 3.0f);
}

TEST_F(OpenclProgram, LimitsHoldWhatTheGroupPromises) {
  tenon_compile_limits limits = {};
  limits.struct_size = sizeof limits;
  EXPECT_OK(compile()->limits(device_, &limits, err));
  EXPECT_GE(limits.max_group_size, 64u);
  EXPECT_GE(limits.local_bytes, 16384u);
  EXPECT_GE(limits.subgroup_size, 1u);
  EXPECT_GE(limits.compute_units, 1u);
  EXPECT_TRUE(limits.dtype_mask & (1u << TENON_DTYPE_F32));
  tenon_compile_limits half = {};
  half.struct_size = 8;  // a caller compiled with fewer members
  EXPECT_OK(compile()->limits(device_, &half, err));
  EXPECT_EQ(half.flags, limits.flags);
  EXPECT_EQ(half.max_group_size, 0u);
}

}  // namespace
}  // namespace opencl_test
