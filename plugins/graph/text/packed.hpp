// SPDX-License-Identifier: Apache-2.0
// Packed weights in files of programs: what executables of the host have packed of a program's leaves, as
// tensors "packed.0" and so on. The metadata have a line for each under "tenon.packed", behind a line with the version:
//
//   tenon.packed 1
//   3 4 9c41f2a87d03be65 avx512 blocks 0f3a...: 64 filters, ...
//
// which are the index of the leaf that is packed, that of another one whose elements are packed with it, or "-", a sum of
// samples of both, and the form (tenon/services/packed_constants.h). The leaves are in the file, too: where the form is
// none of this processor, or a leaf has other elements, they are packed anew.
#pragma once

#include <string>
#include <vector>

#include "formats/safetensors.hpp"
#include "program/program.hpp"
#include "text/mapping.hpp"

namespace tenon::graph {

struct PackedLeaf {
  size_t leaf;
  size_t second;  // kNoLeaf: none
  std::string sum;
  std::string form;
  std::vector<char> elements;  // When it is written.
};
inline constexpr size_t kNoLeaf = SIZE_MAX;
inline constexpr const char* kPackedKey = "tenon.packed";

// Copies of what executables read now of the program's leaves: another thread may end these at any time.
std::vector<PackedLeaf> packed_leaves(const Program& program);
std::string packed_text(const std::vector<PackedLeaf>& list);

// Gives the service what the file holds. `begin`: where its tensors begin. Throws Error for a file that is not
// what it claims to be.
void give_packed(const SharedMapping& file, const SafetensorsHeader& header, uint64_t begin,
                 const Program& program);

}  // namespace tenon::graph
