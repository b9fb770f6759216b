// SPDX-License-Identifier: Apache-2.0
// Which operators the device runs itself, and in what order they are checked: what others build on
// comes first, and once that is wrong, the others are left alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operators/engine.hpp"

namespace tenon::kit {

struct Subject {
  const tenon_op* op = nullptr;
  std::string name;             // without "tenon::"
  bool is_native = false;       // a kernel of its own, for at least the leading dtype
  std::vector<int32_t> dtypes;  // that run on the device; the leading one first

  const tenon_op_def& def() const { return *real_host()->op_def(op); }
};

// Ends the check as absent if the device runs none.
std::vector<Subject> subjects(Engine&);

enum class Route { kNative, kLowered };

// `body` for each subject on this route that has not failed an earlier check. Lowered ones are left
// out if any native one has failed: they are made of those. So are all others after the strided
// copy.
void for_each_subject(Engine&, Route, const std::function<void(const Subject&)>& body);

std::string short_name(const tenon_op*);

}  // namespace tenon::kit
