// SPDX-License-Identifier: Apache-2.0
// The device's group `subgraph`: convolutions by constants, with what follows them.
#pragma once

#include "conv/packed_conv.hpp"

#include <tenon/abi.h>

namespace tenon::cpu {

// Those of the instruction set that was chosen; before the host has the device's table.
void set_packed_convs(const PackedConvs* convs);

extern const tenon_subgraph_api kSubgraphs;

}  // namespace tenon::cpu
