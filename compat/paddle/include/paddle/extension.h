// SPDX-License-Identifier: Apache-2.0
// Everything that the source of a custom operator includes. C++17.
//
// Written from interface facts to be source-compatible with the header of this name: sources build
// unmodified against libpaddle.so and run as operators of Tenon. What is supported:
// docs/paddle_compat.md.
#pragma once

#include <paddle/common/enforce.h>
#include <paddle/common/exception.h>
#include <paddle/phi/api/ext/dispatch.h>
#include <paddle/phi/api/ext/op_meta_info.h>
#include <paddle/phi/api/include/api.h>
#include <paddle/phi/api/include/context_pool.h>

// Names of the standard library that sources use without including their headers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>

// Modules of Python's own beside the operators. A source that includes pybind11 before has the
// macro.
#ifndef PYBIND11_MODULE
#define PYBIND11_MODULE(NAME, MODULE)                                                \
  static_assert(false,                                                               \
                "PYBIND11_MODULE: Python functions beside custom operators are not " \
                "supported; register the functions with PD_BUILD_OP");               \
  template <typename Module>                                                         \
  [[maybe_unused]] static void pd_pybind_##NAME([[maybe_unused]] Module& MODULE)
#endif
