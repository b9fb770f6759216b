// SPDX-License-Identifier: Apache-2.0
// One fault of registration for each value of FAULT.
#include "paddle/extension.h"

std::vector<paddle::Tensor> Same(const paddle::Tensor& x) { return {x}; }
std::vector<paddle::Tensor> WithNumber(const paddle::Tensor& x, float) { return {x}; }

#if FAULT == 0
PD_BUILD_GRAD_OP(pd_faulty).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Same));
#elif FAULT == 1
PD_BUILD_OP(pd_faulty).Inputs({paddle::Vec("X")}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Same));
#elif FAULT == 2
PD_BUILD_OP(pd_faulty)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"number: int"})
    .SetKernelFn(PD_KERNEL(WithNumber));
#elif FAULT == 3
PD_BUILD_OP(pd_faulty)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"number: half"})
    .SetKernelFn(PD_KERNEL(WithNumber));
#elif FAULT == 4
PD_BUILD_OP(pd_faulty).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Same));
PD_BUILD_GRAD_OP(pd_faulty)
    .Inputs({paddle::Grad("Y")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(Same));
#elif FAULT == 6
PYBIND11_MODULE(mixed, m) { m.def("same", &Same); }
#elif FAULT == 7
PD_BUILD_OP(pd_faulty).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Same));
PD_BUILD_GRAD_OP(pd_faulty)
    .Inputs({paddle::Grad("Out")})
    .Outputs({paddle::Grad("X"), paddle::New("X")})
    .SetKernelFn(PD_KERNEL(Same));
#elif FAULT == 5
std::vector<paddle::Tensor> MissingFunction(const paddle::Tensor& x);
PD_BUILD_OP(pd_faulty).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(MissingFunction));
#else
PD_BUILD_OP(pd_faulty).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(Same));
#endif
