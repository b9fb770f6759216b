// SPDX-License-Identifier: Apache-2.0
// Views: where the rule of a view's shape puts an axis says where its cuts go.
#include <algorithm>

#include "rules.hpp"

namespace tenon::sharding {

bool Rules::add_view() {
  if (call.operands.size() != 1 || call.results.size() != 1) return false;
  const tenon_tensor& x = tensor(0);
  const tenon_meta& out = result(0);
  if (out.kind != TENON_META_VIEW || out.dtype != x.dtype) return false;
  // The whole as it would lie in memory.
  std::vector<int64_t> strides(static_cast<size_t>(x.ndim));
  int64_t stride = 1;
  for (int64_t i = x.ndim; i-- > 0; stride *= std::max<int64_t>(1, x.shape[i]))
    strides[static_cast<size_t>(i)] = stride;
  for (int64_t i = 0; i < x.ndim; ++i) {
    const int64_t size = x.shape[i], step = strides[static_cast<size_t>(i)];
    if (size <= 1) continue;
    for (int64_t j = 0; j < out.ndim; ++j) {
      if (out.shape[j] <= 1 || out.strides[j] <= 0) continue;
      const bool is_same = out.shape[j] == size && out.strides[j] == step;
      // An axis that is taken apart, or joined with those behind it: cuts are those of its outermost factor.
      const int64_t n = pieces(0, i);
      const bool is_outermost =
          out.shape[j] * out.strides[j] == size * step && size % n == 0 && out.shape[j] % n == 0;
      if (!is_same && !is_outermost) continue;
      Candidate made = empty();
      made.operands[0] = Placement::shard(i);
      made.results[0] = Placement::shard(j);
      add(std::move(made));
      break;
    }
  }
  const Placement at = call.operands[0].view.at[a];
  if (at.is_partial()) {
    Candidate made = empty();
    made.operands[0] = made.results[0] = at;
    add(std::move(made));
  }
  return true;
}

}  // namespace tenon::sharding
