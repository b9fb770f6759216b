// SPDX-License-Identifier: Apache-2.0
// The functions of cuDNN 9 that convolve. Descriptors, shapes, addresses, workspaces and algorithms are
// checked, and what does not fit is refused with the status of the real library.
//
// Source: the cuDNN API reference (9), chapters cudnn_ops and cudnn_cnn.
#include <cstring>
#include <memory>

#include "../failures.hpp"
#include "../objects.hpp"
#include "convolution.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

extern "C" int cuCtxGetDevice(int*);
extern "C" void* simulated_access(const void* memory, size_t bytes);
extern "C" int simulated_enqueue(void* stream, void (*call)(void*), void* user,
                                 void (*destroy)(void*));

using namespace simulated;

namespace {

// cudnnStatus_t
enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1001,
  kBadParam = 2000,
  kNotSupported = 3000,
  kExecutionFailed = 5000
};
constexpr int kCrossCorrelation = 1, kNchw = 0;
constexpr int kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3;

struct Handle {
  int device = -1;
  void* stream = nullptr;
};
struct Tensor {
  int type = -1;
  int shape[4] = {};
};
struct ConvolutionDesc {
  int padding[2] = {}, stride[2] = {}, dilation[2] = {};
  int groups = 1, compute = -1, math = kDefaultMath;
};
struct Result {
  int algorithm, status;
  float milliseconds;
  size_t workspace;
  int determinism, math, reserved[3];
};

Objects<Handle> handles;
Objects<Tensor> tensors, filters;
Objects<ConvolutionDesc> convolutions;

int status_of(bool success) { return success ? kSuccess : kBadParam; }

int current_device() {
  int device = -1;
  cuCtxGetDevice(&device);
  return device;
}

int out_extent(int extent, int kernel, const ConvolutionDesc& desc, int axis) {
  return (extent + 2 * desc.padding[axis] - (desc.dilation[axis] * (kernel - 1) + 1)) /
             desc.stride[axis] +
         1;
}

// Whether the descriptors describe one convolution.
int check(Pass pass, const Tensor& x, const Tensor& w, const Tensor& y, const ConvolutionDesc& desc,
          DnnConvolution* out) {
  if (x.type != w.type || x.type != y.type || !dnn_type_bytes(x.type)) return kBadParam;
  if (desc.compute != (x.type == kDnnDouble ? kDnnDouble : kDnnFloat)) return kNotSupported;
  if (x.shape[1] != w.shape[1] * desc.groups || w.shape[0] % desc.groups ||
      y.shape[0] != x.shape[0] || y.shape[1] != w.shape[0])
    return kBadParam;
  for (int axis = 0; axis < 2; ++axis)
    if (y.shape[axis + 2] != out_extent(x.shape[axis + 2], w.shape[axis + 2], desc, axis))
      return kBadParam;
  *out = {.pass = pass, .type = x.type, .groups = desc.groups};
  std::memcpy(out->x, x.shape, sizeof x.shape);
  std::memcpy(out->w, w.shape, sizeof w.shape);
  std::memcpy(out->y, y.shape, sizeof y.shape);
  std::memcpy(out->padding, desc.padding, sizeof desc.padding);
  std::memcpy(out->stride, desc.stride, sizeof desc.stride);
  std::memcpy(out->dilation, desc.dilation, sizeof desc.dilation);
  return kSuccess;
}

int find_all(Pass pass, void* x, void* w, void* y, void* desc, DnnConvolution* out) {
  Tensor x_tensor, w_filter, y_tensor;
  ConvolutionDesc convolution;
  if (!tensors.find(x, &x_tensor) || !filters.find(w, &w_filter) || !tensors.find(y, &y_tensor) ||
      !convolutions.find(desc, &convolution))
    return kBadParam;
  return check(pass, x_tensor, w_filter, y_tensor, convolution, out);
}

// Two algorithms: the first adds in any order, so that a caller who wants the same bits passes it over.
constexpr int kAnyOrder = 0, kInOrder = 1;
constexpr size_t kWorkspaceBytes = 4096;

int find_algorithms(Pass pass, void* handle, void* x, void* w, void* y, void* desc, int wanted,
                    int* found, Result* results) {
  if (int error = count_call("DnnFindAlgorithm")) return error;
  Handle owner;
  if (!handles.find(handle, &owner)) return kBadParam;
  if (wanted < 1 || !found || !results) return kBadParam;
  DnnConvolution convolution;
  if (int status = find_all(pass, x, w, y, desc, &convolution)) return status;
  const int math = convolution.type == kDnnFloat    ? kFmaMath
                   : convolution.type == kDnnDouble ? kDefaultMath
                                                    : kTensorOpMath;
  for (int i = 0; i < wanted && i < 2; ++i) {
    results[i] = {.algorithm = i, .status = kSuccess, .milliseconds = -1};
    results[i].workspace = i == kInOrder ? kWorkspaceBytes : 0;
    results[i].determinism = i == kInOrder;
    results[i].math = math;
    *found = i + 1;
  }
  return kSuccess;
}

bool is_device_memory(const void* memory, const int (&shape)[4], int type) {
  return simulated_access(memory, elements_of(shape) * dnn_type_bytes(type)) != nullptr;
}

template <class Work>
int enqueue(void* stream, const Work& work, void (*call)(void*)) {
  auto queued = std::make_unique<Work>(work);
  return simulated_enqueue(stream, call, queued.release(),
                           [](void* user) { delete static_cast<Work*>(user); })
             ? int{kExecutionFailed}
             : int{kSuccess};
}

double scale_of(const void* scale, int type) {
  return type == kDnnDouble ? *static_cast<const double*>(scale)
                            : static_cast<double>(*static_cast<const float*>(scale));
}

int convolve(Pass pass, void* handle, const void* alpha, void* x, const void* x_data, void* w,
             const void* w_data, void* desc, int algorithm, void* workspace, size_t bytes,
             const void* beta, void* y, const void* y_data) {
  if (int error = count_call("DnnConvolution")) return error;
  Handle owner;
  if (!handles.find(handle, &owner) || owner.device != current_device()) return kBadParam;
  DnnConvolution convolution;
  if (int status = find_all(pass, x, w, y, desc, &convolution)) return status;
  if (!alpha || !beta) return kBadParam;
  if (scale_of(alpha, convolution.type) != 1 || scale_of(beta, convolution.type) != 0)
    return kNotSupported;
  if (algorithm != kAnyOrder && algorithm != kInOrder) return kBadParam;
  if (algorithm == kInOrder && (bytes < kWorkspaceBytes || !simulated_access(workspace, bytes)))
    return kBadParam;
  convolution.x_data = x_data;
  convolution.w_data = w_data;
  convolution.y_data = y_data;
  if (!is_device_memory(x_data, convolution.x, convolution.type) ||
      !is_device_memory(w_data, convolution.w, convolution.type) ||
      !is_device_memory(y_data, convolution.y, convolution.type))
    return kBadParam;
  return enqueue(owner.stream, convolution, [](void* user) {
    run_convolution(*static_cast<const DnnConvolution*>(user),
                    [](const void* at, uint64_t size) { return simulated_access(at, size); });
  });
}

int set_shape(Objects<Tensor>& all, void* handle, int type, int ndim, const int* shape) {
  if (!dnn_type_bytes(type) || ndim != 4 || !shape) return kBadParam;
  Tensor tensor = {.type = type};
  for (int i = 0; i < 4; ++i) {
    if (shape[i] < 1) return kBadParam;
    tensor.shape[i] = shape[i];
  }
  return status_of(all.change(handle, [&](Tensor& each) { each = tensor; }));
}

}  // namespace

EXPORT size_t cudnnGetVersion() { return 91300; }
EXPORT const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case kNotInitialized:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case kBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

EXPORT int cudnnCreate(void** out) {
  if (int error = count_call("DnnCreate")) return error;
  const int device = current_device();
  return device < 0 ? int{kNotInitialized} : status_of(handles.add(out, {device, nullptr}));
}
EXPORT int cudnnDestroy(void* handle) { return status_of(handles.drop(handle)); }
EXPORT int cudnnSetStream(void* handle, void* stream) {
  return status_of(handles.change(handle, [&](Handle& each) { each.stream = stream; }));
}

EXPORT int cudnnCreateTensorDescriptor(void** out) { return status_of(tensors.add(out)); }
EXPORT int cudnnDestroyTensorDescriptor(void* desc) { return status_of(tensors.drop(desc)); }
EXPORT int cudnnSetTensorNdDescriptor(void* desc, int type, int ndim, const int* shape,
                                      const int* strides) {
  if (int status = set_shape(tensors, desc, type, ndim, shape)) return status;
  for (int i = 3, expected = 1; i >= 0; expected *= shape[i--])
    if (!strides || strides[i] != expected) return kNotSupported;  // contiguous ones only, here
  return kSuccess;
}

EXPORT int cudnnCreateFilterDescriptor(void** out) { return status_of(filters.add(out)); }
EXPORT int cudnnDestroyFilterDescriptor(void* desc) { return status_of(filters.drop(desc)); }
EXPORT int cudnnSetFilterNdDescriptor(void* desc, int type, int format, int ndim,
                                      const int* shape) {
  return format == kNchw ? set_shape(filters, desc, type, ndim, shape) : int{kNotSupported};
}

EXPORT int cudnnCreateConvolutionDescriptor(void** out) { return status_of(convolutions.add(out)); }
EXPORT int cudnnDestroyConvolutionDescriptor(void* desc) {
  return status_of(convolutions.drop(desc));
}
EXPORT int cudnnSetConvolutionNdDescriptor(void* desc, int axes, const int* padding,
                                           const int* stride, const int* dilation, int mode,
                                           int compute) {
  if (axes != 2 || !padding || !stride || !dilation) return kBadParam;
  if (mode != kCrossCorrelation) return kNotSupported;
  for (int i = 0; i < 2; ++i)
    if (padding[i] < 0 || stride[i] < 1 || dilation[i] < 1) return kBadParam;
  return status_of(convolutions.change(desc, [&](ConvolutionDesc& each) {
    for (int i = 0; i < 2; ++i) {
      each.padding[i] = padding[i];
      each.stride[i] = stride[i];
      each.dilation[i] = dilation[i];
    }
    each.compute = compute;
  }));
}
EXPORT int cudnnSetConvolutionGroupCount(void* desc, int groups) {
  if (groups < 1) return kBadParam;
  return status_of(convolutions.change(desc, [&](ConvolutionDesc& each) { each.groups = groups; }));
}
EXPORT int cudnnSetConvolutionMathType(void* desc, int math) {
  if (math < kDefaultMath || math > kFmaMath) return kBadParam;
  return status_of(convolutions.change(desc, [&](ConvolutionDesc& each) { each.math = math; }));
}

EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(void* handle, void* x, void* w, void* desc,
                                                  void* y, int wanted, int* found, Result* out) {
  return find_algorithms(Pass::kForward, handle, x, w, y, desc, wanted, found, out);
}
EXPORT int cudnnGetConvolutionBackwardDataAlgorithm_v7(void* handle, void* w, void* dy, void* desc,
                                                       void* dx, int wanted, int* found,
                                                       Result* out) {
  return find_algorithms(Pass::kBackwardData, handle, dx, w, dy, desc, wanted, found, out);
}
EXPORT int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void* handle, void* x, void* dy,
                                                         void* desc, void* dw, int wanted,
                                                         int* found, Result* out) {
  return find_algorithms(Pass::kBackwardFilter, handle, x, dw, dy, desc, wanted, found, out);
}

EXPORT int cudnnConvolutionForward(void* handle, const void* alpha, void* x, const void* x_data,
                                   void* w, const void* w_data, void* desc, int algorithm,
                                   void* workspace, size_t bytes, const void* beta, void* y,
                                   void* y_data) {
  return convolve(Pass::kForward, handle, alpha, x, x_data, w, w_data, desc, algorithm, workspace,
                  bytes, beta, y, y_data);
}
EXPORT int cudnnConvolutionBackwardData(void* handle, const void* alpha, void* w,
                                        const void* w_data, void* dy, const void* dy_data,
                                        void* desc, int algorithm, void* workspace, size_t bytes,
                                        const void* beta, void* dx, void* dx_data) {
  return convolve(Pass::kBackwardData, handle, alpha, dx, dx_data, w, w_data, desc, algorithm,
                  workspace, bytes, beta, dy, dy_data);
}
EXPORT int cudnnConvolutionBackwardFilter(void* handle, const void* alpha, void* x,
                                          const void* x_data, void* dy, const void* dy_data,
                                          void* desc, int algorithm, void* workspace, size_t bytes,
                                          const void* beta, void* dw, void* dw_data) {
  return convolve(Pass::kBackwardFilter, handle, alpha, x, x_data, dw, dw_data, desc, algorithm,
                  workspace, bytes, beta, dy, dy_data);
}

EXPORT int cudnnAddTensor(void* handle, const void* alpha, void* bias, const void* bias_data,
                          const void* beta, void* y, void* y_data) {
  Handle owner;
  Tensor bias_tensor, y_tensor;
  if (!handles.find(handle, &owner) || owner.device != current_device() ||
      !tensors.find(bias, &bias_tensor) || !tensors.find(y, &y_tensor) || !alpha || !beta)
    return kBadParam;
  const int(&b)[4] = bias_tensor.shape;
  if (bias_tensor.type != y_tensor.type || b[0] != 1 || b[1] != y_tensor.shape[1] || b[2] != 1 ||
      b[3] != 1 || scale_of(alpha, y_tensor.type) != 1 || scale_of(beta, y_tensor.type) != 1)
    return kNotSupported;
  if (!is_device_memory(bias_data, bias_tensor.shape, bias_tensor.type) ||
      !is_device_memory(y_data, y_tensor.shape, y_tensor.type))
    return kBadParam;
  DnnBias work = {.type = y_tensor.type, .bias_data = bias_data, .y_data = y_data};
  std::memcpy(work.y, y_tensor.shape, sizeof work.y);
  return enqueue(owner.stream, work, [](void* user) {
    run_bias(*static_cast<const DnnBias*>(user),
             [](const void* at, uint64_t size) { return simulated_access(at, size); });
  });
}
