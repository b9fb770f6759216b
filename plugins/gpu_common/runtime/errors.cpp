// SPDX-License-Identifier: Apache-2.0
#include "runtime/errors.hpp"

#include <cstdarg>
#include <cstdio>

#include "runtime/vendor.hpp"

namespace gpu {
namespace {

// Room for a compiler's message; longer texts are cut.
struct Text {
  char data[4096];
  int bytes = 0;

  [[gnu::format(printf, 2, 0)]] void append_list(const char* format, va_list args) {
    int room = static_cast<int>(sizeof data) - bytes;
    int wanted = std::vsnprintf(data + bytes, static_cast<size_t>(room), format, args);
    if (wanted > 0) bytes += wanted < room ? wanted : room - 1;
  }
  [[gnu::format(printf, 2, 3)]] void append(const char* format, ...) {
    va_list args;
    va_start(args, format);
    append_list(format, args);
    va_end(args);
  }
};

tenon_status code_of(Error error) {
  if (is_capture_error(error)) return TENON_FAILED_PRECONDITION;
  switch (error) {
    case error::kOutOfMemory:
      return TENON_OUT_OF_MEMORY;
    case error::kNoDevice:
      return TENON_UNAVAILABLE;
    case error::kInvalidValue:
      return TENON_INVALID_ARGUMENT;
    default:
      return TENON_INTERNAL;
  }
}

}  // namespace

tenon_status fail(tenon_err* err, tenon_status code, const char* format, ...) {
  Text text;
  text.append("%s: ", vendor::kKind);
  va_list args;
  va_start(args, format);
  text.append_list(format, args);
  va_end(args);
  host->fail(err, code, 0, text.data, static_cast<uint64_t>(text.bytes));
  return code;
}

tenon_status fail_driver(tenon_err* err, Error error, const char* format, ...) {
  Text text;
  text.append("%s: ", vendor::kKind);
  va_list args;
  va_start(args, format);
  text.append_list(format, args);
  va_end(args);
  text.append(": %s (%d), %s", vendor::error_name(error), error, vendor::error_text(error));
  host->fail(err, code_of(error), error, text.data, static_cast<uint64_t>(text.bytes));
  return code_of(error);
}

tenon_status fail_host_memory(tenon_err* err) {
  return fail(err, TENON_OUT_OF_MEMORY, "the host's memory is exhausted");
}

bool is_sticky(Error error) {
  switch (error) {
    case error::kIllegalAddress:
    case 702:  // launch timeout
    case 710:  // an assertion in a kernel
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case error::kLaunchFailed:
      return true;
    default:
      return false;
  }
}

bool is_capture_error(Error error) {
  return error >= error::kFirstCaptureError && error <= error::kLastCaptureError;
}

void log(int level, const char* format, ...) {
  Text text;
  text.append("%s: ", vendor::kKind);
  va_list args;
  va_start(args, format);
  text.append_list(format, args);
  va_end(args);
  host->log(level, text.data, static_cast<uint64_t>(text.bytes));
}

}  // namespace gpu
