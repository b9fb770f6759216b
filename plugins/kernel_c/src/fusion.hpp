// SPDX-License-Identifier: Apache-2.0
// The service "fusion" (tenon/services/fusion.h), and the operators that run what it prepares.
#pragma once

#include <tenon/services/fusion.h>

#include <span>

#include "expressions.hpp"

namespace tenon::kernel_c {

KernelList generated_kernels();

std::span<const tenon_op_def> fusion_ops();
KernelList fusion_kernels();
tenon_status offer_fusion(const tenon_host*, tenon_err*);

}  // namespace tenon::kernel_c
