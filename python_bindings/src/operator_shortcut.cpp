// SPDX-License-Identifier: Apache-2.0
#include "operator_shortcut.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "call.hpp"
#include "errors.hpp"
#include "small_int.hpp"
#include "watched.hpp"

namespace tenon::python {
namespace {

constexpr uint32_t kMaxIntegerParameters = 8;

// Is the first parameter the only tensor, whose dtype the result has, whatever it is?
bool is_about_one_tensor(const OperatorObject& self) {
  const tenon_op_def& def = *self.def;
  if (def.compute != TENON_COMPUTE_FIRST || ~def.dtype_mask << (64 - TENON_DTYPE_COUNT) != 0 ||
      self.parameter_count == 0)
    return false;
  for (uint32_t i = 1; i < self.parameter_count; ++i)
    if (self.parameters[i].kind <= TENON_PARAM_TENSORS) return false;
  return true;
}

// The view that the shape rule describes. op_call says what is wrong with others.
inline Answer view_by_rule(const tenon_op_def& def, const tenon_value* values) {
  auto* base = static_cast<tenon_tensor*>(values[0].v.p);
  tenon_meta meta;
  tenon_tensor* view;
  if (is_watched(base) || def.infer(values, def.nparams, &meta, 1, nullptr) != TENON_OK ||
      meta.kind != TENON_META_VIEW || meta.view_of != 0 ||
      host->tensor_view_of(base, meta.dtype, meta.ndim, meta.shape, meta.strides, meta.offset,
                           &view, nullptr) != TENON_OK)
    return std::nullopt;
  return wrap(view);
}

// The items of a list parameter: one number or tuple, or `count` numbers.
inline bool box_integers(PyObject* const* objects, Py_ssize_t count, int64_t* room,
                         tenon_value& value) {
  if (count == 1 && PyTuple_CheckExact(*objects)) {
    count = PyTuple_GET_SIZE(*objects);
    objects = reinterpret_cast<PyTupleObject*>(*objects)->ob_item;
  }
  if (count > TENON_MAX_NDIM) return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!small_int(objects[i], room[i])) return false;
  value = {TENON_VALUE_INTS, static_cast<uint32_t>(count), {.p = room}};
  return true;
}

// The error of a part names the part: the caller called the whole, and reads that name first.
[[gnu::cold]] void name_whole(const tenon_op_def& def, tenon_err* err) {
  std::string_view name = def.name, own = "tenon::";
  if (name.starts_with(own)) name.remove_prefix(own.size());
  std::string prefix = "[" + std::string(name) + "]";
  if (!std::string_view(host->err_text(err)).starts_with(prefix))
    host->err_context(err, prefix.data(), prefix.size());
}

// What the parts of a composite give, which call operators themselves.
inline Answer run_parts(const tenon_op_def& def, const tenon_value* values, int64_t work) {
  if (work >= kReleaseGilElements) return std::nullopt;
  ErrorSink err;
  tenon_value value = {};
  tenon_status status = def.decompose(nullptr, values, def.nparams, &value, 1, err);
  auto* tensor = value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
  if (status == TENON_OK) [[likely]]
    return wrap(tensor);
  host->tensor_release(tensor);
  name_whole(def, err);
  return raise_call(status, &def, values, def.nparams, err);
}

}  // namespace

bool takes_integers(const OperatorObject& self) {
  auto is_integer = [](const Parameter& parameter) {
    return parameter.kind == TENON_PARAM_INT || parameter.kind == TENON_PARAM_INTS;
  };
  const Parameter* parameters = self.parameters;
  return self.shortcut != Shortcut::kNone && !self.sizes_by_shape && self.positional_count > 0 &&
         self.parameter_count <= kMaxIntegerParameters &&
         (parameters[0].kind == TENON_PARAM_TENSOR || is_integer(parameters[0])) &&
         std::all_of(parameters + 1, parameters + self.positional_count, is_integer);
}

Shortcut shortcut_of(const OperatorObject& self) {
  const tenon_op_def& def = *self.def;
  if (self.form != CallForm::kFunction || def.nouts != 1 || self.returns_list)
    return Shortcut::kNone;
  bool is_composite = def.flags & TENON_OP_COMPOSITE;
  bool may_view = def.infer && (is_composite || def.flags & TENON_OP_VIEW);
  if (may_view && !(def.flags & TENON_OP_NO_GRAD) && is_about_one_tensor(self))
    return Shortcut::kViewRule;
  // With a shape rule a device may have one kernel for the whole.
  bool has_rule = def.infer || def.infer_self;
  return is_composite && def.decompose && !has_rule ? Shortcut::kParts : Shortcut::kNone;
}

Making making_of(const OperatorObject& self) {
  std::string_view name = self.def->name;
  if (self.shortcut != Shortcut::kParts || !self.takes_integers) return Making::kNone;
  return name == "tenon::empty"   ? Making::kEmpty
         : name == "tenon::zeros" ? Making::kZeros
                                  : Making::kNone;
}

Answer call_with_integers(const OperatorObject& self, PyObject* tensor, PyObject* const* integers,
                          Py_ssize_t count) try {
  tenon_value values[kMaxIntegerParameters], *value = values;
  int64_t room[kMaxIntegerParameters][TENON_MAX_NDIM], work = 0;
  const Parameter *parameter = self.parameters, *end = parameter + self.parameter_count;
  Py_ssize_t last = self.positional_count - 1;
  if (tensor) {
    if (!is_exact_tensor(tensor)) return std::nullopt;
    *value++ = {TENON_VALUE_TENSOR, 0, {.p = handle_of(tensor)}};
    work = handle_of(tensor)->numel;
    ++parameter, --last;
  }
  Py_ssize_t more = count - 1 - last;
  if (more > 0) {  // they belong to the last list, too
    if (!self.gathers) return std::nullopt;
    count -= more;
  }
  for (Py_ssize_t i = 0; i < count; ++i, ++parameter, ++value) {
    int64_t number;
    if (parameter->kind == TENON_PARAM_INT) {
      if (!small_int(integers[i], number)) return std::nullopt;
      *value = {TENON_VALUE_INT, 0, {.i = number}};
    } else {
      Py_ssize_t items = more > 0 && i == last ? more + 1 : 1;
      if (!box_integers(integers + i, items, room[i], *value)) return std::nullopt;
    }
  }
  if (self.required >> (parameter - self.parameters)) return std::nullopt;
  while (parameter != end) *value++ = parameter++->default_value;
  return self.shortcut == Shortcut::kViewRule ? view_by_rule(*self.def, values)
                                              : run_parts(*self.def, values, work);
} catch (...) {
  return std::nullopt;  // op_call says whose fault that is
}

Answer take_shortcut(const OperatorObject& self, const ParsedCall& call) try {
  if (self.shortcut == Shortcut::kParts) return run_parts(*self.def, call.values, call.arena.work);
  bool has_base = call.values[0].tag == TENON_VALUE_TENSOR;
  return has_base ? view_by_rule(*self.def, call.values) : std::nullopt;
} catch (...) {
  return std::nullopt;  // op_call says whose fault that is
}

}  // namespace tenon::python
