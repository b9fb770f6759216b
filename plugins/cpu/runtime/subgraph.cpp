// SPDX-License-Identifier: Apache-2.0
#include "subgraph.hpp"

#include "conv_steps.hpp"
#include "following.hpp"
#include "region.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

struct tenon_executable_s {
  virtual ~tenon_executable_s() = default;
  virtual uint64_t workspace_bytes() const = 0;
  virtual tenon_status run(const tenon_executable_request& request, tenon_err* err) const = 0;
};

namespace tenon::cpu {
namespace {

const PackedConvs* packed_convs = nullptr;

// A convolution and the steps that are joined with it.
struct Joined {
  ConvDescription description = {};
  uint32_t steps = 1;
  ConvTensors tensors;
  const tenon_tensor* residual = nullptr;
  Following following;
};

class Finder {
 public:
  explicit Finder(const tenon_subgraph& graph) : graph_(graph), values_(graph) {}
  const SubgraphValues& values() const { return values_; }

  // What begins with a step, if it is a convolution that is worth it.
  std::optional<Joined> find(uint32_t first) {
    const tenon_subgraph_step& conv = step_at(graph_, first);
    Joined joined;
    if (!read_conv(values_, known_, conv, joined.description, joined.tensors)) return std::nullopt;
    const tenon_tensor* last = conv.outs[0];
    enum { kNorm, kAdd, kRelu, kEnd } next = kNorm;
    for (uint32_t i = first + 1; i < graph_.nsteps && next != kEnd && values_.uses(last) == 1;
         ++i) {
      const tenon_subgraph_step& step = step_at(graph_, i);
      if (next <= kNorm &&
          read_norm(values_, known_, step, last, joined.description.weight[0], joined.tensors)) {
        joined.description.has_norm = true;
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

[[noreturn]] void refuse_part() {
  throw Error(TENON_UNSUPPORTED, "expected a convolution by constants and what follows it");
}

// A convolution and the steps that are joined with it, as an executable.
class JoinedConv final : public tenon_executable_s {
 public:
  // `joined` is all of the graph.
  JoinedConv(const tenon_subgraph& graph, const SubgraphValues& values, Joined joined)
      : conv_(packed_convs->pack(joined.description, constants_of(values, joined.tensors),
                                 FollowingSteps(std::move(joined.following.steps)))),
        x_(input_of(graph, joined.tensors.x)),
        weight_(input_of(graph, joined.tensors.weight)),
        residual_(joined.residual ? input_of(graph, joined.residual) : 0) {
    for (const tenon_tensor* other : joined.following.others)
      others_.push_back(input_of(graph, other));
  }

  // What a run needs depends on the number of threads.
  uint64_t workspace_bytes() const override { return 0; }

  tenon_status run(const tenon_executable_request& request, tenon_err* err) const override {
    tenon_tensor* out = request.outputs[0];
    const auto input = [&](uint32_t index) {
      return static_cast<const float*>(request.inputs[index]->data);
    };
    const float* others[kMaxOthers];
    for (size_t i = 0; i < others_.size(); ++i) others[i] = input(others_[i]);
    return conv_->run(out->device, input(x_), input(weight_), input(residual_), others,
                      static_cast<float*>(out->data), err);
  }

 private:
  static uint32_t input_of(const tenon_subgraph& graph, const tenon_tensor* value) {
    const auto* end = graph.inputs + graph.ninputs;
    const auto* found = std::find(graph.inputs, end, value);
    if (found == end) refuse_part();
    return static_cast<uint32_t>(found - graph.inputs);
  }

  std::unique_ptr<PackedConv> conv_;
  uint32_t x_, weight_, residual_;  // Indices of inputs.
  std::vector<uint32_t> others_;
};

class RegionExecutable final : public tenon_executable_s {
 public:
  RegionExecutable(const RegionSteps& steps, const tenon_subgraph& graph) : region_(steps, graph) {}
  uint64_t workspace_bytes() const override { return region_.workspace_bytes(); }
  tenon_status run(const tenon_executable_request& request, tenon_err* err) const override {
    return region_.run(request, err);
  }

 private:
  Region region_;
};

// The steps from `first` on that are one region, if that spares more than its ends cost: images are
// transposed there. With fewer convolutions each is an executable of its own.
constexpr uint32_t kMinConvolutions = 4;

uint32_t steps_of_region(const tenon_subgraph& graph, uint32_t first, RegionSteps& steps) {
  uint32_t count = 0;
  while (first + count < graph.nsteps && steps.add(step_at(graph, first + count))) ++count;
  return steps.convolutions() >= kMinConvolutions ? count : 0;
}

tenon_status claim(tenon_device, const tenon_subgraph* offered, uint32_t* parts, tenon_err* err) {
  return guarded(err, [&] {
    Finder finder(*offered);
    if (!finder.values().has_constants()) return;
    uint32_t number = 0, small_until = 0;  // Regions before this step are too small.
    for (uint32_t i = 0; i < offered->nsteps;) {
      if (i >= small_until) {
        RegionSteps steps(finder.values());
        if (const uint32_t count = steps_of_region(*offered, i, steps); count > 0) {
          std::fill_n(parts + i, count, ++number);
          i += count;
          continue;
        }
        small_until = i + static_cast<uint32_t>(steps.steps().size()) + 1;
      }
      const std::optional<Joined> joined = finder.find(i);
      if (joined) std::fill_n(parts + i, joined->steps, ++number);
      i += joined ? joined->steps : 1;
    }
  });
}

std::unique_ptr<tenon_executable_s> executable_of(const tenon_subgraph& graph) {
  Finder finder(graph);
  RegionSteps steps(finder.values());
  if (steps_of_region(graph, 0, steps) == graph.nsteps)
    return std::make_unique<RegionExecutable>(steps, graph);
  std::optional<Joined> joined = finder.find(0);
  if (!joined || joined->steps != graph.nsteps || graph.noutputs != 1) refuse_part();
  return std::make_unique<JoinedConv>(graph, finder.values(), std::move(*joined));
}

tenon_status executable_create(tenon_device, const tenon_subgraph* graph, tenon_executable* out,
                               tenon_executable_info* info, tenon_err* err) {
  return guarded(err, [&] {
    std::unique_ptr<tenon_executable_s> made = executable_of(*graph);
    info->flags = TENON_EXECUTABLE_EXACT;
    info->workspace_bytes = made->workspace_bytes();
    *out = made.release();
  });
}

void executable_destroy(tenon_device, tenon_executable executable) { delete executable; }

tenon_status executable_run(tenon_device, const tenon_executable_request* request, tenon_err* err) {
  return request->executable->run(*request, err);
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
