// SPDX-License-Identifier: Apache-2.0
#include "passes/editor.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <cstring>

#include "ir/describe_step.hpp"
#include "rewrite/fragment.hpp"
#include "support/host.hpp"

using tenon::graph::AliasAnalysis;
using tenon::graph::ValueId;

uint32_t tenon_graph_editor::uses(ValueId value) const {
  uint32_t count = 0;
  for (const tenon::graph::Step& step : graph.steps)
    for_each_operand(step, [&](ValueId id) { count += id == value; });
  for_each_live_out(graph, [&](ValueId id) { count += id == value; });
  return count;
}

const AliasAnalysis& tenon_graph_editor::memory() const {
  if (!aliases) aliases.emplace(graph);
  return *aliases;
}

namespace tenon::graph {
namespace {

[[noreturn]] void fail_range(const char* what, uint32_t index, size_t count) {
  throw Error(TENON_OUT_OF_RANGE, std::string("editor: ") + what + " " + std::to_string(index) +
                                      " is out of range, there are " + std::to_string(count));
}

const Step& step_at(const tenon_graph_editor& editor, uint32_t index) {
  if (index >= editor.graph.steps.size()) fail_range("step", index, editor.graph.steps.size());
  return editor.graph.steps[index];
}
void check_value(const tenon_graph_editor& editor, uint32_t id) {
  if (id >= editor.graph.values.size()) fail_range("value", id, editor.graph.values.size());
}

// Fills what the caller's version of the structure has.
template <class Struct>
void write_out(Struct* out, Struct filled) {
  filled.struct_size = out->struct_size;
  std::memcpy(out, &filled, std::min<size_t>(out->struct_size, sizeof filled));
}

uint32_t steps(const tenon_graph_editor* editor) {
  return static_cast<uint32_t>(editor->graph.steps.size());
}

tenon_status step(const tenon_graph_editor* editor, uint32_t index, tenon_graph_step* out,
                  tenon_err* err) {
  return guarded(err,
                 [&] { write_out(out, describe_step(editor->graph, step_at(*editor, index))); });
}

tenon_status operand(const tenon_graph_editor* editor, uint32_t index, uint32_t number,
                     tenon_graph_operand* out, tenon_err* err) {
  return guarded(err, [&] {
    const Step& step = step_at(*editor, index);
    if (number >= step.operands.size()) fail_range("operand", number, step.operands.size());
    const Operand& operand = step.operands[number];
    if (operand.kind == Operand::kAttribute)
      *out = {TENON_GRAPH_ATTRIBUTE, 0, nullptr, operand.attribute.value()};
    else if (operand.kind == Operand::kValue)
      *out = {TENON_GRAPH_VALUES, 1, &operand.value, kNoValue};
    else
      *out = {TENON_GRAPH_VALUES, static_cast<uint32_t>(operand.list.size()), operand.list.data(),
              kNoValue};
  });
}

tenon_status result(const tenon_graph_editor* editor, uint32_t index, uint32_t number, uint32_t* id,
                    tenon_err* err) {
  return guarded(err, [&] {
    const Step& step = step_at(*editor, index);
    if (number >= step.results.size()) fail_range("result", number, step.results.size());
    *id = step.results[number];
  });
}

tenon_status value(const tenon_graph_editor* editor, uint32_t id, tenon_graph_value* out,
                   tenon_err* err) {
  return guarded(err, [&] {
    check_value(*editor, id);
    const Type& type = editor->graph.values[id];
    tenon_graph_value filled = {};
    filled.dtype = type.dtype;
    filled.device = type.device;
    filled.ndim = static_cast<int32_t>(type.shape.size());
    filled.shape = type.shape.data();
    filled.uses = editor->uses(id);
    filled.is_written = editor->memory().is_written(id);
    filled.is_outside = editor->memory().is_outside(id);
    for (const Leaf& leaf : editor->graph.leaves)
      if (leaf.value == id && leaf.is_constant) filled.constant = leaf.tensor.get();
    write_out(out, filled);
  });
}

Operand operand_of(const tenon_graph_editor& editor, const tenon_param_def& param,
                   const tenon_graph_operand& given) {
  if (given.kind == TENON_GRAPH_ATTRIBUTE) return Operand::of(Attribute(given.attribute));
  for (uint32_t i = 0; i < given.count; ++i) check_value(editor, given.ids[i]);
  if (param.kind == TENON_PARAM_TENSORS) {
    Operand list;
    list.kind = Operand::kList;
    list.list.assign(given.ids, given.ids + given.count);
    return list;
  }
  if (given.count != 1)
    throw Error(TENON_INVALID_ARGUMENT, "editor: expected one value for `" +
                                            std::string(param.name) + "`, got " +
                                            std::to_string(given.count));
  return Operand::of(given.ids[0]);
}

tenon_status insert_call(tenon_graph_editor* editor, uint32_t before, const tenon_op* op,
                         const tenon_graph_operand* operands, uint32_t noperands, uint32_t* ids,
                         tenon_err* err) {
  return guarded(err, [&] {
    Graph& graph = editor->graph;
    if (before > graph.steps.size()) fail_range("step", before, graph.steps.size());
    const tenon_op_def& def = *host->op_def(op);
    if (noperands > def.nparams)
      throw Error(TENON_INVALID_ARGUMENT, "editor: expected at most " +
                                              std::to_string(def.nparams) + " operands for " +
                                              def.schema + ", got " + std::to_string(noperands));
    if (def.flags & TENON_OP_LIST_OUTPUT)
      throw Error(TENON_UNSUPPORTED,
                  "editor: expected an operator whose number of results is fixed, "
                  "got " +
                      std::string(def.name) +
                      ", which returns a list; insert a call for each part, such "
                      "as a slice");
    Step step;
    step.op = op;
    step.name = def.name;
    step.schema_hash = def.schema_hash;
    for (uint32_t i = 0; i < def.nparams; ++i) {
      const tenon_param_def& param = def.params[i];
      if (i < noperands)
        step.operands.push_back(operand_of(*editor, param, operands[i]));
      else
        step.operands.push_back(Operand::of(param.flags & TENON_PARAM_FLAG_HAS_DEFAULT
                                                ? Attribute(param.default_value)
                                                : Attribute()));
    }
    // Errors and the user's line point to the call that it stands in front of.
    if (!graph.steps.empty()) {
      const Step& next = graph.steps[std::min<size_t>(before, graph.steps.size() - 1)];
      step.location = next.location;
      step.is_recorded = next.is_recorded;
    }
    tenon_device_id device = host->device_host();
    for_each_operand(step, [&](ValueId id) { device = graph.values[id].device; });
    for (uint32_t i = 0; i < def.nouts; ++i)
      step.results.push_back(static_cast<ValueId>(graph.values.size() + i));
    Fragment call;
    call.steps.push_back(std::move(step));
    const std::vector<Type> types = call.types(graph, device);
    graph.values.insert(graph.values.end(), types.begin(), types.end());
    Step& made = call.steps[0];
    std::copy(made.results.begin(), made.results.end(), ids);
    graph.steps.insert(graph.steps.begin() + before, std::move(made));
    editor->changed();
  });
}

tenon_status insert_constant(tenon_graph_editor* editor, tenon_tensor* tensor, uint32_t* id,
                             tenon_err* err) {
  return guarded(err, [&] {
    Leaf leaf;
    leaf.tensor = copy_of(Tensor::borrow(tensor));
    leaf.value = editor->graph.add_value(type_of(*tensor));
    leaf.is_constant = true;
    *id = leaf.value;
    editor->graph.leaves.push_back(std::move(leaf));
    editor->changed();
  });
}

// The step that makes the value; none makes inputs and leaves.
const Step* maker_of(const Graph& graph, ValueId value) {
  for (const Step& step : graph.steps)
    for (size_t i = 0; i < step.results.size(); ++i)
      if (step.results[i] == value && !is_given(step, i)) return &step;
  return nullptr;
}

tenon_status replace(tenon_graph_editor* editor, uint32_t id, uint32_t by, tenon_err* err) {
  return guarded(err, [&] {
    check_value(*editor, id);
    check_value(*editor, by);
    Graph& graph = editor->graph;
    if (graph.values[id] != graph.values[by])
      throw Error(TENON_INVALID_ARGUMENT,
                  "editor: expected a value " + type_text(graph.values[id]) +
                      " in the place of another one, got " + type_text(graph.values[by]));
    const AliasAnalysis& memory = editor->memory();
    if (memory.is_written(id) || memory.is_written(by))
      throw Error(
          TENON_FAILED_PRECONDITION,
          "editor: a step writes into the memory of one of the values, so that they are the same "
          "for a part of the program only");
    const Step* maker = maker_of(graph, by);
    const bool is_own = maker && !makes_aliases(*maker) && !memory.is_outside(by);
    if (memory.is_outside(id) && !is_own)
      throw Error(TENON_FAILED_PRECONDITION,
                  "editor: callers see the memory of the value, and would see that of another one; "
                  "insert a call of tenon::clone");
    replace_value(graph, id, by);
    editor->changed();
  });
}

tenon_status remove(tenon_graph_editor* editor, uint32_t index, tenon_err* err) {
  return guarded(err, [&] {
    const Step& step = step_at(*editor, index);
    for (size_t i = 0; i < step.results.size(); ++i) {
      const ValueId id = step.results[i];
      if (is_given(step, i) || editor->uses(id) > 0)
        throw Error(TENON_FAILED_PRECONDITION,
                    "editor: step " + std::to_string(index) + ", " + step_text(step) + ", " +
                        (is_given(step, i) ? "writes into a value" : "has a result that is read"));
    }
    editor->graph.steps.erase(editor->graph.steps.begin() + index);
    editor->changed();
  });
}

uint32_t ids(const tenon_graph_editor* editor, int32_t whose, uint32_t* ids, uint32_t room) {
  const Graph& graph = editor->graph;
  const auto write = [&](const auto& list, auto&& id_of) {
    for (size_t i = 0; i < list.size() && i < room; ++i) ids[i] = id_of(list[i]);
    return static_cast<uint32_t>(list.size());
  };
  const auto itself = [](ValueId id) { return id; };
  switch (whose) {
    case TENON_GRAPH_INPUTS:
      return write(graph.inputs, itself);
    case TENON_GRAPH_LEAVES:
      return write(graph.leaves, [](const Leaf& leaf) { return leaf.value; });
    case TENON_GRAPH_RESULTS:
      return write(graph.results, itself);
    default:
      return 0;
  }
}

tenon_status fail_reading(tenon_err* err) {
  return tenon::fail(err, TENON_FAILED_PRECONDITION,
                     "editor: expected a pass, which may change its program, got program_read");
}
tenon_status insert_no_call(tenon_graph_editor*, uint32_t, const tenon_op*,
                            const tenon_graph_operand*, uint32_t, uint32_t*, tenon_err* err) {
  return fail_reading(err);
}
tenon_status insert_no_constant(tenon_graph_editor*, tenon_tensor*, uint32_t*, tenon_err* err) {
  return fail_reading(err);
}
tenon_status replace_nothing(tenon_graph_editor*, uint32_t, uint32_t, tenon_err* err) {
  return fail_reading(err);
}
tenon_status remove_nothing(tenon_graph_editor*, uint32_t, tenon_err* err) {
  return fail_reading(err);
}

}  // namespace

const tenon_graph_editor_api kReader = {
    .struct_size = sizeof(tenon_graph_editor_api),
    .reserved = 0,
    .steps = steps,
    .step = step,
    .operand = operand,
    .result = result,
    .value = value,
    .insert_call = insert_no_call,
    .insert_constant = insert_no_constant,
    .replace = replace_nothing,
    .remove = remove_nothing,
    .ids = ids,
};

const tenon_graph_editor_api kEditor = {
    .struct_size = sizeof(tenon_graph_editor_api),
    .reserved = 0,
    .steps = steps,
    .step = step,
    .operand = operand,
    .result = result,
    .value = value,
    .insert_call = insert_call,
    .insert_constant = insert_constant,
    .replace = replace,
    .remove = remove,
    .ids = ids,
};

}  // namespace tenon::graph
