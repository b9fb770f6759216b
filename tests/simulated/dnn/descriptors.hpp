// SPDX-License-Identifier: Apache-2.0
// What the stand-ins for cuDNN and MIOpen know of tensors and convolutions, and the work that they queue.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "../algorithm_time.hpp"
#include "../current_device.hpp"
#include "../failures.hpp"
#include "../objects.hpp"
#include "convolution.hpp"

namespace simulated {

struct DnnHandle {
  int device = -1;
  void* stream = nullptr;
};

struct DnnTensor {
  int type = -1;  // DnnType
  int shape[4] = {};
};

struct DnnDesc {
  int padding[2] = {}, stride[2] = {}, dilation[2] = {};
  int groups = 1;
};

// Both libraries list these, the first one that may be used first. One adds in any order, so that a caller who wants the
// same bits passes it over; one wants more memory than the device has.
inline constexpr int kAlgorithms = 4;
inline constexpr int kAnyOrder = 0, kInOrder = 1, kHuge = 2;
inline constexpr size_t kAlgorithmWorkspace[kAlgorithms] = {0, 4096, size_t{1} << 40, 0};

inline bool read_pairs(const int* padding, const int* stride, const int* dilation, DnnDesc* out) {
  for (int i = 0; i < 2; ++i) {
    if (padding[i] < 0 || stride[i] < 1 || dilation[i] < 1) return false;
    out->padding[i] = padding[i];
    out->stride[i] = stride[i];
    out->dilation[i] = dilation[i];
  }
  return true;
}

inline bool is_contiguous(const int* shape, const int* strides) {
  for (int i = 3, expected = 1; i >= 0; expected *= shape[i--])
    if (!strides || strides[i] != expected) return false;
  return true;
}

// Whether the descriptors describe one convolution.
inline bool fit(Pass pass, const DnnTensor& x, const DnnTensor& w, const DnnTensor& y,
                const DnnDesc& desc, DnnConvolution* out) {
  if (x.type != w.type || x.type != y.type || !dnn_type_bytes(x.type)) return false;
  if (x.shape[1] != w.shape[1] * desc.groups || w.shape[0] % desc.groups ||
      y.shape[0] != x.shape[0] || y.shape[1] != w.shape[0])
    return false;
  for (int axis = 0; axis < 2; ++axis) {
    const int reach = desc.dilation[axis] * (w.shape[axis + 2] - 1) + 1;
    const int room = x.shape[axis + 2] + 2 * desc.padding[axis] - reach;
    if (room < 0 || y.shape[axis + 2] != room / desc.stride[axis] + 1) return false;
  }
  *out = {.pass = pass, .type = x.type, .groups = desc.groups};
  std::memcpy(out->x, x.shape, sizeof x.shape);
  std::memcpy(out->w, w.shape, sizeof w.shape);
  std::memcpy(out->y, y.shape, sizeof y.shape);
  std::memcpy(out->padding, desc.padding, sizeof desc.padding);
  std::memcpy(out->stride, desc.stride, sizeof desc.stride);
  std::memcpy(out->dilation, desc.dilation, sizeof desc.dilation);
  return true;
}

inline bool is_device_memory(const void* memory, const int (&shape)[4], int type) {
  return simulated_access(memory, elements_of(shape) * dnn_type_bytes(type)) != nullptr;
}

inline bool has_workspace(int algorithm, void* workspace, size_t bytes) {
  const size_t wanted = kAlgorithmWorkspace[algorithm];
  return wanted == 0 || (bytes >= wanted && simulated_access(workspace, wanted));
}

template <class Work>
bool enqueue(void* stream, const Work& work, void (*call)(void*)) {
  auto queued = std::make_unique<Work>(work);
  return simulated_enqueue(stream, call, queued.release(),
                           [](void* user) { delete static_cast<Work*>(user); }) == 0;
}

// Counts the algorithm as a call, which a test may let fail.
inline int count_algorithm(int algorithm) {
  return count_call(("DnnAlgorithm" + std::to_string(algorithm)).c_str());
}

// False: an address is not the device's, or the stream takes no work.
inline bool enqueue_convolution(void* stream, DnnConvolution convolution, int algorithm,
                                const void* x, const void* w, const void* y) {
  convolution.x_data = x;
  convolution.w_data = w;
  convolution.y_data = y;
  convolution.microseconds = algorithm_microseconds(static_cast<uint64_t>(algorithm));
  if (!is_device_memory(x, convolution.x, convolution.type) ||
      !is_device_memory(w, convolution.w, convolution.type) ||
      !is_device_memory(y, convolution.y, convolution.type))
    return false;
  return enqueue(stream, convolution, [](void* user) {
    const auto& work = *static_cast<const DnnConvolution*>(user);
    take_time(work.microseconds);
    run_convolution(work, [](const void* at, uint64_t size) { return simulated_access(at, size); });
  });
}

// y[n, c, h, w] += bias[c]
inline bool enqueue_bias(void* stream, const DnnTensor& bias, const void* bias_data,
                         const DnnTensor& y, const void* y_data) {
  if (!is_device_memory(bias_data, bias.shape, bias.type) ||
      !is_device_memory(y_data, y.shape, y.type))
    return false;
  DnnBias work = {.type = y.type, .bias_data = bias_data, .y_data = y_data};
  std::memcpy(work.y, y.shape, sizeof work.y);
  return enqueue(stream, work, [](void* user) {
    run_bias(*static_cast<const DnnBias*>(user),
             [](const void* at, uint64_t size) { return simulated_access(at, size); });
  });
}

inline bool is_bias_of(const DnnTensor& bias, const DnnTensor& y) {
  const int(&b)[4] = bias.shape;
  return bias.type == y.type && b[0] == 1 && b[1] == y.shape[1] && b[2] == 1 && b[3] == 1;
}

}  // namespace simulated
