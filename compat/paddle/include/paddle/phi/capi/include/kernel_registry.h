// SPDX-License-Identifier: Apache-2.0
// PD_BUILD_PHI_KERNEL: registers a kernel template for a list of element types when the plugin is
// loaded.
#pragma once

#include <paddle/phi/capi/include/kernel_call.h>

namespace phi {
namespace capi {

class KernelKey {
 public:
  explicit KernelKey(const PD_KernelKey* raw) : raw_(raw) {}
  ::PD_DataType dtype() const { return PD_KernelKeyGetDataType(raw_); }
  ::PD_DataLayout layout() const { return PD_KernelKeyGetLayout(raw_); }

 private:
  const PD_KernelKey* raw_;
};

class TensorArgDef {
 public:
  explicit TensorArgDef(PD_TensorArgDef* raw) : raw_(raw) {}
  TensorArgDef& SetDataType(::PD_DataType dtype) {
    PD_TensorArgDefSetDataType(raw_, dtype, nullptr);
    return *this;
  }
  TensorArgDef& SetDataLayout(::PD_DataLayout layout) {
    PD_TensorArgDefSetDataLayout(raw_, layout, nullptr);
    return *this;
  }

 private:
  PD_TensorArgDef* raw_;
};

class KernelArgsDef {
 public:
  explicit KernelArgsDef(PD_KernelArgsDef* raw) : raw_(raw) {}
  std::vector<TensorArgDef> input_defs() const {
    return Read(PD_KernelArgsDefGetInputArgDefs(raw_));
  }
  std::vector<TensorArgDef> output_defs() const {
    return Read(PD_KernelArgsDefGetOutputArgDefs(raw_));
  }

 private:
  static std::vector<TensorArgDef> Read(PD_List list) {
    std::vector<TensorArgDef> result;
    for (size_t i = 0; i < list.size; ++i)
      result.emplace_back(static_cast<PD_TensorArgDef**>(list.data)[i]);
    PD_DeletePointerList(list);
    return result;
  }
  PD_KernelArgsDef* raw_;
};

class Kernel {
 public:
  explicit Kernel(PD_Kernel* raw) : raw_(raw) {}
  KernelArgsDef args_def() const { return KernelArgsDef(PD_KernelGetArgsDef(raw_)); }
  TensorArgDef InputAt(size_t index) const { return args_def().input_defs().at(index); }
  TensorArgDef OutputAt(size_t index) const { return args_def().output_defs().at(index); }

 private:
  PD_Kernel* raw_;
};

// Registers Instance<T>::Run for every T. Returns true, for a variable to be initialised with.
template <template <typename> class Instance, typename... Types>
bool RegisterKernels(const char* name, const char* backend, ::PD_DataLayout layout,
                     PD_KernelArgsDefFn args_def) {
  const bool done[] = {[&](auto* instance, ::PD_DataType dtype) {
    using Traits = detail::KernelTraits<typename std::decay<decltype(*instance)>::type::Function>;
    auto in = Traits::Types(detail::kInput), attr = Traits::Types(detail::kAttribute),
         out = Traits::Types(detail::kOutput);
    PD_RegisterPhiKernel(name, backend, dtype, layout, in.size(), in.data(), attr.size(),
                         attr.data(), out.size(), out.data(), args_def,
                         std::decay<decltype(*instance)>::type::Run, nullptr);
    return true;
  }(static_cast<Instance<Types>*>(nullptr), CppTypeToPDType<Types>::Type())...};
  return done[0];
}

}  // namespace capi

using KernelKey = capi::KernelKey;
using Kernel = capi::Kernel;
using KernelArgsDef = capi::KernelArgsDef;
using TensorArgDef = capi::TensorArgDef;

}  // namespace phi

// PD_BUILD_PHI_KERNEL(add, acme, ALL_LAYOUT, acme::AddKernel, float, double) { body }
//
// In the global namespace. The body may describe tensors:
// kernel->OutputAt(1).SetDataType(phi::DataType::INT64); it runs once for each type.
#define PD_BUILD_PHI_KERNEL(NAME, BACKEND, LAYOUT, FUNCTION, ...)                         \
  PHI_CAPI_BUILD_KERNEL(pd_kernel_##NAME##_##BACKEND##_##LAYOUT, #NAME, #BACKEND, LAYOUT, \
                        FUNCTION, __VA_ARGS__)

#define PHI_CAPI_BUILD_KERNEL(ID, NAME, BACKEND, LAYOUT, FUNCTION, ...)                         \
  static void ID##_body(const ::phi::capi::KernelKey& kernel_key, ::phi::capi::Kernel* kernel); \
  namespace {                                                                                   \
  void ID##_args_def(const PD_KernelKey* raw_key, PD_Kernel* raw_kernel) {                      \
    ::phi::capi::Kernel kernel(raw_kernel);                                                     \
    ID##_body(::phi::capi::KernelKey(raw_key), &kernel);                                        \
  }                                                                                             \
  template <typename T>                                                                         \
  struct ID##_instance {                                                                        \
    using Function = decltype(&FUNCTION<T>);                                                    \
    static void Run(PD_KernelContext* call) {                                                   \
      ::phi::capi::detail::KernelTraits<Function>::Call(&FUNCTION<T>, call);                    \
    }                                                                                           \
  };                                                                                            \
  const bool ID##_registered = ::phi::capi::RegisterKernels<ID##_instance, __VA_ARGS__>(        \
      NAME, BACKEND, ::PD_DataLayout::LAYOUT, ID##_args_def);                                   \
  }                                                                                             \
  static void ID##_body(const ::phi::capi::KernelKey& kernel_key __attribute__((unused)),       \
                        ::phi::capi::Kernel* kernel __attribute__((unused)))

#define PD_BUILD_NEW_PHI_KERNEL(...)                                                            \
  static_assert(false,                                                                          \
                "PD_BUILD_NEW_PHI_KERNEL defines an operator without names for its arguments, " \
                "which Tenon does not support; define it in YAML or with PD_BUILD_OP")
