// SPDX-License-Identifier: Apache-2.0
// The host of this library, and how a failure is reported to it: a status code is returned, and a
// text is written to the `tenon_err*` that the caller passed. A text says what was expected, what
// was got and how to fix it.
#pragma once

#include <tenon/abi.h>
#include <tenon/try.h>
#include <tenon/text.hpp>

#include <cstdarg>
#include <string_view>

namespace tenon {

// The host of this library or program. Set once, by TENON_PLUGIN (plugin.hpp) or tenon::attach().
// Hidden visibility gives every plugin its own copy.
inline const tenon_host* host = nullptr;

// For programs that link libtenon. Returns false if the library does not speak this epoch.
inline bool attach(const tenon_host* table) {
  host = table;
  return table != nullptr;
}

// Records a failure and returns its code.
inline tenon_status fail(tenon_err* err, tenon_status code, std::string_view text) {
  host->fail(err, code, 0, text.data(), text.size());
  return code;
}

// Likewise, with a printf format.
[[gnu::format(printf, 3, 4)]] [[gnu::cold]] inline tenon_status fail_format(tenon_err* err,
                                                                            tenon_status code,
                                                                            const char* format,
                                                                            ...) {
  TextBuffer text;
  va_list arguments;
  va_start(arguments, format);
  text.append_list(format, arguments);
  va_end(arguments);
  return fail(err, code, text.text());
}

// An allocation of host memory failed: the std::bad_alloc of a plugin ends here.
[[gnu::cold]] inline tenon_status fail_host_memory(tenon_err* err) {
  return fail(err, TENON_OUT_OF_MEMORY, "out of host memory");
}

// Puts "context > " in front of the text of a failure that was recorded.
[[gnu::format(printf, 2, 3)]] [[gnu::cold]] inline void add_context(tenon_err* err,
                                                                    const char* format, ...) {
  TextBuffer text;
  va_list arguments;
  va_start(arguments, format);
  text.append_list(format, arguments);
  va_end(arguments);
  host->err_context(err, text.text().data(), text.text().size());
}

}  // namespace tenon
