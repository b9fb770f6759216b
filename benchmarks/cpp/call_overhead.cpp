// SPDX-License-Identifier: Apache-2.0
// What a call costs beyond its kernel: `add` on one float32 through op_call, beside the same kernel
// called bare with prepared arguments.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <tenon/tensor.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using tenon::Tensor;

void require(tenon_status status, tenon_err* err) {
  if (status == TENON_OK) return;
  std::fprintf(stderr, "call_overhead: %s\n", tenon::host->err_text(err));
  std::exit(1);
}

struct Setup {
  tenon_err* err;
  const tenon_op* add;
  tenon_device_id cpu;
  const tenon_kernel_def* kernel = nullptr;

  Setup() {
    tenon::attach(tenon_host_get(TENON_ABI_EPOCH));
    err = tenon::host->err_create();
    require(tenon::host->plugin_add_folder(TENON_PLUGIN_DIR, err), err);
    require(tenon::host->plugin_load_default(err), err);
    require(tenon::host->device_find("cpu", &cpu, err), err);
    add = tenon::host->op_find("add");
    // The library is loaded already; asking it again for its table finds the kernel itself.
    void* library = dlopen(TENON_PLUGIN_DIR "/libtenon_cpu.so", RTLD_NOW | RTLD_NOLOAD);
    auto query = reinterpret_cast<tenon_plugin_query_fn>(
        library ? dlsym(library, "tenon_plugin_query") : nullptr);
    const tenon_plugin* plugin =
        query ? query(TENON_ABI_EPOCH, TENON_ABI_EPOCH, tenon::host, err) : nullptr;
    for (uint32_t i = 0; plugin && i < plugin->nkernels; ++i)
      if (std::strcmp(plugin->kernels[i].op, "tenon::add") == 0) kernel = &plugin->kernels[i];
    if (!kernel || !add) {
      std::fprintf(stderr, "call_overhead: no kernel for add in %s\n", TENON_PLUGIN_DIR);
      std::exit(1);
    }
  }

  Tensor tensor(float value, int64_t count = 1) const {
    tenon_tensor* created;
    require(tenon::host->tensor_create(cpu, TENON_DTYPE_F32, 1, &count, &created, err), err);
    for (int64_t i = 0; i < count; ++i) static_cast<float*>(created->data)[i] = value;
    return Tensor::adopt(created);
  }
};

const Setup& setup() {
  static const Setup instance;
  return instance;
}

tenon_value value(const Tensor& tensor) { return {TENON_VALUE_TENSOR, 0, {.p = tensor.get()}}; }

void check(benchmark::State& state, const tenon_tensor* result, float expected) {
  if (*static_cast<const float*>(result->data) != expected) state.SkipWithError("wrong result");
}

void bare_kernel(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(1), y = self.tensor(2), out = self.tensor(0);
  tenon_value args[2] = {value(x), value(y)}, outs[1] = {value(out)};
  for (auto _ : state)
    benchmark::DoNotOptimize(self.kernel->boxed(nullptr, args, 2, outs, 1, self.err));
  check(state, out.get(), 3);
}

void call_new_result(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(1), y = self.tensor(2), last;
  for (auto _ : state) {
    tenon_value args[2] = {value(x), value(y)}, outs[1] = {};
    if (tenon::host->op_call(self.add, args, 2, outs, 1, self.err) != TENON_OK) break;
    tenon::host->tensor_release(static_cast<tenon_tensor*>(outs[0].v.p));
  }
  tenon_value args[2] = {value(x), value(y)}, outs[1] = {};
  require(tenon::host->op_call(self.add, args, 2, outs, 1, self.err), self.err);
  last = Tensor::adopt(static_cast<tenon_tensor*>(outs[0].v.p));
  check(state, last.get(), 3);
}

void call_in_place(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(1), zero = self.tensor(0);
  for (auto _ : state) {
    tenon_value args[2] = {value(x), value(zero)}, outs[1] = {value(x)};
    benchmark::DoNotOptimize(tenon::host->op_call(self.add, args, 2, outs, 1, self.err));
  }
  check(state, x.get(), 1);
}

void call_with_number(benchmark::State& state) {
  const Setup& self = setup();
  Tensor x = self.tensor(1);
  tenon_value number{TENON_VALUE_FLOAT, 0, {.f = 2.0}};
  for (auto _ : state) {
    tenon_value args[2] = {value(x), number}, outs[1] = {};
    if (tenon::host->op_call(self.add, args, 2, outs, 1, self.err) != TENON_OK) break;
    tenon::host->tensor_release(static_cast<tenon_tensor*>(outs[0].v.p));
  }
}

BENCHMARK(bare_kernel);
BENCHMARK(call_new_result);
BENCHMARK(call_in_place);
BENCHMARK(call_with_number);

}  // namespace

BENCHMARK_MAIN();
