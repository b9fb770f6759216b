// SPDX-License-Identifier: Apache-2.0
#include "groups/delegated_group.hpp"

#include <unistd.h>

#include <tenon/services/graph.h>
#include <tenon/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "groups/elementwise.hpp"
#include "groups/subgraph.hpp"
#include "support/host.hpp"

namespace tenon::graph {
namespace {

// Who compiles: a claimer, or a device by its group, borrowed as long as the object lives: the plugin is not
// unloaded before.
class Compiler {
 public:
  Compiler(tenon_device_id device, ClaimerPtr claimer)
      : device_(device), claimer_(std::move(claimer)) {
    const void* table = nullptr;
    if (claimer_) {
      api_ = claimer_->subgraphs();
      handle_ = claimer_->handle();
    } else if (host->device_group_borrow(device, TENON_GROUP_SUBGRAPH, &table, &handle_, nullptr) ==
               TENON_OK) {
      api_ = static_cast<const tenon_subgraph_api*>(table);
    }
  }
  ~Compiler() {
    if (api_ && !claimer_) host->device_group_return(device_, TENON_GROUP_SUBGRAPH);
  }
  Compiler(const Compiler&) = delete;

  explicit operator bool() const { return api_; }
  const tenon_subgraph_api* operator->() const { return api_; }
  tenon_device handle() const { return handle_; }

 private:
  tenon_device_id device_;
  ClaimerPtr claimer_;
  const tenon_subgraph_api* api_ = nullptr;
  tenon_device handle_ = nullptr;
};

bool is_switched_off() {
  const char* given = std::getenv("TENON_CLAIMS");
  return given && std::strcmp(given, "0") == 0;
}

// The device on which the whole of a step happens, if a device may be offered the step.
std::optional<tenon_device_id> offered_device(const Graph& graph, const Step& step) {
  constexpr uint32_t kNever = TENON_OP_RANDOM | TENON_OP_DATA_DEPENDENT | TENON_OP_LIST_OUTPUT;
  if (step.kind != StepKind::kCall || step.given || step.results.empty()) return std::nullopt;
  if (host->op_def(step.op)->flags & kNever) return std::nullopt;
  const tenon_device_id device = graph.values[step.results[0]].device;
  bool has_operand = false, fits = device != TENON_DEVICE_META;
  auto check = [&](ValueId value) {
    const Type& type = graph.values[value];
    fits = fits && type.device == device && element_count(type) > 0;
  };
  for_each_operand(step, [&](ValueId value) { has_operand = true, check(value); });
  for (ValueId value : step.results) check(value);
  for (const Operand& operand : step.operands)  // a step that names a device is about memory
    fits = fits && (operand.kind != Operand::kAttribute ||
                    operand.attribute.value().tag != TENON_VALUE_DEVICE);
  return fits && has_operand ? std::optional(device) : std::nullopt;
}

std::string name_of(tenon_device_id device, const ClaimerPtr& claimer) {
  return claimer ? claimer->name() : device_text(device);
}

// Offers steps to a compiler: the part of each, 0 for those that it does not want. Empty: the device has none.
std::vector<uint32_t> claimed_parts(tenon_device_id device, const ClaimerPtr& claimer,
                                    uint32_t count, const std::function<const Subgraph&()>& steps) {
  const Compiler api(device, claimer);
  if (!api) return {};
  std::vector<uint32_t> parts(count);
  const ErrorSink err;
  if (api->claim(api.handle(), steps().get(), parts.data(), err) == TENON_OK) return parts;
  const std::string text = "program: " + name_of(device, claimer) +
                           " claims nothing, as it failed: " + host->err_text(err);
  host->log(2, text.data(), text.size());
  return {};
}

// Does the step give a view of what it got?
bool gives_view(const Step& step) { return host->op_def(step.op)->flags & TENON_OP_VIEW; }

// In row-major order, where the length of an axis of one element does not matter.
bool is_row_major(const tenon_tensor& tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

}  // namespace

struct DelegatedGroup::Executable {
  Executable(tenon_device_id device, ClaimerPtr claimer)
      : is_of_host(!claimer && device == host->device_host()), api(device, std::move(claimer)) {}
  ~Executable() {
    // A child of a fork has no device: what its parent has made there is the parent's. What the host has made is the
    // child's, too, which shares packed weights by their address as long as an executable reads them.
    if (executable && (is_of_host || ::getpid() == process))
      api->executable_destroy(api.handle(), executable);
  }
  const bool is_of_host;
  Compiler api;
  tenon_executable executable = nullptr;
  uint64_t workspace_bytes = 0;
  std::vector<uint32_t> versions;  // of the constants that it may hold
  const pid_t process = ::getpid();
};

DelegatedGroup::DelegatedGroup(const Graph& graph, uint32_t begin, uint32_t end,
                               std::vector<ValueId> results, const Constants& constants,
                               ClaimerPtr claimer)
    : Group(graph, begin, end),
      claimer_(std::move(claimer)),
      device_(graph.values[graph.steps[begin].results[0]].device),
      inputs_(read_from_outside(graph, begin, end)),
      results_(std::move(results)) {
  for (ValueId input : inputs_)
    if (const auto found = constants.find(input); found != constants.end())
      constants_.insert(*found);
}

namespace {

std::vector<ValueId> needed_results(const GroupContext& context, uint32_t begin, uint32_t end) {
  std::vector<ValueId> results;
  for (uint32_t i = begin; i < end; ++i)
    for (ValueId value : context.graph.steps[i].results)
      if (context.is_needed_after(value, end - 1)) results.push_back(value);
  return results;
}

}  // namespace

std::vector<GroupPtr> DelegatedGroup::find(const GroupContext& context, uint32_t begin,
                                           uint32_t end) {
  const Graph& graph = context.graph;
  std::vector<GroupPtr> groups;
  if (is_switched_off()) return groups;
  for (uint32_t first = begin; first < end;) {
    const std::optional<tenon_device_id> device = offered_device(graph, graph.steps[first]);
    uint32_t last = first + 1;
    while (device && last < end && offered_device(graph, graph.steps[last]) == device) ++last;
    const size_t claimers = graph.claimers.size();
    if (device)
      find_claimed(context, first, last, *device, *device == host->device_host() ? 0 : claimers,
                   groups);
    first = last;
  }
  return groups;
}

// What the claimers from `claimer` on, and behind them the device, claim of neighbouring steps.
void DelegatedGroup::find_claimed(const GroupContext& context, uint32_t begin, uint32_t end,
                                  tenon_device_id device, size_t claimer,
                                  std::vector<GroupPtr>& groups) {
  const Graph& graph = context.graph;
  const bool is_last = claimer >= graph.claimers.size();
  const ClaimerPtr asked = is_last ? nullptr : graph.claimers[claimer];
  std::optional<Subgraph> offered;
  std::vector<uint32_t> parts = claimed_parts(device, asked, end - begin, [&]() -> const Subgraph& {
    return offered.emplace(graph, begin, end, needed_results(context, begin, end),
                           context.constants);
  });
  if (!is_last) parts.resize(end - begin);  // what the claimer leaves goes to the next one
  for (uint32_t from = 0; from < parts.size();) {
    uint32_t to = from + 1;
    while (to < parts.size() && parts[to] == parts[from]) ++to;
    if (parts[from] != 0)
      add(context, begin + from, begin + to, asked, groups);
    else if (!is_last)
      find_claimed(context, begin + from, begin + to, device, claimer + 1, groups);
    from = to;
  }
}

// A view that others look at shares memory with what it is a view of; so it is made outside, by no
// work at all, and divides the part.
void DelegatedGroup::add(const GroupContext& context, uint32_t begin, uint32_t end,
                         const ClaimerPtr& claimer, std::vector<GroupPtr>& groups) {
  const Graph& graph = context.graph;
  for (uint32_t i = begin; i < end; ++i) {
    const auto& made = graph.steps[i].results;
    const bool is_view_for_others =
        gives_view(graph.steps[i]) && std::any_of(made.begin(), made.end(), [&](ValueId id) {
          return context.is_needed_after(id, end - 1);
        });
    if (!is_view_for_others) continue;
    add(context, begin, i, claimer, groups);
    return add(context, i + 1, end, claimer, groups);
  }
  if (begin == end) return;
  std::vector<ValueId> results = needed_results(context, begin, end);
  const bool computes = std::any_of(graph.steps.begin() + begin, graph.steps.begin() + end,
                                    [](const Step& step) { return !gives_view(step); });
  if (computes && !results.empty())
    groups.emplace_back(
        new DelegatedGroup(graph, begin, end, std::move(results), context.constants, claimer));
}

bool DelegatedGroup::makes_tensor(ValueId value) const {
  return std::find(results_.begin(), results_.end(), value) != results_.end();
}

bool DelegatedGroup::is_watched(const std::vector<tenon_tensor*>& values) const {
  if (host->layers_every_call() != 0) return true;
  return std::any_of(inputs_.begin(), inputs_.end(), [&](ValueId input) {
    const tenon_tensor* tensor = values[input];
    uint32_t bits = tensor->layers;
    if (tensor->flags & TENON_TENSOR_FOLLOWS_BASE)
      if (const tenon_tensor* base = host->tensor_base(tensor)) bits |= base->layers;
    for (int32_t layer = 0; bits != 0; ++layer, bits >>= 1)
      if (bits & 1 && host->layer_enabled(layer)) return true;
    return false;
  });
}

class DelegatedGroup::Trial final : public Observation {
 public:
  Trial(const DelegatedGroup& group, Strides strides)
      : group_(group), strides_(std::move(strides)) {}
  void finish(const std::vector<tenon_tensor*>& values) override {
    group_.end_trial(std::move(strides_), values);
  }

 private:
  const DelegatedGroup& group_;
  Strides strides_;
};

std::unique_ptr<Group::Observation> DelegatedGroup::observe(
    const std::vector<tenon_tensor*>& values) const {
  {
    const std::lock_guard lock(state_.mutex);
    if (state_.is_tried) return nullptr;
  }
  Strides strides;
  for (ValueId input : inputs_) {
    const tenon_tensor& tensor = *values[input];
    auto& own = strides.emplace_back();
    if (!is_row_major(tensor)) own.assign(tensor.strides, tensor.strides + tensor.ndim);
  }
  return std::make_unique<Trial>(*this, std::move(strides));
}

void DelegatedGroup::end_trial(Strides strides, const std::vector<tenon_tensor*>& values) const {
  const std::lock_guard lock(state_.mutex);
  if (state_.is_tried) return;
  state_.is_tried = true;
  state_.strides = std::move(strides);
  for (ValueId result : results_) {
    const tenon_tensor* tensor = values[result];
    const char* what = nullptr;
    if (!is_row_major(*tensor))
      what = "is not row-major";
    else if (host->tensor_storage_use_count(tensor) != 1)
      what = "shares memory with another tensor";
    if (!what) continue;
    state_.reason = "%" + std::to_string(result) + " " + what;
    return;
  }
}

bool DelegatedGroup::lies_as_in_trial(const tenon_tensor& tensor, size_t input) const {
  const std::vector<int64_t>& strides = state_.strides[input];
  if (strides.empty()) return is_row_major(tensor);
  return std::equal(strides.begin(), strides.end(), tensor.strides);
}

std::vector<uint32_t> DelegatedGroup::versions_of_constants() const {
  std::vector<uint32_t> versions;
  for (const auto& [value, tensor] : constants_) versions.push_back(host->tensor_version(tensor));
  return versions;
}

std::shared_ptr<const DelegatedGroup::Executable> DelegatedGroup::create() const {
  auto made = std::make_shared<Executable>(device_, claimer_);
  if (!made->api) throw Error(TENON_UNSUPPORTED, "its plugin offers no sub-graphs any more");
  const Subgraph subgraph(*graph_, begin_, end_, results_, constants_);
  tenon_executable_info info = {};
  info.struct_size = sizeof info;
  const ErrorSink err;
  made->versions = versions_of_constants();
  if (!constants_.empty()) err.check(host->device_sync(device_, err));  // the compiler reads them
  err.check(made->api->executable_create(made->api.handle(), subgraph.get(), &made->executable,
                                         &info, err));
  if (!made->executable)
    throw Error(TENON_INTERNAL, "executable_create: TENON_OK, and no executable");
  if (!(info.flags & TENON_EXECUTABLE_EXACT) && graph_->numerics != TENON_GRAPH_FAST)
    throw Error(TENON_UNSUPPORTED,
                "its results have other bits than the steps' own kernels give, which "
                "numerics=\"fast\" allows");
  made->workspace_bytes = info.workspace_bytes;
  return made;
}

// What the host claims for itself makes new, row-major tensors of row-major ones, as its kernels do.
bool DelegatedGroup::needs_no_trial(const std::vector<tenon_tensor*>& values) const {
  return !claimer_ && device_ == host->device_host() &&
         std::all_of(inputs_.begin(), inputs_.end(),
                     [&](ValueId input) { return is_row_major(*values[input]); });
}

std::shared_ptr<const DelegatedGroup::Executable> DelegatedGroup::executable(
    const std::vector<tenon_tensor*>& values) const {
  const std::lock_guard lock(state_.mutex);
  if (!state_.is_tried && needs_no_trial(values)) {
    state_.is_tried = true;
    state_.strides.resize(inputs_.size());
  }
  if (!state_.is_tried || !state_.reason.empty()) return nullptr;
  // `program.leaves` hands constants out, and nothing stops a caller from writing to one.
  if (state_.executable && state_.executable->versions == versions_of_constants())
    return state_.executable;
  state_.executable.reset();
  try {
    state_.executable = create();
  } catch (const std::exception& error) {
    state_.reason = error.what();
  }
  return state_.executable;
}

Group::Outcome DelegatedGroup::run(std::vector<tenon_tensor*>& values) const {
  if (is_watched(values)) return Outcome::kDeclined;
  const std::shared_ptr<const Executable> executable = this->executable(values);
  if (!executable) return Outcome::kDeclined;
  std::vector<Tensor> kept;  // for as long as the call lasts; the device's work is recorded below
  std::vector<tenon_tensor*> inputs, outputs;
  try {
    const ErrorSink err;
    auto create = [&](int32_t dtype, int32_t ndim, const int64_t* shape) {
      tenon_tensor* made = nullptr;
      err.check(host->tensor_create(device_, dtype, ndim, shape, &made, err));
      kept.push_back(Tensor::adopt(made));
      return made;
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      tenon_tensor* input = values[inputs_[i]];
      if (!lies_as_in_trial(*input, i)) return Outcome::kDeclined;
      if (!(input->flags & TENON_TENSOR_CONTIGUOUS)) {
        kept.push_back(copy_of(Tensor::borrow(input)));
        input = kept.back().get();
      }
      inputs.push_back(input);
    }
    for (ValueId result : results_) {
      const Type& type = graph_->values[result];
      outputs.push_back(
          create(type.dtype, static_cast<int32_t>(type.shape.size()), type.shape.data()));
    }
    void* workspace = nullptr;
    const auto bytes = static_cast<int64_t>(executable->workspace_bytes);
    tenon_tensor* scratch = bytes ? create(TENON_DTYPE_U8, 1, &bytes) : nullptr;
    if (scratch) {
      workspace = scratch->data;
      if (scratch->byte_offset != 0)
        throw Error(TENON_UNSUPPORTED, "memory of this device has no addresses for a workspace");
    }
    const tenon_stream stream = host->stream_current(device_);
    const tenon_executable_request request = {.struct_size = sizeof request,
                                              .reserved = 0,
                                              .must_understand = 0,
                                              .executable = executable->executable,
                                              .inputs = inputs.data(),
                                              .outputs = outputs.data(),
                                              .workspace = workspace,
                                              .stream = stream};
    err.check(executable->api->executable_run(executable->api.handle(), &request, err));
    for (tenon_tensor* tensor : inputs) host->tensor_record_use(tensor, stream);
    for (tenon_tensor* tensor : outputs) host->tensor_record_use(tensor, stream);
    if (scratch) host->tensor_record_use(scratch, stream);
  } catch (const std::exception& error) {
    // Nothing was queued. The steps run one by one, and say it themselves if they cannot.
    const std::lock_guard lock(state_.mutex);
    state_.failure = error.what();
    return Outcome::kDeclined;
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    host->tensor_retain(outputs[i]);
    values[results_[i]] = outputs[i];
  }
  return Outcome::kDone;
}

bool DelegatedGroup::runs_as_one() const {
  const std::lock_guard lock(state_.mutex);
  return state_.reason.empty();
}

std::string DelegatedGroup::compiler_text() const { return name_of(device_, claimer_); }

std::string DelegatedGroup::claimer(std::string* problem) const {
  const std::lock_guard lock(state_.mutex);
  *problem = state_.reason.empty() ? state_.failure : state_.reason;
  return compiler_text();
}

std::string DelegatedGroup::describe() const {
  size_t made = 0;
  for (uint32_t i = begin_; i < end_; ++i) made += graph_->steps[i].results.size();
  const std::string steps = end_ - begin_ == 1 ? "step " + std::to_string(begin_) : steps_text();
  std::string text = steps + ": one executable of " + compiler_text() + "; " +
                     std::to_string(made - results_.size()) + " of " + std::to_string(made) +
                     " results stay in it";
  const std::lock_guard lock(state_.mutex);
  if (!state_.reason.empty())
    return steps + ": claimed by " + compiler_text() + ", and run by kernels: " + state_.reason;
  if (state_.executable && state_.executable->workspace_bytes)
    text += ", which needs " + std::to_string((state_.executable->workspace_bytes + 1023) >> 10) +
            " KiB";
  if (!state_.executable) text += "; it is compiled when the program runs again";
  if (!state_.failure.empty())
    text += "; a run failed, and kernels ran its steps: " + state_.failure;
  return text;
}

}  // namespace tenon::graph
