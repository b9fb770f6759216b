// SPDX-License-Identifier: Apache-2.0
// Bytes of a file to a Model. The file is taken for hostile: nothing is allocated that is not a small multiple of
// the bytes that were there, and nesting, counts and lengths have limits.
#pragma once

#include <string_view>

#include "reader/model.hpp"

namespace tenon::onnx {

inline constexpr int kMaxDepth = 64;                  // graphs and types in each other
inline constexpr size_t kMaxNodes = size_t{1} << 20;  // of a model, with all graphs in it
inline constexpr size_t kMaxMessages = size_t{1}
                                       << 22;  // nodes, attributes, tensors and types together
inline constexpr size_t kMaxName = size_t{64} << 10;  // bytes
inline constexpr int kMaxAxes = 32;
inline constexpr int64_t kMaxOpset = 28, kMaxMlOpset = 5, kMaxIrVersion = 14;

// The model points into `bytes`, which must outlive it. Throws Error: what was expected at which message of the file, and
// what was got.
Model read_model(std::string_view bytes);

// The elements that a shape has. Throws Error where a size is negative or the product does not fit into 63 bits.
int64_t count_elements(const std::vector<int64_t>& shape, std::string_view what);

// Bytes of one element, 0 for text. Two of 4 bits, and four of 2 bits, lie in a byte: `bits`.
struct ElementSize {
  uint32_t bits;
};
ElementSize element_size(int32_t type);
const char* element_type_name(int32_t type);  // "FLOAT"; "?" where it is none

}  // namespace tenon::onnx
