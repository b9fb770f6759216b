// SPDX-License-Identifier: Apache-2.0
// The functions of MIOpen that convolve in its immediate mode. Descriptors, shapes, addresses, workspaces and solutions are
// checked, and what does not fit is refused with the status of the real library.
//
// Source: MIOpen's API reference and miopen.h of ROCm 6.
#include <algorithm>

#include "descriptors.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

using namespace simulated;

namespace {

// miopenStatus_t
enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kInvalidValue = 2,
  kBadParm = 3,
  kInternalError = 5,
  kNotImplemented = 6
};
constexpr int kConvolution = 0, kDeterministic = 1;

struct ConvolutionDesc {
  DnnDesc desc;
  bool is_deterministic = false;
};
struct Solution {
  float milliseconds;
  size_t workspace;
  uint64_t id;
  int algorithm;
};
// Solutions have numbers of their own, and those of the three passes differ.
constexpr uint64_t kFirstId[] = {85, 111, 137};

Objects<DnnHandle> handles;
Objects<DnnTensor> tensors;
Objects<ConvolutionDesc> convolutions;

int status_of(bool success) { return success ? kSuccess : kBadParm; }

// miopenDataType_t to cudnnDataType_t, in which the arithmetic is written; -1: not convolved here.
int type_of(int type) {
  switch (type) {
    case 0:
      return kDnnHalf;
    case 1:
      return kDnnFloat;
    case 5:
      return kDnnBfloat16;
    default:
      return -1;
  }
}

struct Found {
  DnnHandle owner;
  DnnConvolution convolution;
  bool is_deterministic = false;
};

int find_all(Pass pass, void* handle, void* x, void* w, void* y, void* desc, Found* out) {
  DnnTensor x_tensor, w_tensor, y_tensor;
  ConvolutionDesc convolution;
  if (!handles.find(handle, &out->owner) || out->owner.device != current_device())
    return kNotInitialized;
  if (!tensors.find(x, &x_tensor) || !tensors.find(w, &w_tensor) || !tensors.find(y, &y_tensor) ||
      !convolutions.find(desc, &convolution))
    return kBadParm;
  out->is_deterministic = convolution.is_deterministic;
  return status_of(fit(pass, x_tensor, w_tensor, y_tensor, convolution.desc, &out->convolution));
}

bool may_use(const Found& found, int algorithm) {
  return algorithm != kAnyOrder || !found.is_deterministic;
}

int count_solutions(Pass pass, void* handle, void* x, void* w, void* y, void* desc, size_t* out) {
  Found found;
  if (int status = find_all(pass, handle, x, w, y, desc, &found)) return status;
  if (!out) return kBadParm;
  *out = found.is_deterministic ? kAlgorithms - 1 : kAlgorithms;
  return kSuccess;
}

int list_solutions(Pass pass, void* handle, void* x, void* w, void* y, void* desc, size_t wanted,
                   size_t* count, Solution* out) {
  if (int error = count_call("DnnFindAlgorithm")) return error;
  Found found;
  if (int status = find_all(pass, handle, x, w, y, desc, &found)) return status;
  if (!count || !out || wanted < 1) return kBadParm;
  *count = 0;
  for (int i = 0; i < kAlgorithms && *count < wanted; ++i)
    if (may_use(found, i))
      out[(*count)++] = {.milliseconds = 0.01f,
                         .workspace = kAlgorithmWorkspace[i],
                         .id = kFirstId[static_cast<int>(pass)] + static_cast<uint64_t>(i),
                         .algorithm = 1};
  return kSuccess;
}

int convolve(Pass pass, void* handle, void* x, const void* x_data, void* w, const void* w_data,
             void* desc, void* y, const void* y_data, void* workspace, size_t bytes, uint64_t id) {
  if (int error = count_call("DnnConvolution")) return error;
  Found found;
  if (int status = find_all(pass, handle, x, w, y, desc, &found)) return status;
  const uint64_t number = id - kFirstId[static_cast<int>(pass)];
  if (number >= kAlgorithms) return kBadParm;
  const int algorithm = static_cast<int>(number);
  if (!may_use(found, algorithm) || !has_workspace(algorithm, workspace, bytes)) return kBadParm;
  if (int error = count_algorithm(algorithm)) return error;
  return status_of(enqueue_convolution(found.owner.stream, found.convolution, algorithm, x_data,
                                       w_data, y_data));
}

}  // namespace

EXPORT const char* miopenGetErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "miopenStatusSuccess";
    case kNotInitialized:
      return "miopenStatusNotInitialized";
    case kInvalidValue:
      return "miopenStatusInvalidValue";
    case kBadParm:
      return "miopenStatusBadParm";
    case kInternalError:
      return "miopenStatusInternalError";
    case kNotImplemented:
      return "miopenStatusNotImplemented";
    default:
      return "miopenStatusUnknownError";
  }
}

EXPORT int miopenCreate(void** out) {
  if (int error = count_call("DnnCreate")) return error;
  const int device = current_device();
  return device < 0 ? int{kNotInitialized} : status_of(handles.add(out, {device, nullptr}));
}
EXPORT int miopenDestroy(void* handle) { return status_of(handles.drop(handle)); }
EXPORT int miopenSetStream(void* handle, void* stream) {
  return status_of(handles.change(handle, [&](DnnHandle& each) { each.stream = stream; }));
}

EXPORT int miopenCreateTensorDescriptor(void** out) { return status_of(tensors.add(out)); }
EXPORT int miopenDestroyTensorDescriptor(void* desc) { return status_of(tensors.drop(desc)); }
EXPORT int miopenSetTensorDescriptor(void* desc, int type, int ndim, const int* shape,
                                     const int* strides) {
  if (ndim != 4 || !shape || std::any_of(shape, shape + 4, [](int n) { return n < 1; }))
    return kBadParm;
  if (type_of(type) < 0 || !is_contiguous(shape, strides)) return kNotImplemented;
  DnnTensor tensor = {.type = type_of(type)};
  std::copy_n(shape, 4, tensor.shape);
  return status_of(tensors.change(desc, [&](DnnTensor& each) { each = tensor; }));
}

EXPORT int miopenCreateConvolutionDescriptor(void** out) {
  return status_of(convolutions.add(out));
}
EXPORT int miopenDestroyConvolutionDescriptor(void* desc) {
  return status_of(convolutions.drop(desc));
}
EXPORT int miopenInitConvolutionNdDescriptor(void* desc, int axes, const int* padding,
                                             const int* stride, const int* dilation, int mode) {
  if (axes != 2 || !padding || !stride || !dilation) return kBadParm;
  if (mode != kConvolution) return kNotImplemented;
  ConvolutionDesc set;
  if (!read_pairs(padding, stride, dilation, &set.desc)) return kBadParm;
  return status_of(convolutions.change(desc, [&](ConvolutionDesc& each) { each = set; }));
}
EXPORT int miopenSetConvolutionGroupCount(void* desc, int groups) {
  if (groups < 1) return kBadParm;
  return status_of(
      convolutions.change(desc, [&](ConvolutionDesc& each) { each.desc.groups = groups; }));
}
EXPORT int miopenSetConvolutionAttribute(void* desc, int attribute, int value) {
  if (attribute != kDeterministic) return kNotImplemented;
  return status_of(
      convolutions.change(desc, [&](ConvolutionDesc& each) { each.is_deterministic = value; }));
}

EXPORT int miopenConvolutionForwardGetSolutionCount(void* handle, void* w, void* x, void* desc,
                                                    void* y, size_t* count) {
  return count_solutions(Pass::kForward, handle, x, w, y, desc, count);
}
EXPORT int miopenConvolutionBackwardDataGetSolutionCount(void* handle, void* dy, void* w,
                                                         void* desc, void* dx, size_t* count) {
  return count_solutions(Pass::kBackwardData, handle, dx, w, dy, desc, count);
}
EXPORT int miopenConvolutionBackwardWeightsGetSolutionCount(void* handle, void* dy, void* x,
                                                            void* desc, void* dw, size_t* count) {
  return count_solutions(Pass::kBackwardFilter, handle, x, dw, dy, desc, count);
}

EXPORT int miopenConvolutionForwardGetSolution(void* handle, void* w, void* x, void* desc, void* y,
                                               size_t wanted, size_t* count, Solution* out) {
  return list_solutions(Pass::kForward, handle, x, w, y, desc, wanted, count, out);
}
EXPORT int miopenConvolutionBackwardDataGetSolution(void* handle, void* dy, void* w, void* desc,
                                                    void* dx, size_t wanted, size_t* count,
                                                    Solution* out) {
  return list_solutions(Pass::kBackwardData, handle, dx, w, dy, desc, wanted, count, out);
}
EXPORT int miopenConvolutionBackwardWeightsGetSolution(void* handle, void* dy, void* x, void* desc,
                                                       void* dw, size_t wanted, size_t* count,
                                                       Solution* out) {
  return list_solutions(Pass::kBackwardFilter, handle, x, dw, dy, desc, wanted, count, out);
}

EXPORT int miopenConvolutionForwardImmediate(void* handle, void* w, const void* w_data, void* x,
                                             const void* x_data, void* desc, void* y, void* y_data,
                                             void* workspace, size_t bytes, uint64_t id) {
  return convolve(Pass::kForward, handle, x, x_data, w, w_data, desc, y, y_data, workspace, bytes,
                  id);
}
EXPORT int miopenConvolutionBackwardDataImmediate(void* handle, void* dy, const void* dy_data,
                                                  void* w, const void* w_data, void* desc, void* dx,
                                                  void* dx_data, void* workspace, size_t bytes,
                                                  uint64_t id) {
  return convolve(Pass::kBackwardData, handle, dx, dx_data, w, w_data, desc, dy, dy_data, workspace,
                  bytes, id);
}
EXPORT int miopenConvolutionBackwardWeightsImmediate(void* handle, void* dy, const void* dy_data,
                                                     void* x, const void* x_data, void* desc,
                                                     void* dw, void* dw_data, void* workspace,
                                                     size_t bytes, uint64_t id) {
  return convolve(Pass::kBackwardFilter, handle, x, x_data, dw, dw_data, desc, dy, dy_data,
                  workspace, bytes, id);
}
