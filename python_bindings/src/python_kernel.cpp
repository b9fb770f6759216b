// SPDX-License-Identifier: Apache-2.0
#include "python_kernel.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "call.hpp"
#include "convert.hpp"
#include "expected_result.hpp"
#include "operator_type.hpp"

namespace tenon::python {
namespace {

// A kernel's function in the ABI has no place for a `self`, and operators of others have one of
// their own: each kernel that is attached has a function to itself. Guarded by the GIL.
constexpr size_t kSlots = 512;
KernelDefinition* slots[kSlots];

// Tensors as they are, arrays by their memory; numbers and lists have no dtype and are refused.
Tensor take_array(PyObject* item) {
  if (is_tensor(item)) return Tensor::borrow(handle_of(item));
  if (PyObject_CheckBuffer(item)) return tensor_from_buffer(item);  // NumPy's scalars too
  if (PyObject_HasAttrString(item, "__array__") || PyObject_HasAttrString(item, "__dlpack__"))
    return as_tensor(item, kAnyDtype, TENON_DEVICE_NONE);
  return {};
}

bool write_result(const KernelDefinition& kernel, PyObject* item, tenon_tensor* out) {
  const char* name = kernel.schema.name().c_str();
  Tensor result = take_array(item);
  if (!result)
    return raise_otherwise(PyExc_TypeError,
                           "%s: its kernel for %s returned %s; expected a Tensor or an array%s",
                           name, kernel.device.c_str(), type_name(item),
                           kernel.schema.results().size() > 1 ? " for each result" : "");
  ExpectedResult expected = ExpectedResult::like(*out);
  if (!expected.fits(*result.get()))
    return raise_error(PyExc_ValueError, "%s: its kernel for %s returned %s; expected %s", name,
                       kernel.device.c_str(), ExpectedResult::like(*result.get()).text().c_str(),
                       expected.text().c_str());
  ErrorSink err;
  tenon_status status = host->tensor_copy(out, result.get(), err);
  return status == TENON_OK || raise(status, err);
}

bool is_one_of(PyObject* result, tenon_tensor* const* outs, uint32_t nouts) {
  return nouts == 1 && is_tensor(result) && handle_of(result) == outs[0];
}

bool take_results(const KernelDefinition& kernel, PyObject* result, tenon_tensor* const* outs,
                  uint32_t nouts) {
  const char* name = kernel.schema.name().c_str();
  const char* device = kernel.device.c_str();
  if (kernel.function.takes(ArgumentSource::Kind::kOutputs)) {
    if (result == Py_None || is_one_of(result, outs, nouts)) return true;
    return raise_error(
        PyExc_TypeError,
        "%s: its kernel for %s takes `out` and returned %s; expected None: write into "
        "`out` alone",
        name, device, type_name(result));
  }
  if (nouts == 1) return write_result(kernel, result, outs[0]);
  Items items(result);
  if (!items)
    return raise_otherwise(PyExc_TypeError,
                           "%s: its kernel for %s returned %s; expected a list of %u results", name,
                           device, type_name(result), nouts);
  if (items.size() != nouts)
    return raise_error(PyExc_ValueError, "%s: its kernel for %s returned %u results; expected %u",
                       name, device, items.size(), nouts);
  for (uint32_t i = 0; i < nouts; ++i)
    if (!write_result(kernel, items[i], outs[i])) return false;
  return true;
}

tenon_status run_kernel(size_t slot, tenon_ctx* ctx, const tenon_value* args, tenon_value* outs,
                        uint32_t nouts, tenon_err* err) {
  return run_python(err, [&]() -> bool {
    KernelDefinition* kernel = slots[slot];
    const tenon_op_def& op = *host->op_def(host->ctx_op(ctx));
    // Taken out, and perhaps another in its place, since the host chose it; or the operator is
    // another.
    if (!kernel || op.schema_hash != kernel->schema.hash())
      return raise_error(PyExc_LookupError,
                         "%s: its Python kernel was removed, or is for another signature: %s",
                         op.name ? op.name : "an operator",
                         kernel ? kernel->schema.canonical().c_str() : "(none)");
    Running running(kernel->running);
    WithoutRecording off;
    tenon_tensor* results[kMaxResults];
    for (uint32_t i = 0; i < nouts; ++i) results[i] = static_cast<tenon_tensor*>(outs[i].v.p);
    CallFrame frame{.schema = kernel->schema, .args = args, .results = results, .detaches = true};
    PyObject* result = kernel->function.call(frame);
    if (!result) return false;
    bool good = take_results(*kernel, result, results, nouts);
    Py_DECREF(result);
    return good;
  });
}

template <size_t slot>
tenon_status kernel_function(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                             uint32_t nouts, tenon_err* err) {
  return run_kernel(slot, ctx, args, outs, nouts, err);
}

template <size_t... slot>
constexpr std::array<tenon_boxed_fn, sizeof...(slot)> make_functions(std::index_sequence<slot...>) {
  return {kernel_function<slot>...};
}
constexpr auto kFunctions = make_functions(std::make_index_sequence<kSlots>());

// Nothing would ever call a kernel of some operators.
bool check_operator(const KernelDefinition& self) {
  const tenon_op* op = host->op_find(self.schema.name().c_str());
  const tenon_op_def* def = op ? host->op_def(op) : nullptr;
  if (!def) return true;
  const char* why = def->flags & TENON_OP_VIEW ? "a view, which no kernel computes"
                    : def->flags & TENON_OP_DATA_DEPENDENT
                        ? "one whose results' shapes depend on data, which Python kernels cannot be"
                    : def->flags & TENON_OP_COMPOSITE && !def->infer && !def->infer_self
                        ? "made of other operators alone; give them kernels"
                        : nullptr;
  if (!why) return true;
  return raise_error(PyExc_ValueError, "a kernel for %s would never run: the operator is %s",
                     self.schema.name().c_str(), why);
}

}  // namespace

bool attach(KernelDefinition& self) {
  if (!ensure_loaded() || !check_operator(self)) return false;
  auto free_slot = std::find(std::begin(slots), std::end(slots), nullptr);
  if (free_slot == std::end(slots))
    return raise_error(PyExc_RuntimeError,
                       "expected at most %zu Python kernels at a time; remove() some", kSlots);
  auto slot = static_cast<size_t>(free_slot - slots);
  self.plugin_name = next_plugin_name(self.schema.name());
  self.def = {.struct_size = sizeof self.def,
              .traits = (self.is_strided ? TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT : 0u) |
                        (self.is_deterministic ? 0u : TENON_KERNEL_NONDETERMINISTIC),
              .op = self.schema.name().c_str(),
              .device = self.device.c_str(),
              .dtype_mask = self.dtype_mask,
              .score = self.score,
              .boxed = kFunctions[slot]};
  self.table = empty_table(self.plugin_name);
  self.table.kernels = &self.def;
  self.table.nkernels = 1;
  slots[slot] = &self;  // before the host may call it
  if (!attach_table(self.table, self.origin)) {
    slots[slot] = nullptr;
    return false;
  }
  self.slot = static_cast<int>(slot);
  return true;
}

bool detach(KernelDefinition& self) {
  if (self.slot < 0) return true;
  if (self.running > 0)
    return raise_error(PyExc_RuntimeError,
                       "the kernel of %s for %s is being called; remove it once the call is over",
                       self.schema.name().c_str(), self.device.c_str());
  if (!detach_table(self.plugin_name)) return false;
  slots[std::exchange(self.slot, -1)] = nullptr;
  return true;
}

}  // namespace tenon::python
