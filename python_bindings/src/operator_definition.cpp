// SPDX-License-Identifier: Apache-2.0
#include "operator_definition.hpp"

#include <memory>
#include <unordered_map>

#include "operator_type.hpp"

namespace tenon::python {

const Schema& schema_of(const std::string& text) {
  static auto* known = new std::unordered_map<std::string, std::unique_ptr<Schema>>;
  auto parsed = std::make_unique<Schema>(text);
  return *known->try_emplace(parsed->canonical(), std::move(parsed)).first->second;
}

bool attach_table(tenon_plugin& table, const std::string& origin) {
  ErrorSink err;
  PyThreadState* thread = PyEval_SaveThread();
  tenon_status status = host->plugin_attach(&table, origin.c_str(), err);
  PyEval_RestoreThread(thread);
  return status == TENON_OK || raise(status, err);
}

bool detach_table(const std::string& plugin_name) {
  ErrorSink err;
  PyThreadState* thread = PyEval_SaveThread();
  tenon_status status = host->plugin_unload(plugin_name.c_str(), err);
  PyEval_RestoreThread(thread);
  if (status == TENON_NOT_FOUND) host->err_clear(err);  // it was unloaded elsewhere
  return status == TENON_OK || status == TENON_NOT_FOUND || raise(status, err);
}

tenon_plugin empty_table(const std::string& plugin_name) {
  tenon_plugin table = {};
  table.struct_size = sizeof table;
  table.revision = TENON_ABI_REVISION;
  table.name = plugin_name.c_str();
  table.version = "1";
  table.vendor = "defined in Python";
  table.op_size = sizeof(tenon_op_def);
  table.kernel_size = sizeof(tenon_kernel_def);
  table.stop = [](tenon_err*) -> tenon_status { return TENON_OK; };
  return table;
}

std::string next_plugin_name(std::string_view operator_name) {
  static uint64_t count = 0;
  return "python_" + std::string(operator_name.substr(operator_name.rfind(':') + 1)) + "_" +
         std::to_string(++count);
}

namespace {

bool takes_tensors(const Schema& schema) {
  for (const schema::Param& param : schema.params())
    if (param.holds_tensors()) return true;
  return false;
}

void fill(OperatorDefinition& self) {
  self.def = {};
  self.schema.fill(self.def);
  self.def.doc = self.doc.c_str();
  self.def.origin = self.origin.c_str();
  self.def.traits = self.traits.empty() ? nullptr : self.traits.c_str();
  self.def.dtype_mask = (uint64_t{1} << TENON_DTYPE_COUNT) - 1;
  self.def.self = &self;
  self.def.compute = takes_tensors(self.schema) ? TENON_COMPUTE_FIRST : TENON_COMPUTE_OUTPUT;
  self.def.infer_self = self.is_composite() && !self.is_elementwise ? nullptr : infer_in_python;
  self.def.decompose_self = self.body ? decompose_in_python : nullptr;
  if (self.is_composite()) self.def.flags |= TENON_OP_COMPOSITE;
  if (!self.is_differentiable) self.def.flags |= TENON_OP_NO_GRAD;
  if (!self.is_composite()) self.def.flags |= self.amp_flags;
  if (self.is_elementwise) {
    self.def.flags |= TENON_OP_ELEMENTWISE;
    self.params.assign(self.def.params, self.def.params + self.def.nparams);
    for (tenon_param_def& param : self.params)
      if (param.kind == TENON_PARAM_TENSOR)
        param.flags |= TENON_PARAM_FLAG_PROMOTE | TENON_PARAM_FLAG_BROADCAST;
    self.def.params = self.params.data();
    self.def.compute = TENON_COMPUTE_PROMOTE;
    if (!self.shape) self.def.shape = TENON_SHAPE_BROADCAST;
  }
  self.table = empty_table(self.plugin_name);
  self.table.ops = &self.def;
  self.table.nops = 1;
}

bool check(const OperatorDefinition& self) {
  const Schema& schema = self.schema;
  if (schema.params().size() > kMaxParameters || schema.results().size() > kMaxResults)
    return raise_error(
        PyExc_ValueError,
        "operator %s: expected at most %u parameters and %u results, got %zu and %zu",
        schema.name().c_str(), kMaxParameters, kMaxResults, schema.params().size(),
        schema.results().size());
  if (schema.name_space() == "tenon")
    return raise_error(
        PyExc_ValueError,
        "operator %s: the namespace tenon is reserved for Tenon's own operators; use "
        "one of your own",
        schema.name().c_str());
  // An equal definition of another plugin would win, and this one would never be called.
  const tenon_op* other = host->op_find(schema.name().c_str());
  if (!other) return true;
  const char* origin = host->op_def(other)->origin;
  return raise_error(
      PyExc_ValueError,
      "operator %s is defined already, at %s; choose another name, or give it a kernel "
      "with tenon.kernel(...)",
      schema.name().c_str(), origin ? origin : "an unknown place");
}

}  // namespace

bool attach(OperatorDefinition& self) {
  if (!ensure_loaded() || !check(self)) return false;
  self.plugin_name = next_plugin_name(self.schema.name());
  fill(self);
  if (!attach_table(self.table, self.origin)) return false;
  self.is_attached = true;
  self.op = host->op_find(self.schema.name().c_str());
  calls_of(self.op) = 0;
  return register_gradient(self);
}

bool detach(OperatorDefinition& self) {
  if (!self.is_attached) return true;
  int& calls = calls_of(self.op);
  if (self.running > 0 || calls != 0)
    return raise_error(PyExc_RuntimeError,
                       "operator %s is being called; define it anew once the call is over",
                       self.schema.name().c_str());
  calls = kCallsRefused;  // the GIL is free in between
  bool done = detach_table(self.plugin_name);
  calls = done ? kTakenOut : 0;
  if (done) self.is_attached = false;
  return done;
}

}  // namespace tenon::python
