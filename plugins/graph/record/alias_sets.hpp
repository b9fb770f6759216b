// SPDX-License-Identifier: Apache-2.0
// Where a branch or a loop hands on memory from outside, Python's names share it, and values of the program do not. Such
// storages form sets: a write to one of a set makes the others stale, and nothing recorded may read them any more.
#pragma once

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tenon::graph {

class AliasSets {
 public:
  // The two may be one memory in Python; it counts from `commit` on, when the results were copied where they have to be.
  void add(const void* result, const void* original) { pending_.emplace_back(result, original); }
  void commit() {
    pairs_.insert(pairs_.end(), pending_.begin(), pending_.end());
    pending_.clear();
  }
  bool empty() const { return pairs_.empty(); }

  // All others in the set of `storage`.
  std::vector<const void*> others(const void* storage) const {
    std::vector<const void*> set = {storage};
    for (size_t i = 0; i < set.size(); ++i)
      for (const auto& [a, b] : pairs_) {
        if (a != set[i] && b != set[i]) continue;
        const void* other = a == set[i] ? b : a;
        if (std::find(set.begin(), set.end(), other) == set.end()) set.push_back(other);
      }
    set.erase(set.begin());
    return set;
  }

  void mark_stale(const void* storage) { stale_.insert(storage); }
  bool has_stale() const { return !stale_.empty(); }
  bool is_stale(const void* storage) const { return stale_.contains(storage); }
  // The memory that lies there now is new.
  void forget(const void* storage) {
    stale_.erase(storage);
    std::erase_if(
        pairs_, [&](const Pair& pair) { return pair.first == storage || pair.second == storage; });
  }

 private:
  using Pair = std::pair<const void*, const void*>;
  std::vector<Pair> pending_, pairs_;
  std::unordered_set<const void*> stale_;
};

}  // namespace tenon::graph
