// SPDX-License-Identifier: Apache-2.0
// Programs that were compiled ahead of time, so that a first run compiles nothing and needs no compiler. One file holds
// them for all architectures: scripts/precompile.py writes it, the package tenon-dl-cuda or tenon-dl-rocm installs it.
//
// The file, little-endian: "TENONAOT", uint64 count, `count` entries of {uint64 hash[2], uint64 offset, uint64 bytes}
// in ascending order of hash, and the images at their offsets. An image is what the vendor's driver loads: a fat binary.
#pragma once

#include <string_view>

namespace gpu {

// The image for a program's whole source, prelude included, or nullptr. It stays where it is as long as the process
// lives. The driver may still refuse it: it may hold no code for this device, or be newer than the driver.
const void* precompiled_image(std::string_view source);

}  // namespace gpu
