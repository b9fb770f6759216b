// SPDX-License-Identifier: Apache-2.0
// What a program takes and gives, and whether a caller's memory fits that.
#pragma once

#include <tenon/predictor.h>
#include <tenon/services/graph.h>
#include <tenon/tensor.hpp>

#include <string>
#include <vector>

namespace tenon::predictor {

struct Dimension {
  std::string name;
  int64_t min = 1, max = 1, multiple = 1, recorded = 1;
};

// An input or an output.
struct Value {
  std::string name;
  int32_t dtype = TENON_DTYPE_F32;
  tenon_device_id device = TENON_DEVICE_NONE;
  std::vector<int64_t> shape;       // at the recorded sizes
  std::vector<int32_t> dimensions;  // for each axis its dimension, or TENON_GRAPH_SIZE_*
};

struct Signature {
  explicit Signature(const tenon_graph_program* program);

  // From here on each call chooses these sizes, and those of outputs follow from them.
  void open(std::vector<Dimension> chosen);

  std::vector<Dimension> dimensions;
  std::vector<Value> inputs, outputs;

  // "float32[batch, 784]"
  std::string type_text(const Value& value) const;
  // Index of the value of this name in `values`, which are its inputs or outputs. Throws Error with the nearest name.
  uint32_t find(const std::vector<Value>& values, const char* name) const;
  // Throws Error where a tensor of this dtype and shape cannot be `value`.
  void check(const Value& value, int32_t dtype, const std::vector<int64_t>& shape) const;
};

// "float32[3, 784]"
std::string type_text(int32_t dtype, const std::vector<int64_t>& shape);
// Throws Error for negative and too many sizes. Bytes of a dense tensor, 0 if it is empty.
uint64_t checked_bytes(const std::string& what, int32_t dtype, const std::vector<int64_t>& shape);
// Throws Error for no list of sizes.
std::vector<int64_t> checked_shape(const std::string& what, int32_t ndim, const int64_t* shape);

}  // namespace tenon::predictor
