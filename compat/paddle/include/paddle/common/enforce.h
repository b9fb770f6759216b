// SPDX-License-Identifier: Apache-2.0
// PADDLE_ENFORCE_... and PADDLE_THROW: exceptions of a kind, with what was expected and what was
// found. The last arguments are an error of common/errors.h, or a format with its arguments, or
// nothing. C++14.
#pragma once

#include <paddle/common/errors.h>
#include <paddle/common/export.h>

#include <sstream>
#include <stdexcept>
#include <string>

namespace common {
namespace enforce {

class PADDLE_API EnforceNotMet : public std::runtime_error {
 public:
  EnforceNotMet(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

namespace detail {

inline ErrorSummary summary() { return ErrorSummary(std::string()); }
inline ErrorSummary summary(const ErrorSummary& given) { return given; }
template <typename... Args>
ErrorSummary summary(const char* format, const Args&... args) {
  return ErrorSummary(::common::detail::formatted(format, args...));
}
template <typename... Args>
ErrorSummary summary(const std::string& format, const Args&... args) {
  return ErrorSummary(::common::detail::formatted(format, args...));
}

// What `<<` takes is printed; for other types the source text of the comparison must do.
template <typename T>
auto print(std::ostringstream& out, const T& value, int) -> decltype(out << value, void()) {
  out << value;
}
template <typename T>
void print(std::ostringstream& out, const T&, long) {
  out << "another value";
}

[[noreturn]] inline void fail(const ErrorSummary& summary, const std::string& what,
                              const char* file, int line) {
  std::ostringstream out;
  out << summary.error_message() << (summary.error_message().empty() ? "[" : " [") << what << " at "
      << file << ":" << line << "]";
  throw EnforceNotMet(summary.code(), out.str());
}
template <typename A, typename B>
[[noreturn]] void fail_comparison(const ErrorSummary& summary, const char* expected, const A& a,
                                  const B& b, const char* file, int line) {
  std::ostringstream out;
  out << "expected " << expected << ", got ";
  print(out, a, 0);
  out << " and ";
  print(out, b, 0);
  fail(summary, out.str(), file, line);
}

}  // namespace detail
}  // namespace enforce
}  // namespace common

namespace phi {
namespace enforce {
using ::common::enforce::EnforceNotMet;
}
}  // namespace phi
namespace paddle {
namespace platform {
using ::common::enforce::EnforceNotMet;
}
}  // namespace paddle

#define PADDLE_THROW(...)                                                                    \
  ::common::enforce::detail::fail(::common::enforce::detail::summary(__VA_ARGS__), "thrown", \
                                  __FILE__, __LINE__)
#define PADDLE_ENFORCE(CONDITION, ...)                                                 \
  do {                                                                                 \
    if (!(CONDITION))                                                                  \
      ::common::enforce::detail::fail(::common::enforce::detail::summary(__VA_ARGS__), \
                                      "expected " #CONDITION, __FILE__, __LINE__);     \
  } while (0)
#define PADDLE_ENFORCE_NOT_NULL(POINTER, ...)                                                      \
  do {                                                                                             \
    if ((POINTER) == nullptr)                                                                      \
      ::common::enforce::detail::fail(::common::enforce::detail::summary(__VA_ARGS__),             \
                                      "expected " #POINTER " not to be NULL", __FILE__, __LINE__); \
  } while (0)
#define PD_ENFORCE_COMPARISON(A, OP, B, ...)                                                      \
  do {                                                                                            \
    const auto& pd_enforce_a = (A);                                                               \
    const auto& pd_enforce_b = (B);                                                               \
    if (!(pd_enforce_a OP pd_enforce_b))                                                          \
      ::common::enforce::detail::fail_comparison(::common::enforce::detail::summary(__VA_ARGS__), \
                                                 #A " " #OP " " #B, pd_enforce_a, pd_enforce_b,   \
                                                 __FILE__, __LINE__);                             \
  } while (0)
#define PADDLE_ENFORCE_EQ(A, B, ...) PD_ENFORCE_COMPARISON(A, ==, B, ##__VA_ARGS__)
#define PADDLE_ENFORCE_NE(A, B, ...) PD_ENFORCE_COMPARISON(A, !=, B, ##__VA_ARGS__)
#define PADDLE_ENFORCE_GT(A, B, ...) PD_ENFORCE_COMPARISON(A, >, B, ##__VA_ARGS__)
#define PADDLE_ENFORCE_GE(A, B, ...) PD_ENFORCE_COMPARISON(A, >=, B, ##__VA_ARGS__)
#define PADDLE_ENFORCE_LT(A, B, ...) PD_ENFORCE_COMPARISON(A, <, B, ##__VA_ARGS__)
#define PADDLE_ENFORCE_LE(A, B, ...) PD_ENFORCE_COMPARISON(A, <=, B, ##__VA_ARGS__)
