// SPDX-License-Identifier: Apache-2.0
#include <gpu/scale_cuda.hpp>

template <class T>
__global__ void scale(const T* x, double factor, T* out, int64_t n) {
  using Number = tenon::arithmetic_t<T>;
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < n) out[i] = static_cast<T>(static_cast<Number>(x[i]) * static_cast<Number>(factor));
}

template <class T>
void gpu::scale_cuda(KernelContext& context, View<const T> x, double factor, View<T> out) {
  const int64_t n = out.size();
  if (n == 0) return;
  ::scale<<<static_cast<unsigned>((n + 255) / 256), 256, 0, context.stream_as<cudaStream_t>()>>>(
      x.data(), factor, out.data(), n);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    throw tenon::Error(TENON_UNAVAILABLE, cudaGetErrorString(error));
}
