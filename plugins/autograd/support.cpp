// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <cstdarg>
#include <cstdio>

namespace tenon::autograd {

tenon_status fail(tenon_err* err, tenon_status code, const char* format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return tenon::fail(err, code, text);
}

tenon_status fail_memory(tenon_err* err) {
  return tenon::fail(err, TENON_OUT_OF_MEMORY,
                     "autograd: host memory is exhausted; free some and retry");
}

void add_context(tenon_err* err, const char* format, ...) {
  char text[256];
  va_list list;
  va_start(list, format);
  int length = std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (length > 0) host->err_context(err, text, std::string_view(text).size());
}

const char* short_name(const char* name) {
  constexpr std::string_view kOwn = "tenon::";
  return std::string_view(name).starts_with(kOwn) ? name + kOwn.size() : name;
}

std::string shape_text(int32_t ndim, const int64_t* shape) {
  std::string text(1, '(');
  for (int32_t axis = 0; axis < ndim; ++axis) {
    if (axis) text += ", ";
    text += std::to_string(shape[axis]);
  }
  text += ndim == 1 ? ",)" : ")";
  return text;
}

}  // namespace tenon::autograd
