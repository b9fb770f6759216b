// SPDX-License-Identifier: Apache-2.0
// Kinds of errors with their text: phi::errors::InvalidArgument("expected %d, got %s", 1, "two").
// C++14.
#pragma once

#include <sstream>
#include <string>
#include <utility>

namespace common {

enum class ErrorCode {
  LEGACY = 0,
  INVALID_ARGUMENT = 1,
  NOT_FOUND = 2,
  OUT_OF_RANGE = 3,
  ALREADY_EXISTS = 4,
  RESOURCE_EXHAUSTED = 5,
  PRECONDITION_NOT_MET = 6,
  PERMISSION_DENIED = 7,
  EXECUTION_TIMEOUT = 8,
  UNIMPLEMENTED = 9,
  UNAVAILABLE = 10,
  FATAL = 11,
  EXTERNAL = 12,
};

class ErrorSummary {
 public:
  explicit ErrorSummary(std::string text) : text_(std::move(text)) {}
  ErrorSummary(ErrorCode code, std::string text) : code_(code), text_(std::move(text)) {}
  ErrorCode code() const { return code_; }
  const std::string& error_message() const { return text_; }
  const std::string& to_string() const { return text_; }

 private:
  ErrorCode code_ = ErrorCode::LEGACY;
  std::string text_;
};

namespace detail {

// Copies text up to the next conversion, whose letters it passes; NULL: there was none.
inline const char* print_to_conversion(std::ostringstream& out, const char* format) {
  for (; *format; ++format) {
    if (*format != '%') {
      out << *format;
    } else if (format[1] == '%') {
      out << *format++;
    } else {
      ++format;
      while (*format && std::string("-+ #0123456789.*hlLqjzt").find(*format) != std::string::npos)
        ++format;
      return *format ? format + 1 : format;
    }
  }
  return nullptr;
}
inline void print_formatted(std::ostringstream& out, const char* format) {
  while (format && *format) {
    const char* next = print_to_conversion(out, format);
    if (next) out << "%" << next[-1];  // no argument for it: it stays
    format = next;
  }
}
// Each conversion prints its argument as `<<` does, whatever its letter: no type can be the wrong
// one.
template <typename First, typename... Rest>
void print_formatted(std::ostringstream& out, const char* format, const First& first,
                     const Rest&... rest) {
  const char* next = format ? print_to_conversion(out, format) : nullptr;
  if (!next) return;  // more arguments than conversions
  out << first;
  print_formatted(out, next, rest...);
}

template <typename... Args>
std::string formatted(const char* format, const Args&... args) {
  std::ostringstream out;
  print_formatted(out, format, args...);
  return out.str();
}
inline std::string formatted(const std::string& text) { return text; }
template <typename First, typename... Rest>
std::string formatted(const std::string& format, const First& first, const Rest&... rest) {
  return formatted(format.c_str(), first, rest...);
}

}  // namespace detail

namespace errors {

#define PD_ERROR_KIND(NAME, CODE)                                        \
  template <typename... Args>                                            \
  ::common::ErrorSummary NAME(const Args&... args) {                     \
    return ::common::ErrorSummary(::common::ErrorCode::CODE,             \
                                  ::common::detail::formatted(args...)); \
  }
PD_ERROR_KIND(InvalidArgument, INVALID_ARGUMENT)
PD_ERROR_KIND(NotFound, NOT_FOUND)
PD_ERROR_KIND(OutOfRange, OUT_OF_RANGE)
PD_ERROR_KIND(AlreadyExists, ALREADY_EXISTS)
PD_ERROR_KIND(ResourceExhausted, RESOURCE_EXHAUSTED)
PD_ERROR_KIND(PreconditionNotMet, PRECONDITION_NOT_MET)
PD_ERROR_KIND(PermissionDenied, PERMISSION_DENIED)
PD_ERROR_KIND(ExecutionTimeout, EXECUTION_TIMEOUT)
PD_ERROR_KIND(Unimplemented, UNIMPLEMENTED)
PD_ERROR_KIND(Unavailable, UNAVAILABLE)
PD_ERROR_KIND(Fatal, FATAL)
PD_ERROR_KIND(External, EXTERNAL)
#undef PD_ERROR_KIND

}  // namespace errors
}  // namespace common

namespace phi {
namespace errors = ::common::errors;
using ErrorCode = ::common::ErrorCode;
using ErrorSummary = ::common::ErrorSummary;
}  // namespace phi

namespace paddle {
namespace platform {
namespace errors = ::common::errors;
}
}  // namespace paddle
