// SPDX-License-Identifier: Apache-2.0
// CPU kernels that follow from scalar expressions. What they include and how they are built is said
// in plugins/cpu/kernels/elementwise/elementwise.hpp and reduce/reduction.hpp.
#pragma once

#include <string>
#include <vector>

#include "expression/scalar.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

// The C++ type of the elements of a dtype; nullptr for reduced floats, which have no loops of their
// own.
const char* cpu_element_type(int dtype);
// The reduced floats that registers can be converted from and to (simd/low_precision.hpp), and their C++
// types.
DtypeMask low_precision_dtypes();
const char* low_precision_type(int dtype);
// Whether registers of halves know every step of an expression.
bool is_low_precision_arithmetic(const ScalarValue& value);
// The dtypes that loops are made for: reduced floats run through float32's.
DtypeMask cpu_loop_dtypes(DtypeMask mask);

// "kernels.name = loops[dtype]" for each column: `loop(dtype)` or nullptr. `reduced`: the
// reduced floats that have loops of their own.
template <class Function>
std::string cpu_loop_table(DtypeMask mask, Function loop, DtypeMask reduced = 0) {
  std::string text;
  DtypeMask loops = cpu_loop_dtypes(mask) | reduced;
  for (size_t id = 0; id < dtypes().size(); ++id)
    text +=
        std::string(id ? ", " : "") + ((loops >> id & 1) ? loop(static_cast<int>(id)) : "nullptr");
  return text;
}

// The whole file for one operator file; `kind` is "elementwise" or "reduction". Kernels: the
// operator, the C++ that defines kernel_<op>.
struct CpuKernel {
  const Operator* op;
  std::string definition;
};
std::string cpu_file(const std::string& file, const std::string& kind,
                     const std::vector<CpuKernel>& kernels);

// Of operators with several results, for elementwise/several_results.hpp.
std::vector<CpuKernel> cpu_several_results_kernels(const Package& package, const std::string& file);
std::vector<CpuKernel> cpu_elementwise_kernels(const Package& package, const std::string& file);
std::vector<CpuKernel> cpu_reduction_kernels(const Package& package, const std::string& file);

}  // namespace tenon::codegen
