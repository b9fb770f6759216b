// SPDX-License-Identifier: Apache-2.0
#include "subgraph.hpp"

#include "following.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

struct tenon_executable_s {
  std::unique_ptr<tenon::cpu::PackedConv> conv;
  uint32_t x, weight, residual;  // indices of inputs
  std::vector<uint32_t> others;
};

namespace tenon::cpu {
namespace {

const PackedConvs* packed_convs = nullptr;

// A step's operator, told by address instead of by name.
struct KnownOperators {
  const tenon_op* conv2d = host->op_find("tenon::conv2d");
  const tenon_op* norm = host->op_find("tenon::batch_norm_inference");
  const tenon_op* add = host->op_find("tenon::add");
  const tenon_op* relu = host->op_find("tenon::relu");
};

bool is_float32(const tenon_tensor* tensor, int32_t ndim) {
  return tensor && tensor->dtype == TENON_DTYPE_F32 && tensor->ndim == ndim;
}

// A convolution and the steps that are joined with it.
struct Joined {
  ConvDescription description = {};
  uint32_t steps = 1;
  const tenon_tensor *x = nullptr, *residual = nullptr, *weight = nullptr, *bias = nullptr;
  const tenon_tensor *mean = nullptr, *var = nullptr, *factor = nullptr, *shift = nullptr;
  double eps = 0;
  Following following;
};

class Finder {
 public:
  explicit Finder(const tenon_subgraph& graph) : graph_(graph), values_(graph) {}
  const SubgraphValues& values() const { return values_; }

  // What begins with a step, if it is a convolution that is worth it.
  std::optional<Joined> find(uint32_t first) {
    const tenon_subgraph_step& conv = step_at(graph_, first);
    if (conv.op != known_.conv2d || conv.nargs < 7 || conv.nouts != 1) return std::nullopt;
    Joined joined;
    if (!read_conv(conv, joined)) return std::nullopt;
    const tenon_tensor* last = conv.outs[0];
    enum { kNorm, kAdd, kRelu, kEnd } next = kNorm;
    for (uint32_t i = first + 1; i < graph_.nsteps && next != kEnd && values_.uses(last) == 1;
         ++i) {
      const tenon_subgraph_step& step = step_at(graph_, i);
      if (next <= kNorm && read_norm(step, last, joined)) {
        next = kAdd;
      } else if (next <= kAdd && read_add(step, last, joined)) {
        next = kRelu;
      } else if (step.op == known_.relu && tenon_arg_tensor(&step.args[0]) == last) {
        joined.description.has_relu = true;
        next = kEnd;
      } else {
        break;
      }
      last = step.outs[0];
      ++joined.steps;
    }
    joined.following = find_following(values_, first + joined.steps, last);
    joined.steps += joined.following.count;
    joined.description.has_more = joined.following.count > 0;
    if (!packed_convs->suits(joined.description)) return std::nullopt;
    return joined;
  }

 private:
  // A vector of the filters' constants, or nothing.
  bool read_constant(const tenon_value& value, int64_t filters, const tenon_tensor** out) const {
    *out = nullptr;
    if (value.tag == TENON_VALUE_NONE) return true;
    const tenon_tensor* tensor = tenon_arg_tensor(&value);
    if (!is_float32(tensor, 1) || tensor->shape[0] != filters || !values_.constant(tensor))
      return false;
    *out = tensor;
    return true;
  }

  static bool read_pair(const tenon_value& value, int64_t (&pair)[2]) {
    if (value.tag != TENON_VALUE_INTS || value.aux < 1 || value.aux > 2) return false;
    const auto* numbers = static_cast<const int64_t*>(value.v.p);
    pair[0] = numbers[0];
    pair[1] = numbers[value.aux - 1];
    return true;
  }

  bool read_conv(const tenon_subgraph_step& step, Joined& joined) const {
    const tenon_tensor *x = tenon_arg_tensor(&step.args[0]),
                       *weight = tenon_arg_tensor(&step.args[1]);
    const tenon_tensor* out = step.outs[0];
    if (!is_float32(x, 4) || !is_float32(weight, 4) || !is_float32(out, 4) ||
        !values_.constant(weight))
      return false;
    ConvDescription& d = joined.description;
    std::copy_n(x->shape, 4, d.image);
    std::copy_n(weight->shape, 4, d.weight);
    std::copy_n(out->shape, 4, d.result);
    joined.x = x;
    joined.weight = weight;
    d.groups = step.args[6].v.i;
    return step.args[6].tag == TENON_VALUE_INT &&
           read_constant(step.args[2], d.weight[0], &joined.bias) &&
           read_pair(step.args[3], d.stride) && read_pair(step.args[4], d.padding) &&
           read_pair(step.args[5], d.dilation);
  }

  bool read_norm(const tenon_subgraph_step& step, const tenon_tensor* last, Joined& joined) const {
    if (step.op != known_.norm || step.nargs < 6 || tenon_arg_tensor(&step.args[0]) != last)
      return false;
    const int64_t filters = joined.description.weight[0];
    if (!read_constant(step.args[1], filters, &joined.mean) || !joined.mean ||
        !read_constant(step.args[2], filters, &joined.var) || !joined.var ||
        !read_constant(step.args[3], filters, &joined.factor) ||
        !read_constant(step.args[4], filters, &joined.shift) ||
        step.args[5].tag != TENON_VALUE_FLOAT)
      return false;
    joined.eps = step.args[5].v.f;
    return joined.description.has_norm = true;
  }

  bool read_add(const tenon_subgraph_step& step, const tenon_tensor* last, Joined& joined) const {
    if (step.op != known_.add) return false;
    const tenon_tensor *x = tenon_arg_tensor(&step.args[0]), *y = tenon_arg_tensor(&step.args[1]);
    const tenon_tensor* other = x == last ? y : x;
    if ((x != last && y != last) || x == y || !is_float32(other, 4) || !have_one_shape(other, last))
      return false;
    joined.residual = other;
    return joined.description.has_residual = true;
  }

  const tenon_subgraph& graph_;
  const KnownOperators known_;
  SubgraphValues values_;
};

tenon_status claim(tenon_device, const tenon_subgraph* offered, uint32_t* parts, tenon_err* err) {
  return guarded(err, [&] {
    Finder finder(*offered);
    if (!finder.values().has_constants()) return;
    uint32_t number = 0;
    for (uint32_t i = 0; i < offered->nsteps;) {
      const std::optional<Joined> joined = finder.find(i);
      if (joined) std::fill_n(parts + i, joined->steps, ++number);
      i += joined ? joined->steps : 1;
    }
  });
}

const float* data_of(const SubgraphValues& values, const tenon_tensor* value) {
  return value ? static_cast<const float*>(values.constant(value)->data) : nullptr;
}

uint32_t version_of(const SubgraphValues& values, const tenon_tensor* value) {
  return value ? host->tensor_version(values.constant(value)) : 0;
}

[[noreturn]] void refuse_part() {
  throw Error(TENON_UNSUPPORTED, "expected a convolution by constants and what follows it");
}

uint32_t input_of(const tenon_subgraph& graph, const tenon_tensor* value) {
  const auto* end = graph.inputs + graph.ninputs;
  const auto* found = std::find(graph.inputs, end, value);
  if (found == end) refuse_part();
  return static_cast<uint32_t>(found - graph.inputs);
}

tenon_status executable_create(tenon_device, const tenon_subgraph* graph, tenon_executable* out,
                               tenon_executable_info* info, tenon_err* err) {
  return guarded(err, [&] {
    Finder finder(*graph);
    std::optional<Joined> joined = finder.find(0);
    const SubgraphValues& values = finder.values();
    if (!joined || joined->steps != graph->nsteps || graph->noutputs != 1) refuse_part();
    auto made = std::make_unique<tenon_executable_s>();
    made->conv = packed_convs->pack(joined->description,
                                    {.weight = data_of(values, joined->weight),
                                     .bias = data_of(values, joined->bias),
                                     .mean = data_of(values, joined->mean),
                                     .var = data_of(values, joined->var),
                                     .factor = data_of(values, joined->factor),
                                     .shift = data_of(values, joined->shift),
                                     .eps = static_cast<float>(joined->eps),
                                     .weight_version = version_of(values, joined->weight),
                                     .bias_version = version_of(values, joined->bias)},
                                    FollowingSteps(std::move(joined->following.steps)));
    for (const tenon_tensor* other : joined->following.others)
      made->others.push_back(input_of(*graph, other));
    made->x = input_of(*graph, joined->x);
    made->weight = input_of(*graph, joined->weight);
    made->residual = joined->residual ? input_of(*graph, joined->residual) : 0;
    info->flags = TENON_EXECUTABLE_EXACT;
    info->workspace_bytes = 0;  // what a run needs depends on the number of threads
    *out = made.release();
  });
}

void executable_destroy(tenon_device, tenon_executable executable) { delete executable; }

tenon_status executable_run(tenon_device, const tenon_executable_request* request, tenon_err* err) {
  const tenon_executable_s& executable = *request->executable;
  tenon_tensor* out = request->outputs[0];
  const auto input = [&](uint32_t index) {
    return static_cast<const float*>(request->inputs[index]->data);
  };
  const float* others[kMaxOthers];
  for (size_t i = 0; i < executable.others.size(); ++i) others[i] = input(executable.others[i]);
  return executable.conv->run(out->device, input(executable.x), input(executable.weight),
                              input(executable.residual), others, static_cast<float*>(out->data),
                              err);
}

}  // namespace

void set_packed_convs(const PackedConvs* convs) { packed_convs = convs; }

constexpr tenon_subgraph_api kSubgraphs = {
    .struct_size = sizeof(tenon_subgraph_api),
    .reserved = 0,
    .claim = claim,
    .executable_create = executable_create,
    .executable_destroy = executable_destroy,
    .executable_run = executable_run,
};

}  // namespace tenon::cpu
