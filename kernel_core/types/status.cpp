// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/types/status.hpp"

#include <cxxabi.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>

namespace tenon::core {
namespace {

std::string format_text(const char* format, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  int size = std::vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  if (size < 0) return format;
  std::string text(static_cast<size_t>(size), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

}  // namespace

tenon_status fail(tenon_err* err, tenon_status code, const char* format, ...) {
  if (!err || err->code != TENON_OK) return err ? err->code : code;
  va_list arguments;
  va_start(arguments, format);
  err->code = code;
  err->text = format_text(format, arguments);
  va_end(arguments);
  return code;
}

void add_context(tenon_err* err, const char* format, ...) {
  if (!err) return;
  va_list arguments;
  va_start(arguments, format);
  err->text = format_text(format, arguments) + " > " + err->text;
  va_end(arguments);
}

tenon_status fail_escaped(tenon_err* err, const std::string& what) {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {  // the thread is being ended
    throw;
  } catch (const std::bad_alloc&) {
    return fail(err, TENON_OUT_OF_MEMORY, "%s ran out of host memory", what.c_str());
  } catch (const std::exception& error) {
    return fail(err, TENON_INTERNAL, "a C++ exception escaped from %s: %s", what.c_str(),
                error.what());
  } catch (...) {
    return fail(err, TENON_INTERNAL, "an exception of unknown type escaped from %s", what.c_str());
  }
}

tenon_status fail_host_memory(tenon_err* err) {
  return fail(err, TENON_OUT_OF_MEMORY, "out of host memory");
}

}  // namespace tenon::core
