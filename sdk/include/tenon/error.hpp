// SPDX-License-Identifier: Apache-2.0
// Failures as exceptions inside a plugin, and as a status with a text at its boundary.
#pragma once

#include <tenon/tensor.hpp>

#include <new>
#include <stdexcept>
#include <string>

namespace tenon {

// A failure with its TENON_ code, which picks the Python exception: TENON_INVALID_ARGUMENT is a
// ValueError. Other exceptions of the C++ library do as well, see guarded().
class Error : public std::runtime_error {
 public:
  Error(tenon_status code, const std::string& text) : std::runtime_error(text), code_(code) {}
  tenon_status code() const { return code_; }

 private:
  tenon_status code_;
};

// An error sink for calls that are made where no caller passed one. What they report is thrown.
class ErrorSink {
 public:
  ErrorSink() : err_(host->err_create()) {
    if (!err_) throw std::bad_alloc();
  }
  ~ErrorSink() { host->err_destroy(err_); }
  ErrorSink(const ErrorSink&) = delete;
  ErrorSink& operator=(const ErrorSink&) = delete;

  operator tenon_err*() const { return err_; }
  void check(tenon_status status) const {
    if (status != TENON_OK) throw Error(status, host->err_text(err_));
  }

 private:
  tenon_err* err_;
};

// Runs f(); what it throws becomes a status and a text. Nothing is thrown across the ABI.
template <class F>
tenon_status guarded(tenon_err* err, F&& f) noexcept {
  try {
    f();
    return TENON_OK;
  } catch (const Error& error) {
    return fail(err, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  } catch (const std::out_of_range& error) {
    return fail(err, TENON_OUT_OF_RANGE, error.what());
  } catch (const std::logic_error& error) {  // invalid_argument, domain_error, length_error
    return fail(err, TENON_INVALID_ARGUMENT, error.what());
  } catch (const std::exception& error) {
    return fail(err, TENON_UNKNOWN, error.what());
  } catch (...) {
    return fail(err, TENON_INTERNAL, "a C++ exception that is no std::exception");
  }
}

}  // namespace tenon
