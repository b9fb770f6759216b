// SPDX-License-Identifier: Apache-2.0
// Tensors and calls for tests, in few words. Calls throw on failure: a test that expects one asks
// error_of.
#pragma once

#include <gtest/gtest.h>
#include <tenon/services/autograd.h>
#include <tenon/tensor.hpp>

#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace tenon::test {

inline const tenon_autograd_api* autograd = nullptr;

// One per call that may fail.
class Error {
 public:
  Error() : err_(host->err_create()) {}
  ~Error() { host->err_destroy(err_); }
  Error(const Error&) = delete;
  operator tenon_err*() { return err_; }
  std::string text() const { return host->err_text(err_); }
  void check(tenon_status status) {
    if (status != TENON_OK) throw std::runtime_error(text());
  }

 private:
  tenon_err* err_;
};

// Argument of a call.
struct Arg {
  Arg(const Tensor& tensor) : value{TENON_VALUE_TENSOR, 0, {.p = tensor.get()}} {}
  Arg(double number) : value{TENON_VALUE_FLOAT, 0, {.f = number}} {}
  Arg(int number) : value{TENON_VALUE_INT, 0, {.i = number}} {}
  Arg(bool truth) : value{TENON_VALUE_BOOL, 0, {.i = truth}} {}
  Arg(const std::vector<int64_t>& list)
      : value{TENON_VALUE_INTS,
              static_cast<uint32_t>(list.size()),
              {.p = const_cast<int64_t*>(list.data())}} {}
  Arg(const std::vector<tenon_tensor*>& list)
      : value{TENON_VALUE_TENSORS,
              static_cast<uint32_t>(list.size()),
              {.p = const_cast<tenon_tensor**>(list.data())}} {}
  Arg(const tenon_value& value) : value(value) {}
  tenon_value value;
};
Arg dtype(int32_t id);

std::vector<Tensor> call_all(const char* op, std::initializer_list<Arg> args);
Tensor call(const char* op, std::initializer_list<Arg> args);
void call_into(const Tensor& out, const char* op, std::initializer_list<Arg> args);
// In place: the first argument is the output.
void call_on(const Tensor& x, const char* op, std::initializer_list<Arg> rest);

Tensor operator+(const Tensor& x, const Tensor& y);
Tensor operator*(const Tensor& x, const Tensor& y);
Tensor sum(const Tensor& x);
// x[start:stop] along the first axis: a view.
Tensor slice(const Tensor& x, int64_t start, int64_t stop);

// A view of known shape, made without an operator.
Tensor view_of(const Tensor& x, const std::vector<int64_t>& shape,
               const std::vector<int64_t>& strides, int64_t offset);

Tensor vector(std::initializer_list<double> values, int32_t dtype = TENON_DTYPE_F32);
Tensor matrix(int64_t rows, int64_t columns, std::initializer_list<double> values);
Tensor parameter(std::initializer_list<double> values, int32_t dtype = TENON_DTYPE_F32);
Tensor require(Tensor tensor);
std::vector<double> values(tenon_tensor* tensor);
inline std::vector<double> values(const Tensor& tensor) { return values(tensor.get()); }

inline tenon_tensor* grad(const Tensor& tensor) { return autograd->grad(tensor.get()); }
std::vector<double> grad_values(const Tensor& tensor);
void backward(const Tensor& output, uint32_t flags = 0, const Tensor& gradient = {});
std::vector<Tensor> gradients(const Tensor& output, const std::vector<Tensor>& inputs,
                              uint32_t flags = 0, const Tensor& gradient = {});
Tensor detach(const Tensor& tensor);

class NoGrad {
 public:
  NoGrad() : before_(autograd->set_enabled(0)) {}
  ~NoGrad() { autograd->set_enabled(before_); }

 private:
  int32_t before_;
};

// Text of the failure; empty if there was none.
std::string error_of(const std::function<void()>& action);
testing::AssertionResult fails_with(const std::function<void()>& action, const std::string& text);

// Tensor over memory of its own; `alive` goes down when the memory does.
Tensor tracked(std::initializer_list<double> values, int& alive);

using Values = std::vector<double>;

// probe::real_rule copies, and has a gradient rule that is not for complex numbers.
Tensor call_with_real_rule(const Tensor& x);

}  // namespace tenon::test
