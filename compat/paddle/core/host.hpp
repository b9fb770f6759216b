// SPDX-License-Identifier: Apache-2.0
// What every file of libpaddle.so starts from: the host, and failures that carry a status.
//
// libpaddle.so links libtenon, as the Python bindings do, so that `tenon::host` is set once this
// library is loaded: before any plugin that needs it can be.
#pragma once

#include <paddle/common/export.h>
#include <tenon/error.hpp>

#include <string>

namespace tenon::paddle {

// A failure is a std::exception because code of plugins lies between where it is thrown and where
// it is caught.
using tenon::Error;
using tenon::ErrorSink;

}  // namespace tenon::paddle
