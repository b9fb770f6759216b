// SPDX-License-Identifier: Apache-2.0
// paddle::any: std::any under its older name.
#pragma once

#include <any>

namespace paddle {

using std::any;
using std::any_cast;
using std::bad_any_cast;

}  // namespace paddle
