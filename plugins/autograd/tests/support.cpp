// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <cstdlib>

namespace tenon::test {
namespace {

double element(const tenon_tensor& tensor, int64_t at) {
  switch (tensor.dtype) {
    case TENON_DTYPE_F32:
      return static_cast<const float*>(tensor.data)[at];
    case TENON_DTYPE_F64:
      return static_cast<const double*>(tensor.data)[at];
    case TENON_DTYPE_I64:
      return static_cast<double>(static_cast<const int64_t*>(tensor.data)[at]);
    case TENON_DTYPE_C64:
      return static_cast<const float*>(tensor.data)[2 * at];
    default:
      throw std::runtime_error("values: a dtype that these tests do not read");
  }
}

Tensor make(std::vector<int64_t> shape, std::initializer_list<double> values, int32_t dtype) {
  Error err;
  tenon_tensor* out;
  err.check(host->tensor_create(host->device_host(), dtype, static_cast<int32_t>(shape.size()),
                                shape.data(), &out, err));
  Tensor result = Tensor::adopt(out);
  int64_t at = 0;
  for (double value : values) {
    if (dtype == TENON_DTYPE_F32) static_cast<float*>(out->data)[at++] = static_cast<float>(value);
    if (dtype == TENON_DTYPE_F64) static_cast<double*>(out->data)[at++] = value;
    if (dtype == TENON_DTYPE_I64)
      static_cast<int64_t*>(out->data)[at++] = static_cast<int64_t>(value);
  }
  return result;
}

}  // namespace

Arg dtype(int32_t id) { return tenon_value{TENON_VALUE_DTYPE, 0, {.i = id}}; }

std::vector<Tensor> call_all(const char* name, std::initializer_list<Arg> args) {
  const tenon_op* op = host->op_find(name);
  if (!op) throw std::runtime_error(std::string("no operator ") + name);
  std::vector<tenon_value> values;
  for (const Arg& arg : args) values.push_back(arg.value);
  std::vector<tenon_value> outs(host->op_def(op)->nouts);
  Error err;
  err.check(host->op_call(op, values.data(), static_cast<uint32_t>(values.size()), outs.data(),
                          static_cast<uint32_t>(outs.size()), err));
  std::vector<Tensor> results;
  for (const tenon_value& out : outs)
    results.push_back(Tensor::adopt(static_cast<tenon_tensor*>(out.v.p)));
  return results;
}

Tensor call(const char* op, std::initializer_list<Arg> args) {
  return std::move(call_all(op, args)[0]);
}

void call_into(const Tensor& out, const char* name, std::initializer_list<Arg> args) {
  std::vector<tenon_value> values;
  for (const Arg& arg : args) values.push_back(arg.value);
  tenon_value result = Arg(out).value;
  Error err;
  err.check(host->op_call(host->op_find(name), values.data(), static_cast<uint32_t>(values.size()),
                          &result, 1, err));
}

void call_on(const Tensor& x, const char* name, std::initializer_list<Arg> rest) {
  std::vector<tenon_value> values{Arg(x).value};
  for (const Arg& arg : rest) values.push_back(arg.value);
  tenon_value result = Arg(x).value;
  Error err;
  err.check(host->op_call(host->op_find(name), values.data(), static_cast<uint32_t>(values.size()),
                          &result, 1, err));
}

Tensor operator+(const Tensor& x, const Tensor& y) { return call("add", {x, y}); }
Tensor operator*(const Tensor& x, const Tensor& y) { return call("multiply", {x, y}); }
Tensor sum(const Tensor& x) { return call("sum", {x}); }
Tensor slice(const Tensor& x, int64_t start, int64_t stop) {
  std::vector<int64_t> axis{0}, first{start}, last{stop};
  return call("slice", {x, axis, first, last});
}

Tensor view_of(const Tensor& x, const std::vector<int64_t>& shape,
               const std::vector<int64_t>& strides, int64_t offset) {
  Error err;
  tenon_tensor* view;
  err.check(host->tensor_view_of(x.get(), x->dtype, static_cast<int32_t>(shape.size()),
                                 shape.data(), strides.data(), offset, &view, err));
  return Tensor::adopt(view);
}

Tensor vector(std::initializer_list<double> values, int32_t dtype) {
  return make({static_cast<int64_t>(values.size())}, values, dtype);
}
Tensor matrix(int64_t rows, int64_t columns, std::initializer_list<double> values) {
  return make({rows, columns}, values, TENON_DTYPE_F32);
}
Tensor parameter(std::initializer_list<double> values, int32_t dtype) {
  return require(vector(values, dtype));
}
Tensor require(Tensor tensor) {
  Error err;
  err.check(autograd->set_requires_grad(tensor.get(), 1, err));
  return tensor;
}

std::vector<double> values(tenon_tensor* tensor) {
  if (!tensor) throw std::runtime_error("values: no tensor");
  NoGrad off;
  Tensor dense = tensor->flags & TENON_TENSOR_CONTIGUOUS ? Tensor::borrow(tensor)
                                                         : call("clone", {Tensor::borrow(tensor)});
  std::vector<double> result;
  for (int64_t i = 0; i < dense->numel; ++i) result.push_back(element(*dense.get(), i));
  return result;
}

std::vector<double> grad_values(const Tensor& tensor) {
  tenon_tensor* gradient = grad(tensor);
  return gradient ? values(gradient) : Values{};
}

void backward(const Tensor& output, uint32_t flags, const Tensor& gradient) {
  Error err;
  tenon_tensor *outputs[] = {output.get()}, *grads[] = {gradient.get()};
  err.check(autograd->backward(outputs, grads, 1, flags, err));
}

std::vector<Tensor> gradients(const Tensor& output, const std::vector<Tensor>& inputs,
                              uint32_t flags, const Tensor& gradient) {
  Error err;
  tenon_tensor *outputs[] = {output.get()}, *grads[] = {gradient.get()};
  std::vector<tenon_tensor*> handles, results(inputs.size());
  for (const Tensor& input : inputs) handles.push_back(input.get());
  err.check(autograd->gradients(outputs, grads, 1, handles.data(),
                                static_cast<uint32_t>(handles.size()), results.data(), flags, err));
  std::vector<Tensor> owned;
  for (tenon_tensor* result : results) owned.push_back(Tensor::adopt(result));
  return owned;
}

Tensor detach(const Tensor& tensor) {
  Error err;
  tenon_tensor* out;
  err.check(autograd->detach(tensor.get(), &out, err));
  return Tensor::adopt(out);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

testing::AssertionResult fails_with(const std::function<void()>& action, const std::string& text) {
  std::string found = error_of(action);
  if (found.find(text) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "expected a failure with '" << text << "', got '" << found << "'";
}

Tensor tracked(std::initializer_list<double> values, int& alive) {
  struct Memory {
    int* alive;
    float data[16];
  };
  auto* memory = new Memory{&alive, {}};
  int64_t count = 0;
  for (double value : values) memory->data[count++] = static_cast<float>(value);
  auto drop = [](void* user) {
    auto* owned = static_cast<Memory*>(user);
    --*owned->alive;
    delete owned;
  };
  Error err;
  tenon_tensor* out;
  err.check(host->tensor_wrap(host->device_host(), TENON_DTYPE_F32, 1, &count, nullptr,
                              memory->data, 0, drop, memory, &out, err));
  ++alive;
  return Tensor::adopt(out);
}

Tensor call_with_real_rule(const Tensor& x) {
  static constexpr tenon_grad_rule rule = {
      .struct_size = sizeof(tenon_grad_rule),
      .op = "probe::real_rule",
      .diff_args = 1,
      .backward = [](const tenon_host*, const tenon_value*, uint32_t, tenon_tensor* const*,
                     tenon_tensor* const* grad_outs, uint32_t, uint64_t, tenon_value* grad_args,
                     tenon_err*) -> tenon_status {
        grad_args[0] = {TENON_VALUE_TENSOR, 0, {.p = Tensor::borrow(grad_outs[0]).release()}};
        return TENON_OK;
      }};
  Error err;
  err.check(autograd->rule_register(&rule, err));
  return call("probe::real_rule", {x});
}

}  // namespace tenon::test

// Loads what the tests run on. Paths of the plugins come from the build.
int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  tenon::attach(tenon_host_get(TENON_ABI_EPOCH));
  tenon_err* err = tenon::host->err_create();
  for (const char* path : {TENON_TEST_PLUGINS})
    if (tenon::host->plugin_load(path, err) != TENON_OK) {
      std::fprintf(stderr, "%s\n", tenon::host->err_text(err));
      return 1;
    }
  tenon::host->err_destroy(err);
  tenon::test::autograd = static_cast<const tenon_autograd_api*>(
      tenon::host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  if (!tenon::test::autograd) return 1;
  return RUN_ALL_TESTS();
}
