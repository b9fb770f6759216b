// SPDX-License-Identifier: Apache-2.0
// Inline PTX on the simulated CUDA device: products of matrices, copies that are waited for, and what is refused.
#include <cmath>
#include <cstdlib>

#include "support.hpp"

namespace {

using namespace gpu;

// Four numbers of 16 bits of a row, A and B from shared memory, and C.
constexpr const char* kFunctions = R"(
#define SHARED_ADDRESS(p) (unsigned)__cvta_generic_to_shared(p)
__device__ void load(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ void load_transposed(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16." "f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ void copy(unsigned to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}
#define COMMIT() asm volatile("cp.async.commit_group;")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n))
)";

class Ptx : public Simulated {
 protected:
  void SetUp() override {
    setenv("SIMULATED_TENSOR_CORES", "1", 1);
    Simulated::SetUp();
  }
  void TearDown() override {
    unsetenv("SIMULATED_TENSOR_CORES");
    Simulated::TearDown();
  }
  FunctionHandle kernel(const std::string& source) {
    return gpu::kernel(load(kFunctions + source), "kernel");
  }

  // What the device says about a launch that it ends with an error.
  std::string refusal(const std::string& body) {
    FunctionHandle function = nullptr;
    reset_device(0);
    testing::internal::CaptureStderr();  // before the device's process begins
    use_device(0);
    int* numbers = upload(std::vector<int>(64, 7));
    function = kernel(
        "extern \"C\" __global__ void kernel(const char *in) {\n"
        "  __shared__ __align__(16) char shared[1024];\n"
        "  const unsigned lane = threadIdx.x, at = SHARED_ADDRESS(shared);\n"
        "  unsigned r[4];\n" +
        body + "}");
    EXPECT_EQ(gpu::run(function, 1, 64, nullptr, numbers), 0);
    EXPECT_EQ(synchronize(), 719);
    reset_device(0);
    use_device(0);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Ptx, MultiplyMatrices) {
  FunctionHandle product = kernel(R"(
    extern "C" __global__ void kernel(const unsigned short *a, const unsigned short *b, float *c) {
      __shared__ __align__(16) unsigned short left[16][16], right[16][8];
      const unsigned lane = threadIdx.x, row = lane / 4, pair = lane % 4 * 2;
      for (int i = lane; i < 256; i += 32) left[i / 16][i % 16] = a[i];
      for (int i = lane; i < 128; i += 32) right[i / 8][i % 8] = b[i];
      __syncthreads();
      unsigned x[4], y[4];
      load(x, SHARED_ADDRESS(&left[lane % 16][lane / 16 * 8]));
      load_transposed(y, SHARED_ADDRESS(&right[lane % 16][0]));
      float sum[4] = {100, 100, 100, 100};
      multiply(sum, x, y[0], y[1]);
      c[row * 8 + pair] = sum[0];
      c[row * 8 + pair + 1] = sum[1];
      c[(row + 8) * 8 + pair] = sum[2];
      c[(row + 8) * 8 + pair + 1] = sum[3];
    })");
  // The bits of small whole numbers in float16.
  const auto half = [](int x) {
    return static_cast<unsigned short>(
        x == 0 ? 0 : (15 + std::ilogb(x)) << 10 | (x << (10 - std::ilogb(x)) & 0x3ff));
  };
  std::vector<unsigned short> a, b;
  for (int i = 0; i < 256; ++i) a.push_back(half(i * 7 % 11));
  for (int i = 0; i < 128; ++i) b.push_back(half(i * 5 % 13));
  float* c = alloc<float>(128);
  ASSERT_EQ(gpu::run(product, 1, 32, nullptr, upload(a), upload(b), c), 0);
  const std::vector<float> got = download(c, 128);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      int expected = 100;
      for (int k = 0; k < 16; ++k) expected += (i * 16 + k) * 7 % 11 * ((k * 8 + j) * 5 % 13);
      EXPECT_EQ(got[static_cast<size_t>(i * 8 + j)], static_cast<float>(expected)) << i << ' ' << j;
    }
}

TEST_F(Ptx, CopiesArriveWhenTheyAreWaitedFor) {
  FunctionHandle copies = kernel(R"(
    extern "C" __global__ void kernel(const int *in, int *out) {
      __shared__ __align__(16) int shared[8];
      copy(SHARED_ADDRESS(shared), in, 16);
      COMMIT();
      copy(SHARED_ADDRESS(shared + 4), in + 4, 8);
      COMMIT();
      out[0] = shared[0];
      WAIT(1);
      out[1] = shared[0];
      out[2] = shared[4];
      WAIT(0);
      out[3] = shared[5];
      out[4] = shared[6];
    })");
  int *in = upload(std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}), *out = alloc<int>(5);
  ASSERT_EQ(gpu::run(copies, 1, 1, nullptr, in, out), 0);
  // Fresh shared memory is all ones.
  EXPECT_EQ(download(out, 5), (std::vector<int>{-1, 1, -1, 6, 0}));
}

TEST_F(Ptx, WhatTheHardwareDoesNotAllowIsRefused) {
  const struct {
    const char *body, *text;
  } cases[] = {
      {"load(r, at + 8);",
       "ldmatrix: expected a row at a multiple of 16 bytes within the shared memory"},
      {"load(r, at + 1024);",
       "ldmatrix: expected a row at a multiple of 16 bytes within the shared memory"},
      {"copy(at + 4, in, 16);",
       "cp.async: expected a multiple of 16 bytes within the shared memory"},
      {"copy(at + 1024, in, 16);",
       "cp.async: expected a multiple of 16 bytes within the shared memory"},
      {"copy(at, in + 8, 16);", "cp.async: expected a source at a multiple of 16 bytes"},
      {"copy(at, in, 20);", "cp.async: expected to copy 16 bytes from at most as many"},
      {"copy(at, in, 16); COMMIT(); WAIT(1);", "a thread ended before its copies to shared memory"},
      {"SHARED_ADDRESS(in);", "expected an address in the block's shared memory"},
      {"if (lane % 2) load(r, at); else load_transposed(r, at);",
       "expected all lanes of the warp at the same instruction that is .aligned"},
      {"if (lane < 40) return; load(r, at);",
       "expected all lanes of the warp at an instruction that is .aligned; some have ended"},
      {"if (lane < 8) load(r, at); else __syncthreads();",
       "threads of a warp wait for others that do not come"},
  };
  for (const auto& [body, text] : cases) {
    const std::string said = refusal(body);
    EXPECT_NE(said.find(text), std::string::npos) << body << '\n' << said;
    EXPECT_NE(said.find("simulated: kernel kernel, block (0, 0, 0), thread ("), std::string::npos)
        << said;
  }
}

TEST_F(Ptx, DoesNotCompileWhereNobodyAsksForIt) {
  unsetenv("SIMULATED_TENSOR_CORES");
  EXPECT_NE(compile_error(std::string(kFunctions) +
                          "extern \"C\" __global__ void kernel() { COMMIT(); }"),
            "");
}

TEST_F(Ptx, OtherInstructionsDoNotCompile) {
  const std::string log =
      compile_error("extern \"C\" __global__ void kernel() { asm volatile(\"bar.sync 0;\"); }");
  EXPECT_NE(log.find("'bar_sync' is not a member of 'simulated::ptx'"), std::string::npos) << log;
}

}  // namespace
