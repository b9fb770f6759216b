// SPDX-License-Identifier: Apache-2.0
// Every kernel compiled for one instruction set.
#include "table.hpp"

#include <vector>

// Kernels that gain nothing from wider registers are compiled once and serve every instruction set.
namespace tenon::cpu::TENON_CPU_PLAINEST_ISA {
#define TENON_CPU_TABLE(name) KernelList name();
#include "shared_tables.inc"
#undef TENON_CPU_TABLE
}  // namespace tenon::cpu::TENON_CPU_PLAINEST_ISA

namespace tenon::cpu::TENON_CPU_ISA {

// Generated kernels, then those in kernels/, each list in the file of its name.
#define TENON_CPU_TABLE(name) KernelList name();
#include <cpu/tables.inc>
#include "tables.inc"
#undef TENON_CPU_TABLE

void append_kernels(std::vector<tenon_kernel_def>& kernels) {
  const auto append = [&](KernelList list) {
    kernels.insert(kernels.end(), list.begin(), list.end());
  };
#define TENON_CPU_TABLE(name) append(name());
#include <cpu/tables.inc>
#include "tables.inc"
#undef TENON_CPU_TABLE
#define TENON_CPU_TABLE(name) append(TENON_CPU_PLAINEST_ISA::name());
#include "shared_tables.inc"
#undef TENON_CPU_TABLE
}

}  // namespace tenon::cpu::TENON_CPU_ISA
