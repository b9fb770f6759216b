// SPDX-License-Identifier: Apache-2.0
// oneDNN 2.x: descriptions are structures that its functions fill in.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "api.hpp"

namespace tenon::onednn {
namespace {

// More than version 2 has in any of these structures; 2.6's take 0.7 KB and 13 KB.
constexpr size_t kMemoryDescRoom = 4096;
constexpr size_t kOperationRoom = 64 << 10;

// Flags of normalisations.
constexpr unsigned kUseScale = 8;
constexpr unsigned kUseShift = 16;

bool find_symbols(void* library, Symbols2& symbols, std::string* problem) {
  TENON_ONEDNN_2(TENON_ONEDNN_FIND)
  return true;
}

unsigned norm_flags(bool scale, bool shift) {
  return (scale ? kUseScale : 0) | (shift ? kUseShift : 0);
}

constexpr int64_t kNoDilation[2] = {0, 0};

class Api2 final : public Api {
 public:
  explicit Api2(const CommonSymbols& common) : Api(common) {}
  bool open(void* library, std::string* problem) {
    return find_symbols(library, symbols_, problem) && is_ready();
  }

  bool has_int8_tails() const override { return true; }

  Layout layout(const Description& of) const override {
    return described([&](void* room) {
      return symbols_.memory_desc_init_by_strides(room, of.ndims(), of.dims.data(), of.type,
                                                  of.strides.data());
    });
  }
  Layout any_layout(const Description& of) const override {
    return described([&](void* room) {
      return symbols_.memory_desc_init_by_tag(room, of.ndims(), of.dims.data(), of.type,
                                              kAnyLayout);
    });
  }

  PrimitiveDesc matmul(const Layout& src, const Layout& weights, const Layout& bias,
                       const Layout& dst) const override {
    return operation(nullptr, [&](void* room) {
      return symbols_.matmul_desc_init(room, src.get(), weights.get(), bias.get(), dst.get());
    });
  }
  PrimitiveDesc convolution(const Layout& src, const Layout& weights, const Layout& bias,
                            const Layout& dst, const ConvolutionWindow& w) const override {
    return operation(nullptr, [&](void* room) {
      return symbols_.dilated_convolution_forward_desc_init(
          room, kForwardTraining, kConvolutionDirect, src.get(), weights.get(), bias.get(),
          dst.get(), w.strides, w.dilates, w.padding, w.padding);
    });
  }
  PrimitiveDesc convolution_source_gradient(const Layout& diff_src, const Layout& weights,
                                            const Layout& diff_dst, const ConvolutionWindow& w,
                                            const PrimitiveDesc& forward) const override {
    return operation(forward.get(), [&](void* room) {
      return symbols_.dilated_convolution_backward_data_desc_init(
          room, kConvolutionDirect, diff_src.get(), weights.get(), diff_dst.get(), w.strides,
          w.dilates, w.padding, w.padding);
    });
  }
  PrimitiveDesc convolution_weights_gradient(const Layout& src, const Layout& diff_weights,
                                             const Layout& diff_dst, const ConvolutionWindow& w,
                                             const PrimitiveDesc& forward) const override {
    return operation(forward.get(), [&](void* room) {
      return symbols_.dilated_convolution_backward_weights_desc_init(
          room, kConvolutionDirect, src.get(), diff_weights.get(), nullptr, diff_dst.get(),
          w.strides, w.dilates, w.padding, w.padding);
    });
  }
  PrimitiveDesc pooling(int algorithm, const Layout& src, const Layout& dst,
                        const PoolingWindow& w) const override {
    return operation(nullptr, [&](void* room) {
      return symbols_.pooling_v2_forward_desc_init(room, kForwardTraining, algorithm, src.get(),
                                                   dst.get(), w.strides, w.kernel, kNoDilation,
                                                   w.left, w.right);
    });
  }
  PrimitiveDesc pooling_gradient(int algorithm, const Layout& diff_src, const Layout& diff_dst,
                                 const PoolingWindow& w,
                                 const PrimitiveDesc& forward) const override {
    return operation(forward.get(), [&](void* room) {
      return symbols_.pooling_v2_backward_desc_init(room, algorithm, diff_src.get(), diff_dst.get(),
                                                    w.strides, w.kernel, kNoDilation, w.left,
                                                    w.right);
    });
  }
  PrimitiveDesc softmax(int algorithm, const Layout& data, int axis) const override {
    return operation(nullptr, [&](void* room) {
      return symbols_.softmax_v2_forward_desc_init(room, kForwardInference, algorithm, data.get(),
                                                   data.get(), axis);
    });
  }
  PrimitiveDesc layer_norm(const Layout& data, float eps, bool scale, bool shift) const override {
    return operation(nullptr, [&](void* room) {
      return symbols_.layer_normalization_forward_desc_init(room, kForwardInference, data.get(),
                                                            nullptr, eps, norm_flags(scale, shift));
    });
  }
  PrimitiveDesc batch_norm(const Layout& data, float eps, bool scale, bool shift) const override {
    return operation(nullptr, [&](void* room) {
      return symbols_.batch_normalization_forward_desc_init(room, kForwardTraining, data.get(), eps,
                                                            norm_flags(scale, shift));
    });
  }

 private:
  template <class Fill>
  Layout described(Fill&& fill) const {
    void* room = std::calloc(1, kMemoryDescRoom);
    Layout result(room, std::free);
    return room && fill(room) == 0 ? result : Layout();
  }

  template <class Fill>
  PrimitiveDesc operation(const dnnl_primitive_desc* hint, Fill&& fill) const {
    const std::unique_ptr<void, decltype(&std::free)> room(std::calloc(1, kOperationRoom),
                                                           std::free);
    if (!room || fill(room.get()) != 0) return {};
    return made([&](dnnl_primitive_desc** desc) {
      return symbols_.primitive_desc_create(desc, room.get(), attributes(), engine(), hint);
    });
  }

  Symbols2 symbols_;
};

}  // namespace

Api::Api(const CommonSymbols& common) : common_(common) {
  if (common_.engine_create(&engine_, kEngineOfProcessor, 0) != 0) engine_ = nullptr;
  if (common_.primitive_attr_create(&attributes_) != 0 ||
      common_.primitive_attr_set_scratchpad_mode(attributes_, kScratchpadOfUser) != 0)
    attributes_ = nullptr;
}

std::unique_ptr<Api> Api::open2(void* library, const CommonSymbols& common, std::string* problem) {
  auto api = std::make_unique<Api2>(common);
  if (!api->open(library, problem)) return nullptr;
  return api;
}

}  // namespace tenon::onednn
