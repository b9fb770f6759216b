// SPDX-License-Identifier: Apache-2.0
// What differentiation costs beyond kernels: a chain of 10 multiplications, forward and backward.
#include <benchmark/benchmark.h>
#include <tenon/services/autograd.h>
#include <tenon/tensor.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

using tenon::Tensor;
constexpr int kLength = 10;

void require(tenon_status status, tenon_err* err) {
  if (status == TENON_OK) return;
  std::fprintf(stderr, "autograd_chain: %s\n", tenon::host->err_text(err));
  std::exit(1);
}

struct Setup {
  tenon_err* err;
  const tenon_op* multiply;
  const tenon_autograd_api* autograd;

  Setup() {
    tenon::attach(tenon_host_get(TENON_ABI_EPOCH));
    err = tenon::host->err_create();
    require(tenon::host->plugin_add_folder(TENON_PLUGIN_DIR, err), err);
    require(tenon::host->plugin_load_default(err), err);
    multiply = tenon::host->op_find("multiply");
    autograd = static_cast<const tenon_autograd_api*>(
        tenon::host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
    if (!multiply || !autograd) {
      std::fprintf(stderr, "autograd_chain: expected standard_ops, cpu and autograd in %s\n",
                   TENON_PLUGIN_DIR);
      std::exit(1);
    }
  }

  Tensor tensor(int64_t count, bool requires_grad) const {
    tenon_tensor* created;
    require(tenon::host->tensor_create(tenon::host->device_host(), TENON_DTYPE_F32, 1, &count,
                                       &created, err),
            err);
    for (int64_t i = 0; i < count; ++i) static_cast<float*>(created->data)[i] = 1;
    require(autograd->set_requires_grad(created, requires_grad, err), err);
    return Tensor::adopt(created);
  }

  Tensor product(const Tensor& x, const Tensor& y) const {
    tenon_value args[2] = {{TENON_VALUE_TENSOR, 0, {.p = x.get()}},
                           {TENON_VALUE_TENSOR, 0, {.p = y.get()}}};
    tenon_value out{};
    if (tenon::host->op_call(multiply, args, 2, &out, 1, err) != TENON_OK)
      require(TENON_INTERNAL, err);
    return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
  }

  Tensor chain(const Tensor& x) const {
    Tensor y = product(x, x);
    for (int i = 1; i < kLength; ++i) y = product(y, x);
    return y;
  }
};

const Setup& setup() {
  static const Setup instance;
  return instance;
}

void count_operations(benchmark::State& state) {
  state.counters["per_multiplication"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kLength),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void forward_without_gradient(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(state.range(0), false);
  for (auto _ : state) benchmark::DoNotOptimize(self.chain(x).get());
  count_operations(state);
}

void forward_recorded(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(state.range(0), true);
  for (auto _ : state) benchmark::DoNotOptimize(self.chain(x).get());
  count_operations(state);
}

void forward_and_backward(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(state.range(0), true), start = self.tensor(state.range(0), false);
  for (auto _ : state) {
    Tensor y = self.chain(x);
    tenon_tensor *outputs[] = {y.get()}, *grads[] = {start.get()};
    if (self.autograd->backward(outputs, grads, 1, 0, self.err) != TENON_OK)
      state.SkipWithError("backward failed");
    self.autograd->set_grad(x.get(), nullptr, self.err);
  }
  count_operations(state);
}

// x^11 of 1: all gradients are 11.
void gradients_of_gradients(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(state.range(0), true), start = self.tensor(state.range(0), false);
  for (auto _ : state) {
    Tensor y = self.chain(x);
    tenon_tensor *outputs[] = {y.get()}, *grads[] = {start.get()}, *inputs[] = {x.get()}, *first,
                 *second;
    if (self.autograd->gradients(outputs, grads, 1, inputs, 1, &first, TENON_BACKWARD_CREATE_GRAPH,
                                 self.err) != TENON_OK ||
        self.autograd->gradients(&first, grads, 1, inputs, 1, &second, 0, self.err) != TENON_OK) {
      state.SkipWithError("gradients failed");
      break;
    }
    if (static_cast<const float*>(second->data)[0] != 110) state.SkipWithError("wrong result");
    tenon::host->tensor_release(first);
    tenon::host->tensor_release(second);
  }
  count_operations(state);
}

BENCHMARK(forward_without_gradient)->Arg(1)->Arg(1024);
BENCHMARK(forward_recorded)->Arg(1)->Arg(1024);
BENCHMARK(forward_and_backward)->Arg(1)->Arg(1024);
BENCHMARK(gradients_of_gradients)->Arg(1);

}  // namespace

BENCHMARK_MAIN();
