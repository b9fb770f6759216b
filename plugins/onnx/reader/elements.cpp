// SPDX-License-Identifier: Apache-2.0
// Types of elements as ONNX numbers them, and numbers of elements.
#include <tenon/error.hpp>

#include <string>

#include "reader/reader.hpp"

namespace tenon::onnx {
namespace {

struct ElementRow {
  const char* name;
  uint32_t bits;
};
constexpr ElementRow kElements[] = {
    {"UNDEFINED", 0},      {"FLOAT", 32},       {"UINT8", 8},          {"INT8", 8},
    {"UINT16", 16},        {"INT16", 16},       {"INT32", 32},         {"INT64", 64},
    {"STRING", 0},         {"BOOL", 8},         {"FLOAT16", 16},       {"DOUBLE", 64},
    {"UINT32", 32},        {"UINT64", 64},      {"COMPLEX64", 64},     {"COMPLEX128", 128},
    {"BFLOAT16", 16},      {"FLOAT8E4M3FN", 8}, {"FLOAT8E4M3FNUZ", 8}, {"FLOAT8E5M2", 8},
    {"FLOAT8E5M2FNUZ", 8}, {"UINT4", 4},        {"INT4", 4},           {"FLOAT4E2M1", 4},
    {"FLOAT8E8M0", 8},     {"UINT2", 2},        {"INT2", 2},
};
constexpr int32_t kElementCount = sizeof kElements / sizeof kElements[0];

}  // namespace

int64_t count_elements(const std::vector<int64_t>& shape, std::string_view what) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0)
      throw Error(
          TENON_INVALID_ARGUMENT,
          std::string(what) + ": expected sizes of at least 0, got " + std::to_string(size));
    if (__builtin_mul_overflow(count, size, &count))
      throw Error(TENON_INVALID_ARGUMENT,
                  std::string(what) + ": its number of elements does not fit into 63 bits");
  }
  return count;
}

ElementSize element_size(int32_t type) {
  return {type >= 0 && type < kElementCount ? kElements[type].bits : 0};
}

const char* element_type_name(int32_t type) {
  return type >= 0 && type < kElementCount ? kElements[type].name : "?";
}

}  // namespace tenon::onnx
