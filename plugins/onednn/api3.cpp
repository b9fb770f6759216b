// SPDX-License-Identifier: Apache-2.0
// oneDNN 3.x: descriptions are handles.
#include <dlfcn.h>

#include <string>

#include "api.hpp"

namespace tenon::onednn {
namespace {

// Flags of normalisations.
constexpr unsigned kUseScale = 2;
constexpr unsigned kUseShift = 4;

bool find_symbols(void* library, Symbols3& symbols, std::string* problem) {
  TENON_ONEDNN_3(TENON_ONEDNN_FIND)
  return true;
}

unsigned norm_flags(bool scale, bool shift) {
  return (scale ? kUseScale : 0) | (shift ? kUseShift : 0);
}

constexpr int64_t kNoDilation[2] = {0, 0};

class Api3 final : public Api {
 public:
  explicit Api3(const CommonSymbols& common) : Api(common) {}
  bool open(void* library, std::string* problem) {
    return find_symbols(library, symbols_, problem) && is_ready();
  }

  // Where two threads share the inner axis, the kernel of 3.x that adds their int32 sums reads the
  // columns after the last 16 with an instruction that requires an alignment they lack, and crashes.
  bool has_int8_tails() const override { return false; }

  Layout layout(const Description& of) const override {
    return described([&](void** md) {
      return symbols_.memory_desc_create_with_strides(md, of.ndims(), of.dims.data(), of.type,
                                                      of.strides.data());
    });
  }
  Layout any_layout(const Description& of) const override {
    return described([&](void** md) {
      return symbols_.memory_desc_create_with_tag(md, of.ndims(), of.dims.data(), of.type,
                                                  kAnyLayout);
    });
  }

  PrimitiveDesc matmul(const Layout& src, const Layout& weights, const Layout& bias,
                       const Layout& dst) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.matmul_primitive_desc_create(desc, engine(), src.get(), weights.get(),
                                                   bias.get(), dst.get(), attributes());
    });
  }
  PrimitiveDesc convolution(const Layout& src, const Layout& weights, const Layout& bias,
                            const Layout& dst, const ConvolutionWindow& w) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.convolution_forward_primitive_desc_create(
          desc, engine(), kForwardTraining, kConvolutionDirect, src.get(), weights.get(),
          bias.get(), dst.get(), w.strides, w.dilates, w.padding, w.padding, attributes());
    });
  }
  PrimitiveDesc convolution_source_gradient(const Layout& diff_src, const Layout& weights,
                                            const Layout& diff_dst, const ConvolutionWindow& w,
                                            const PrimitiveDesc& forward) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.convolution_backward_data_primitive_desc_create(
          desc, engine(), kConvolutionDirect, diff_src.get(), weights.get(), diff_dst.get(),
          w.strides, w.dilates, w.padding, w.padding, forward.get(), attributes());
    });
  }
  PrimitiveDesc convolution_weights_gradient(const Layout& src, const Layout& diff_weights,
                                             const Layout& diff_dst, const ConvolutionWindow& w,
                                             const PrimitiveDesc& forward) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.convolution_backward_weights_primitive_desc_create(
          desc, engine(), kConvolutionDirect, src.get(), diff_weights.get(), nullptr,
          diff_dst.get(), w.strides, w.dilates, w.padding, w.padding, forward.get(), attributes());
    });
  }
  PrimitiveDesc pooling(int algorithm, const Layout& src, const Layout& dst,
                        const PoolingWindow& w) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.pooling_forward_primitive_desc_create(
          desc, engine(), kForwardTraining, algorithm, src.get(), dst.get(), w.strides, w.kernel,
          kNoDilation, w.left, w.right, attributes());
    });
  }
  PrimitiveDesc pooling_gradient(int algorithm, const Layout& diff_src, const Layout& diff_dst,
                                 const PoolingWindow& w,
                                 const PrimitiveDesc& forward) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.pooling_backward_primitive_desc_create(
          desc, engine(), algorithm, diff_src.get(), diff_dst.get(), w.strides, w.kernel,
          kNoDilation, w.left, w.right, forward.get(), attributes());
    });
  }
  PrimitiveDesc softmax(int algorithm, const Layout& data, int axis) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.softmax_forward_primitive_desc_create(
          desc, engine(), kForwardInference, algorithm, data.get(), data.get(), axis, attributes());
    });
  }
  PrimitiveDesc layer_norm(const Layout& data, float eps, bool scale, bool shift) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.layer_normalization_forward_primitive_desc_create(
          desc, engine(), kForwardInference, data.get(), data.get(), nullptr, eps,
          norm_flags(scale, shift), attributes());
    });
  }
  PrimitiveDesc batch_norm(const Layout& data, float eps, bool scale, bool shift) const override {
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.batch_normalization_forward_primitive_desc_create(
          desc, engine(), kForwardTraining, data.get(), data.get(), eps, norm_flags(scale, shift),
          attributes());
    });
  }

 private:
  template <class Make>
  Layout described(Make&& make) const {
    void* md = nullptr;
    if (make(&md) != 0) return {};
    return {md, [this](void* owned) { symbols_.memory_desc_destroy(owned); }};
  }

  Symbols3 symbols_;
};

}  // namespace

std::unique_ptr<Api> Api::open3(void* library, const CommonSymbols& common, std::string* problem) {
  auto api = std::make_unique<Api3>(common);
  if (!api->open(library, problem)) return nullptr;
  return api;
}

}  // namespace tenon::onednn
