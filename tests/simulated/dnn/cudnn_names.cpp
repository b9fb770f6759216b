// SPDX-License-Identifier: Apache-2.0
// The functions of cuDNN 9 that convolve. Descriptors, shapes, addresses, workspaces and algorithms are
// checked, and what does not fit is refused with the status of the real library.
//
// Source: the cuDNN API reference (9), chapters cudnn_ops and cudnn_cnn.
#include "descriptors.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

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

struct ConvolutionDesc {
  DnnDesc desc;
  int compute = -1, math = kDefaultMath;
};
struct Result {
  int algorithm, status;
  float milliseconds;
  size_t workspace;
  int determinism, math, reserved[3];
};

Objects<DnnHandle> handles;
Objects<DnnTensor> tensors, filters;
Objects<ConvolutionDesc> convolutions;

int status_of(bool success) { return success ? kSuccess : kBadParam; }

int find_all(Pass pass, void* x, void* w, void* y, void* desc, DnnConvolution* out) {
  DnnTensor x_tensor, w_filter, y_tensor;
  ConvolutionDesc convolution;
  if (!tensors.find(x, &x_tensor) || !filters.find(w, &w_filter) || !tensors.find(y, &y_tensor) ||
      !convolutions.find(desc, &convolution))
    return kBadParam;
  if (!fit(pass, x_tensor, w_filter, y_tensor, convolution.desc, out)) return kBadParam;
  const int compute = x_tensor.type == kDnnDouble ? kDnnDouble : kDnnFloat;
  return convolution.compute == compute ? int{kSuccess} : int{kNotSupported};
}

int find_algorithms(Pass pass, void* handle, void* x, void* w, void* y, void* desc, int wanted,
                    int* found, Result* results) {
  if (int error = count_call("DnnFindAlgorithm")) return error;
  DnnHandle owner;
  if (!handles.find(handle, &owner)) return kBadParam;
  if (wanted < 1 || !found || !results) return kBadParam;
  DnnConvolution convolution;
  if (int status = find_all(pass, x, w, y, desc, &convolution)) return status;
  const int math = convolution.type == kDnnFloat    ? kFmaMath
                   : convolution.type == kDnnDouble ? kDefaultMath
                                                    : kTensorOpMath;
  for (int i = 0; i < wanted && i < kAlgorithms; ++i) {
    results[i] = {.algorithm = i, .status = kSuccess, .milliseconds = -1};
    results[i].workspace = kAlgorithmWorkspace[i];
    results[i].determinism = i != kAnyOrder;
    results[i].math = math;
    *found = i + 1;
  }
  return kSuccess;
}

double scale_of(const void* scale, int type) {
  return type == kDnnDouble ? *static_cast<const double*>(scale)
                            : static_cast<double>(*static_cast<const float*>(scale));
}

int convolve(Pass pass, void* handle, const void* alpha, void* x, const void* x_data, void* w,
             const void* w_data, void* desc, int algorithm, void* workspace, size_t bytes,
             const void* beta, void* y, const void* y_data) {
  if (int error = count_call("DnnConvolution")) return error;
  DnnHandle owner;
  if (!handles.find(handle, &owner) || owner.device != current_device()) return kBadParam;
  DnnConvolution convolution;
  if (int status = find_all(pass, x, w, y, desc, &convolution)) return status;
  if (!alpha || !beta) return kBadParam;
  if (scale_of(alpha, convolution.type) != 1 || scale_of(beta, convolution.type) != 0)
    return kNotSupported;
  if (algorithm < 0 || algorithm >= kAlgorithms || !has_workspace(algorithm, workspace, bytes))
    return kBadParam;
  if (int error = count_algorithm(algorithm)) return error;
  return status_of(
      enqueue_convolution(owner.stream, convolution, algorithm, x_data, w_data, y_data));
}

int set_shape(Objects<DnnTensor>& all, void* handle, int type, int ndim, const int* shape) {
  if (!dnn_type_bytes(type) || ndim != 4 || !shape) return kBadParam;
  DnnTensor tensor = {.type = type};
  for (int i = 0; i < 4; ++i) {
    if (shape[i] < 1) return kBadParam;
    tensor.shape[i] = shape[i];
  }
  return status_of(all.change(handle, [&](DnnTensor& each) { each = tensor; }));
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
  return status_of(handles.change(handle, [&](DnnHandle& each) { each.stream = stream; }));
}

EXPORT int cudnnCreateTensorDescriptor(void** out) { return status_of(tensors.add(out)); }
EXPORT int cudnnDestroyTensorDescriptor(void* desc) { return status_of(tensors.drop(desc)); }
EXPORT int cudnnSetTensorNdDescriptor(void* desc, int type, int ndim, const int* shape,
                                      const int* strides) {
  if (int status = set_shape(tensors, desc, type, ndim, shape)) return status;
  return is_contiguous(shape, strides) ? int{kSuccess} : int{kNotSupported};  // no others, here
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
  ConvolutionDesc set = {.desc = {}, .compute = compute};
  if (!read_pairs(padding, stride, dilation, &set.desc)) return kBadParam;
  return status_of(convolutions.change(desc, [&](ConvolutionDesc& each) { each = set; }));
}
EXPORT int cudnnSetConvolutionGroupCount(void* desc, int groups) {
  if (groups < 1) return kBadParam;
  return status_of(
      convolutions.change(desc, [&](ConvolutionDesc& each) { each.desc.groups = groups; }));
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
  DnnHandle owner;
  DnnTensor bias_tensor, y_tensor;
  if (!handles.find(handle, &owner) || owner.device != current_device() ||
      !tensors.find(bias, &bias_tensor) || !tensors.find(y, &y_tensor) || !alpha || !beta)
    return kBadParam;
  if (!is_bias_of(bias_tensor, y_tensor) || scale_of(alpha, y_tensor.type) != 1 ||
      scale_of(beta, y_tensor.type) != 1)
    return kNotSupported;
  return status_of(enqueue_bias(owner.stream, bias_tensor, bias_data, y_tensor, y_data));
}
