// SPDX-License-Identifier: Apache-2.0
// The operators that kernels serve, each with the signature that the rows of the kernel table were
// written for. The build compares it with the operator's definition: a kernel that is called by an
// old signature would ignore an argument, or write more than its result holds.
#pragma once

#include <tenon/op_signatures.h>
#include <tenon/schema/words.hpp>

#include <cstdint>
#include <string_view>

namespace tenon::paddle {

struct Operator {
  const char* name;            // "tenon::sum"
  std::string_view signature;  // "(Tensor x, int[]? axis=none, bool keepdim=false) -> Tensor"

  // Position of the parameter called `wanted`; -1 if there is none.
  constexpr int find(std::string_view wanted) const {
    int index = 0;
    for (size_t at = 1; at < signature.size() && signature[at - 1] != ')'; ++index) {
      const size_t end = end_of_parameter(at);
      std::string_view text = signature.substr(at, end - at);
      text = text.substr(0, text.find('='));
      text = text.substr(text.rfind(' ') + 1);
      if (text == wanted) return index;
      if (text == "*") --index;  // a mark, not a parameter
      at = end + 1;
    }
    return wanted.empty() ? index : -1;
  }
  constexpr int parameter_count() const { return find(""); }

 private:
  // The comma or the parenthesis that ends the parameter that begins at `at`.
  constexpr size_t end_of_parameter(size_t at) const {
    bool is_quoted = false;
    for (int depth = 0; at < signature.size(); ++at) {
      const char c = signature[at];
      if (c == '\'') is_quoted = !is_quoted;
      if (is_quoted) continue;
      if (c == '[') ++depth;
      if (c == ']') --depth;
      if (depth == 0 && (c == ',' || c == ')')) break;
    }
    return at;
  }
};

#define TENON_PADDLE_OPERATOR(NAME, SIGNATURE)                                               \
  inline constexpr Operator op_##NAME{"tenon::" #NAME, SIGNATURE};                           \
  static_assert(schema::fnv1a("tenon::" #NAME SIGNATURE) == TENON_HASH_##NAME,               \
                "the rows of tenon::" #NAME                                                  \
                " in kernel_table.cpp were written for "                                     \
                "tenon::" #NAME SIGNATURE                                                    \
                "; the operator's definition has another signature today. Compare each row " \
                "with it, then correct the signature here")

TENON_PADDLE_OPERATOR(abs, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(add, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(cast, "(Tensor x, dtype dtype) -> Tensor");
TENON_PADDLE_OPERATOR(ceil, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(clone, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(concat, "(Tensor[] tensors, int axis=0) -> Tensor");
TENON_PADDLE_OPERATOR(cos, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(divide, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(equal, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(exp, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(floor, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(full,
                      "(int[] shape, Scalar value, *, dtype? dtype=none, device? device=none)"
                      " -> Tensor");
TENON_PADDLE_OPERATOR(greater, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(greater_equal, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(less, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(less_equal, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(linear, "(Tensor x, Tensor weight, Tensor? bias=none) -> Tensor");
TENON_PADDLE_OPERATOR(log, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(matmul, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(max, "(Tensor x, int[]? axis=none, bool keepdim=false) -> Tensor");
TENON_PADDLE_OPERATOR(maximum, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(mean, "(Tensor x, int[]? axis=none, bool keepdim=false) -> Tensor");
TENON_PADDLE_OPERATOR(min, "(Tensor x, int[]? axis=none, bool keepdim=false) -> Tensor");
TENON_PADDLE_OPERATOR(minimum, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(multiply, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(not_equal, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(reciprocal, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(relu, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(relu_grad, "(Tensor grad_out, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(rsqrt, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(sgd_update,
                      "(Tensor param, Tensor grad, *, float lr, float weight_decay=0.0)"
                      " -> (Tensor new_param)");
TENON_PADDLE_OPERATOR(sigmoid, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(sigmoid_grad, "(Tensor grad_out, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(sign, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(silu, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(sin, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(softmax, "(Tensor x, int axis=-1) -> Tensor");
TENON_PADDLE_OPERATOR(softmax_cross_entropy,
                      "(Tensor x, Tensor target, int ignore_index=-100, str reduction='mean')"
                      " -> Tensor");
TENON_PADDLE_OPERATOR(softmax_grad, "(Tensor grad_out, Tensor y, int axis=-1) -> Tensor");
TENON_PADDLE_OPERATOR(sort_with_indices,
                      "(Tensor x, int axis=-1, bool descending=false)"
                      " -> (Tensor values, Tensor indices)");
TENON_PADDLE_OPERATOR(sqrt, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(square, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(subtract, "(Tensor x, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(sum, "(Tensor x, int[]? axis=none, bool keepdim=false) -> Tensor");
TENON_PADDLE_OPERATOR(tanh, "(Tensor x) -> Tensor");
TENON_PADDLE_OPERATOR(tanh_grad, "(Tensor grad_out, Tensor y) -> Tensor");
TENON_PADDLE_OPERATOR(uniform,
                      "(int[] shape, float low=0.0, float high=1.0, *, dtype? dtype=none,"
                      " device? device=none) -> Tensor");
#undef TENON_PADDLE_OPERATOR

}  // namespace tenon::paddle
