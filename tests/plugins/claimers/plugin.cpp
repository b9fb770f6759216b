// SPDX-License-Identifier: Apache-2.0
// Two claimers of sub-graphs for tests/python/jit/test_claimers.py: "sums" takes steps of `add`, "products" those of
// `multiply`, of float32 tensors of one shape. Options say what goes wrong: "create", "run". With the options "counts"
// opening fails, and the error says what has been made and is alive.
#include <tenon/services/graph.h>
#include <tenon/error.hpp>
#include <tenon/plugin.hpp>
#include <tenon/subgraph.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

struct Kind {
  const char* op;
  float (*compute)(float x, float y);
};
constexpr Kind kSums = {"tenon::add", [](float x, float y) { return x + y; }};
constexpr Kind kProducts = {"tenon::multiply", [](float x, float y) { return x * y; }};

std::atomic<int> claimers, executables, compiled, runs, closed_early;

}  // namespace

struct tenon_device_s {
  const Kind& kind;
  std::string fault;
  std::atomic<int> alive = 0;  // executables
};

// Values are numbered: inputs first, then the result of each step.
struct tenon_executable_s {
  struct Step {
    size_t x, y;
    int64_t output;  // -1: others do not read it
  };
  size_t inputs, numel;
  std::vector<Step> steps;
};

namespace {

using tenon::Error;

template <const Kind& kind>
tenon_status open(const char* options, tenon_device* out, tenon_err* err) {
  return tenon::guarded(err, [&] {
    if (std::string_view(options) == "counts")
      throw Error(TENON_FAILED_PRECONDITION,
                  "claimers " + std::to_string(claimers) + ", executables " +
                      std::to_string(executables) + " of " + std::to_string(compiled) + ", runs " +
                      std::to_string(runs) + ", closed early " + std::to_string(closed_early));
    *out = new tenon_device_s{kind, options};
    ++claimers;
  });
}

void close(tenon_device claimer) {
  if (claimer->alive > 0) ++closed_early;
  --claimers;
  delete claimer;
}

bool suits(const tenon_device_s& claimer, const tenon_subgraph_step& step) {
  if (std::string_view(tenon::host->op_def(step.op)->name) != claimer.kind.op) return false;
  const tenon_tensor& out = *step.outs[0];
  return std::all_of(step.args, step.args + 2, [&](const tenon_value& argument) {
    const tenon_tensor* x = tenon_arg_tensor(&argument);
    return x && !(x->flags & TENON_TENSOR_HOST_SCALAR) && x->dtype == TENON_DTYPE_F32 &&
           x->ndim == out.ndim && std::equal(out.shape, out.shape + out.ndim, x->shape);
  });
}

tenon_status claim(tenon_device claimer, const tenon_subgraph* offered, uint32_t* parts,
                   tenon_err*) {
  for (uint32_t i = 0; i < offered->nsteps; ++i)
    parts[i] = suits(*claimer, tenon::step_at(*offered, i));
  return TENON_OK;
}

tenon_status executable_create(tenon_device claimer, const tenon_subgraph* graph,
                               tenon_executable* out, tenon_executable_info* info, tenon_err* err) {
  return tenon::guarded(err, [&] {
    if (claimer->fault == "create") throw Error(TENON_UNAVAILABLE, "the compiler is out");
    std::unordered_map<const tenon_tensor*, size_t> number;
    for (uint32_t i = 0; i < graph->ninputs; ++i) number[graph->inputs[i]] = i;
    auto made = std::make_unique<tenon_executable_s>();
    made->inputs = graph->ninputs;
    made->numel = static_cast<size_t>(graph->outputs[0]->numel);
    for (uint32_t i = 0; i < graph->nsteps; ++i) {
      const tenon_subgraph_step& step = tenon::step_at(*graph, i);
      const auto* end = graph->outputs + graph->noutputs;
      const auto* output = std::find(graph->outputs, end, step.outs[0]);
      made->steps.push_back({number.at(tenon_arg_tensor(&step.args[0])),
                             number.at(tenon_arg_tensor(&step.args[1])),
                             output == end ? -1 : output - graph->outputs});
      number[step.outs[0]] = graph->ninputs + i;
    }
    info->flags = TENON_EXECUTABLE_EXACT;
    info->workspace_bytes = 0;
    ++claimer->alive, ++executables, ++compiled;
    *out = made.release();
  });
}

void executable_destroy(tenon_device claimer, tenon_executable executable) {
  --claimer->alive, --executables;
  delete executable;
}

tenon_status executable_run(tenon_device claimer, const tenon_executable_request* request,
                            tenon_err* err) {
  return tenon::guarded(err, [&] {
    if (claimer->fault == "run") throw Error(TENON_UNAVAILABLE, "the processor is out");
    const tenon_executable_s& executable = *request->executable;
    std::vector<const float*> values;
    for (size_t i = 0; i < executable.inputs; ++i)
      values.push_back(static_cast<const float*>(request->inputs[i]->data));
    std::vector<std::vector<float>> between;
    for (const auto& step : executable.steps) {
      const bool is_inside = step.output < 0;
      float* to = is_inside ? between.emplace_back(executable.numel).data()
                            : static_cast<float*>(request->outputs[step.output]->data);
      std::transform(values[step.x], values[step.x] + executable.numel, values[step.y], to,
                     claimer->kind.compute);
      values.push_back(to);
    }
    ++runs;
  });
}

constexpr tenon_subgraph_api kSubgraphs = {
    .struct_size = sizeof(tenon_subgraph_api),
    .reserved = 0,
    .claim = claim,
    .executable_create = executable_create,
    .executable_destroy = executable_destroy,
    .executable_run = executable_run,
};

template <const Kind& kind>
constexpr tenon_graph_claimer_api kClaimer = {
    .struct_size = sizeof(tenon_graph_claimer_api),
    .version = TENON_GRAPH_CLAIMER_VERSION,
    .flags = TENON_EXECUTABLE_EXACT,
    .reserved = 0,
    .open = open<kind>,
    .close = close,
    .subgraphs = &kSubgraphs,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  const tenon_status status = tenon::host->service_register(
      "sums" TENON_GRAPH_CLAIMER_SUFFIX, TENON_GRAPH_CLAIMER_VERSION, &kClaimer<kSums>, err);
  if (status != TENON_OK) return status;
  return tenon::host->service_register("products" TENON_GRAPH_CLAIMER_SUFFIX,
                                       TENON_GRAPH_CLAIMER_VERSION, &kClaimer<kProducts>, err);
}

constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "claimers",
    .version = "1.0.0",
    .vendor = "tests",
    .start = start,
};

}  // namespace

TENON_PLUGIN(kPlugin)
