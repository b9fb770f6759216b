// SPDX-License-Identifier: Apache-2.0
// CPU kernels that follow from scalar expressions. What they include and how they are built is said
// in plugins/cpu/kernels/elementwise.hpp and reduction.hpp.
#pragma once

#include <string>
#include <vector>

#include "model/operator.hpp"

namespace tenon::codegen {

// The C++ type of the elements of a dtype; nullptr for reduced floats, which have no loops of their
// own.
const char* cpu_element_type(int dtype);
// The dtypes that loops are made for: reduced floats run through float32's.
DtypeMask cpu_loop_dtypes(DtypeMask mask);

// "kernels.name = loops[dtype]" for each column: `loop(dtype)` or nullptr.
template <class Function>
std::string cpu_loop_table(DtypeMask mask, Function loop) {
  std::string text;
  DtypeMask loops = cpu_loop_dtypes(mask);
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

std::vector<CpuKernel> cpu_elementwise_kernels(const Package& package, const std::string& file);
std::vector<CpuKernel> cpu_reduction_kernels(const Package& package, const std::string& file);

}  // namespace tenon::codegen
