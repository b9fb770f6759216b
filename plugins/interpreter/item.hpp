// SPDX-License-Identifier: Apache-2.0
// What a part of an operator expression comes to: a borrowed boxed value (arguments, numbers), or a
// tensor or list of its own.
#pragma once

#include <cstdint>
#include <tenon/ops/call.hpp>
#include <variant>
#include <vector>

namespace tenon::interpreter {

using Item = std::variant<tenon_value, Tensor, std::vector<int64_t>, std::vector<double>,
                          std::vector<Tensor>>;

// The boxed form, valid while the item is.
inline tenon_value boxed(const Item& item) {
  switch (item.index()) {
    case 0:
      return std::get<0>(item);
    case 1:
      return TensorArg(std::get<1>(item)).value();
    case 2:
      return IntList(std::get<2>(item)).value();
    case 3:
      return FloatList(std::get<3>(item)).value();
    default:
      return TensorList(std::get<4>(item)).value();
  }
}

inline Item none() { return kNoValue; }

}  // namespace tenon::interpreter
