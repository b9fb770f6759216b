// SPDX-License-Identifier: Apache-2.0
#include <tenon/operator_traits.hpp>

#include "groups/rows.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "support/host.hpp"

namespace tenon::graph {
namespace {

// The value of the parameter, if it is an attribute.
const Attribute* attribute_of(const tenon_op_def& def, const Step& step, std::string_view name) {
  for (uint32_t i = 0; i < def.nparams && i < step.operands.size(); ++i)
    if (name == def.params[i].name)
      return step.operands[i].kind == Operand::kAttribute ? &step.operands[i].attribute : nullptr;
  return nullptr;
}

// Bits of the last `count` axes.
uint32_t last_axes(int64_t count, int64_t ndim) {
  if (count < 0 || count > ndim) return 0;
  const uint32_t all = (uint32_t{1} << ndim) - 1;
  return all & ~((uint32_t{1} << (ndim - count)) - 1);
}

// Bit i: the step works along axis i. 0: unknown.
uint32_t row_axes(const tenon_op_def& def, const Step& step, int64_t ndim) {
  constexpr std::string_view kLast = "last(";
  std::string_view name = trait(def, "rows: ");
  const bool counts = name.starts_with(kLast) && name.ends_with(')');
  if (counts) name = name.substr(kLast.size(), name.size() - kLast.size() - 1);
  int64_t number = 0;
  if (counts && std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc())
    return last_axes(number, ndim);
  const Attribute* attribute = name.empty() ? nullptr : attribute_of(def, step, name);
  if (!attribute) return 0;
  const tenon_value value = attribute->value();
  if (value.tag == TENON_VALUE_NONE && !counts) return last_axes(ndim, ndim);
  if (value.tag == TENON_VALUE_INT && counts) return last_axes(value.v.i, ndim);
  const bool is_list = value.tag == TENON_VALUE_INTS;
  if (counts || (!is_list && value.tag != TENON_VALUE_INT)) return 0;
  uint32_t axes = 0;
  for (uint64_t i = 0; i < (is_list ? value.aux : 1); ++i) {
    int64_t axis = is_list ? static_cast<const int64_t*>(value.v.p)[i] : value.v.i;
    if (axis < 0) axis += ndim;
    if (axis < 0 || axis >= ndim) return 0;
    axes |= uint32_t{1} << axis;
  }
  return axes;
}

}  // namespace

std::optional<size_t> axes_before_rows(const Graph& graph, const Step& step) {
  if (step.kind != StepKind::kCall || step.given || step.results.empty() || step.operands.empty() ||
      step.operands[0].kind != Operand::kValue)
    return std::nullopt;
  const auto ndim = static_cast<int64_t>(graph.values[step.operands[0].value].shape.size());
  if (ndim == 0 || ndim >= TENON_MAX_NDIM) return std::nullopt;
  const uint32_t axes = row_axes(*host->op_def(step.op), step, ndim);
  for (int64_t before = 1; before < ndim; ++before)
    if (axes == last_axes(ndim - before, ndim)) return static_cast<size_t>(before);
  return std::nullopt;
}

}  // namespace tenon::graph
