// SPDX-License-Identifier: Apache-2.0
// Filters of convolutions as algorithms read them, packed once for all executables.
#pragma once

#include "conv/packed_constants.hpp"
#include "conv/packed_conv.hpp"
#include "conv/shapes.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

enum class FilterPacking : uint8_t {
  kWinograd,      // Transformed filters, for planes.
  kWinogradLast,  // Transformed filters in panels, for NHWC images.
  kBlocks,        // Rows of taps and channels, with a last row of biases.
  kDepthwise,     // Vectors of channels of each tap, with the biases behind.
};

// Throws std::bad_alloc.
std::shared_ptr<const PackedConstant> packed_filters(FilterPacking packing, const ConvShapes& s,
                                                     const ConvConstants& constants);

}  // namespace tenon::cpu::TENON_CPU_ISA
