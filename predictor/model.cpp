// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <tenon/error.hpp>

#include "cast.hpp"
#include "graph_service.hpp"

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

Program loaded(const std::string& path) {
  Program program = made("", [&](tenon_graph_program** out, tenon_err* err) {
    return graph_service().program_load(path.c_str(), out, err);
  });
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

std::string passes_of(const Config& config) {
  const std::string& numerics = config.get("numerics");
  std::string passes;
  if (numerics != "exact") {
    if (numerics == "fast") passes = "freeze,batch_norms,fold,";
    passes += "dce,cse,rewrites=" + numerics;
    for (const std::string& rewrite : config.list("without")) passes += "!" + rewrite;
    passes += ",copies,views";
  } else if (!config.get("without").empty()) {
    throw Error(TENON_INVALID_ARGUMENT,
                "config: `without` leaves out rewrites of `numerics` 'ulp' or 'fast', got 'exact', "
                "with which none are applied at loading; export the program without them");
  }
  for (const std::string& pass : config.list("passes"))
    passes += (passes.empty() ? "" : ",") + pass;
  return passes;
}

Program optimized(Program program, const Config& config) {
  const std::string passes = passes_of(config);
  if (passes.empty()) return program;
  return made("passes '" + passes + "': ", [&](tenon_graph_program** out, tenon_err* err) {
    return graph_service().program_optimize(program.get(), passes.c_str(), out, err);
  });
}

Program prepared(const Config& config) {
  Program program = on_device(loaded(config.path()), config.list("device"));
  if (const std::string& dtype = config.get("dtype"); !dtype.empty())
    program = in_mixed_precision(std::move(program), host->dtype_find(dtype.c_str()));
  return optimized(std::move(program), config);
}

}  // namespace

void ReleaseProgram::operator()(tenon_graph_program* program) const {
  graph_service().program_release(program);
}

Model::Model(const Config& config)
    : config_(config),
      program_(prepared(config)),
      signature_(program_.get()),
      steps_(steps_of(program_.get())),
      device_(device_of(program_.get())),
      device_text_(device_text(device_)) {
  for (size_t i = 0; i < steps_.size(); ++i)
    if (steps_[i].depth == 0) outer_.push_back(i);
  check_fallbacks();
}

const std::string& Model::setting(const std::string& key) const {
  return key == "device" ? device_text_ : config_.get(key);
}

uint64_t Model::weight_bytes() const {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < graph_service().program_leaves(program_.get()); ++i) {
    const char* name;
    tenon_tensor* tensor;
    int32_t is_constant;
    const ErrorSink err;
    err.check(graph_service().program_leaf(program_.get(), i, &name, &tensor, &is_constant, err));
    if (tensor) bytes += static_cast<uint64_t>(tensor->numel) * host->dtype_size(tensor->dtype);
  }
  return bytes;
}

// Steps for which their device has no kernel. Whether a kernel declines its arguments shows when it runs.
void Model::check_fallbacks() const {
  const std::string& policy = config_.get("fallback");
  std::string list;
  for (const Step& step : steps_)
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

}  // namespace tenon::predictor
