// SPDX-License-Identifier: Apache-2.0
// paddle::none: the absent value of paddle::optional.
#pragma once

namespace paddle {

struct none_t {
  explicit constexpr none_t(int) {}
};
constexpr none_t none{0};

}  // namespace paddle
