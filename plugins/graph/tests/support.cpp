// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <algorithm>
#include <cstdio>

namespace tenon::test {
namespace {

std::vector<tenon_tensor*> handles(const std::vector<Tensor>& tensors) {
  std::vector<tenon_tensor*> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor.get());
  return result;
}

}  // namespace

Tensor tensor(std::vector<int64_t> shape, std::vector<float> values) {
  ErrorSink err;
  tenon_tensor* out;
  err.check(host->tensor_create(host->device_host(), TENON_DTYPE_F32,
                                static_cast<int32_t>(shape.size()), shape.data(), &out, err));
  std::copy(values.begin(), values.end(), static_cast<float*>(out->data));
  return Tensor::adopt(out);
}

std::vector<float> values(const Tensor& tensor) {
  const Tensor dense = call("clone", {boxed(tensor.get())});
  auto* data = static_cast<const float*>(dense->data);
  return {data, data + dense->numel};
}

Tensor call(const char* name, std::vector<tenon_value> args) {
  ErrorSink err;
  tenon_value out = kNoValue;
  err.check(host->op_call(host->op_find(name), args.data(), static_cast<uint32_t>(args.size()),
                          &out, 1, err));
  return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
}

void call_into(const Tensor& out, const char* name, std::vector<tenon_value> args) {
  ErrorSink err;
  tenon_value result = boxed(out.get());
  err.check(host->op_call(host->op_find(name), args.data(), static_cast<uint32_t>(args.size()),
                          &result, 1, err));
}

Program record(const std::vector<Tensor>& inputs,
               const std::function<std::vector<Tensor>()>& function) {
  const auto given = handles(inputs);
  ErrorSink err;
  tenon_graph_recording* recording;
  err.check(graph->record_begin(given.data(), static_cast<uint32_t>(given.size()), nullptr,
                                &recording, err));
  std::vector<Tensor> results;
  try {
    results = function();
  } catch (...) {
    graph->record_abandon(recording);
    throw;
  }
  const auto made = handles(results);
  tenon_graph_program* program;
  err.check(
      graph->record_end(recording, made.data(), static_cast<uint32_t>(made.size()), &program, err));
  return Program(program);
}

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs) {
  const auto given = handles(inputs);
  std::vector<tenon_tensor*> results(graph->program_results(program.get()));
  ErrorSink err;
  err.check(graph->program_run(program.get(), given.data(), static_cast<uint32_t>(given.size()),
                               results.data(), static_cast<uint32_t>(results.size()), err));
  std::vector<Tensor> owned;
  for (tenon_tensor* result : results) owned.push_back(Tensor::adopt(result));
  return owned;
}

std::string text_of(const Program& program) {
  std::string text;
  graph->program_print(
      program.get(),
      [](void* user, const char* piece, uint64_t bytes) {
        static_cast<std::string*>(user)->append(piece, bytes);
      },
      &text);
  return text;
}

Program parse(const std::string& text) {
  ErrorSink err;
  tenon_graph_program* program;
  err.check(graph->program_parse(text.data(), text.size(), &program, err));
  return Program(program);
}

Program bind(const Program& program, const std::vector<Tensor>& leaves) {
  const auto given = handles(leaves);
  ErrorSink err;
  tenon_graph_program* bound;
  err.check(graph->program_bind(program.get(), given.data(), nullptr, &bound, err));
  return Program(bound);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
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
  tenon::test::graph = static_cast<const tenon_graph_service_api*>(
      tenon::host->service_find(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION));
  tenon::test::autograd = static_cast<const tenon_autograd_api*>(
      tenon::host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  if (!tenon::test::graph || !tenon::test::autograd) return 1;
  return RUN_ALL_TESTS();
}
