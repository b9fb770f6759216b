// SPDX-License-Identifier: Apache-2.0
// NHWC images. Kernels that read NHWC write NHWC: the host allocates new results in the layout of
// the input (decision 40), and results that a caller supplies in another layout are written through
// a copy.
#pragma once

#include "kernel.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// Copies all elements between any two sets of strides, on all threads (elementwise/copy.cpp).
void copy_strided(const tenon_tensor* x, tenon_tensor* out);

// True if images are dense NHWC.
inline bool is_channels_last(const tenon_tensor& x) {
  if (x.ndim != 4 || x.flags & TENON_TENSOR_CONTIGUOUS) return false;
  return x.strides[1] == 1 && x.strides[3] == x.shape[1] &&
         x.strides[2] == x.shape[3] * x.shape[1] && x.strides[0] == x.shape[2] * x.strides[2];
}
inline bool is_channels_last(const tenon_value& value, int64_t channels = -1) {
  const auto* x = static_cast<const tenon_tensor*>(value.v.p);
  return value.tag == TENON_VALUE_TENSOR && is_channels_last(*x) &&
         (channels < 0 || x->shape[1] == channels);
}

// True if results can be written as NHWC. With one channel or one pixel, NCHW and NHWC are the same
// layout, and rows are used.
inline bool takes_results_last(const tenon_tensor& out) {
  const bool either = out.shape[1] == 1 || out.shape[2] * out.shape[3] == 1;
  return is_channels_last(out) || (either && out.flags & TENON_TENSOR_CONTIGUOUS);
}

// NHWC copies of the results of one call that have another layout.
class ChannelsLastCall {
 public:
  ChannelsLastCall(tenon_ctx* ctx, tenon_err* err) : ctx_(ctx), err_(err) {}

  tenon_tensor* argument(tenon_tensor* out) {
    if (out->ndim != 4 || takes_results_last(*out)) return out;
    Copy& copy = copies_[count_++];
    copy.tensor = *out;
    copy.result = out;
    const int64_t channels = out->shape[1], row = out->shape[3] * channels;
    const int64_t strides[] = {out->shape[2] * row, 1, row, channels};
    std::copy_n(strides, 4, copy.strides);
    copy.tensor.strides = copy.strides;
    copy.tensor.flags &= static_cast<uint16_t>(~TENON_TENSOR_CONTIGUOUS);
    const auto bytes = static_cast<uint64_t>(out->numel * kDtypeSize[out->dtype]);
    if (status_ == TENON_OK) status_ = host->scratch(ctx_, bytes, &copy.tensor.data, err_);
    return &copy.tensor;
  }
  template <class T>
  T argument(T other) {
    return other;
  }
  tenon_status status() const { return status_; }
  tenon_status finish(tenon_status of_kernel) const {
    for (int i = 0; of_kernel == TENON_OK && i < count_; ++i) {
      copy_strided(&copies_[i].tensor, copies_[i].result);
    }
    return of_kernel;
  }

 private:
  struct Copy {
    tenon_tensor tensor;
    tenon_tensor* result;
    int64_t strides[4];
  };
  tenon_ctx* ctx_;
  tenon_err* err_;
  tenon_status status_ = TENON_OK;
  int count_ = 0;
  Copy copies_[2];
};

// Runs a typed kernel on results that it can write as NHWC.
template <class Kernel, class... Arguments>
inline tenon_status run_channels_last(Kernel kernel, tenon_ctx* ctx, tenon_err* err,
                                      Arguments... arguments) {
  ChannelsLastCall call(ctx, err);
  const std::tuple<Arguments...> laid_out{call.argument(arguments)...};
  if (call.status() != TENON_OK) return call.status();
  return call.finish(std::apply([&](auto... each) { return kernel(ctx, each..., err); }, laid_out));
}

}  // namespace tenon::cpu::TENON_CPU_ISA
