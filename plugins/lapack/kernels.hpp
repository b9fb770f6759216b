// SPDX-License-Identifier: Apache-2.0
// The kernels of each file.
#pragma once

#include "batch.hpp"

namespace tenon::lapack {

KernelList cholesky_kernels();
KernelList eigen_kernels();
KernelList exponential_kernels();
KernelList ldl_kernels();
KernelList lstsq_kernels();
KernelList lu_kernels();
KernelList qr_kernels();
KernelList svd_kernels();
KernelList triangular_kernels();

}  // namespace tenon::lapack
