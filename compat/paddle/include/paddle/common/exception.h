// SPDX-License-Identifier: Apache-2.0
// PD_CHECK and PD_THROW: exceptions whose text is their arguments, one after the other, as `<<`
// prints them.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace paddle {
namespace detail {

inline void print_all(std::ostringstream&) {}
template <typename First, typename... Rest>
void print_all(std::ostringstream& out, const First& first, const Rest&... rest) {
  out << first;
  print_all(out, rest...);
}

template <typename... Args>
[[noreturn]] void throw_text(const char* what, const char* file, int line, const Args&... args) {
  std::ostringstream out;
  print_all(out, args...);
  const bool has_text = !out.str().empty();
  out << (has_text ? " [" : "[") << what << " at " << file << ":" << line << "]";
  throw std::runtime_error(out.str());
}

}  // namespace detail
}  // namespace paddle

#define PD_CHECK(CONDITION, ...)                                                               \
  do {                                                                                         \
    if (!(CONDITION))                                                                          \
      ::paddle::detail::throw_text("expected " #CONDITION, __FILE__, __LINE__, ##__VA_ARGS__); \
  } while (0)

#define PD_THROW(...) ::paddle::detail::throw_text("thrown", __FILE__, __LINE__, ##__VA_ARGS__)
