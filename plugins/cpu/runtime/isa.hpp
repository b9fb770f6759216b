// SPDX-License-Identifier: Apache-2.0
// Which of the compiled instruction sets this processor runs, and the kernels compiled for it.
#pragma once

#include "conv/nhwc_conv.hpp"
#include "conv/packed_conv.hpp"
#include "math/register_functions.hpp"
#include "table.hpp"

#include <tenon/abi.h>

#include <vector>

namespace tenon::cpu {

// A set of kernels compiled for one instruction set.
struct Isa {
  const char* name;
  bool (*supported)();
  void (*append_kernels)(std::vector<tenon_kernel_def>& kernels);
  const PackedConvs* packed_convs;
  const NhwcFunctions* nhwc_functions;
  const RegisterFunctions* register_functions;
};

// The best one, or the one that TENON_CPU_ISA (baseline, avx2, avx512, amx) names. NULL, with a
// message in `err`, if that one is unknown, not compiled in, or not supported here.
const Isa* choose_isa(const tenon_host* host, tenon_err* err);

}  // namespace tenon::cpu
