// SPDX-License-Identifier: Apache-2.0
// Arguments of a sample, made for one dtype, on the CPU and on the device in one of several
// layouts.
#pragma once

#include <deque>
#include <optional>

#include "operators/engine.hpp"
#include "operators/sample.hpp"

namespace tenon::kit {

enum class Layout {
  kContiguous,
  kTransposed,  // the axes of its memory reversed
  kReversed,    // negative strides, with gaps
  kOffset,      // contiguous, one element into its storage
  kPitched,     // rows are dense, and lie further apart than they are long
  kRepeated,    // stride 0 along the first axis
  kMixed        // stride 0 along the first axis, negative ones along the others
};
inline constexpr Layout kOddLayouts[] = {Layout::kTransposed, Layout::kReversed, Layout::kOffset,
                                         Layout::kPitched, Layout::kMixed};
const char* layout_name(Layout);

// How integers are chosen.
enum class Range {
  kSmall,
  kWide  // more digits than a floating type of half the width, or of the same, keeps
};

struct Arguments {
  Values cpu, device;
  std::vector<Tensor> tensors;    // on the device, in the order of the arguments
  std::vector<Tensor> storages;   // what they lie in
  std::vector<Tensor> sources;    // on the CPU
  std::deque<std::string> texts;  // what values point to
  std::deque<std::vector<int64_t>> lists;
  std::deque<std::vector<tenon_tensor*>> tensor_lists;
};

// Always the same values for the same sample, dtype, range and seed.
Arguments make_arguments(Engine&, const Sample&, int32_t dtype, Layout = Layout::kContiguous,
                         Range = Range::kSmall, uint64_t seed = 0);

// Elements as numbers; complex ones as two each. `tensor` may lie anywhere.
std::vector<double> numbers(Engine&, const Tensor& tensor);
// Raw bytes of a contiguous tensor.
std::string bytes_of(Engine&, const Tensor& tensor);

}  // namespace tenon::kit
