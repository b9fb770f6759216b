// SPDX-License-Identifier: Apache-2.0
// Reader of safetensors headers. A file comes from anywhere, so the header is believed only after every
// figure in it was checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::graph {

struct StoredTensor {
  std::string dtype;  // "F32"
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes, from the end of the header
};

struct SafetensorsHeader {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// `json` is the header's text. Throws Error.
SafetensorsHeader parse_safetensors_header(std::string_view json);

}  // namespace tenon::graph
