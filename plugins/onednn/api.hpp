// SPDX-License-Identifier: Apache-2.0
// The functions of oneDNN that the kernels use, in one interface for its versions 2.x and 3.x.
#pragma once

#include <memory>
#include <string>

#include "description.hpp"
#include "symbols.hpp"

namespace tenon::onednn {

// An owned memory descriptor; empty if oneDNN cannot describe the layout.
class Layout {
 public:
  Layout() = default;
  template <class Drop>
  Layout(void* desc, Drop drop) : desc_(desc, drop) {}
  MemoryDesc get() const { return desc_.get(); }
  explicit operator bool() const { return desc_ != nullptr; }

 private:
  std::shared_ptr<void> desc_;
};

// The description of a primitive; empty if oneDNN has no such primitive.
using PrimitiveDesc = std::shared_ptr<dnnl_primitive_desc>;

struct ConvolutionWindow {
  int64_t strides[2], dilates[2], padding[2];  // dilates: 0 is a dense filter
};
struct PoolingWindow {
  int64_t strides[2], kernel[2], left[2], right[2];
};

class Api {
 public:
  // NULL: a symbol is absent, which `problem` names.
  static std::unique_ptr<Api> open2(void* library, const CommonSymbols&, std::string* problem);
  static std::unique_ptr<Api> open3(void* library, const CommonSymbols&, std::string* problem);
  virtual ~Api() = default;

  const CommonSymbols& common() const { return common_; }
  dnnl_engine* engine() const { return engine_; }
  dnnl_primitive_attr* attributes() const { return attributes_; }

  // Whether int8 matmul may have any number of columns, not only multiples of 16.
  virtual bool has_int8_tails() const = 0;

  virtual Layout layout(const Description&) const = 0;
  // A layout that oneDNN chooses for a primitive.
  virtual Layout any_layout(const Description&) const = 0;

  virtual PrimitiveDesc matmul(const Layout& src, const Layout& weights, const Layout& bias,
                               const Layout& dst) const = 0;
  virtual PrimitiveDesc convolution(const Layout& src, const Layout& weights, const Layout& bias,
                                    const Layout& dst, const ConvolutionWindow&) const = 0;
  virtual PrimitiveDesc convolution_source_gradient(const Layout& diff_src, const Layout& weights,
                                                    const Layout& diff_dst,
                                                    const ConvolutionWindow&,
                                                    const PrimitiveDesc& forward) const = 0;
  virtual PrimitiveDesc convolution_weights_gradient(const Layout& src, const Layout& diff_weights,
                                                     const Layout& diff_dst,
                                                     const ConvolutionWindow&,
                                                     const PrimitiveDesc& forward) const = 0;
  virtual PrimitiveDesc pooling(int algorithm, const Layout& src, const Layout& dst,
                                const PoolingWindow&) const = 0;
  virtual PrimitiveDesc pooling_gradient(int algorithm, const Layout& diff_src,
                                         const Layout& diff_dst, const PoolingWindow&,
                                         const PrimitiveDesc& forward) const = 0;
  virtual PrimitiveDesc softmax(int algorithm, const Layout& data, int axis) const = 0;
  virtual PrimitiveDesc layer_norm(const Layout& data, float eps, bool scale, bool shift) const = 0;
  virtual PrimitiveDesc batch_norm(const Layout& data, float eps, bool scale, bool shift) const = 0;

 protected:
  explicit Api(const CommonSymbols& common);
  bool is_ready() const { return engine_ && attributes_; }

  // `make` fills in a dnnl_primitive_desc*.
  template <class Make>
  PrimitiveDesc made(Make&& make) const {
    dnnl_primitive_desc* desc = nullptr;
    if (make(&desc) != 0) return {};
    return {desc, [this](dnnl_primitive_desc* owned) { common_.primitive_desc_destroy(owned); }};
  }

 private:
  CommonSymbols common_;
  dnnl_engine* engine_ = nullptr;
  dnnl_primitive_attr* attributes_ = nullptr;  // with a scratchpad that the host allocates
};

// Returns false where a symbol is absent, and writes its name to `problem`.
#define TENON_ONEDNN_FIND(result, name, parameters)                                         \
  symbols.name = reinterpret_cast<decltype(symbols.name)>(::dlsym(library, "dnnl_" #name)); \
  if (!symbols.name) {                                                                      \
    *problem = "dnnl_" #name;                                                               \
    return false;                                                                           \
  }

}  // namespace tenon::onednn
