// SPDX-License-Identifier: Apache-2.0
// Types of the C functions that kernels call: opaque objects of the host, lists, and kinds of
// arguments.
#pragma once

#include <paddle/phi/backends/device_ext.h>

#include <cstddef>
#include <cstdint>

typedef C_DataType PD_DataType;
typedef C_DataLayout PD_DataLayout;
typedef C_Status PD_Status;

// Objects of the host. A kernel gets them for the time of its call; those that it makes
// (PD_NewTensor) it deletes.
typedef struct PD_DeviceContext PD_DeviceContext;
typedef struct PD_KernelContext PD_KernelContext;
typedef struct PD_Tensor PD_Tensor;
typedef struct PD_Scalar PD_Scalar;
typedef struct PD_IntArray PD_IntArray;
typedef struct PD_Place PD_Place;
typedef struct PD_KernelKey PD_KernelKey;
typedef struct PD_Kernel PD_Kernel;
typedef struct PD_KernelArgsDef PD_KernelArgsDef;
typedef struct PD_TensorArgDef PD_TensorArgDef;

typedef struct {
  size_t size;
  void* data;
} PD_List;

typedef enum {
  PD_ARG_TYPE_CONTEXT = 0,
  PD_ARG_TYPE_TENSOR = 1,
  PD_ARG_TYPE_BOOL = 2,
  PD_ARG_TYPE_BFLOAT16 = 3,
  PD_ARG_TYPE_FLOAT16 = 4,
  PD_ARG_TYPE_FLOAT32 = 5,
  PD_ARG_TYPE_FLOAT64 = 6,
  PD_ARG_TYPE_INT32 = 7,
  PD_ARG_TYPE_INT64 = 8,
  PD_ARG_TYPE_STRING = 9,
  PD_ARG_TYPE_SCALAR = 10,
  PD_ARG_TYPE_INT_ARRAY = 11,
  PD_ARG_TYPE_DATA_TYPE = 12,
  PD_ARG_TYPE_DATA_LAYOUT = 13,
  PD_ARG_TYPE_PLACE = 14,
  PD_ARG_TYPE_LIST_BOOL = 15,
  PD_ARG_TYPE_LIST_INT32 = 16,
  PD_ARG_TYPE_LIST_INT64 = 17,
  PD_ARG_TYPE_LIST_BFLOAT16 = 18,
  PD_ARG_TYPE_LIST_FLOAT16 = 19,
  PD_ARG_TYPE_LIST_FLOAT32 = 20,
  PD_ARG_TYPE_LIST_FLOAT64 = 21,
  PD_ARG_TYPE_LIST_STRING = 22,
  PD_ARG_TYPE_LIST_SCALAR = 23,
  PD_ARG_TYPE_OPTIONAL_TENSOR = 24,
  PD_ARG_TYPE_LIST_TENSOR = 25,
  PD_ARG_TYPE_OPTIONAL_MULTI_TENSOR = 26
} PD_KernelArgumentType;
