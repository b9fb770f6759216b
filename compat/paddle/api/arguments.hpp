// SPDX-License-Identifier: Apache-2.0
// Boxed arguments of a call, in the forms that authors' functions take them.
#pragma once

#include <span>
#include <vector>

#include "api/declaration.hpp"
#include "core/host.hpp"

namespace tenon::paddle {

// The tensors of one argument: none, one, or those of a list.
inline std::span<tenon_tensor* const> tensors_of(const tenon_value& value) {
  if (value.tag == TENON_VALUE_TENSOR)
    return {reinterpret_cast<tenon_tensor* const*>(&value.v.p), 1};
  if (value.tag == TENON_VALUE_TENSORS)
    return {static_cast<tenon_tensor* const*>(value.v.p), value.aux};
  return {};
}

// Attributes follow the inputs in `args`. Throws for integers that an int cannot hold.
std::vector<::paddle::any> attributes_of(const Declaration& op, const tenon_value* args);

// Put what `convert` makes of each tensor where the declaration of the input wants it.
template <typename T, typename Convert>
void set_input(::paddle::CustomInput<T>& input, const Name& name, const tenon_value& value,
               Convert&& convert) {
  auto tensors = tensors_of(value);
  if (name.is_list) {
    if (name.is_optional && value.tag == TENON_VALUE_NONE) return;
    std::vector<T>& list = name.is_optional ? input.maybe_list.emplace() : input.list;
    for (tenon_tensor* tensor : tensors) list.push_back(convert(tensor));
  } else if (!tensors.empty()) {
    if (name.is_optional)
      input.maybe_value = convert(tensors[0]);
    else
      input.value = convert(tensors[0]);
  }
}

}  // namespace tenon::paddle
