// SPDX-License-Identifier: Apache-2.0
// Division of the filters of a convolution where its pixels are too few items for the threads.
#pragma once

#include <tenon/tensor.hpp>

#include <algorithm>

namespace tenon::cpu {

// Equal shares of the filters, one for each thread. Each thread then reads weights of its own, which
// are most of the memory of a layer with few pixels, and prepares the same pixels again. An element
// has the same bits in every division, because its sum does not depend on other filters.
class FilterShares {
 public:
  // `items` is the number of items without a division, and all shares but the last one have a
  // multiple of `unit` filters. Filters stay together if there are enough items to balance.
  FilterShares(int64_t items, int64_t filters, int64_t unit) : filters_(filters), each_(filters) {
    const int64_t threads = host->thread_count();
    if (items >= kItems * threads) return;
    const int64_t wanted = std::clamp<int64_t>(filters / kMinFilters, 1, threads);
    each_ = ((filters + wanted - 1) / wanted + unit - 1) / unit * unit;
    count_ = (filters + each_ - 1) / each_;
  }

  int64_t count() const { return count_; }
  int64_t each() const { return std::min(each_, filters_); }  // Of the largest share.
  int64_t begin(int64_t share) const { return share * each_; }
  int64_t end(int64_t share) const { return std::min(filters_, (share + 1) * each_); }

 private:
  static constexpr int64_t kItems = 4;        // Items of a thread that balance without a division.
  static constexpr int64_t kMinFilters = 64;  // Filters that outweigh preparing the pixels again.

  int64_t filters_, each_, count_ = 1;
};

}  // namespace tenon::cpu
