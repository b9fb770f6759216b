// SPDX-License-Identifier: Apache-2.0
// `subgraph`: steps that run as one. The compiler makes a list: what each step does with which values, and where they
// lie in a workspace that is laid out once. A run is one task of its stream. A real compiler would do more about the list.
#include <tenon/subgraph.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "../kernels/bodies.hpp"
#include "../kernels/numbers.hpp"
#include "device.hpp"
#include "executable.hpp"

namespace reference {
namespace {

using tenon::step_at;

constexpr uint64_t kAlignment = 64;

std::string_view name_of(const tenon_subgraph_step& step) {
  return tenon::host->op_def(step.op)->name;
}

Kind kind_of(std::string_view name) {
  static const std::unordered_map<std::string_view, Kind> known = {
      {"tenon::add", Kind::kAdd},         {"tenon::multiply", Kind::kMultiply},
      {"tenon::maximum", Kind::kMaximum}, {"tenon::exp", Kind::kExp},
      {"tenon::matmul", Kind::kMatmul},   {"tenon::view", Kind::kView},
      {"tenon::clone", Kind::kView},      {"tenon::transpose", Kind::kPermute},
      {"tenon::permute", Kind::kPermute},
  };
  const auto found = known.find(name);
  return found == known.end() ? Kind::kNone : found->second;
}

bool is_elementwise(Kind kind) {
  return kind == Kind::kAdd || kind == Kind::kMultiply || kind == Kind::kMaximum ||
         kind == Kind::kExp;
}

uint32_t operand_count(Kind kind) {
  return kind == Kind::kExp || kind == Kind::kView || kind == Kind::kPermute ? 1 : 2;
}

bool is_number(const tenon_tensor& tensor) { return tensor.flags & TENON_TENSOR_HOST_SCALAR; }

// Does `x` have the shape of `out`, or one that is repeated to it?
bool broadcasts(const tenon_tensor& x, const tenon_tensor& out) {
  if (x.ndim > out.ndim) return false;
  for (int32_t d = 1; d <= x.ndim; ++d)
    if (x.shape[x.ndim - d] != 1 && x.shape[x.ndim - d] != out.shape[out.ndim - d]) return false;
  return true;
}

// What the native kernels do, for operands that are of the result's dtype already.
bool can_run(const tenon_subgraph_step& step) {
  const Kind kind = kind_of(name_of(step));
  if (kind == Kind::kNone || step.nouts != 1 || step.nargs < operand_count(kind)) return false;
  const tenon_tensor& out = *step.outs[0];
  const uint64_t dtypes = kind == Kind::kExp      ? kFloats
                          : kind == Kind::kMatmul ? kFloats | kIntegers
                                                  : kReal;
  if (!(dtypes >> out.dtype & 1)) return false;
  for (uint32_t i = 0; i < operand_count(kind); ++i) {
    if (step.args[i].tag != TENON_VALUE_TENSOR) return false;
    const auto& operand = *static_cast<const tenon_tensor*>(step.args[i].v.p);
    if (is_number(operand) ? !is_elementwise(kind) || !(kReal >> operand.dtype & 1)
                           : operand.dtype != out.dtype)
      return false;
    if (is_elementwise(kind) && !broadcasts(operand, out)) return false;
  }
  return true;
}

tenon_status claim(tenon_device, const tenon_subgraph* offered, uint32_t* parts, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, offered, 0, err);
  for (uint32_t i = 0; i < offered->nsteps; ++i)
    if (can_run(step_at(*offered, i))) parts[i] = 1;  // neighbours run as one
  return TENON_OK;
}

// A number that stands for a tensor, as one element of `dtype`.
std::vector<char> element_of(const tenon_tensor& number, int32_t dtype) {
  std::vector<char> bytes(tenon::host->dtype_size(dtype));
  with_type(number.dtype, [&]<class From>(Type<From>) {
    const auto value = static_cast<Compute<From>>(*static_cast<const From*>(number.data));
    with_type(dtype, [&]<class To>(Type<To>) {
      const To element = To(static_cast<Compute<To>>(value));
      std::memcpy(bytes.data(), &element, sizeof element);
    });
  });
  return bytes;
}

class Compiler {
 public:
  Compiler(const tenon_subgraph& graph, ExecutableProgram& out) : graph_(graph), out_(out) {}

  Result compile() {
    for (uint32_t i = 0; i < graph_.ninputs; ++i)
      known_[graph_.inputs[i]] = graph_.constants[i] ? add_constant(*graph_.constants[i])
                                                     : add(*graph_.inputs[i], {Place::kInput, i});
    for (uint32_t i = 0; i < graph_.nsteps; ++i) {
      const tenon_subgraph_step& step = step_at(graph_, i);
      if (!can_run(step))
        return {TENON_UNSUPPORTED, std::string("reference: no executable: step ") +
                                       std::to_string(i) + ", " + std::string(name_of(step)) +
                                       ", is none that was claimed"};
      add_step(step);
    }
    return {};
  }

 private:
  uint32_t add(const tenon_tensor& like, Place place) {
    out_.values.push_back({place, like.dtype, {like.shape, like.shape + like.ndim}, {}});
    return static_cast<uint32_t>(out_.values.size() - 1);
  }

  // Where a compiler would bring weights into the order that it reads them in.
  uint32_t add_constant(const tenon_tensor& tensor) {
    const uint32_t index = add(tensor, {Place::kProgram, 0});
    const auto* begin = static_cast<const char*>(tensor.data);
    const uint64_t bytes =
        static_cast<uint64_t>(tensor.numel) * tenon::host->dtype_size(tensor.dtype);
    out_.values[index].elements.assign(begin, begin + bytes);
    return index;
  }

  Place in_workspace(const tenon_tensor& like) {
    const uint64_t begin = out_.workspace_bytes;
    const uint64_t bytes = static_cast<uint64_t>(like.numel) * tenon::host->dtype_size(like.dtype);
    out_.workspace_bytes = begin + (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return {Place::kWorkspace, begin};
  }

  Place place_of(const tenon_tensor* made) {
    const auto end = graph_.outputs + graph_.noutputs;
    const auto found = std::find(graph_.outputs, end, made);
    return found == end ? in_workspace(*made)
                        : Place{Place::kOutput, static_cast<uint64_t>(found - graph_.outputs)};
  }

  // The kernels take tensors of one shape: what is repeated is written out, as the host does for single calls.
  uint32_t repeated(const tenon_tensor& operand, const tenon_tensor& out) {
    const bool has_shape =
        operand.ndim == out.ndim && std::equal(out.shape, out.shape + out.ndim, operand.shape);
    if (!is_number(operand) && has_shape) return known_.at(&operand);
    uint32_t source;
    if (is_number(operand)) {
      out_.values.push_back({{Place::kProgram, 0}, out.dtype, {}, element_of(operand, out.dtype)});
      source = static_cast<uint32_t>(out_.values.size() - 1);
    } else {
      source = known_.at(&operand);
    }
    const uint32_t result = add(out, in_workspace(out));
    out_.steps.push_back({Kind::kRepeat, {source}, result, {}});
    return result;
  }

  static std::vector<int32_t> axes_of(const tenon_subgraph_step& step) {
    const int32_t ndim = step.outs[0]->ndim;
    std::vector<int32_t> axes(static_cast<size_t>(ndim));
    std::iota(axes.begin(), axes.end(), 0);
    auto place = [&](int64_t axis) { return static_cast<size_t>(axis < 0 ? axis + ndim : axis); };
    if (name_of(step) == "tenon::transpose") {
      std::swap(axes[place(step.args[1].v.i)], axes[place(step.args[2].v.i)]);
    } else if (step.args[1].tag == TENON_VALUE_INTS) {
      for (size_t i = 0; i < axes.size(); ++i)
        axes[i] = static_cast<int32_t>(place(static_cast<const int64_t*>(step.args[1].v.p)[i]));
    } else {
      std::reverse(axes.begin(), axes.end());
    }
    return axes;
  }

  void add_step(const tenon_subgraph_step& step) {
    ExecutableStep made = {kind_of(name_of(step)), {}, 0, {}};
    for (uint32_t i = 0; i < operand_count(made.kind); ++i) {
      const auto& operand = *static_cast<const tenon_tensor*>(step.args[i].v.p);
      made.operands.push_back(is_elementwise(made.kind) ? repeated(operand, *step.outs[0])
                                                        : known_.at(&operand));
    }
    if (made.kind == Kind::kPermute) made.axes = axes_of(step);
    made.result = known_[step.outs[0]] = add(*step.outs[0], place_of(step.outs[0]));
    out_.steps.push_back(std::move(made));
  }

  const tenon_subgraph& graph_;
  ExecutableProgram& out_;
  std::unordered_map<const tenon_tensor*, uint32_t> known_;
};

tenon_status executable_create(tenon_device, const tenon_subgraph* graph, tenon_executable* out,
                               tenon_executable_info* info, tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, graph, 0, err);
  auto program = std::make_shared<ExecutableProgram>();
  const Result result = Compiler(*graph, *program).compile();
  if (result.status != TENON_OK) return report(result, err);
  info->flags = TENON_EXECUTABLE_EXACT;  // the loops are those of the kernels
  info->workspace_bytes = program->workspace_bytes;
  *out = new tenon_executable_s{std::move(program)};
  return TENON_OK;
}

void executable_destroy(tenon_device, tenon_executable executable) { delete executable; }

// The values of one run, as tensors that bodies read.
class Binding {
 public:
  Binding(const ExecutableProgram& program, const tenon_executable_request& request)
      : program_(program), request_(request) {}

  const tenon_tensor* value(uint32_t index) {
    const Value& value = program_.values[index];
    return tensor(value, value.shape, dense(value.shape));
  }
  const tenon_tensor* permuted(uint32_t index, const std::vector<int32_t>& axes) {
    const Value& value = program_.values[index];
    const std::vector<int64_t> strides = dense(value.shape);
    std::vector<int64_t> shape, steps;
    for (int32_t axis : axes) {
      shape.push_back(value.shape[static_cast<size_t>(axis)]);
      steps.push_back(strides[static_cast<size_t>(axis)]);
    }
    return tensor(value, std::move(shape), std::move(steps));
  }
  const tenon_tensor* reshaped(uint32_t index, const std::vector<int64_t>& shape) {
    return tensor(program_.values[index], shape, dense(shape));
  }
  const tenon_tensor* repeated(uint32_t index, const std::vector<int64_t>& shape) {
    const Value& value = program_.values[index];
    const std::vector<int64_t> strides = dense(value.shape);
    std::vector<int64_t> steps(shape.size(), 0);
    const size_t added = shape.size() - value.shape.size();
    for (size_t i = 0; i < value.shape.size(); ++i)
      if (value.shape[i] != 1) steps[added + i] = strides[i];
    return tensor(value, shape, std::move(steps));
  }

 private:
  struct Bound {
    std::vector<int64_t> shape, strides;
    tenon_tensor tensor;
  };

  static std::vector<int64_t> dense(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
    return strides;
  }
  void* address(const Value& value) const {
    switch (value.place.where) {
      case Place::kInput:
        return request_.inputs[value.place.at]->data;
      case Place::kOutput:
        return request_.outputs[value.place.at]->data;
      case Place::kWorkspace:
        return static_cast<char*>(request_.workspace) + value.place.at;
      default:
        return const_cast<char*>(value.elements.data());
    }
  }
  const tenon_tensor* tensor(const Value& value, std::vector<int64_t> shape,
                             std::vector<int64_t> strides) {
    Bound& bound = bound_.emplace_back(Bound{std::move(shape), std::move(strides), {}});
    bound.tensor.data = address(value);
    bound.tensor.ndim = static_cast<int32_t>(bound.shape.size());
    bound.tensor.shape = bound.shape.data();
    bound.tensor.strides = bound.strides.data();
    bound.tensor.dtype = static_cast<uint8_t>(value.dtype);
    bound.tensor.numel =
        std::accumulate(bound.shape.begin(), bound.shape.end(), int64_t{1}, std::multiplies<>());
    return &bound.tensor;
  }

  const ExecutableProgram& program_;
  const tenon_executable_request& request_;
  std::deque<Bound> bound_;
};

Body body_of(const ExecutableProgram& program, const ExecutableStep& step, Binding& binding) {
  const tenon_tensor* out = binding.value(step.result);
  const std::vector<int64_t>& shape = program.values[step.result].shape;
  const uint32_t first = step.operands[0];
  auto operand = [&](size_t i) { return binding.value(step.operands[i]); };
  switch (step.kind) {
    case Kind::kAdd:
      return add_body(operand(0), operand(1), out);
    case Kind::kMultiply:
      return multiply_body(operand(0), operand(1), out);
    case Kind::kMaximum:
      return maximum_body(operand(0), operand(1), out);
    case Kind::kExp:
      return exponential_body(operand(0), out);
    case Kind::kMatmul:
      return matmul_body(operand(0), operand(1), out);
    case Kind::kView:
      return copy_body(binding.reshaped(first, shape), out);
    case Kind::kPermute:
      return copy_body(binding.permuted(first, step.axes), out);
    default:
      return copy_body(binding.repeated(first, shape), out);
  }
}

tenon_status executable_run(tenon_device device, const tenon_executable_request* request,
                            tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(tenon::host, request, 0, err);
  // Addresses are read now, so that the task needs the program alone.
  std::shared_ptr<const ExecutableProgram> program = request->executable->program;
  Binding binding(*program, *request);
  std::vector<Body> bodies;
  for (const ExecutableStep& step : program->steps)
    bodies.push_back(body_of(*program, step, binding));
  return enqueue(device, request->stream,
                 {TENON_PROFILE_KERNEL, "executable", 0,
                  [program = std::move(program), bodies = std::move(bodies)] {
                    for (const Body& body : bodies) body();
                    return Result{};
                  }},
                 err);
}

}  // namespace

const tenon_subgraph_api kSubgraph = {
    .struct_size = sizeof(tenon_subgraph_api),
    .claim = claim,
    .executable_create = executable_create,
    .executable_destroy = executable_destroy,
    .executable_run = executable_run,
};

}  // namespace reference
