// SPDX-License-Identifier: Apache-2.0
// Reads the header of a safetensors file, which says where the file's tensors lie. A file comes from anywhere: the reader
// takes nothing but what the format allows, and the caller compares the offsets with the size of the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct StoredTensor {
  std::string dtype;  // "F32"
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

struct SafetensorsHeader {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// `json` is the header's text. Throws std::invalid_argument, which says at which byte it is not valid.
SafetensorsHeader parse_safetensors_header(std::string_view json);

}  // namespace tenon
