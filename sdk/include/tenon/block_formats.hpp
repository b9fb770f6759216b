// SPDX-License-Identifier: Apache-2.0
// Names and sizes of GGUF's formats of weights in blocks: `elements` numbers of a row in `bytes` bytes. Names are those of
// GGUF's types. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon {

struct BlockFormat {
  std::string_view name;
  int32_t elements, bytes;  // of a block
};

inline constexpr BlockFormat kBlockFormats[] = {
    {"q8_0", 32, 34},   {"q4_0", 32, 18},   {"q4_1", 32, 20},   {"q5_0", 32, 22},
    {"q5_1", 32, 24},   {"q2_K", 256, 84},  {"q3_K", 256, 110}, {"q4_K", 256, 144},
    {"q5_K", 256, 176}, {"q6_K", 256, 210}, {"iq4_nl", 32, 18}, {"iq4_xs", 256, 136},
    {"mxfp4", 32, 17},
};

// NULL if no format has this name.
constexpr const BlockFormat* find_block_format(std::string_view name) {
  for (const BlockFormat& format : kBlockFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace tenon
