// SPDX-License-Identifier: Apache-2.0
#include "support/interned_text.hpp"

#include <mutex>
#include <set>

namespace tenon::graph {

const std::string InternedText::kNone;

InternedText::InternedText(std::string_view text) {
  if (text.empty()) return;
  // Never destroyed: programs may be used until the very end.
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  auto found = known.find(text);
  if (found == known.end()) found = known.emplace(text).first;
  text_ = &*found;
}

}  // namespace tenon::graph
