// SPDX-License-Identifier: Apache-2.0
// The program runs on zeros in a region of mixed precision, and what it calls, casts included, is recorded: at each of
// the sizes that tell a program of many sizes.
#include "cast.hpp"

#include <tenon/error.hpp>

#include <cstring>

#include "graph_service.hpp"
#include "plain_thread.hpp"

namespace tenon::predictor {
namespace {

constexpr const char* kPasses = "freeze,fold,dce,cse,rewrites,copies,views";

std::vector<tenon_tensor*> handles(const std::vector<Tensor>& tensors) {
  std::vector<tenon_tensor*> list;
  for (const Tensor& tensor : tensors) list.push_back(tensor.get());
  return list;
}

Tensor zeros(const Value& value, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> shape = value.shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int32_t dimension = value.dimensions[axis];
    if (dimension == TENON_GRAPH_SIZE_FOLLOWS)
      throw Error(TENON_UNSUPPORTED, "config: `dtype`: axis " + std::to_string(axis) +
                                         " of input '" + value.name +
                                         "' is an expression of sizes; export the program under "
                                         "tenon.amp.autocast");
    if (dimension >= 0) shape[axis] = sizes[static_cast<size_t>(dimension)];
  }
  const ErrorSink err;
  auto create = [&](tenon_device_id device) {
    tenon_tensor* made;
    err.check(host->tensor_create(device, value.dtype, static_cast<int32_t>(shape.size()),
                                  shape.data(), &made, err));
    return Tensor::adopt(made);
  };
  Tensor made = create(host->device_host());
  if (made->numel > 0)
    std::memset(made->data, 0, static_cast<size_t>(made->numel) * host->dtype_size(value.dtype));
  if (value.device == host->device_host()) return made;
  Tensor there = create(value.device);
  err.check(host->tensor_copy(there.get(), made.get(), err));
  return there;
}

Tensor cast(const Tensor& tensor, int32_t dtype) {
  if (tensor->dtype == dtype) return tensor;
  tenon_value arguments[] = {boxed(tensor.get()), boxed_dtype(dtype)}, out = kNoValue;
  const ErrorSink err;
  err.check(host->op_call(host->op_find("tenon::cast"), arguments, 2, &out, 1, err));
  return Tensor::adopt(static_cast<tenon_tensor*>(out.v.p));
}

class Region {
 public:
  Region(const tenon_amp_api& amp, int32_t dtype) : amp_(amp) {
    const tenon_amp_options options = {
        .struct_size = sizeof options, .dtype = dtype, .level = 1, .nmoves = 0, .moves = nullptr};
    const ErrorSink err;
    err.check(amp.push(&options, err));
  }
  ~Region() { amp_.pop(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  const tenon_amp_api& amp_;
};

class Caster {
 public:
  Caster(const tenon_graph_program* program, int32_t dtype)
      : program_(program), signature_(program), dtype_(dtype) {
    amp_ =
        static_cast<const tenon_amp_api*>(host->service_find(TENON_AMP_SERVICE, TENON_AMP_VERSION));
    if (!amp_)
      throw Error(
          TENON_UNAVAILABLE,
          "config: `dtype` needs the plugin `amp`, which was not loaded; name its folder in "
          "TENON_PLUGIN_PATH");
  }

  Program run() const {
    const std::vector<tenon_graph_dimension> dimensions = dimensions_of();
    if (dimensions.empty()) return named(settled({}));
    const auto count = static_cast<uint32_t>(dimensions.size());
    const ErrorSink err;
    uint32_t rows = 0;
    err.check(graph_.program_samples(dimensions.data(), count, nullptr, 0, &rows, err));
    std::vector<int64_t> sizes(size_t{rows} * count);
    err.check(graph_.program_samples(dimensions.data(), count, sizes.data(), rows, &rows, err));
    std::vector<Program> programs;
    std::vector<const tenon_graph_program*> samples;
    for (uint32_t row = 0; row < rows; ++row) {
      const auto begin = sizes.begin() + static_cast<std::ptrdiff_t>(size_t{row} * count);
      programs.push_back(settled({begin, begin + count}));
      samples.push_back(programs.back().get());
    }
    const std::string required = requirements();
    const std::vector<const char*> lines(rows, required.c_str());
    tenon_graph_program* unified;
    err.check(graph_.program_unify(dimensions.data(), count, samples.data(), lines.data(), rows,
                                   &unified, err));
    return named(Program(unified));
  }

 private:
  std::vector<tenon_graph_dimension> dimensions_of() const {
    std::vector<tenon_graph_dimension> list;
    for (const Dimension& each : signature_.dimensions)
      list.push_back({.struct_size = sizeof(tenon_graph_dimension),
                      .reserved = 0,
                      .name = each.name.c_str(),
                      .min = each.min,
                      .max = each.max,
                      .multiple = each.multiple,
                      .recorded = each.recorded});
    return list;
  }

  // What the program asks of its sizes, a line each.
  std::string requirements() const {
    std::string text, required;
    graph_.program_print(program_, append_to_string, &text);
    for (const std::string& line : pieces(text, '\n'))
      if (line.rfind("require ", 0) == 0) required += line.substr(8) + "\n";
    return required;
  }

  std::vector<Tensor> run_program(const std::vector<Tensor>& inputs) const {
    const std::vector<tenon_tensor*> given = handles(inputs);
    std::vector<tenon_tensor*> made(signature_.outputs.size());
    const ErrorSink err;
    err.check(graph_.program_run(program_, given.data(), static_cast<uint32_t>(given.size()),
                                 made.data(), static_cast<uint32_t>(made.size()), err));
    std::vector<Tensor> results;
    for (tenon_tensor* each : made) results.push_back(Tensor::adopt(each));
    return results;
  }

  Program recorded(const std::vector<Tensor>& inputs) const {
    const std::vector<tenon_tensor*> given = handles(inputs);
    const ErrorSink err;
    tenon_graph_recording* recording;
    err.check(graph_.record_begin(given.data(), static_cast<uint32_t>(given.size()), nullptr,
                                  &recording, err));
    std::vector<Tensor> results;
    try {
      {
        const Region region(*amp_, dtype_);
        results = run_program(inputs);
      }
      for (size_t i = 0; i < results.size(); ++i)
        results[i] = cast(results[i], signature_.outputs[i].dtype);
    } catch (...) {
      graph_.record_abandon(recording);
      throw;
    }
    const std::vector<tenon_tensor*> returned = handles(results);
    tenon_graph_program* program;
    err.check(graph_.record_end(recording, returned.data(), static_cast<uint32_t>(returned.size()),
                                &program, err));
    return Program(program);
  }

  // Two recordings tell what the program makes itself from what it is given.
  Program settled(const std::vector<int64_t>& sizes) const {
    std::vector<Tensor> inputs;
    for (const Value& value : signature_.inputs) inputs.push_back(zeros(value, sizes));
    run_program(inputs);  // makes the program of these sizes, whose types a region would change
    const Program first = recorded(inputs), second = recorded(inputs);
    tenon_graph_program* program;
    const ErrorSink err;
    err.check(graph_.program_settle(first.get(), second.get(), &program, err));
    return Program(program);
  }

  Program named(Program program) const {
    std::vector<const char*> inputs, outputs;
    for (const Value& value : signature_.inputs) inputs.push_back(value.name.c_str());
    for (const Value& value : signature_.outputs) outputs.push_back(value.name.c_str());
    const ErrorSink err;
    tenon_graph_program* made;
    err.check(graph_.program_name(program.get(), inputs.data(), outputs.data(), &made, err));
    program.reset(made);
    err.check(graph_.program_optimize(program.get(), kPasses, &made, err));
    return Program(made);
  }

  const tenon_graph_service_api& graph_ = graph_service();
  const tenon_graph_program* program_;
  const Signature signature_;
  const int32_t dtype_;
  const tenon_amp_api* amp_;
};

}  // namespace

Program in_mixed_precision(Program program, int32_t dtype) {
  tenon_graph_effects effects = {};
  effects.struct_size = sizeof effects;
  graph_service().program_effects(program.get(), &effects);
  if (effects.has_control_flow)
    throw Error(TENON_UNSUPPORTED,
                "config: `dtype`: the program has branches or loops, of which this would keep what "
                "zeros take; export it under tenon.amp.autocast");
  const PlainThread plain;
  return Caster(program.get(), dtype).run();
}

}  // namespace tenon::predictor
