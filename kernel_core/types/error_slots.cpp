// SPDX-License-Identifier: Apache-2.0
// The error sink as plugins see it.
#include <new>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/types/status.hpp"

namespace tenon::core::slots {

void fail(tenon_err* err, tenon_status code, int64_t vendor_code, const char* text,
          uint64_t bytes) {
  if (!err || err->code != TENON_OK) return;
  // A plugin that reports success as a failure is still reporting a failure.
  err->code = code == TENON_OK ? TENON_INTERNAL : code;
  err->vendor_code = vendor_code;
  err->text.assign(text ? text : "", text ? bytes : 0);
  if (vendor_code != 0) err->text += " (vendor code " + std::to_string(vendor_code) + ")";
}

void err_context(tenon_err* err, const char* text, uint64_t bytes) {
  if (err && text) core::add_context(err, "%.*s", static_cast<int>(bytes), text);
}

tenon_err* err_create() { return new (std::nothrow) tenon_err; }
void err_destroy(tenon_err* err) { delete err; }
tenon_status err_code(const tenon_err* err) { return err ? err->code : TENON_OK; }
const char* err_text(const tenon_err* err) { return err ? err->text.c_str() : ""; }

void err_clear(tenon_err* err) {
  if (!err || err->code == TENON_OK) return;
  err->code = TENON_OK;
  err->vendor_code = 0;
  err->text.clear();
}

}  // namespace tenon::core::slots
