// SPDX-License-Identifier: Apache-2.0
// Registration of custom operators: PD_BUILD_OP, PD_BUILD_GRAD_OP, PD_BUILD_DOUBLE_GRAD_OP, at
// global namespace and in this order. What they say is checked when the library is loaded.
#pragma once

#include <paddle/phi/api/ext/custom_function.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace paddle {

// -- names of inputs and outputs; they nest The gradient of `name`.
inline std::string Grad(const std::string& name) { return name + "@GRAD"; }
// A list of tensors.
inline std::string Vec(const std::string& name) { return name + "@VECTOR"; }
// May be none.
inline std::string Optional(const std::string& name) { return name + "@OPTIONAL"; }
// The gradient of an input of the gradient operator, where Grad(name) means something else already.
inline std::string New(const std::string& name) { return name + "@NEW"; }

// One registered operator, as its author described it.
struct OpMetaInfo {
  std::string name;  // "swiglu", "swiglu_grad", "swiglu_grad_grad"
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attrs;  // "name: type"
  std::unordered_map<std::string, std::string> inplace_map;
  KernelFunction kernel;
  InferShapeFunction infer_shape;
  InferDtypeFunction infer_dtype;
  std::string library;  // the file that registered it
};
// The operator, its gradient and its double gradient, by the operator's name.
using OpMetaInfoMap = std::unordered_map<std::string, std::vector<OpMetaInfo>>;

class PADDLE_API OpMetaInfoBuilder {
 public:
  // index 0: the operator, 1: its gradient, 2: its double gradient.
  OpMetaInfoBuilder(std::string name, size_t index);
  OpMetaInfoBuilder& Inputs(std::vector<std::string>&& inputs);
  OpMetaInfoBuilder& Outputs(std::vector<std::string>&& outputs);
  OpMetaInfoBuilder& Attrs(std::vector<std::string>&& attrs);
  OpMetaInfoBuilder& SetInplaceMap(std::unordered_map<std::string, std::string>&& map);
  OpMetaInfoBuilder& SetKernelFn(KernelFunction function);
  OpMetaInfoBuilder& SetInferShapeFn(InferShapeFunction function);
  OpMetaInfoBuilder& SetInferDtypeFn(InferDtypeFunction function);
  // Sharding over several machines is not done here: accepted and not called.
  template <typename Function>
  OpMetaInfoBuilder& SetInferSpmdFn(Function) {
    return *this;
  }

 private:
  OpMetaInfo& info();

  std::string name_;
  size_t index_;
};

}  // namespace paddle

// All that was registered in this process. Do not keep a reference across the loading of a library.
extern "C" PADDLE_API paddle::OpMetaInfoMap& PD_GetOpMetaInfoMap();

#define PD_KERNEL(...) ::paddle::CustomFunction<decltype(&__VA_ARGS__), &__VA_ARGS__>::kernel()
#define PD_INFER_SHAPE(...) \
  ::paddle::CustomFunction<decltype(&__VA_ARGS__), &__VA_ARGS__>::infer_shape()
#define PD_INFER_DTYPE(...) \
  ::paddle::CustomFunction<decltype(&__VA_ARGS__), &__VA_ARGS__>::infer_dtype()
#define PD_INFER_SPMD_RULE(...) &__VA_ARGS__

#define PD_BUILD_OP_(NAME, INDEX)                                                      \
  static_assert(::std::is_same<::PdGlobalNamespace, PdGlobalNamespace>::value,         \
                "PD_BUILD_OP and its like are written at global namespace");           \
  [[maybe_unused]] static ::paddle::OpMetaInfoBuilder pd_op_builder_##INDEX##_##NAME = \
      ::paddle::OpMetaInfoBuilder(#NAME, INDEX)
#define PD_BUILD_OP(NAME) PD_BUILD_OP_(NAME, 0)
#define PD_BUILD_GRAD_OP(NAME) PD_BUILD_OP_(NAME, 1)
#define PD_BUILD_DOUBLE_GRAD_OP(NAME) PD_BUILD_OP_(NAME, 2)
struct PdGlobalNamespace {};
