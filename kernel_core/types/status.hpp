// SPDX-License-Identifier: Apache-2.0
// Errors inside the core: a status code returned, text in the sink that the caller passed down.
#pragma once

#include <tenon/try.h>

#include <string>

// The sink. The first failure written wins; err_clear makes it usable again.
struct tenon_err {
  tenon_status code = TENON_OK;
  int64_t vendor_code = 0;
  std::string text;
};

namespace tenon::core {

// Record a failure and return its code. Messages say what was expected, what was got, how to fix
// it. `err` may be NULL.
[[gnu::format(printf, 3, 4)]] [[gnu::cold]] tenon_status fail(tenon_err* err, tenon_status code,
                                                              const char* format, ...);

// Put "context > " in front of a message already recorded.
[[gnu::format(printf, 2, 3)]] [[gnu::cold]] void add_context(tenon_err* err, const char* format,
                                                             ...);

// For a catch (...) around code of a plugin: the exception becomes a failure that names `what` it
// escaped from.
[[gnu::cold]] tenon_status fail_escaped(tenon_err* err, const std::string& what);

// Host memory ran out: every std::bad_alloc in the core ends here.
[[gnu::cold]] tenon_status fail_host_memory(tenon_err* err);

}  // namespace tenon::core
