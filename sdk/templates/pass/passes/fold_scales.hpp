// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/graph_pass.hpp>

namespace acme {

// (x * a) * b becomes x * (a * b) for numbers a and b, where nothing else reads x * a. Results are rounded once
// where they were rounded twice.
void fold_scales(tenon::GraphEditor& program);

}  // namespace acme
