// SPDX-License-Identifier: Apache-2.0
// Programs that Python exported (tenon.export), run by a C++ program without Python:
//
//   tenon::start();
//   const tenon::Program program = tenon::Program::load("model.tenon");
//   const tenon::Tensor x = tenon::make_tensor<float>({1, 784}, pixels);
//   const std::vector<float> scores = tenon::elements<float>(program({x})[0]);
//
// Link Tenon::runtime. Everything here throws Error. A program may be called by several threads at once.
#pragma once

#include <tenon/services/graph.h>
#include <tenon/error.hpp>
#include <tenon/kernel.hpp>
#include <tenon/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace tenon {

// Attaches to libtenon and loads the plugins that it finds: those of its package, and those of TENON_PLUGIN_PATH.
// Before anything else, once; more calls do nothing.
inline void start() {
  static const bool is_attached = attach(tenon_host_get(TENON_ABI_EPOCH));
  if (!is_attached)
    throw Error(TENON_UNSUPPORTED,
                "libtenon speaks another epoch of the ABI than these headers; "
                "build against the installation that runs");
  const ErrorSink err;
  err.check(host->plugin_load_default(err));
}

// A dense tensor in the host's memory, with a copy of `elements`, which are as many as the shape has.
template <class T>
Tensor make_tensor(const std::vector<int64_t>& shape, const std::vector<T>& elements) {
  static_assert(dtype_of<T> >= 0, "no tensor holds this type; integers: int64_t, ...");
  static_assert(!std::is_same_v<T, bool>,
                "std::vector<bool> holds no bytes; use tenon_tensor's data");
  const ErrorSink err;
  tenon_tensor* made;
  err.check(host->tensor_create(host->device_host(), dtype_of<T>,
                                static_cast<int32_t>(shape.size()), shape.data(), &made, err));
  Tensor tensor = Tensor::adopt(made);
  if (static_cast<size_t>(made->numel) != elements.size())
    throw Error(TENON_INVALID_ARGUMENT, "make_tensor: expected " + std::to_string(made->numel) +
                                            " elements for the shape, got " +
                                            std::to_string(elements.size()));
  if (!elements.empty()) std::memcpy(made->data, elements.data(), elements.size() * sizeof(T));
  return tensor;
}

// The same elements on another device ("cuda:0"), dense.
inline Tensor to_device(const Tensor& tensor, tenon_device_id device) {
  const ErrorSink err;
  tenon_tensor* made;
  err.check(host->tensor_create(device, tensor->dtype, tensor->ndim, tensor->shape, &made, err));
  Tensor moved = Tensor::adopt(made);
  err.check(host->tensor_copy(made, tensor.get(), err));
  return moved;
}
inline Tensor to_device(const Tensor& tensor, const std::string& device) {
  const ErrorSink err;
  tenon_device_id id;
  err.check(host->device_find(device.c_str(), &id, err));
  return to_device(tensor, id);
}

// The elements in row-major order, from any device and layout.
template <class T>
std::vector<T> elements(const Tensor& tensor) {
  static_assert(dtype_of<T> >= 0, "no tensor holds this type; integers: int64_t, ...");
  if (tensor->dtype != dtype_of<T>)
    throw Error(TENON_INVALID_ARGUMENT, std::string("elements: expected a tensor of ") +
                                            host->dtype_name(dtype_of<T>) + ", got " +
                                            host->dtype_name(tensor->dtype));
  const Tensor dense = to_device(tensor, host->device_host());
  const T* data = static_cast<const T*>(dense->data);
  return std::vector<T>(data, data + dense->numel);
}

inline std::vector<int64_t> shape_of(const Tensor& tensor) {
  return std::vector<int64_t>(tensor->shape, tensor->shape + tensor->ndim);
}

class Program {
 public:
  // A file that tenon.jit.Program.save wrote. Weights are mapped: the file stays as it is while the program lives.
  // A file that is not what it claims to be is an Error; no code of it runs.
  static Program load(const std::string& path) {
    const tenon_graph_service_api& api = service();
    const ErrorSink err;
    tenon_graph_program* program;
    err.check(api.program_load(path.c_str(), &program, err));
    return Program(program);
  }

  // Runs it: tensors of the shapes (but for sizes that were left open), dtypes and devices that it was exported
  // with. Arguments that were no tensors are part of the program; results are the tensors in those of the
  // function, in order.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const {
    std::vector<tenon_tensor*> given;
    for (const Tensor& input : inputs) given.push_back(input.get());
    std::vector<tenon_tensor*> made(results());
    const ErrorSink err;
    err.check(service().program_run(handle_.get(), given.data(),
                                    static_cast<uint32_t>(given.size()), made.data(),
                                    static_cast<uint32_t>(made.size()), err));
    std::vector<Tensor> owned;
    for (tenon_tensor* result : made) owned.push_back(Tensor::adopt(result));
    return owned;
  }

  // "freeze,fold,...": those of tenon_graph_service_api.program_optimize.
  Program optimized(const std::string& passes) const {
    const ErrorSink err;
    tenon_graph_program* changed;
    err.check(service().program_optimize(handle_.get(), passes.c_str(), &changed, err));
    return Program(changed);
  }

  uint32_t inputs() const { return service().program_inputs(handle_.get()); }
  uint32_t results() const { return service().program_results(handle_.get()); }
  // The text form: what it computes, a line for each step.
  std::string text() const {
    std::string text;
    service().program_print(
        handle_.get(),
        [](void* user, const char* piece, uint64_t bytes) {
          static_cast<std::string*>(user)->append(piece, bytes);
        },
        &text);
    return text;
  }
  tenon_graph_program* handle() const { return handle_.get(); }

 private:
  struct Release {
    void operator()(tenon_graph_program* program) const { service().program_release(program); }
  };
  explicit Program(tenon_graph_program* owned) : handle_(owned) {}

  static const tenon_graph_service_api& service() {
    static const auto* api = static_cast<const tenon_graph_service_api*>(
        host->service_find(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION));
    if (!api)
      throw Error(TENON_UNAVAILABLE,
                  "programs need the plugin `graph`, which was not loaded; call "
                  "tenon::start(), or name its folder in TENON_PLUGIN_PATH");
    return *api;
  }

  std::unique_ptr<tenon_graph_program, Release> handle_;
};

}  // namespace tenon
