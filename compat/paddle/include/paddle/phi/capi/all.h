// SPDX-License-Identifier: Apache-2.0
// Everything that kernels of a C-API device plugin need.
#pragma once

#include <paddle/phi/capi/include/kernel_registry.h>
#include <paddle/phi/capi/include/wrappers.h>
