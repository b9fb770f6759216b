// SPDX-License-Identifier: Apache-2.0
#include "predictor.hpp"

#include <algorithm>
#include <cstring>

#include "fallback.hpp"
#include "graph_service.hpp"
#include "plain_thread.hpp"
#include "view.hpp"
#include "warmup.hpp"

namespace tenon::predictor {
namespace {

Tensor copy_on(tenon_device_id device, const tenon_tensor* tensor) {
  const ErrorSink err;
  tenon_tensor* made;
  err.check(host->tensor_create(device, tensor->dtype, tensor->ndim, tensor->shape, &made, err));
  Tensor copy = Tensor::adopt(made);
  err.check(host->tensor_copy(made, const_cast<tenon_tensor*>(tensor), err));
  return copy;
}

bool share_memory(const Tensor& a, const Tensor& b) {
  const void* storage = host->tensor_storage(a.get());
  return a.get() == b.get() || (storage && storage == host->tensor_storage(b.get()));
}

bool is_dense_on_host(const tenon_tensor* tensor) {
  return tensor->device == host->device_host() && tensor->flags & TENON_TENSOR_CONTIGUOUS;
}

}  // namespace

Predictor::Predictor(std::shared_ptr<const Model> model)
    : model_(std::move(model)),
      threads_(model_->config()),
      bindings_(*model_),
      outputs_(model_->signature().outputs.size()),
      host_outputs_(outputs_.size()),
      results_(outputs_.size()),
      deadline_(std::stoll(model_->config().get("deadline_ms"))),
      is_profiled_(model_->config().is_on("profile")) {}

std::shared_ptr<Predictor> Predictor::load(const Config& config) {
  auto predictor = std::make_shared<Predictor>(std::make_shared<const Model>(config));
  const Model& model = *predictor->model_;
  const bool may_fall_back = model.device() != host->device_host();
  const bool is_denied = may_fall_back && config.get("fallback") == "deny";
  const bool has_claims_alone = model.has_claims_alone();
  const HostCalls before = is_denied ? host_calls(model.device()) : HostCalls();
  std::string shapes = config.get("warmup");
  // Claims are those of the recorded sizes, whatever else is warmed up.
  if (has_claims_alone || (is_denied && shapes.empty())) shapes += ";recorded";
  predictor->warmup(shapes);
  if (has_claims_alone) model.check_claims();
  if (is_denied) check_no_more(before, host_calls(model.device()), model);
  return predictor;
}

Predictor::Turn::Turn(Predictor& predictor, Purpose purpose) : predictor_(predictor) {
  State before = State::kFree;
  if (!predictor.state_.compare_exchange_strong(
          before, purpose == kRun ? State::kRunning : State::kBusy, std::memory_order_acquire))
    throw Error(TENON_FAILED_PRECONDITION,
                "the predictor is at work for another call; threads that run at once have a clone "
                "each (tenon_predictor_clone), and a hook cannot call it");
}

void Predictor::check(tenon_status status) const {
  if (status == TENON_OK) return;
  const std::string text = host->err_text(err_);
  host->err_clear(err_);
  throw Error(status, text);
}

void Predictor::run() {
  const tenon_graph_service_api& graph = graph_service();
  check(
      graph.record_effect("Predictor.run()",
                          " runs a program of its own, which none that is recorded can hold; call "
                          "the program from tenon.jit.load there",
                          err_));
  const PlainThread plain;
  const ThreadPool::Use threads(threads_);
  const std::vector<tenon_tensor*>& inputs = bindings_.inputs();
  running_ = model_->for_inputs(inputs);
  tenon_graph_run_options options = {};
  options.struct_size = sizeof options;
  options.into = bindings_.targets().data();
  options.user = this;
  options.before = before_step;
  // Leaves belong to all clones, and inputs to the caller.
  options.flags = TENON_GRAPH_RUN_OWN_RESULTS;
  if (hook_) options.flags |= TENON_GRAPH_RUN_ONE_BY_ONE;
  if (hook_ || is_profiled_) options.after = after_step;
  begin_ = last_ = Clock::now();
  const tenon_status status = graph.program_run_with(
      running_->program.get(), inputs.data(), static_cast<uint32_t>(inputs.size()), results_.data(),
      static_cast<uint32_t>(results_.size()), &options, err_);
  drop_outputs();
  check(status);
  for (size_t i = 0; i < results_.size(); ++i) outputs_[i] = Tensor::adopt(results_[i]);
  // A value that is returned twice, or beside a view of it, is memory of its own each time: who writes into one result changes
  // no other.
  for (size_t i = 1; i < outputs_.size(); ++i)
    if (std::any_of(outputs_.begin(), outputs_.begin() + static_cast<ptrdiff_t>(i),
                    [&](const Tensor& other) { return share_memory(outputs_[i], other); }))
      outputs_[i] = copy_on(outputs_[i]->device, outputs_[i].get());
  if (is_profiled_) profile_.add_run(Clock::now() - begin_);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (const Tensor& target = bindings_.copied_outputs()[i]) {
      const ErrorSink err;
      if (!std::equal(target->shape, target->shape + target->ndim, outputs_[i]->shape))
        throw Error(TENON_INVALID_ARGUMENT,
                    "output '" + model_->signature().outputs[i].name +
                        "': the memory that is bound to it is for other sizes than the run's");
      err.check(host->tensor_copy(target.get(), outputs_[i].get(), err));
    }
}

tenon_status Predictor::before_step(void* user, tenon_err* err) {
  const auto& self = *static_cast<const Predictor*>(user);
  if (self.state_.load(std::memory_order_relaxed) == State::kCancelled) [[unlikely]]
    return fail(err, TENON_CANCELLED, "run: cancelled by tenon_predictor_cancel");
  if (self.deadline_.count() > 0 && Clock::now() - self.begin_ > self.deadline_) [[unlikely]]
    return fail_format(err, TENON_DEADLINE_EXCEEDED,
                       "run: it takes longer than the deadline_ms of %lld",
                       static_cast<long long>(self.deadline_.count()));
  return TENON_OK;
}

tenon_status Predictor::after_step(void* user, uint32_t begin, uint32_t end,
                                   tenon_tensor* const* results, uint32_t nresults,
                                   tenon_err* err) {
  auto& self = *static_cast<Predictor*>(user);
  return guarded(err, [&] {
    if (self.is_profiled_) {
      const ErrorSink sink;
      if (self.model_->device() != host->device_host())
        sink.check(host->device_sync(self.model_->device(), sink));
      const Clock::time_point now = Clock::now();
      self.profile_.add(begin, end, now - self.last_);
    }
    if (self.hook_) self.call_hook(begin, results, nresults);
    self.last_ = Clock::now();
  });
}

void Predictor::call_hook(uint32_t index, tenon_tensor* const* results, uint32_t nresults) const {
  std::vector<Tensor> dense;
  std::vector<tenon_predictor_view> views;
  for (uint32_t i = 0; i < nresults; ++i) {
    dense.push_back(is_dense_on_host(results[i]) ? Tensor::borrow(results[i])
                                                 : copy_on(host->device_host(), results[i]));
    views.push_back(view_of(dense.back()));
  }
  const Step& step = running_->step(index);
  const tenon_predictor_step told = {.struct_size = sizeof told,
                                     .index = index,
                                     .name = step.name.c_str(),
                                     .file = step.file.c_str(),
                                     .line = step.line,
                                     .reserved = 0};
  const tenon_status status = hook_(hook_user_, &told, views.data(), nresults);
  if (status != TENON_OK)
    throw Error(status,
                "run: the hook ended it behind step " + std::to_string(index) + ", " + step.name);
}

void Predictor::warmup(const std::string& shapes) {
  const Signature& signature = model_->signature();
  for (const InputShapes& run : parse_shapes(shapes)) {
    for (const auto& [name, shape] : run) signature.find(signature.inputs, name.c_str());
    Predictor other(model_);
    other.deadline_ = std::chrono::milliseconds(0);  // of runs that count
    for (uint32_t i = 0; i < signature.inputs.size(); ++i) {
      const Value& value = signature.inputs[i];
      const auto given = run.find(value.name);
      if (!run.empty() && given == run.end())
        throw Error(TENON_INVALID_ARGUMENT,
                    "warmup: expected a shape for each input, got none for '" + value.name + "'");
      const std::vector<int64_t>& shape = given == run.end() ? value.shape : given->second;
      const ErrorSink err;
      tenon_tensor* made;
      err.check(host->tensor_create(host->device_host(), value.dtype,
                                    static_cast<int32_t>(shape.size()), shape.data(), &made, err));
      const Tensor zeros = Tensor::adopt(made);
      if (made->numel > 0)
        std::memset(made->data, 0,
                    static_cast<size_t>(made->numel) * host->dtype_size(value.dtype));
      other.bindings_.bind_input(i, zeros);
    }
    // What devices claim is looked at in the first run, and compiled for the second.
    other.run();
    other.run();
    for (uint32_t i = 0; i < other.outputs_.size(); ++i)
      other.host_output(i);  // waits for the device
  }
}

void Predictor::save_optimized(const char* path) {
  if (!model_->is_one_program())
    throw Error(
        TENON_UNSUPPORTED,
        model_->config().path() +
            ": save_optimized: expected one program of all sizes, got one for each size; set "
            "`sizes` to those that it runs with");
  warmup("recorded");  // Executables pack their weights when they first run.
  const ErrorSink err;
  err.check(graph_service().program_save(model_->recorded().program.get(), path, err));
}

const Tensor& Predictor::output(uint32_t index) const {
  if (!outputs_[index])
    throw Error(TENON_FAILED_PRECONDITION,
                "output '" + model_->signature().outputs[index].name +
                    "': there is none; call run first, and again after it failed or outputs were "
                    "dropped");
  return outputs_[index];
}

Tensor Predictor::owned_output(uint32_t index) const {
  const Tensor& made = output(index);
  const bool is_bound = bindings_.targets()[index];  // to memory that the caller may free
  return is_bound ? copy_on(made->device, made.get()) : made;
}

const Tensor& Predictor::host_output(uint32_t index) {
  const Tensor& made = output(index);
  Tensor& kept = host_outputs_[index];
  if (!kept) kept = is_dense_on_host(made.get()) ? made : copy_on(host->device_host(), made.get());
  return kept;
}

void Predictor::drop_outputs() {
  std::fill(outputs_.begin(), outputs_.end(), Tensor());
  std::fill(host_outputs_.begin(), host_outputs_.end(), Tensor());
}

}  // namespace tenon::predictor
