// SPDX-License-Identifier: Apache-2.0
#include "merge.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "hash.hpp"

namespace tenon::tables {

uint64_t merge(const tenon_table_block* blocks, uint32_t block_count, uint32_t dim, float divisor,
               int64_t* ids, float* gradients, float* shows, float* clicks) {
  uint64_t total = 0, count = 0;
  for (uint32_t b = 0; b < block_count; ++b) total += blocks[b].count;
  std::unordered_map<uint64_t, uint64_t> where;
  where.reserve(total);
  for (uint32_t b = 0; b < block_count; ++b) {
    const tenon_table_block& block = blocks[b];
    for (uint64_t i = 0; i < block.count; ++i) {
      const float* from = block.gradients + i * dim;
      const float show = block.shows ? block.shows[i] : 1.0f;
      const float click = block.clicks ? block.clicks[i] : 0.0f;
      const auto [found, is_new] = where.try_emplace(static_cast<uint64_t>(block.ids[i]), count);
      float* to = gradients + found->second * dim;
      if (is_new) {
        ids[count] = block.ids[i];
        shows[count] = show;
        clicks[count] = click;
        ++count;
        std::copy(from, from + dim, to);
        continue;
      }
      for (uint32_t d = 0; d < dim; ++d) to[d] += from[d];
      shows[found->second] += show;
      clicks[found->second] += click;
    }
  }
  if (divisor != 1.0f)
    for (uint64_t i = 0; i < count * dim; ++i) gradients[i] /= divisor;
  return count;
}

void divide(const int64_t* ids, uint64_t count, uint32_t servers, int64_t* order,
            uint64_t* counts) {
  std::vector<uint32_t> server(count);
  std::fill(counts, counts + servers, 0);
  for (uint64_t i = 0; i < count; ++i) {
    server[i] = server_of(static_cast<uint64_t>(ids[i]), servers);
    ++counts[server[i]];
  }
  std::vector<uint64_t> next(servers, 0);
  for (uint32_t s = 1; s < servers; ++s) next[s] = next[s - 1] + counts[s - 1];
  for (uint64_t i = 0; i < count; ++i) order[next[server[i]]++] = static_cast<int64_t>(i);
}

}  // namespace tenon::tables
