// SPDX-License-Identifier: Apache-2.0
#include "subgraph.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

struct tenon_executable_s {
  std::unique_ptr<tenon::cpu::PackedConv> conv;
  uint32_t x, weight, residual;  // indices of inputs
};

namespace tenon::cpu {
namespace {

const PackedConvs* packed_convs = nullptr;

// Later hosts know more of a step than this plugin: steps lie as far apart as the host says.
const tenon_subgraph_step& step_at(const tenon_subgraph& graph, uint32_t index) {
  const char* first = reinterpret_cast<const char*>(graph.steps);
  return *reinterpret_cast<const tenon_subgraph_step*>(first + size_t{index} * graph.step_size);
}

// A step's operator, told by address instead of by name.
struct KnownOperators {
  const tenon_op* conv2d = host->op_find("tenon::conv2d");
  const tenon_op* norm = host->op_find("tenon::batch_norm_inference");
  const tenon_op* add = host->op_find("tenon::add");
  const tenon_op* relu = host->op_find("tenon::relu");
};

const tenon_tensor* tensor_of(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<const tenon_tensor*>(value.v.p) : nullptr;
}

bool is_float32(const tenon_tensor* tensor, int32_t ndim) {
  return tensor && tensor->dtype == TENON_DTYPE_F32 && tensor->ndim == ndim;
}

bool have_one_shape(const tenon_tensor* a, const tenon_tensor* b) {
  return a->ndim == b->ndim && std::equal(a->shape, a->shape + a->ndim, b->shape);
}

// A convolution and the steps that are joined with it.
struct Joined {
  ConvDescription description = {};
  uint32_t steps = 1;
  const tenon_tensor *x = nullptr, *residual = nullptr, *weight = nullptr, *bias = nullptr;
  const tenon_tensor *mean = nullptr, *var = nullptr, *factor = nullptr, *shift = nullptr;
  double eps = 0;
};

class Finder {
 public:
  explicit Finder(const tenon_subgraph& graph) : graph_(graph) {
    for (uint32_t i = 0; i < graph.ninputs; ++i)
      if (graph.constants[i]) constants_[graph.inputs[i]] = graph.constants[i];
  }
  bool has_constants() const { return !constants_.empty(); }

  // The tensor on the device that is always this value; NULL: values are not told apart.
  const tenon_tensor* constant(const tenon_tensor* value) const {
    const auto found = constants_.find(value);
    return found == constants_.end() ? nullptr : found->second;
  }

  // What begins with a step, if it is a convolution that is worth it.
  std::optional<Joined> find(uint32_t first) {
    const tenon_subgraph_step& conv = step_at(graph_, first);
    if (conv.op != known_.conv2d || conv.nargs < 7 || conv.nouts != 1) return std::nullopt;
    Joined joined;
    if (!read_conv(conv, joined)) return std::nullopt;
    const tenon_tensor* last = conv.outs[0];
    enum { kNorm, kAdd, kRelu, kEnd } next = kNorm;
    for (uint32_t i = first + 1; i < graph_.nsteps && next != kEnd && is_used_once(last); ++i) {
      const tenon_subgraph_step& step = step_at(graph_, i);
      if (next <= kNorm && read_norm(step, last, joined)) {
        next = kAdd;
      } else if (next <= kAdd && read_add(step, last, joined)) {
        next = kRelu;
      } else if (step.op == known_.relu && tensor_of(step.args[0]) == last) {
        joined.description.has_relu = true;
        next = kEnd;
      } else {
        break;
      }
      last = step.outs[0];
      ++joined.steps;
    }
    if (!packed_convs->suits(joined.description)) return std::nullopt;
    return joined;
  }

 private:
  // A vector of the filters' constants, or nothing.
  bool read_constant(const tenon_value& value, int64_t filters, const tenon_tensor** out) const {
    *out = nullptr;
    if (value.tag == TENON_VALUE_NONE) return true;
    const tenon_tensor* tensor = tensor_of(value);
    if (!is_float32(tensor, 1) || tensor->shape[0] != filters || !constant(tensor)) return false;
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
    const tenon_tensor *x = tensor_of(step.args[0]), *weight = tensor_of(step.args[1]);
    const tenon_tensor* out = step.outs[0];
    if (!is_float32(x, 4) || !is_float32(weight, 4) || !is_float32(out, 4) || !constant(weight))
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
    if (step.op != known_.norm || step.nargs < 6 || tensor_of(step.args[0]) != last) return false;
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
    const tenon_tensor *x = tensor_of(step.args[0]), *y = tensor_of(step.args[1]);
    const tenon_tensor* other = x == last ? y : x;
    if ((x != last && y != last) || x == y || !is_float32(other, 4) || !have_one_shape(other, last))
      return false;
    joined.residual = other;
    return joined.description.has_residual = true;
  }

  bool is_used_once(const tenon_tensor* value) {
    if (uses_.empty()) count_uses();
    return uses_[value] == 1;
  }
  void count_uses() {
    for (uint32_t i = 0; i < graph_.nsteps; ++i) {
      const tenon_subgraph_step& step = step_at(graph_, i);
      for (uint32_t k = 0; k < step.nargs; ++k) {
        const tenon_value& value = step.args[k];
        if (const tenon_tensor* tensor = tensor_of(value)) ++uses_[tensor];
        if (value.tag != TENON_VALUE_TENSORS) continue;
        auto* const* list = static_cast<tenon_tensor* const*>(value.v.p);
        for (uint64_t j = 0; j < value.aux; ++j) ++uses_[list[j]];
      }
    }
    for (uint32_t i = 0; i < graph_.noutputs; ++i) uses_[graph_.outputs[i]] += 2;
  }

  const tenon_subgraph& graph_;
  const KnownOperators known_;
  std::unordered_map<const tenon_tensor*, const tenon_tensor*> constants_;
  std::unordered_map<const tenon_tensor*, uint32_t> uses_;
};

tenon_status claim(tenon_device, const tenon_subgraph* offered, uint32_t* parts, tenon_err* err) {
  return guarded(err, [&] {
    Finder finder(*offered);
    if (!finder.has_constants()) return;
    uint32_t number = 0;
    for (uint32_t i = 0; i < offered->nsteps;) {
      const std::optional<Joined> joined = finder.find(i);
      if (joined) std::fill_n(parts + i, joined->steps, ++number);
      i += joined ? joined->steps : 1;
    }
  });
}

const float* data_of(const Finder& finder, const tenon_tensor* value) {
  return value ? static_cast<const float*>(finder.constant(value)->data) : nullptr;
}

uint32_t version_of(const Finder& finder, const tenon_tensor* value) {
  return value ? host->tensor_version(finder.constant(value)) : 0;
}

uint32_t input_of(const tenon_subgraph& graph, const tenon_tensor* value) {
  const auto* end = graph.inputs + graph.ninputs;
  return static_cast<uint32_t>(std::find(graph.inputs, end, value) - graph.inputs);
}

tenon_status executable_create(tenon_device, const tenon_subgraph* graph, tenon_executable* out,
                               tenon_executable_info* info, tenon_err* err) {
  return guarded(err, [&] {
    Finder finder(*graph);
    const std::optional<Joined> joined = finder.find(0);
    const uint32_t residual = joined && joined->residual ? input_of(*graph, joined->residual) : 0;
    if (!joined || joined->steps != graph->nsteps || graph->noutputs != 1 ||
        residual == graph->ninputs)
      throw Error(TENON_UNSUPPORTED, "expected a convolution by constants and what follows it");
    auto made = std::make_unique<tenon_executable_s>();
    made->conv = packed_convs->pack(joined->description,
                                    {.weight = data_of(finder, joined->weight),
                                     .bias = data_of(finder, joined->bias),
                                     .mean = data_of(finder, joined->mean),
                                     .var = data_of(finder, joined->var),
                                     .factor = data_of(finder, joined->factor),
                                     .shift = data_of(finder, joined->shift),
                                     .eps = static_cast<float>(joined->eps),
                                     .weight_version = version_of(finder, joined->weight),
                                     .bias_version = version_of(finder, joined->bias)});
    made->x = input_of(*graph, joined->x);
    made->weight = input_of(*graph, joined->weight);
    made->residual = residual;
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
  return executable.conv->run(out->device, input(executable.x), input(executable.weight),
                              input(executable.residual), static_cast<float*>(out->data), err);
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
