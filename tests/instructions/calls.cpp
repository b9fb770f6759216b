// SPDX-License-Identifier: Apache-2.0
// Calls through the host table on tensors of one element, to be counted instruction by instruction:
// first with the plugins of the build tree, then with ten plugins and a thousand operators more.
#include <tenon/services/autograd.h>
#include <tenon/schema.hpp>
#include <tenon/tensor.hpp>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "counting.h"

namespace {

using tenon::host;
using tenon::Tensor;

constexpr int kCalls = 64;
tenon_err* err;

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "calls: %s: %s\n", what, host->err_text(err));
  std::exit(1);
}

Tensor tensor(std::vector<int64_t> shape) {
  tenon_tensor* created = nullptr;
  tenon_status status =
      host->tensor_create(host->device_host(), TENON_DTYPE_F32, static_cast<int32_t>(shape.size()),
                          shape.data(), &created, err);
  require(status == TENON_OK, "tensor_create");
  for (int64_t i = 0; i < created->numel; ++i) static_cast<float*>(created->data)[i] = 1;
  return Tensor::adopt(created);
}

tenon_value value(const Tensor& tensor) { return {TENON_VALUE_TENSOR, 0, {.p = tensor.get()}}; }
tenon_value value(const std::vector<int64_t>& list) {
  return {TENON_VALUE_INTS,
          static_cast<uint32_t>(list.size()),
          {.p = const_cast<int64_t*>(list.data())}};
}

// One operator call: arguments boxed anew, the result released.
struct Call {
  Call(const tenon_op* op_in, std::initializer_list<tenon_value> args_in) : op(op_in) {
    for (const tenon_value& arg : args_in) args[nargs++] = arg;
  }
  Call(const char* name, std::initializer_list<tenon_value> args_in)
      : Call(host->op_find(name), args_in) {
    require(op, name);
  }
  Tensor operator()() const {
    tenon_value boxed[4], out{};
    for (uint32_t i = 0; i < nargs; ++i) boxed[i] = args[i];
    require(host->op_call(op, boxed, nargs, &out, 1, err) == TENON_OK, "op_call");
    return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
  }
  const tenon_op* op;
  tenon_value args[4];
  uint32_t nargs = 0;
};

// Twice, since a count that differs from time to time can be held to no budget.
template <class Body>
void count(const std::string& name, Body body) {
  for (int i = 0; i < 4 * kCalls; ++i) body();
  for (const std::string& time : {name + " 1", name + " 2"}) {
    count_begin();
    for (int i = 0; i < kCalls; ++i) body();
    count_end(time.c_str());
  }
}

void count_all(const std::string& prefix) {
  auto* autograd = static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  require(autograd, "service autograd");
  Tensor x = tensor({1}), y = tensor({1}), w = tensor({1}), m = tensor({2, 2});
  require(autograd->set_requires_grad(w.get(), 1, err) == TENON_OK, "set_requires_grad");
  const std::vector<int64_t> zero = {0}, one = {1}, ones = {1, 1};
  const tenon_value number = {TENON_VALUE_FLOAT, 0, {.f = 2.0}};

  Call add("add", {value(x), value(y)}), recorded("add", {value(w), value(y)});
  count(prefix + "add", add);
  count(prefix + "add to a number", Call("add", {value(x), number}));
  count(prefix + "add in place", [&] {
    tenon_value args[2] = {value(x), value(y)}, out = value(x);
    require(host->op_call(add.op, args, 2, &out, 1, err) == TENON_OK, "add in place");
  });
  count(prefix + "relu", Call("relu", {value(x)}));
  count(prefix + "sum", Call("sum", {value(x)}));
  count(prefix + "matmul", Call("matmul", {value(m), value(m)}));
  count(prefix + "slice", Call("slice", {value(x), value(zero), value(zero), value(one)}));
  count(prefix + "reshape", Call("reshape", {value(x), value(ones)}));
  count(prefix + "transpose", Call("transpose", {value(m)}));
  count(prefix + "zeros", Call("zeros", {value(one)}));
  count(prefix + "add, recorded", recorded);
  const tenon_op* multiply = Call("multiply", {}).op;
  count(prefix + "10 products, forward and backward", [&] {
    Tensor z = w;
    for (int i = 0; i < 10; ++i) z = Call(multiply, {value(z), value(w)})();
    tenon_tensor* outputs[1] = {z.get()};
    require(autograd->backward(outputs, nullptr, 1, 0, err) == TENON_OK, "backward");
  });
}

// A plugin of a hundred operators, each with a kernel for the CPU.
class Crowd {
 public:
  explicit Crowd(int number) : name_("crowd" + std::to_string(number)) {
    for (int i = 0; i < 100; ++i) {
      schemas_.emplace_back(name_ + "::op" + std::to_string(i) + "(Tensor x, Tensor y) -> Tensor");
      tenon_op_def def = {};
      schemas_.back().fill(def);
      def.shape = TENON_SHAPE_BROADCAST;
      def.dtype_mask = uint64_t{1} << TENON_DTYPE_F32;
      ops_.push_back(def);
      kernels_.push_back({.struct_size = sizeof(tenon_kernel_def),
                          .op = def.name,
                          .device = "cpu",
                          .dtype_mask = def.dtype_mask,
                          .boxed = kernel});
    }
    table_ = {.struct_size = sizeof table_,
              .revision = TENON_ABI_REVISION,
              .name = name_.c_str(),
              .version = "1.0.0",
              .vendor = "Tests",
              .ops = ops_.data(),
              .kernels = kernels_.data(),
              .nops = 100,
              .op_size = sizeof(tenon_op_def),
              .nkernels = 100,
              .kernel_size = sizeof(tenon_kernel_def)};
    require(host->plugin_attach(&table_, "calls.cpp", err) == TENON_OK, "plugin_attach");
  }

 private:
  static tenon_status kernel(tenon_ctx*, const tenon_value*, uint32_t, tenon_value*, uint32_t,
                             tenon_err*) {
    return TENON_OK;
  }
  std::string name_;
  std::deque<tenon::Schema> schemas_;
  std::vector<tenon_op_def> ops_;
  std::vector<tenon_kernel_def> kernels_;
  tenon_plugin table_;
};

}  // namespace

int main() {
  tenon::attach(tenon_host_get(TENON_ABI_EPOCH));
  err = host->err_create();
  require(host->plugin_add_folder(TENON_PLUGIN_DIR, err) == TENON_OK, "plugin_add_folder");
  require(host->plugin_load_default(err) == TENON_OK, "plugin_load_default");
  count("", [] {});  // links what counting itself calls
  count_all("");
  static std::deque<Crowd> crowds;  // what is attached stays valid to the end of the process
  for (int i = 0; i < 10; ++i) crowds.emplace_back(i);
  count_all("in a crowd: ");
}
