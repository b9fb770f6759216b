// SPDX-License-Identifier: Apache-2.0
#include "operator_shortcut.hpp"

#include "call.hpp"
#include "errors.hpp"
#include "watched.hpp"

namespace tenon::python {
namespace {

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

// The view that the shape rule describes.
bool view_by_rule(const tenon_op_def& def, const tenon_value* values, PyObject*& result) {
  auto* base = static_cast<tenon_tensor*>(values[0].v.p);
  if (values[0].tag != TENON_VALUE_TENSOR || is_watched(base)) return false;
  ErrorSink err;
  tenon_meta meta;
  tenon_status status = def.infer(values, def.nparams, &meta, 1, err);
  if (status != TENON_OK) [[unlikely]]
    return result = raise(status, err), true;
  tenon_tensor* view;
  if (meta.kind != TENON_META_VIEW || meta.view_of != 0 ||
      host->tensor_view_of(base, meta.dtype, meta.ndim, meta.shape, meta.strides, meta.offset,
                           &view, nullptr) != TENON_OK)
    return false;
  result = wrap(view);
  return true;
}

// What the parts of a composite give, which call operators themselves.
bool run_parts(const tenon_op_def& def, const ParsedCall& call, PyObject*& result) {
  if (call.arena.work >= kReleaseGilElements) return false;
  ErrorSink err;
  tenon_value value = {};
  tenon_status status = def.decompose(nullptr, call.values, def.nparams, &value, 1, err);
  auto* tensor = value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
  if (status == TENON_OK) [[likely]] {
    result = wrap(tensor);
  } else {
    host->tensor_release(tensor);
    result = raise(status, err);
  }
  return true;
}

}  // namespace

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

bool take_shortcut(const OperatorObject& self, const ParsedCall& call, PyObject*& result) try {
  return self.shortcut == Shortcut::kViewRule ? view_by_rule(*self.def, call.values, result)
                                              : run_parts(*self.def, call, result);
} catch (...) {
  return false;  // op_call says whose fault that is
}

}  // namespace tenon::python
