// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include "support.hpp"

namespace {

using namespace gpu;

class Kernels : public Simulated {};

TEST_F(Kernels, IndexTheirGrid) {
  ModuleHandle module = load(R"(
    struct Layout { long long v[3]; };
    extern "C" __global__ void __launch_bounds__(256) index(int* out, Layout layout, char small) {
      const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
      const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
      out[y * gridDim.x * blockDim.x + x] = x + 1000 * y + (int)layout.v[2] + small;
    })");
  int* out = alloc<int>(64);
  struct {
    long long v[3];
  } layout = {{1, 2, 1000000}};
  char small = 7;
  void* parameters[] = {&out, &layout, &small};
  ASSERT_EQ(launch(kernel(module, "index"), 2, 4, 1, 4, 2, 1, 0, nullptr, parameters, nullptr), 0);
  const std::vector<int> values = download(out, 64);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x) EXPECT_EQ(values[y * 8 + x], x + 1000 * y + 1000007);
  FunctionHandle none = nullptr;
  EXPECT_EQ(module_function(&none, module, "absent"), 500);
}

TEST_F(Kernels, FollowPointersInDeviceMemory) {
  FunctionHandle sum = kernel(load(R"(
    struct Lists { const int* p[4]; };
    extern "C" __global__ void sum(const int** lists, Lists more, int* out) {
      *out = lists[0][0] + lists[1][1] + more.p[3][0];
    })"),
                              "sum");
  int *a = upload(std::vector<int>{1, 2}), *b = upload(std::vector<int>{10, 20}),
      *out = alloc<int>(1);
  int** lists = upload(std::vector<int*>{a, b});
  struct {
    int* p[4];
  } more = {{nullptr, nullptr, nullptr, b}};
  ASSERT_EQ(gpu::run(sum, 1, 1, nullptr, lists, more, out), 0);
  EXPECT_EQ(download(out, 1)[0], 1 + 20 + 10);
}

TEST_F(Kernels, MeetAtBarriers) {
  FunctionHandle total = kernel(load(R"(
    extern "C" __global__ void total(const float* x, float* out) {
      __shared__ float partial[256];
      partial[threadIdx.x] = x[INDEX];
      __syncthreads();
      for (int width = 128; width > 0; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
        __syncthreads();
      }
      if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
    })"),
                                "total");
  std::vector<float> values(512);
  std::iota(values.begin(), values.end(), 0.0f);
  float *x = upload(values), *out = alloc<float>(2);
  ASSERT_EQ(gpu::run(total, 2, 256, nullptr, x, out), 0);
  EXPECT_EQ(download(out, 2), (std::vector<float>{255 * 128, 255 * 128 + 256 * 256}));
}

TEST_F(Kernels, ExchangeValuesInAWarp) {
  FunctionHandle total = kernel(load(R"(
    extern "C" __global__ void total(const double* x, double* out) {
      double sum = x[INDEX];
      for (int lanes = warpSize / 2; lanes > 0; lanes /= 2) sum += SHUFFLE_XOR(sum, lanes);
      out[INDEX] = sum;
    })"),
                                "total");
  const unsigned warp = SIMULATED_HIP ? 64 : 32;
  std::vector<double> values(2 * warp);
  for (unsigned i = 0; i < 2 * warp; ++i) values[i] = i / warp + 1;
  double *x = upload(values), *out = alloc<double>(2 * warp);
  ASSERT_EQ(gpu::run(total, 1, 2 * warp, nullptr, x, out), 0);
  const std::vector<double> got = download(out, 2 * warp);
  for (unsigned i = 0; i < 2 * warp; ++i) EXPECT_EQ(got[i], (i / warp + 1) * warp);
}

TEST_F(Kernels, MixBarriersOfWarpsAndBlocks) {
  FunctionHandle mix = kernel(load(R"(
    extern "C" __global__ void mix(int* out) {
      __shared__ int last[4];
      int value = threadIdx.x;
      if (threadIdx.x % 3 == 0) value += 1;  // some threads diverge
      value = SHUFFLE_XOR(value, 1);
      if (threadIdx.x % warpSize == 0) last[threadIdx.x / warpSize] = value;
      __syncthreads();
      if (threadIdx.x >= 2 * warpSize) return;  // ends before the next barrier
      int count = __syncthreads_count(threadIdx.x % 2);
      out[threadIdx.x] = last[1 - threadIdx.x / warpSize] + 1000 * count;
    })"),
                              "mix");
  const unsigned warp = SIMULATED_HIP ? 64 : 32;
  int* out = alloc<int>(2 * warp);
  ASSERT_EQ(gpu::run(mix, 1, 4 * warp, nullptr, out), 0);
  const std::vector<int> got = download(out, 2 * warp);
  const int partner = static_cast<int>(warp) + 1;  // of the second warp's first thread
  EXPECT_EQ(got[0], partner + (partner % 3 == 0) + 1000 * static_cast<int>(warp));
  EXPECT_EQ(got[warp], 1 + 1000 * static_cast<int>(warp));
}

TEST_F(Kernels, FindNothingInSharedMemory) {
  FunctionHandle read = kernel(load(R"(
    extern "C" __global__ void read(int* out) {
      __shared__ int before[2];
      extern __shared__ int dynamic[];
      out[2 * blockIdx.x] = before[0];
      out[2 * blockIdx.x + 1] = dynamic[0];
      before[0] = dynamic[0] = 1;
    })"),
                               "read");
  int* out = alloc<int>(4);
  void* parameters[] = {&out};
  ASSERT_EQ(launch(read, 2, 1, 1, 1, 1, 1, 16, nullptr, parameters, nullptr), 0);
  EXPECT_EQ(download(out, 4), (std::vector<int>{-1, -1, -1, -1}));
}

TEST_F(Kernels, TakeDynamicSharedMemory) {
  FunctionHandle reverse = kernel(load(R"(
    extern "C" __global__ void reverse(int* x) {
      extern __shared__ __align__(16) int tile[];
      tile[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
    })"),
                                  "reverse");
  int* x = upload(std::vector<int>{1, 2, 3, 4});
  void* parameters[] = {&x};
  ASSERT_EQ(launch(reverse, 1, 1, 1, 4, 1, 1, 16, nullptr, parameters, nullptr), 0);
  EXPECT_EQ(download(x, 4), (std::vector<int>{4, 3, 2, 1}));
}

TEST_F(Kernels, ComputeInSixteenBits) {
  FunctionHandle convert = kernel(load(R"(
    extern "C" __global__ void convert(const float* x, unsigned short* half_out, float* back) {
      half_out[INDEX] = __half_as_ushort(__float2half_rn(x[INDEX]));
      back[INDEX] = __half2float(__ushort_as_half(half_out[INDEX]));
    })"),
                                  "convert");
  const std::vector<float> values = {1.0f, -2.5f, 65504.0f, 1e30f, 6e-8f, 0.1f};
  float *x = upload(values), *back = alloc<float>(6);
  auto* bits = alloc<unsigned short>(6);
  ASSERT_EQ(gpu::run(convert, 1, 6, nullptr, x, bits, back), 0);
  EXPECT_EQ(download(bits, 6),
            (std::vector<unsigned short>{0x3c00, 0xc100, 0x7bff, 0x7c00, 0x0001, 0x2e66}));
  EXPECT_EQ(download(back, 6)[5], 0.0999755859375f);
}

TEST_F(Kernels, DoNotCompileWithMistakes) {
  const std::string log = compile_error("\nextern \"C\" __global__ void bad(int* x) { y = 1; }");
  EXPECT_NE(log.find("test.cu"), std::string::npos) << log;
  EXPECT_NE(log.find("was not declared"), std::string::npos) << log;
}

TEST_F(Kernels, LaunchesAreChecked) {
  FunctionHandle none = kernel(load("extern \"C\" __global__ void none(int) {}"), "none");
  EXPECT_EQ(gpu::run(none, 1, 1025, nullptr, 1), 1);
  EXPECT_EQ(gpu::run(none, 0, 1, nullptr, 1), 1);
  EXPECT_EQ(gpu::run(none, 1, 1, reinterpret_cast<StreamHandle>(4711), 1), 400);
  use_device(1);
  EXPECT_EQ(gpu::run(none, 1, 1, nullptr, 1), 400);  // the module belongs to device 0
  use_device(0);
  const char junk[64] = "no program";
  ModuleHandle module = nullptr;
  EXPECT_EQ(module_load(&module, junk), 200);
}

}  // namespace
