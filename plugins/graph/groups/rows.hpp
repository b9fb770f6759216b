// SPDX-License-Identifier: Apache-2.0
// Steps that work along rows, such as reductions and softmax: rows are independent, and a group may take some at a time.
#pragma once

#include <cstddef>
#include <optional>

#include "ir/graph.hpp"

namespace tenon::graph {

// How many axes of the first operand come before those along which the step works, which are the last ones; none where the
// operator does not say so (`rows` in tenon_op_def.traits), or works along others.
std::optional<size_t> axes_before_rows(const Graph& graph, const Step& step);

}  // namespace tenon::graph
