// SPDX-License-Identifier: Apache-2.0
// What a program is made of, as Python reads it: its values and steps, without those inside of cond, while and scan.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <tenon/error.hpp>

#include <string>
#include <utility>
#include <vector>

#include "host_call.hpp"
#include "program_type.hpp"

namespace nb = nanobind;

namespace tenon::python {
namespace {

using Ids = std::vector<uint32_t>;

struct Value {
  uint32_t id;
  std::string type;  // "float32[batch, 8] cpu:0"
};
struct Step {
  std::string name;
  Ids operands, results;
  uint32_t given;
};
struct Parts {
  std::vector<tenon_graph_site> sites;
  std::vector<std::string> dimensions;
  std::vector<Value> inputs, leaves;
  std::vector<Step> steps;
  Ids results;
};

// `input`: its number, if it is one; axes that are dimensions have their names in place of the recorded size.
std::string type_text(const Parts& parts, const tenon_graph_value& value, int64_t input) {
  const char* dtype = host->dtype_name(value.dtype);
  const char* kind = host->device_kind_name(TENON_DEVICE_KIND(value.device));
  std::string text = std::string(dtype ? dtype : "?") + "[";
  for (int32_t axis = 0; axis < value.ndim; ++axis) {
    std::string size = std::to_string(value.shape[axis]);
    for (const tenon_graph_site& site : parts.sites)
      if (site.input == input && site.axis == static_cast<uint32_t>(axis))
        size = parts.dimensions[site.dimension];
    text += (axis ? ", " : "") + size;
  }
  return text + "] " + (kind ? kind : "?") + ":" + std::to_string(TENON_DEVICE_INDEX(value.device));
}

class Reader {
 public:
  Reader(const tenon_graph_editor* editor, const tenon_graph_editor_api& api, Parts& parts)
      : editor_(editor), api_(api), parts_(parts) {}

  void run() {
    const Ids inputs = ids(TENON_GRAPH_INPUTS), leaves = ids(TENON_GRAPH_LEAVES);
    for (size_t i = 0; i < inputs.size(); ++i)
      parts_.inputs.push_back(value(inputs[i], static_cast<int64_t>(i)));
    for (uint32_t id : leaves) parts_.leaves.push_back(value(id, -1));
    for (uint32_t i = 0; i < api_.steps(editor_); ++i) parts_.steps.push_back(step(i));
    parts_.results = ids(TENON_GRAPH_RESULTS);
  }

 private:
  Ids ids(int32_t whose) const {
    Ids list(api_.ids(editor_, whose, nullptr, 0));
    api_.ids(editor_, whose, list.data(), static_cast<uint32_t>(list.size()));
    return list;
  }
  Value value(uint32_t id, int64_t input) const {
    tenon_graph_value found = {};
    found.struct_size = sizeof found;
    err_.check(api_.value(editor_, id, &found, err_));
    return {id, type_text(parts_, found, input)};
  }
  Step step(uint32_t index) const {
    tenon_graph_step found = {};
    found.struct_size = sizeof found;
    err_.check(api_.step(editor_, index, &found, err_));
    Step step = {found.name, {}, Ids(found.nresults), found.given};
    for (uint32_t i = 0; i < found.noperands; ++i) {
      tenon_graph_operand operand = {};
      err_.check(api_.operand(editor_, index, i, &operand, err_));
      step.operands.insert(step.operands.end(), operand.ids, operand.ids + operand.count);
    }
    for (uint32_t i = 0; i < found.nresults; ++i)
      err_.check(api_.result(editor_, index, i, &step.results[i], err_));
    return step;
  }

  const tenon_graph_editor* editor_;
  const tenon_graph_editor_api& api_;
  Parts& parts_;
  const tenon::ErrorSink err_;  // throws
};

tenon_status read_parts(void* user, const tenon_graph_editor* editor,
                        const tenon_graph_editor_api* api, tenon_err* err) {
  return guarded(err, [&] { Reader(editor, *api, *static_cast<Parts*>(user)).run(); });
}

nb::list values_of(const std::vector<Value>& values) {
  nb::list list;
  for (const Value& value : values) list.append(nb::make_tuple(value.id, value.type));
  return list;
}

}  // namespace

nb::tuple program_parts(const Program& program) {
  const tenon_graph_service_api& service = graph_service();
  if (service.struct_size <= offsetof(tenon_graph_service_api, program_sites)) {
    raise_error(PyExc_RuntimeError,
                "program: the plugin graph that is loaded is older than this package and does not "
                "tell what programs are made of; load the one that comes with it");
    throw nb::python_error();
  }
  Parts parts;
  ErrorSink err;
  parts.sites.resize(service.program_sites(program.handle(), nullptr, 0));
  service.program_sites(program.handle(), parts.sites.data(),
                        static_cast<uint32_t>(parts.sites.size()));
  for (uint32_t i = 0; i < service.program_dimensions(program.handle()); ++i) {
    tenon_graph_dimension dimension = {};
    dimension.struct_size = sizeof dimension;
    check(service.program_dimension(program.handle(), i, &dimension, err), err);
    parts.dimensions.emplace_back(dimension.name);
  }
  check(service.program_read(program.handle(), read_parts, &parts, err), err);
  nb::list steps;
  for (const Step& step : parts.steps)
    steps.append(nb::make_tuple(step.name, step.operands, step.results, step.given));
  return nb::make_tuple(values_of(parts.inputs), values_of(parts.leaves), steps, parts.results);
}

}  // namespace tenon::python
