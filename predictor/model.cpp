// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <tenon/error.hpp>

#include <algorithm>

#include "cast.hpp"
#include "graph_service.hpp"
#include "packed_weights.hpp"

namespace tenon::predictor {
namespace {

template <class Make>
Program made(const std::string& what, Make&& make) {
  tenon_graph_program* program = nullptr;
  const ErrorSink err;
  const tenon_status status = make(&program, static_cast<tenon_err*>(err));
  if (status != TENON_OK) throw Error(status, what + host->err_text(err));
  return Program(program);
}

// Sizes of other files than models of ONNX are part of them.
void refuse_sizes(const Config& config) {
  for (const char* key : {"sizes", "shapes"})
    if (!config.get(key).empty())
      throw Error(TENON_INVALID_ARGUMENT,
                  std::string("config: `") + key +
                      "`: expected with a file whose name ends in .onnx, got " + config.path() +
                      ", whose sizes are part of it: export it with a tenon.Dim");
}

Program loaded(const Config& config) {
  refuse_sizes(config);
  return made("", [&](tenon_graph_program** out, tenon_err* err) {
    return graph_service().program_load(config.path().c_str(), out, err);
  });
}

Program without_effects(Program program, const std::string& path) {
  tenon_graph_effects effects = {};
  effects.struct_size = sizeof effects;
  graph_service().program_effects(program.get(), &effects);
  if (effects.writes_outside || effects.sets_grad)
    throw Error(TENON_FAILED_PRECONDITION,
                path + ": the program " + (effects.sets_grad ? "sets .grad of" : "writes into") +
                    " its weights or inputs, which clones share; a predictor runs programs for "
                    "inference: export the model in eval() and under tenon.no_grad()");
  return program;
}

// Where the program is, by its first value that has a place.
tenon_device_id device_of(const tenon_graph_program* program) {
  tenon_device_id device = TENON_DEVICE_NONE;
  graph_service().program_each_step(
      program,
      [](void* user, const tenon_graph_step* step) {
        auto* found = static_cast<tenon_device_id*>(user);
        if (*found == TENON_DEVICE_NONE) *found = step->device;
      },
      &device);
  return device == TENON_DEVICE_NONE ? host->device_host() : device;
}

Program on_device(Program program, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return program;
  std::string reasons;
  for (const std::string& name : wanted) {
    tenon_device_id device = TENON_DEVICE_NONE;
    const ErrorSink err;
    if (host->device_find(name.c_str(), &device, err) != TENON_OK) {
      reasons += "\n  " + name + ": " + host->err_text(err);
      continue;
    }
    return made("device " + name + ": ", [&](tenon_graph_program** out, tenon_err* failure) {
      return graph_service().program_move(program.get(), device, out, failure);
    });
  }
  throw Error(TENON_NOT_FOUND, "config: `device`: none of the devices is there:" + reasons);
}

// How a program came here. Models of ONNX may make weights by filling, which is done once where sizes
// are fixed; programs of single sizes, of which there may be many, share what they hold.
enum class Source : uint8_t { kProgram, kOnnx, kOnnxOfFixedSizes };

std::string passes_of(const Config& config, Source source) {
  const std::string& numerics = config.get("numerics");
  // Weights belong to the model alone, and no program here writes them: they are constants where
  // they lie. Programs were optimized when they were exported; models of ONNX are as imported.
  std::string passes = "freeze=share";
  if (source == Source::kOnnxOfFixedSizes) passes += ",fold=all";
  if (source != Source::kProgram && numerics == "exact")
    passes += ",fold,dce,cse,rewrites,copies,views";
  if (numerics != "exact") {
    if (numerics == "fast") passes += ",batch_norms,fold";
    passes += ",dce,cse,rewrites=" + numerics;
    for (const std::string& rewrite : config.list("without")) passes += "!" + rewrite;
    passes += ",copies,views";
  } else if (!config.get("without").empty()) {
    throw Error(TENON_INVALID_ARGUMENT,
                "config: `without` leaves out rewrites of `numerics` 'ulp' or 'fast', got 'exact', "
                "with which none are applied at loading; export the program without them");
  }
  for (const std::string& pass : config.list("passes")) passes += "," + pass;
  return passes;
}

Program optimized(Program program, const Config& config, Source source) {
  const std::string passes = passes_of(config, source);
  return made("passes '" + passes + "': ", [&](tenon_graph_program** out, tenon_err* err) {
    return graph_service().program_optimize(program.get(), passes.c_str(), out, err);
  });
}

std::set<std::string> claimers_of(const Config& config) {
  std::set<std::string> names;
  for (const ChosenClaimer& each : parse_claimers(config.get("subgraphs"))) names.insert(each.name);
  return names;
}

Program claimed(Program program, const Config& config) {
  for (const ChosenClaimer& each : parse_claimers(config.get("subgraphs")))
    program = made("config: `subgraphs`: ", [&](tenon_graph_program** out, tenon_err* err) {
      return graph_service().program_claim(program.get(), each.name.c_str(), each.options.c_str(),
                                           out, err);
    });
  return program;
}

std::vector<Step> steps_with_claims(const tenon_graph_program* program,
                                    const std::set<std::string>& claimers) {
  std::vector<Step> steps = steps_of(program);
  if (!claimers.empty()) find_claims(program, claimers, steps);
  return steps;
}

std::shared_ptr<const Prepared> prepared(Program program, const Config& config, Source source) {
  program = on_device(without_effects(std::move(program), config.path()), config.list("device"));
  if (const std::string& dtype = config.get("dtype"); !dtype.empty())
    program = in_mixed_precision(std::move(program), host->dtype_find(dtype.c_str()));
  program = claimed(optimized(std::move(program), config, source), config);
  return std::make_shared<const Prepared>(std::move(program), claimers_of(config));
}

std::shared_ptr<const Prepared> first_prepared(OnnxFile* onnx, const Config& config) {
  if (!onnx) return prepared(loaded(config), config, Source::kProgram);
  Program program = onnx->load();
  if (onnx->dimensions().empty())
    return prepared(std::move(program), config, Source::kOnnxOfFixedSizes);
  if (!onnx->reason().empty()) return prepared(std::move(program), config, Source::kOnnx);
  try {
    return prepared(std::move(program), config, Source::kOnnx);
  } catch (const Error& error) {
    // Passes see a program at single sizes, and may find more to do at some.
    if (error.code() != TENON_FAILED_PRECONDITION) throw;
    return prepared(onnx->give_up(error.what()), config, Source::kOnnx);
  }
}

std::unique_ptr<OnnxFile> onnx_file(const Config& config) {
  return OnnxFile::is_one(config.path()) ? std::make_unique<OnnxFile>(config) : nullptr;
}

}  // namespace

void ReleaseProgram::operator()(tenon_graph_program* program) const {
  graph_service().program_release(program);
}

Prepared::Prepared(Program made, const std::set<std::string>& claimers)
    : program(std::move(made)), steps(steps_with_claims(program.get(), claimers)) {
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].depth == 0) outer_.push_back(i);
}

Model::Model(const Config& config)
    : config_(config),
      onnx_(onnx_file(config)),
      recorded_(first_prepared(onnx_.get(), config)),
      signature_(recorded_->program.get()),
      device_(device_of(recorded_->program.get())),
      device_text_(device_text(device_)) {
  check_fallbacks(*recorded_);
  if (is_one_program()) return;
  if (config.is_on("profile"))
    throw Error(TENON_UNSUPPORTED,
                config.path() +
                    ": `profile`: expected one program of all sizes, whose steps are timed, got "
                    "one for each size, as " +
                    onnx_->reason() + "; set `sizes` to one size");
  signature_.open(onnx_->dimensions());
  for (const OnnxFile::Site& site : onnx_->sites())
    signature_.inputs[site.input].dimensions[site.axis] = static_cast<int32_t>(site.dimension);
}

std::vector<int64_t> Model::sizes_of(const std::vector<tenon_tensor*>& inputs) const {
  std::vector<int64_t> sizes(signature_.dimensions.size(), -1);
  std::vector<const Value*> from(sizes.size());
  for (const auto& [input, axis, dimension] : onnx_->sites()) {
    const int64_t size = inputs[input]->shape[axis];
    const Value& value = signature_.inputs[input];
    if (sizes[dimension] >= 0 && sizes[dimension] != size)
      throw Error(TENON_INVALID_ARGUMENT,
                  "run: input '" + value.name + "': expected size " +
                      std::to_string(sizes[dimension]) + " of axis " + std::to_string(axis) +
                      ", as " + signature_.dimensions[dimension].name + " is in '" +
                      from[dimension]->name + "', got " + std::to_string(size));
    sizes[dimension] = size;
    from[dimension] = &value;
  }
  return sizes;
}

std::shared_ptr<const Prepared> Model::for_inputs(const std::vector<tenon_tensor*>& inputs) const {
  if (is_one_program()) return recorded_;
  const std::vector<int64_t> sizes = sizes_of(inputs);
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(instances_.begin(), instances_.end(),
                                  [&](const Instance& each) { return each.first == sizes; });
  if (known != instances_.end()) {
    instances_.splice(instances_.begin(), instances_, known);
    return known->second;
  }
  std::shared_ptr<const Prepared> made = prepared(onnx_->at(sizes), config_, Source::kOnnx);
  check_fallbacks(*made);
  instances_.emplace_front(sizes, made);
  constexpr size_t kMaxInstances = 32;
  if (instances_.size() > kMaxInstances) instances_.pop_back();
  return made;
}

std::string Model::explain() const {
  const tenon_graph_program* program = recorded_->program.get();
  std::string text = predictor::explain(program, steps_with_claims(program, claimers_of(config_)));
  text += packed_weights_text(program);
  if (!is_one_program())
    text +=
        "each size has a program of its own, of which the last 32 are kept: " + onnx_->reason() +
        "\n";
  return text;
}

const std::string& Model::setting(const std::string& key) const {
  return key == "device" ? device_text_ : config_.get(key);
}

uint64_t Model::weight_bytes() const {
  uint64_t bytes = 0;
  for (const tenon_tensor* tensor : weights_of(recorded_->program.get()))
    bytes += static_cast<uint64_t>(tensor->numel) * host->dtype_size(tensor->dtype);
  return bytes;
}

// Steps for which their device has no kernel. Whether a kernel declines its arguments shows when it runs.
void Model::check_fallbacks(const Prepared& prepared) const {
  check_unclaimed(prepared);
  const std::string& policy = config_.get("fallback");
  std::string list;
  for (const Step& step : prepared.steps)
    if (!step.is_on_host && step.route == Route::kHost)
      list += "\n  " + step.name + " of " + step.dtype + " on " + step.device +
              (step.place().empty() ? "" : " at " + step.place());
  if (list.empty() || policy == "allow") return;
  const std::string text = config_.path() + ": the host would run these steps, with copies:" + list;
  if (policy == "deny")
    throw Error(TENON_PERMISSION_DENIED,
                text +
                    "\n  `fallback` is deny; bring kernels for them, run the program on the "
                    "host, or set `fallback` to allow");
  host->log(2, text.data(), text.size());
}

// Steps that compute and that no claimer takes.
void Model::check_unclaimed(const Prepared& prepared) const {
  const std::string& policy = config_.get("fallback");
  if (config_.get("subgraphs").empty() || policy == "allow") return;
  std::string list;
  for (const Step& step : prepared.steps)
    if (step.claimer.empty() && step.route != Route::kNone)
      list += "\n  " + step.name + " of " + step.dtype +
              (step.place().empty() ? "" : " at " + step.place());
  if (list.empty()) return;
  const std::string text = config_.path() + ": no claimer of `subgraphs` (" +
                           config_.get("subgraphs") +
                           ") takes these steps, which kernels run:" + list;
  if (policy == "deny")
    throw Error(TENON_PERMISSION_DENIED,
                text + "\n  `fallback` is deny; set it to allow, or leave `subgraphs` out");
  host->log(2, text.data(), text.size());
}

bool Model::has_claims_alone() const {
  return !config_.get("subgraphs").empty() && config_.get("fallback") == "deny";
}

void Model::check_claims() const {
  const std::string list = claim_problems(recorded_->program.get(), claimers_of(config_));
  if (!list.empty())
    throw Error(TENON_PERMISSION_DENIED,
                config_.path() + ": kernels run steps that claimers of `subgraphs` (" +
                    config_.get("subgraphs") + ") have claimed:" + list +
                    "\n  `fallback` is deny; leave their operators out by the claimer's "
                    "`exclude`, or set `fallback` to allow");
}

}  // namespace tenon::predictor
