// SPDX-License-Identifier: Apache-2.0
// Function attributes of device compilers; this header set is for host compilers, where they are
// empty.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define HOSTDEVICE __host__ __device__
#define DEVICE __device__
#define HOST __host__
#else
#define HOSTDEVICE
#define DEVICE
#define HOST
#endif
