// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace tenon::cpu {

tenon_status fail_format(tenon_err* err, tenon_status code, const char* format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  const int length = std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const size_t bytes = std::min(static_cast<size_t>(std::max(length, 0)), sizeof text - 1);
  return fail(err, code, {text, bytes});
}

}  // namespace tenon::cpu
