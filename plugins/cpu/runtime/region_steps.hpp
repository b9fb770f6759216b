// SPDX-License-Identifier: Apache-2.0
// The steps of a region: convolutions, and what lies between them, on images that stay NHWC.
#pragma once

#include "conv/nhwc_conv.hpp"
#include "conv_steps.hpp"

#include <tenon/subgraph.hpp>

#include <optional>
#include <unordered_map>
#include <vector>

namespace tenon::cpu {

// An image, or a number for each of its channels: then height and width are 1.
struct RegionValue {
  const tenon_tensor* tensor;
  int64_t batch, channels, height, width;
  bool is_input;
  int64_t pixels() const { return height * width; }
  bool has_shape_of(const RegionValue& other) const {
    return batch == other.batch && channels == other.channels && height == other.height &&
           width == other.width;
  }
};

// What an elementwise kernel reads.
struct RegionOperand {
  enum Kind : uint8_t {
    kValue,      // the same elements of a value
    kScale,      // of a value, the number of the image and channel
    kConstant,   // of a constant, the number of the channel
    kNumber,     // one number
    kAttribute,  // what is no tensor
  };
  Kind kind = kAttribute;
  uint32_t value = 0;
  const tenon_tensor* constant = nullptr;
  float number = 0;
  tenon_value attribute = {};
};

inline constexpr size_t kMaxKernelArguments = 8;

struct RegionStep {
  enum Kind : uint8_t { kConv, kNorm, kMean, kMaximum, kAverage, kConcat, kKernel };
  enum Operation : uint8_t { kAdd, kMultiply, kRelu, kOther };
  Kind kind;
  Operation operation = kOther;  // Of a kernel.
  uint32_t out = 0;
  std::vector<uint32_t> inputs;  // Values, each once for each time it is read.
  ConvDescription conv = {};
  ConvTensors tensors;  // Of a convolution or a normalisation.
  PoolDescription pool = {};
  tenon_boxed_fn kernel = nullptr;
  std::vector<RegionOperand> operands;
};

// The functions of the instruction set that was chosen; before the host has the device's table.
void set_nhwc_functions(const NhwcFunctions* functions);
const NhwcFunctions& nhwc();

// Reads neighbouring steps as long as they belong to one region.
class RegionSteps {
 public:
  explicit RegionSteps(const SubgraphValues& values) : constants_(values) {}

  // Appends a step, if it belongs to the region; else nothing changes.
  bool add(const tenon_subgraph_step& step);
  bool empty() const { return steps_.empty(); }
  uint32_t convolutions() const { return convolutions_; }
  const std::vector<RegionStep>& steps() const { return steps_; }
  const std::vector<RegionValue>& values() const { return values_; }
  const SubgraphValues& constants() const { return constants_; }
  // The value that a tensor is; nothing, if the region does not know it.
  std::optional<uint32_t> value_of(const tenon_tensor* tensor) const;

 private:
  bool read(const tenon_subgraph_step& step, RegionStep& out);
  bool read_mean(const tenon_subgraph_step& step, RegionStep& out);
  bool read_pool(const tenon_subgraph_step& step, RegionStep& out);
  bool read_concat(const tenon_subgraph_step& step, RegionStep& out);
  bool read_kernel(const tenon_subgraph_step& step, RegionStep& out);
  bool read_operand(const tenon_subgraph_step& step, uint32_t index, RegionStep& out);
  // A value of float32 of four axes that a step reads, made or from outside; it becomes one of its inputs.
  std::optional<uint32_t> use(const tenon_tensor* tensor, RegionStep& step);
  bool make(const tenon_tensor* tensor, int64_t batch, int64_t channels, int64_t height,
            int64_t width, RegionStep& step);

  const SubgraphValues& constants_;
  const KnownOperators known_;
  std::vector<RegionStep> steps_;
  std::vector<RegionValue> values_;
  std::unordered_map<const tenon_tensor*, uint32_t> known_values_;
  uint32_t convolutions_ = 0;
};

}  // namespace tenon::cpu
