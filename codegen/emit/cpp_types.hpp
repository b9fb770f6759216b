// SPDX-License-Identifier: Apache-2.0
// How parameters look in the C++ operator API, in C signatures and in tables.
#pragma once

#include <string>

#include "model/operator.hpp"

namespace tenon::codegen {

// Parameter of a function in tenon::ops: "std::optional<int64_t> axis".
std::string cpp_param_type(const Param& param);
// Default as C++: "int64_t{-1}", "{}".
std::string cpp_default(const Param& param);
// Expression of type tenon_value for a variable of cpp_param_type.
std::string cpp_boxed(const Param& param);

// C: "const tenon_tensor* x", "const int64_t* axis, uint64_t axis_count".
std::string c_param(const Param& param);
std::string c_param_types(const Param& param);  // the same without names
// C: the arguments that stand for args[index].
std::string c_unboxed(const Param& param, size_t index);
std::string c_word(ParamKind kind);  // "ints": in names of generated and support functions
// One word for parameters that unbox alike.
std::string c_shape(const Param& param);

// Kernels of packages, in terms of tenon/kernel.hpp: the type of a parameter that is no Tensor, how
// one is read from a boxed argument, the type of a dtype's elements.
std::string kernel_param(const Param& param);
std::string kernel_argument(const Param& param, const std::string& boxed);
std::string kernel_element_type(int dtype);

// Initialiser of a tenon_value for a default, in a static table. Lists refer to a static array
// called `array`, whose elements are default_elements().
std::string value_initialiser(const Param& param, const std::string& array);
std::string default_elements(const Param& param);  // "1, 1"; empty if the default is no list
std::string cpp_number(double number);

// `tenon_fn_add`, `TENON_HASH_add`.
std::string c_prefix(const Operator& op);  // "tenon"

}  // namespace tenon::codegen
