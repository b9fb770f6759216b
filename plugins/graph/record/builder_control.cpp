// SPDX-License-Identifier: Apache-2.0
// Branches and loops of a program that is built. Their regions are programs that builders of their own made.
#include <tenon/error.hpp>

#include "record/builder.hpp"

namespace tenon::graph {
namespace {

[[noreturn]] void fail(const std::string& problem) {
  throw Error(TENON_INVALID_ARGUMENT, "builder: " + problem);
}

std::string plural(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void expect_types(const char* what, const std::vector<Type>& expected,
                  const std::vector<Type>& got) {
  if (expected.size() != got.size())
    fail(std::string(what) + ": expected " + plural(expected.size(), "tensor") + ", got " +
         std::to_string(got.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != got[i])
      fail(std::string(what) + " " + std::to_string(i) + ": expected " + type_text(expected[i]) +
           ", got " + type_text(got[i]));
}

template <class Ids>
std::vector<Type> types_of(const Graph& graph, const Ids& ids) {
  std::vector<Type> types;
  for (ValueId id : ids) types.push_back(graph.values[id]);
  return types;
}

const char* step_kind_name(StepKind kind) {
  return kind == StepKind::kCond ? "cond" : kind == StepKind::kWhile ? "while" : "scan";
}

// Of one index along the first axis, and of all of them.
Type element_of(Type type) {
  if (type.shape.empty()) fail("scan: expected tensors with a first axis, got " + type_text(type));
  type.shape = Axes(type.shape.data() + 1, type.shape.data() + type.shape.size());
  return type;
}
Type stack_of(const Type& type, int64_t length) {
  std::vector<int64_t> shape = {length};
  shape.insert(shape.end(), type.shape.begin(), type.shape.end());
  return {type.dtype, type.device, shape};
}

}  // namespace

std::vector<Type> Builder::check_regions(const Step& step) const {
  const std::vector<Graph>& regions = step.regions;
  std::vector<Type> given;
  for (const Operand& operand : step.operands) given.push_back(graph_.values[operand.value]);
  const std::vector<Type> carried(given.begin(), given.begin() + step.carried);
  if (step.kind == StepKind::kCond) given.erase(given.begin());
  for (uint32_t i = 0; i < step.scanned; ++i)
    given[step.carried + i] = element_of(given[step.carried + i]);
  for (const Graph& region : regions)
    expect_types("input of a region", given, types_of(region, region.inputs));
  std::vector<Type> made = types_of(regions.back(), regions.back().results);
  if (step.kind == StepKind::kCond) {
    expect_types("result of a branch", types_of(regions[0], regions[0].results), made);
  } else if (step.kind == StepKind::kWhile) {
    if (regions[0].results.size() != 1)
      fail("while: expected a condition of one result, got " +
           plural(regions[0].results.size(), "result"));
    expect_types("carried value", carried, made);
  } else {
    if (made.size() < step.carried)
      fail("scan: expected a body that returns its " + plural(step.carried, "carried value") +
           " first, got " + plural(made.size(), "result"));
    expect_types("carried value", carried,
                 std::vector<Type>(made.begin(), made.begin() + step.carried));
    const int64_t length = graph_.values[step.operands[step.carried].value].shape.data()[0];
    for (size_t i = step.carried; i < made.size(); ++i) made[i] = stack_of(made[i], length);
  }
  return made;
}

// Every region gets what any of them reads from outside.
void Builder::hoist_leaves(Step& step) {
  for (size_t own = 0; own < step.regions.size(); ++own) {
    for (const Leaf& leaf : step.regions[own].leaves) {
      if (!leaf.tensor) fail("a region has a leaf without a tensor; bind it first");
      const Tensor value = add_leaf(leaf.tensor.get(), leaf.name.c_str(), leaf.is_constant);
      const Type type = type_of(*leaf.tensor.get());
      step.operands.push_back(Operand::of(by_tensor_.at(value.get())));
      for (size_t i = 0; i < step.regions.size(); ++i) {
        Graph& region = step.regions[i];
        region.inputs.push_back(i == own ? leaf.value : region.add_value(type));
      }
    }
    step.regions[own].leaves.clear();
  }
}

std::vector<Tensor> Builder::add_control(StepKind kind, tenon_tensor* const* operands,
                                         uint32_t noperands, uint32_t carried, uint32_t scanned,
                                         tenon_graph_program* const* regions, uint32_t nregions,
                                         uint32_t nresults) {
  const char* name = step_kind_name(kind);
  const uint32_t expected = kind == StepKind::kScan ? 1 : 2;
  if (nregions != expected)
    fail(std::string(name) + ": expected " + plural(expected, "region") + ", got " +
         std::to_string(nregions));
  const uint32_t least = kind == StepKind::kCond ? 1 : carried + scanned;
  if (noperands < least || (kind == StepKind::kScan) != (scanned > 0) ||
      (kind == StepKind::kCond && carried > 0) || carried > noperands || scanned > noperands)
    fail(std::string(name) +
         ": expected a predicate, or carried and scanned values, among its operands");
  Step step;
  step.kind = kind;
  step.carried = carried;
  step.scanned = scanned;
  step.location = location_;
  for (uint32_t i = 0; i < noperands; ++i)
    step.operands.push_back(Operand::of(value_of(stand_in(operands[i], false), name)));
  for (uint32_t i = 0; i < nregions; ++i) {
    if (regions[i]->dimensions || !regions[i]->graph.grads.empty())
      fail(std::string(name) + ": expected regions of one size that set no .grad");
    step.regions.push_back(regions[i]->graph);
  }
  std::vector<Type> types = check_regions(step);
  if (types.size() != nresults)
    fail(std::string(name) + ": expected room for " + plural(types.size(), "result") + ", got " +
         std::to_string(nresults));
  hoist_leaves(step);
  std::vector<Tensor> results;
  for (Type& type : types) {
    results.push_back(add(std::move(type)));
    step.results.push_back(by_tensor_.at(results.back().get()));
  }
  graph_.steps.push_back(std::move(step));
  return results;
}

}  // namespace tenon::graph
