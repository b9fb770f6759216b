// SPDX-License-Identifier: Apache-2.0
// Passes over programs, in C++: the service "graph" without its pointers.
//
//   void fold(tenon::GraphEditor& program) {
//     for (uint32_t step = 0; step < program.steps(); ++step)
//       if (program.calls(step, "tenon::multiply")) ...
//   }
//   tenon::ErrorSink err;
//   err.check(tenon::add_graph_pass("fold", fold, err));     // in the plugin's start
//
// Functions throw Error. What a pass throws is its failure, and leaves the program as it was.
#pragma once

#include <tenon/services/graph.h>
#include <tenon/error.hpp>

#include <string_view>
#include <vector>

namespace tenon {

class GraphEditor {
 public:
  static constexpr uint32_t kNoStep = ~uint32_t{0};
  // An argument of a call that is inserted: a value of the program, or anything but tensors.
  struct Argument {
    Argument(uint32_t value) : id(value), is_value(true) {}
    Argument(const tenon_value& given) : attribute(given) {}
    uint32_t id = 0;
    bool is_value = false;
    tenon_value attribute = kNoValue;
  };

  GraphEditor(tenon_graph_editor* editor, const tenon_graph_editor_api& api)
      : editor_(editor), api_(api) {}

  uint32_t steps() const { return api_.steps(editor_); }
  tenon_graph_step step(uint32_t step) const {
    tenon_graph_step out = {};
    out.struct_size = sizeof out;
    err_.check(api_.step(editor_, step, &out, err_));
    return out;
  }
  // Is the step a call of that operator ("tenon::add") that makes new results?
  bool calls(uint32_t index, std::string_view op) const {
    const tenon_graph_step found = step(index);
    return found.kind == TENON_GRAPH_STEP_CALL && found.given == 0 && found.name == op;
  }
  tenon_graph_operand operand(uint32_t step, uint32_t index) const {
    tenon_graph_operand out = {};
    err_.check(api_.operand(editor_, step, index, &out, err_));
    return out;
  }
  // The value of a parameter that is given one tensor; false: it is given something else.
  bool tensor(uint32_t step, uint32_t index, uint32_t& id) const {
    const tenon_graph_operand given = operand(step, index);
    if (given.kind != TENON_GRAPH_VALUES || given.count != 1) return false;
    id = given.ids[0];
    return true;
  }
  // The number that a parameter is given; false: it is given something else.
  bool number(uint32_t step, uint32_t index, double& out) const {
    const tenon_value given = operand(step, index).attribute;
    if (given.tag == TENON_VALUE_FLOAT)
      out = given.v.f;
    else if (given.tag == TENON_VALUE_INT)
      out = static_cast<double>(given.v.i);
    else
      return false;
    return true;
  }
  uint32_t result(uint32_t step, uint32_t index = 0) const {
    uint32_t id = 0;
    err_.check(api_.result(editor_, step, index, &id, err_));
    return id;
  }
  tenon_graph_value value(uint32_t id) const {
    tenon_graph_value out = {};
    out.struct_size = sizeof out;
    err_.check(api_.value(editor_, id, &out, err_));
    return out;
  }
  // The step whose result it is; kNoStep: an input, a leaf or a constant.
  uint32_t maker(uint32_t id) const {
    for (uint32_t i = 0; i < steps(); ++i) {
      const tenon_graph_step found = step(i);
      for (uint32_t k = 0; k < found.nresults; ++k)
        if (!(k < 32 && found.given >> k & 1) && result(i, k) == id) return i;
    }
    return kNoStep;
  }

  // A call in front of step `before`. Returns its first result.
  uint32_t insert_call(uint32_t before, const char* op, const std::vector<Argument>& arguments) {
    const tenon_op* found = host->op_find(op);
    if (!found)
      throw Error(TENON_NOT_FOUND, "editor: operator `" + std::string(op) + "` is unknown");
    std::vector<tenon_graph_operand> operands;
    for (const Argument& each : arguments)
      operands.push_back(
          each.is_value ? tenon_graph_operand{TENON_GRAPH_VALUES, 1, &each.id, kNoValue}
                        : tenon_graph_operand{TENON_GRAPH_ATTRIBUTE, 0, nullptr, each.attribute});
    std::vector<uint32_t> ids(host->op_def(found)->nouts);
    err_.check(api_.insert_call(editor_, before, found, operands.data(),
                                static_cast<uint32_t>(operands.size()), ids.data(), err_));
    return ids.at(0);
  }
  uint32_t insert_constant(const Tensor& data) {
    uint32_t id = 0;
    err_.check(api_.insert_constant(editor_, data.get(), &id, err_));
    return id;
  }
  // All that read value `id` read `by`.
  void replace(uint32_t id, uint32_t by) { err_.check(api_.replace(editor_, id, by, err_)); }
  // Results of the step are not read.
  void remove(uint32_t step) { err_.check(api_.remove(editor_, step, err_)); }

 private:
  tenon_graph_editor* editor_;
  const tenon_graph_editor_api& api_;
  ErrorSink err_;
};

using GraphPass = void (*)(GraphEditor&);

// The service, or a failure that says that the plugin graph is not there.
inline tenon_status find_graph_service(const tenon_graph_service_api** out, tenon_err* err) {
  *out = static_cast<const tenon_graph_service_api*>(
      host->service_find(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION));
  if (*out && (*out)->struct_size >= offsetof(tenon_graph_service_api, program_changes))
    return TENON_OK;
  return fail(
      err, TENON_FAILED_PRECONDITION,
      "passes need the plugin graph of this version of Tenon or a later one; load it first");
}

// Makes a pass known, until remove_graph_pass. A plugin whose `stop` removes its passes can be unloaded.
inline tenon_status add_graph_pass(const char* name, GraphPass pass, tenon_err* err) {
  const tenon_graph_service_api* graph = nullptr;
  if (const tenon_status status = find_graph_service(&graph, err); status != TENON_OK)
    return status;
  tenon_graph_pass added = {};
  added.struct_size = sizeof added;
  added.name = name;
  added.user = reinterpret_cast<void*>(pass);
  added.run = [](void* user, tenon_graph_editor* editor, const tenon_graph_editor_api* api,
                 tenon_err* failure) {
    return guarded(failure, [&] {
      GraphEditor program(editor, *api);
      reinterpret_cast<GraphPass>(user)(program);
    });
  };
  return graph->pass_add(&added, err);
}

inline tenon_status remove_graph_pass(const char* name, tenon_err* err) {
  const tenon_graph_service_api* graph = nullptr;
  if (const tenon_status status = find_graph_service(&graph, err); status != TENON_OK)
    return status;
  return graph->pass_remove(name, err);
}

}  // namespace tenon
