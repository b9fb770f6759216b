// SPDX-License-Identifier: Apache-2.0
// The plugin: one service, and a layer from the first recording on.
#include <tenon/plugin.hpp>

#include <tenon/error.hpp>

#include <algorithm>
#include <cstring>

#include "ir/alias_analysis.hpp"
#include "ir/describe_step.hpp"
#include "ir/verify.hpp"
#include "passes/editor.hpp"
#include "passes/pipeline.hpp"
#include "passes/registry.hpp"
#include "program/overlap.hpp"
#include "program/run.hpp"
#include "record/builder.hpp"
#include "record/compare_recordings.hpp"
#include "record/move.hpp"
#include "record/record_service.hpp"
#include "record/unify.hpp"
#include "record/with_names.hpp"
#include "rewrite/check.hpp"
#include "rewrite/registry.hpp"
#include "support/claimer.hpp"
#include "support/host.hpp"
#include "text/file.hpp"
#include "text/text.hpp"

namespace tenon::graph {
namespace {

// -- programs ------------------------------------------------------------------------------------

void program_retain(tenon_graph_program* program) {
  program->references.fetch_add(1, std::memory_order_relaxed);
}
void program_release(tenon_graph_program* program) { ProgramPtr(program).reset(); }

tenon_status program_settle(const tenon_graph_program* first, const tenon_graph_program* second,
                            tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] { *out = compare_recordings(*first, *second).release(); });
}

uint32_t program_inputs(const tenon_graph_program* program) {
  return static_cast<uint32_t>(program->graph.inputs.size());
}
uint32_t program_results(const tenon_graph_program* program) {
  return static_cast<uint32_t>(program->graph.results.size());
}
uint32_t program_steps(const tenon_graph_program* program) {
  return static_cast<uint32_t>(program->graph.steps.size());
}
uint32_t program_leaves(const tenon_graph_program* program) {
  return static_cast<uint32_t>(program->graph.leaves.size());
}

tenon_status program_leaf(const tenon_graph_program* program, uint32_t index, const char** name,
                          tenon_tensor** tensor, int32_t* is_constant, tenon_err* err) {
  return guarded(err, [&] {
    const Leaf& leaf = program->graph.leaves.at(index);
    *name = leaf.name.c_str();
    *tensor = leaf.tensor.get();
    *is_constant = leaf.is_constant;
  });
}

// `program` with other tensors or names for its leaves.
ProgramPtr bind_leaves(const Program& program, tenon_tensor* const* leaves,
                       const char* const* names) {
  ProgramPtr bound = copy_program(program);
  for (size_t i = 0; i < bound->graph.leaves.size(); ++i) {
    Leaf& leaf = bound->graph.leaves[i];
    if (names && names[i]) leaf.name = names[i];
    if (!leaves || !leaves[i]) continue;
    const Type& expected = bound->graph.values[leaf.value];
    if (type_of(*leaves[i]) != expected)
      throw Error(TENON_INVALID_ARGUMENT, "program: leaf " + std::to_string(i) + ": expected " +
                                              type_text(expected) + ", got " +
                                              type_text(type_of(*leaves[i])));
    leaf.tensor = Tensor::borrow(leaves[i]);
    leaf.grad = {};
  }
  if (bound->needs_disjoint_inputs) check_leaves_disjoint(program.graph, bound->graph);
  return bound;
}

tenon_status program_bind(const tenon_graph_program* program, tenon_tensor* const* leaves,
                          const char* const* names, tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] {
    auto bind = [&](const Program& each) { return bind_leaves(each, leaves, names); };
    *out = changed(*program, bind).release();
  });
}

ProgramPtr optimize(const Program& program, const char* passes) {
  ProgramPtr changed(new Program);
  changed->graph = program.graph;
  changed->is_detached = program.is_detached;
  changed->refuses_gradients = program.refuses_gradients;
  changed->changes = program.changes;
  const bool passes_gradients = !changed->is_detached && changed->refuses_gradients.empty();
  changed->needs_disjoint_inputs =
      run_passes(passes, changed->graph, passes_gradients, changed->changes) ||
      program.needs_disjoint_inputs;
  verify(changed->graph);
  return changed;
}

// The passes but for one.
std::string without(std::string_view passes, std::string_view left_out) {
  std::string kept;
  while (!passes.empty()) {
    const size_t end = std::min(passes.find(','), passes.size());
    const std::string_view name = passes.substr(0, end);
    passes.remove_prefix(std::min(end + 1, passes.size()));
    if (name.substr(0, name.find('=')) == left_out) continue;
    kept += (kept.empty() ? "" : ",") + std::string(name);
  }
  return kept;
}

tenon_status program_optimize(const tenon_graph_program* program, const char* passes,
                              tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] {
    const auto run = [&](const std::string& names) {
      return changed(*program, [&](const Program& each) { return optimize(each, names.c_str()); });
    };
    // Passes see the program at single sizes. What is made of constants and sizes, as a row that is expanded to a batch, is other
    // data at each; steps that differ by a size are equal where two sizes are.
    std::string names = passes;
    for (const char* left_out : {"fold", "cse"}) {
      try {
        *out = run(names).release();
        return;
      } catch (const Error& error) {
        if (!program->dimensions || error.code() != TENON_FAILED_PRECONDITION) throw;
        names = without(names, left_out);
      }
    }
    *out = run(names).release();
  });
}

// -- programs of many sizes ----------------------------------------------------------------------

Dimensions dimensions_of(const tenon_graph_dimension* list, uint32_t count) {
  Dimensions dimensions;
  for (uint32_t i = 0; i < count; ++i)
    dimensions.list.push_back(
        {list[i].name, list[i].min, list[i].max, list[i].multiple, list[i].recorded});
  return dimensions;
}

tenon_status program_samples(const tenon_graph_dimension* dimensions, uint32_t ndimensions,
                             int64_t* sizes, uint32_t room, uint32_t* count, tenon_err* err) {
  return guarded(err, [&] {
    const std::vector<Sizes> samples = dimensions_of(dimensions, ndimensions).samples();
    *count = static_cast<uint32_t>(samples.size());
    for (size_t i = 0; i < samples.size() && i < room; ++i)
      std::copy(samples[i].begin(), samples[i].end(), sizes + i * ndimensions);
  });
}

tenon_status program_unify(const tenon_graph_dimension* list, uint32_t ndimensions,
                           const tenon_graph_program* const* programs,
                           const char* const* requirements, uint32_t count,
                           tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] {
    Dimensions dimensions = dimensions_of(list, ndimensions);
    const std::vector<Sizes> sizes = dimensions.samples();
    if (count != sizes.size())
      throw Error(TENON_INVALID_ARGUMENT, "program: expected " + std::to_string(sizes.size()) +
                                              " samples of these dimensions, got " +
                                              std::to_string(count));
    std::vector<Sample> samples;
    for (uint32_t i = 0; i < count; ++i)
      samples.push_back({programs[i], sizes[i], requirements ? requirements[i] : ""});
    *out = unify(std::move(dimensions.list), samples).release();
  });
}

uint32_t program_dimensions(const tenon_graph_program* program) {
  return program->dimensions ? static_cast<uint32_t>(program->dimensions->list.size()) : 0;
}

tenon_status program_dimension(const tenon_graph_program* program, uint32_t index,
                               tenon_graph_dimension* out, tenon_err* err) {
  return guarded(err, [&] {
    if (index >= program_dimensions(program)) throw std::out_of_range("no such dimension");
    const Dimension& dimension = program->dimensions->list[index];
    const tenon_graph_dimension all = {.struct_size = out->struct_size,
                                       .reserved = 0,
                                       .name = dimension.name.c_str(),
                                       .min = dimension.min,
                                       .max = dimension.max,
                                       .multiple = dimension.multiple,
                                       .recorded = dimension.recorded};
    std::memcpy(out, &all, std::min<size_t>(out->struct_size, sizeof all));
  });
}

void program_print(const tenon_graph_program* program, tenon_sink_fn sink, void* user) {
  const std::string text = program_text(*program);
  sink(user, text.data(), text.size());
}

// What runs at the recorded sizes: of a program of many, whose own plan never runs, the one for these.
Instances::Made at_recorded_sizes(const Program& program) {
  if (program.dimensions) return instance_of(program, program.dimensions->recorded());
  return {&program, [](const Program*) {}};  // borrowed
}

void program_plan(const tenon_graph_program* program, tenon_sink_fn sink, void* user) {
  guarded(nullptr, [&] {
    const std::string text = at_recorded_sizes(*program)->plan().text();
    sink(user, text.data(), text.size());
  });
}

void program_memory(const tenon_graph_program* program, tenon_graph_memory* out) {
  MemoryUse use;
  guarded(nullptr, [&] { use = program->plan().memory(); });
  const tenon_graph_memory all = {.struct_size = out->struct_size,
                                  .reserved = 0,
                                  .kept = static_cast<uint64_t>(use.kept),
                                  .stepwise = static_cast<uint64_t>(use.stepwise),
                                  .planned = static_cast<uint64_t>(use.planned)};
  std::memcpy(out, &all, std::min<size_t>(out->struct_size, sizeof all));
}

void program_effects(const tenon_graph_program* program, tenon_graph_effects* out) {
  const Graph& graph = program->graph;
  const tenon_graph_effects all = {
      .struct_size = out->struct_size,
      .writes_outside = writes_outside(graph),
      .sets_grad = !graph.grads.empty(),
      .has_control_flow = std::any_of(graph.steps.begin(), graph.steps.end(),
                                      [](const Step& step) { return !step.regions.empty(); })};
  std::memcpy(out, &all, std::min<size_t>(out->struct_size, sizeof all));
}

tenon_status program_read(const tenon_graph_program* program,
                          tenon_status (*read)(void* user, const tenon_graph_editor*,
                                               const tenon_graph_editor_api*, tenon_err*),
                          void* user, tenon_err* err) {
  tenon_status status = TENON_OK;
  TENON_TRY(guarded(err, [&] {
    Graph graph = program->graph;
    const tenon_graph_editor editor(graph);
    status = read(user, &editor, &kReader, err);
  }));
  return status;
}

uint32_t program_sites(const tenon_graph_program* program, tenon_graph_site* sites, uint32_t room) {
  if (!program->dimensions) return 0;
  const auto& list = program->dimensions->sites;
  for (size_t i = 0; i < list.size() && i < room; ++i)
    sites[i] = {.input = list[i].input, .axis = list[i].axis, .dimension = list[i].dimension};
  return static_cast<uint32_t>(list.size());
}

tenon_status program_prepare(const tenon_graph_program* program, tenon_err* err) {
  return guarded(err, [&] {
    const ErrorSink own;
    own.check(program->plan().check_operators(own));
  });
}

void program_changes(const tenon_graph_program* program, tenon_sink_fn sink, void* user) {
  for (const std::string& change : program->changes) {
    const std::string line = change + "\n";
    sink(user, line.data(), line.size());
  }
}

tenon_status rewrite_add(const tenon_graph_rewrite* rewrite, tenon_err* err) {
  return guarded(err, [&] { add_rule(*rewrite); });
}

tenon_status rewrite_remove(const char* name, tenon_err* err) {
  return guarded(err, [&] { remove_rule(name); });
}

tenon_status rewrite_check(const char* name, uint64_t seed, tenon_err* err) {
  return guarded(err, [&] { check_rule(*rule_named(name), seed); });
}

void rewrite_list(void (*visit)(void* user, const tenon_graph_rewrite*), void* user) {
  guarded(nullptr, [&] {
    for (const std::shared_ptr<const Rule>& rule : all_rules()) {
      const tenon_graph_rewrite text = rule->text();
      visit(user, &text);
    }
  });
}

tenon_status pass_add(const tenon_graph_pass* pass, tenon_err* err) {
  return guarded(err, [&] { add_pass(*pass); });
}

tenon_status pass_remove(const char* name, tenon_err* err) {
  return guarded(err, [&] { remove_pass(name); });
}

tenon_status program_parse(const char* text, uint64_t bytes, tenon_graph_program** out,
                           tenon_err* err) {
  return guarded(err, [&] {
    ProgramPtr program = parse_program({text, bytes});
    *out = program.release();
  });
}

tenon_status program_load(const char* path, tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] { *out = load_program(path).release(); });
}

tenon_status program_save(const tenon_graph_program* program, const char* path, tenon_err* err) {
  return guarded(err, [&] { save_program(*program, path); });
}

tenon_status program_run(const tenon_graph_program* program, tenon_tensor* const* inputs,
                         uint32_t ninputs, tenon_tensor** results, uint32_t nresults,
                         tenon_err* err) {
  return run_program(*program, inputs, ninputs, results, nresults, {}, err);
}

tenon_status program_run_with(const tenon_graph_program* program, tenon_tensor* const* inputs,
                              uint32_t ninputs, tenon_tensor** results, uint32_t nresults,
                              const tenon_graph_run_options* options, tenon_err* err) {
  RunOptions given = {};
  if (options) std::memcpy(&given, options, std::min<size_t>(options->struct_size, sizeof given));
  return run_program(*program, inputs, ninputs, results, nresults, given, err);
}

// -- names and types --------------------------------------------------------------------------------

tenon_status program_name(const tenon_graph_program* program, const char* const* inputs,
                          const char* const* results, tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] {
    auto name = [&](const Program& each) { return with_names(each, inputs, results); };
    *out = changed(*program, name).release();
  });
}

tenon_status program_input(const tenon_graph_program* program, uint32_t index,
                           tenon_graph_value_info* out, tenon_err* err) {
  return guarded(err, [&] { write_out(program->signature().inputs.at(index), out); });
}

tenon_status program_result(const tenon_graph_program* program, uint32_t index,
                            tenon_graph_value_info* out, tenon_err* err) {
  return guarded(err, [&] { write_out(program->signature().results.at(index), out); });
}

void program_each_step(const tenon_graph_program* program,
                       void (*visit)(void* user, const tenon_graph_step*), void* user) {
  guarded(nullptr, [&] {
    for_each_step(program->graph, [&](tenon_graph_step step) {
      step.struct_size = sizeof step;
      visit(user, &step);
    });
  });
}

tenon_status program_move(const tenon_graph_program* program, tenon_device_id device,
                          tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] { *out = move_program(*program, device).release(); });
}

// -- claimers ----------------------------------------------------------------------------------------

tenon_status program_claim(const tenon_graph_program* program, const char* name,
                           const char* options, tenon_graph_program** out, tenon_err* err) {
  return guarded(err, [&] {
    const auto claimer =
        std::make_shared<const Claimer>(name, options ? options : "", program->graph.numerics);
    auto claim = [&](const Program& each) {
      ProgramPtr made = copy_program(each);
      std::vector<ClaimerPtr> all = made->graph.claimers;
      all.push_back(claimer);
      set_claimers(made->graph, all);
      return made;
    };
    *out = changed(*program, claim).release();
  });
}

tenon_status program_claims(const tenon_graph_program* program,
                            void (*visit)(void* user, const tenon_graph_claim*), void* user,
                            tenon_err* err) {
  return guarded(err, [&] {
    at_recorded_sizes(*program)->plan().for_each_claim(
        [&](uint32_t begin, uint32_t end, const std::string& claimer, const std::string& problem) {
          const tenon_graph_claim claim = {.struct_size = sizeof claim,
                                           .begin = begin,
                                           .end = end,
                                           .reserved = 0,
                                           .claimer = claimer.c_str(),
                                           .problem = problem.c_str()};
          visit(user, &claim);
        });
  });
}

// -- programs that are built ------------------------------------------------------------------------

tenon_status builder_begin(tenon_device_id device, tenon_graph_builder** out, tenon_err* err) {
  return guarded(err, [&] {
    *out = new tenon_graph_builder(device == TENON_DEVICE_NONE ? host->device_host() : device);
  });
}

tenon_status builder_input(tenon_graph_builder* builder, int32_t dtype, int32_t ndim,
                           const int64_t* shape, tenon_device_id device, tenon_tensor** value,
                           tenon_err* err) {
  return guarded(err, [&] {
    *value = builder->add_input({dtype, device, Axes(shape, shape + ndim)}).release();
  });
}

tenon_status builder_leaf(tenon_graph_builder* builder, tenon_tensor* tensor, const char* name,
                          int32_t is_constant, tenon_tensor** value, tenon_err* err) {
  return guarded(err,
                 [&] { *value = builder->add_leaf(tensor, name, is_constant != 0).release(); });
}

tenon_status builder_call(tenon_graph_builder* builder, const tenon_op* op, const tenon_value* args,
                          uint32_t nargs, tenon_value* outs, uint32_t nouts, tenon_err* err) {
  return builder->call(op, args, nargs, outs, nouts, err);
}

tenon_status builder_control(tenon_graph_builder* builder, int32_t kind,
                             tenon_tensor* const* operands, uint32_t noperands, uint32_t ncarried,
                             uint32_t nscanned, tenon_graph_program* const* regions,
                             uint32_t nregions, tenon_tensor** results, uint32_t nresults,
                             tenon_err* err) {
  return guarded(err, [&] {
    if (kind < TENON_GRAPH_STEP_COND || kind > TENON_GRAPH_STEP_SCAN)
      throw Error(TENON_INVALID_ARGUMENT, "builder: expected a step of kind COND, WHILE or SCAN");
    std::vector<Tensor> made =
        builder->add_control(static_cast<StepKind>(kind), operands, noperands, ncarried, nscanned,
                             regions, nregions, nresults);
    for (uint32_t i = 0; i < nresults; ++i) results[i] = made[i].release();
  });
}

tenon_status builder_gradients(tenon_graph_builder* builder, tenon_tensor* result,
                               tenon_tensor* const* values, uint32_t nvalues,
                               tenon_tensor** gradients, tenon_err* err) {
  return guarded(err, [&] {
    std::vector<Tensor> made = builder->gradients(result, values, nvalues);
    for (uint32_t i = 0; i < nvalues; ++i) gradients[i] = made[i].release();
  });
}

tenon_status builder_value(const tenon_graph_builder* builder, const tenon_tensor* value,
                           tenon_device_id* device, tenon_tensor** constant, tenon_err* err) {
  return guarded(err, [&] {
    *device = builder->device(value);
    *constant = builder->constant(value);
  });
}

void builder_locate(tenon_graph_builder* builder, const char* file, int32_t line) {
  guarded(nullptr, [&] { builder->locate(file, line); });
}

tenon_status builder_end(tenon_graph_builder* builder, tenon_tensor* const* results,
                         uint32_t nresults, tenon_graph_program** out, tenon_err* err) {
  const std::unique_ptr<tenon_graph_builder> owned(builder);
  return guarded(err, [&] { *out = owned->finish(results, nresults).release(); });
}

void builder_abandon(tenon_graph_builder* builder) { delete builder; }

constexpr tenon_graph_service_api kService = {
    .struct_size = sizeof(tenon_graph_service_api),
    .version = TENON_GRAPH_VERSION,
    .record_begin = record_begin,
    .record_end = record_end,
    .record_abandon = record_abandon,
    .is_recording = is_recording,
    .record_read = record_read,
    .record_grad = record_grad,
    .record_note = record_note,
    .region_begin = region_begin,
    .region_end = region_end,
    .region_abandon = region_abandon,
    .record_suspend = record_suspend,
    .record_resume = region_abandon,
    .record_cond = record_cond,
    .record_while = record_while,
    .record_scan = record_scan,
    .program_retain = program_retain,
    .program_release = program_release,
    .program_settle = program_settle,
    .program_inputs = program_inputs,
    .program_results = program_results,
    .program_steps = program_steps,
    .program_leaves = program_leaves,
    .program_leaf = program_leaf,
    .program_bind = program_bind,
    .program_run = program_run,
    .program_optimize = program_optimize,
    .program_print = program_print,
    .program_parse = program_parse,
    .program_load = program_load,
    .program_plan = program_plan,
    .program_memory = program_memory,
    .rewrite_add = rewrite_add,
    .rewrite_remove = rewrite_remove,
    .rewrite_check = rewrite_check,
    .rewrite_list = rewrite_list,
    .pass_add = pass_add,
    .pass_remove = pass_remove,
    .program_changes = program_changes,
    .program_samples = program_samples,
    .program_unify = program_unify,
    .program_dimensions = program_dimensions,
    .program_dimension = program_dimension,
    .region_hide = region_hide,
    .record_join = record_join,
    .record_effect = record_effect,
    .record_look = record_look,
    .program_effects = program_effects,
    .program_read = program_read,
    .program_sites = program_sites,
    .program_prepare = program_prepare,
    .builder_begin = builder_begin,
    .builder_input = builder_input,
    .builder_leaf = builder_leaf,
    .builder_call = builder_call,
    .builder_value = builder_value,
    .builder_locate = builder_locate,
    .builder_end = builder_end,
    .builder_abandon = builder_abandon,
    .builder_control = builder_control,
    .program_name = program_name,
    .program_input = program_input,
    .program_result = program_result,
    .program_each_step = program_each_step,
    .program_run_with = program_run_with,
    .program_move = program_move,
    .program_claim = program_claim,
    .program_claims = program_claims,
    .builder_gradients = builder_gradients,
    .program_save = program_save,
};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_GRAPH_SERVICE, TENON_GRAPH_VERSION, &kService, err);
}

// `stop` is absent: a layer stays until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "graph",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::graph

TENON_PLUGIN(tenon::graph::kPlugin)
