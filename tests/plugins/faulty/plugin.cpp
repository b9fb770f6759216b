// SPDX-License-Identifier: Apache-2.0
// The plugin "faulty": TENON_TEST_FAULT says what is wrong with it this time.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "parts.hpp"

const tenon_host* host;

namespace {

Parts parts;

const tenon_plugin* fail(tenon_err* err, tenon_status code, const char* text) {
  host->fail(err, code, 0, text, std::strlen(text));
  return nullptr;
}

}  // namespace

extern "C" TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t, uint32_t,
                                                               const tenon_host* table,
                                                               tenon_err* err) {
  host = table;
  const char* fault = std::getenv("TENON_TEST_FAULT");
  if (!fault) fault = "none";
  auto is = [&](const char* name) { return std::strcmp(fault, name) == 0; };
  if (is("query_epoch")) return fail(err, TENON_UNSUPPORTED, "this plugin speaks ABI epoch 2 only");
  if (is("query_fails")) return fail(err, TENON_UNAVAILABLE, "the licence server does not answer");
  if (is("query_silent")) return nullptr;
  if (is("query_loads_itself"))
    return host->plugin_load(std::getenv("TENON_TEST_SELF"), err) == TENON_OK ? &parts.plugin
                                                                              : nullptr;
  if (is("query_crashes")) {
    std::fputs("the faulty plugin gives up\n", stderr);
    std::abort();
  }
  if (is("query_hangs"))
    for (;;) ::pause();
  if (is("query_throws")) throw std::runtime_error("query blew up");
  if (is("query_throws_number")) throw 42;
  make_sound(parts);
  if (!make_faulty(parts, fault))
    return fail(err, TENON_INTERNAL, "TENON_TEST_FAULT names no fault");
  return &parts.plugin;
}
