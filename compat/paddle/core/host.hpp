// SPDX-License-Identifier: Apache-2.0
// What every file of libpaddle.so starts from: the host, and failures that carry a status.
//
// libpaddle.so links libtenon, as the Python bindings do, so that `tenon::host` is set once this
// library is loaded: before any plugin that needs it can be.
#pragma once

#include <paddle/common/export.h>
#include <tenon/tensor.hpp>

#include <exception>
#include <stdexcept>
#include <string>

namespace tenon::paddle {

// A failure of the host or of this library. It is an std::exception because code of plugins lies
// between where it is thrown and where it is caught.
class Error : public std::runtime_error {
 public:
  Error(tenon_status code, const std::string& text) : std::runtime_error(text), code_(code) {}
  tenon_status code() const { return code_; }

 private:
  tenon_status code_;
};

// An error sink of the host for the scope of a few calls.
class ErrorSink {
 public:
  ErrorSink() : err_(host->err_create()) {}
  ~ErrorSink() { host->err_destroy(err_); }
  ErrorSink(const ErrorSink&) = delete;
  ErrorSink& operator=(const ErrorSink&) = delete;

  operator tenon_err*() const { return err_; }
  // Throws what was recorded.
  void check(tenon_status status) const {
    if (status != TENON_OK) throw Error(status, host->err_text(err_));
  }

 private:
  tenon_err* err_;
};

// Run `body`; an exception becomes a status and its text. What stands at every edge of the C ABI.
template <typename Body>
tenon_status guard(tenon_err* err, Body&& body) {
  try {
    body();
    return TENON_OK;
  } catch (const Error& error) {
    return tenon::fail(err, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return tenon::fail(err, TENON_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return tenon::fail(err, TENON_INTERNAL, error.what());
  } catch (...) {
    return tenon::fail(err, TENON_INTERNAL, "an exception that is no std::exception");
  }
}

}  // namespace tenon::paddle
