// SPDX-License-Identifier: Apache-2.0
// Registers a name that operators.cc has.
#include "paddle/extension.h"

std::vector<paddle::Tensor> Same(const paddle::Tensor& x) { return {x}; }

PD_BUILD_OP(pd_tanh).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Same));
