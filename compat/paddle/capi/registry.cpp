// SPDX-License-Identifier: Apache-2.0
// Kernels that static initialisers of plugins register.
#include "capi/objects.hpp"

namespace tenon::paddle {
namespace {

thread_local RegistrationScope* current_scope = nullptr;
thread_local std::string failure;

}  // namespace

RegistrationScope::RegistrationScope() : outer_(current_scope) { current_scope = this; }
RegistrationScope::~RegistrationScope() { current_scope = outer_; }

void keep_failure(const std::exception& error) noexcept {
  if (!failure.empty()) return;
  try {
    failure = error.what();
  } catch (...) {  // out of memory: the status says enough
  }
}

std::string take_failure() { return std::exchange(failure, {}); }

}  // namespace tenon::paddle

using namespace tenon::paddle;

void PD_RegisterPhiKernel(const char* name, const char* backend, PD_DataType dtype,
                          PD_DataLayout layout, size_t nin, PD_KernelArgumentType* in, size_t nattr,
                          PD_KernelArgumentType* attr, size_t nout, PD_KernelArgumentType* out,
                          PD_KernelArgsDefFn args_def, PD_KernelFn fn, void*) {
  // A library that was not loaded as a plugin brings kernels for nothing that runs here.
  if (!current_scope) return;
  capi(nullptr, [&] {
    if (!name || !backend || !fn)
      throw Error(TENON_INVALID_ARGUMENT,
                  "PD_RegisterPhiKernel: expected a name, a backend and a function");
    Registration made{
        name, backend, dtype, layout, {in, in + nin}, {attr, attr + nattr}, {out, out + nout},
        {},   fn};
    PD_Kernel kernel;
    kernel.args.inputs.resize(nin);
    kernel.args.outputs.resize(nout);
    const PD_KernelKey key{dtype, layout};
    if (args_def) args_def(&key, &kernel);
    made.args = std::move(kernel.args);
    current_scope->add(std::move(made));
  });
}

PD_DataType PD_KernelKeyGetDataType(const PD_KernelKey* key) { return key->dtype; }
PD_DataLayout PD_KernelKeyGetLayout(const PD_KernelKey* key) { return key->layout; }
PD_KernelArgsDef* PD_KernelGetArgsDef(PD_Kernel* kernel) { return &kernel->args; }

namespace {

PD_List pointers_to(std::vector<PD_TensorArgDef>& all) {
  auto** pointers = new void*[all.size()];
  for (size_t i = 0; i < all.size(); ++i) pointers[i] = &all[i];
  return {all.size(), pointers};
}

}  // namespace

PD_List PD_KernelArgsDefGetInputArgDefs(PD_KernelArgsDef* args) {
  return pointers_to(args->inputs);
}
PD_List PD_KernelArgsDefGetOutputArgDefs(PD_KernelArgsDef* args) {
  return pointers_to(args->outputs);
}

void PD_TensorArgDefSetDataType(PD_TensorArgDef* def, PD_DataType dtype, PD_Status* status) {
  capi(status, [&] { def->dtype = dtype; });
}
void PD_TensorArgDefSetDataLayout(PD_TensorArgDef* def, PD_DataLayout layout, PD_Status* status) {
  capi(status, [&] { def->layout = layout; });
}
