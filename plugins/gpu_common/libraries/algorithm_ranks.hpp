// SPDX-License-Identifier: Apache-2.0
// Algorithms of a vendor's library as kernels, among which autotuning chooses.
//
// Note [Algorithms are kernels]
// A library's heuristic lists algorithms, the one that it takes for the fastest first. For each index of that list there is a
// kernel, which declines where the list is shorter. All but the first have scores that make them optional: the dispatcher does
// not know them, and the library lists no more than that one, until plugins/autotune lists the candidates of a call and measures
// them. A kernel of a later index reports TENON_UNSUPPORTED where the library refuses its algorithm; autotuning then goes
// back to the first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <tenon/abi.h>
#include <tenon/services/candidates.h>

namespace gpu {

// Heuristics rarely list more that are worth the time of measuring them.
inline constexpr size_t kMaxAlgorithms = 8;
inline constexpr size_t kMaxUnorderedAlgorithms = 4;

// Above the kernels for every device that compiles source.
inline constexpr int32_t kLibraryScore = 50;

constexpr int32_t score_of_rank(size_t rank) {
  return rank == 0 ? kLibraryScore : TENON_SCORE_OPTIONAL - static_cast<int32_t>(rank);
}

constexpr size_t rank_of_score(int32_t score) {
  return score < TENON_SCORE_OPTIONAL ? static_cast<size_t>(TENON_SCORE_OPTIONAL - score) : 0;
}

inline std::string workspace_text(uint64_t bytes) {
  return bytes ? ", " + std::to_string(bytes) + " bytes of workspace" : std::string();
}

// {make.operator()<0>(), make.operator()<1>(), ...}
template <size_t kCount, class Make>
constexpr std::array<tenon_kernel_def, kCount> kernels_of_ranks(const Make& make) {
  return [&]<size_t... kRank>(std::index_sequence<kRank...>) {
    return std::array<tenon_kernel_def, kCount>{make.template operator()<kRank>()...};
  }
  (std::make_index_sequence<kCount>());
}

}  // namespace gpu
