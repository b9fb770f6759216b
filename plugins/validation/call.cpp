// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <algorithm>
#include <utility>

#include "blame.hpp"
#include "guarded_output.hpp"
#include "numbers.hpp"
#include "snapshot.hpp"

namespace tenon::validation {

int32_t layer = -1;
constinit thread_local State state;

namespace {

constexpr uint32_t kMaxOutputs = 8;

tenon_tensor* as_tensor(const tenon_value& value) {
  return value.tag == TENON_VALUE_TENSOR ? static_cast<tenon_tensor*>(value.v.p) : nullptr;
}

// Calls of this thread in this scope are watched, or are not.
class Watch {
 public:
  explicit Watch(bool on) : was_(host->layer_enable(layer, on)) {}
  ~Watch() { host->layer_enable(layer, was_); }
  Watch(const Watch&) = delete;

 private:
  int32_t was_;
};

// A guarded call runs: see is_watching of the service.
class Watching {
 public:
  Watching() : was_(std::exchange(state.is_watching, true)) {}
  ~Watching() { state.is_watching = was_; }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

 private:
  bool was_;
};

// A copy of the arguments in which make(tensor) stands for every tensor, and another device for the
// one that a creating operator is told.
struct Arguments {
  std::vector<tenon_value> values;
  std::vector<Tensor> tensors;
  std::vector<std::vector<tenon_tensor*>> lists;

  template <class Make>
  Arguments(const tenon_op_def& def, const tenon_value* args, tenon_device_id device, Make&& make)
      : values(args, args + def.nparams) {
    auto replace = [&](tenon_tensor* tensor) { return tensors.emplace_back(make(tensor)).get(); };
    for (uint32_t i = 0; i < def.nparams; ++i) {
      tenon_value& value = values[i];
      if (tenon_tensor* tensor = as_tensor(value)) {
        value.v.p = replace(tensor);
      } else if (value.tag == TENON_VALUE_TENSORS) {
        auto* list = static_cast<tenon_tensor* const*>(value.v.p);
        auto& copied = lists.emplace_back(list, list + value.aux);
        for (tenon_tensor*& element : copied)
          if (element) element = replace(element);
        value.v.p = copied.data();
      } else if (def.params[i].kind == TENON_PARAM_DEVICE && def.compute == TENON_COMPUTE_OUTPUT) {
        value = boxed_device(device);
      }
    }
  }
};

// Results that were not handed to the caller yet.
struct Results {
  tenon_value values[kMaxOutputs] = {};
  ~Results() {
    for (const tenon_value& value : values) host->tensor_release(as_tensor(value));
  }
};

class Call {
 public:
  Call(const tenon_op* op, tenon_value* args, tenon_value* outs, const ErrorSink& err)
      : op_(op), def_(*host->op_def(op)), args_(args), outs_(outs), err_(err) {
    for (uint32_t i = 0; i < def_.nparams; ++i) {
      if (tenon_tensor* tensor = as_tensor(args[i])) inputs_.push_back(tensor);
      if (args[i].tag != TENON_VALUE_TENSORS) continue;
      auto* list = static_cast<tenon_tensor* const*>(args[i].v.p);
      std::copy_if(list, list + args[i].aux, std::back_inserter(inputs_),
                   [](tenon_tensor* tensor) { return tensor != nullptr; });
    }
    device_ = find_device();
  }

  void run() {
    // What moves tensors between devices is made of copies; its results are not on this device.
    constexpr uint32_t kNoKernels = TENON_OP_VIEW | TENON_OP_LIST_OUTPUT;
    if (device_ == TENON_DEVICE_META || def_.flags & kNoKernels || moves_tensors())
      return below(outs_);
    ++state.calls;
    Watch own(false);  // copies made here would be made for copies made here
    std::vector<Tensor> like = describe_results();
    guard(like, GuardedOutput::kFirstFill);
    std::vector<Snapshot> snapshots(inputs_.begin(), inputs_.end());
    uint64_t seed, offset;
    host->random_get(device_, &seed, &offset);

    Results results;
    call(results);
    check_inputs(snapshots);
    check_bounds();
    check_unwritten(like, seed, offset);
    if (state.options.flags & TENON_VALIDATION_NONFINITE) check_finite(results);
    if (state.options.flags & TENON_VALIDATION_COMPARE_HOST) compare(results);
    deliver(results);
  }

 private:
  bool moves_tensors() const {
    return def_.compute != TENON_COMPUTE_OUTPUT &&
           std::any_of(def_.params, def_.params + def_.nparams, [](const tenon_param_def& param) {
             return param.kind == TENON_PARAM_DEVICE;
           });
  }

  tenon_device_id find_device() const {
    for (uint32_t i = 0; i < def_.nparams; ++i)
      if (args_[i].tag == TENON_VALUE_DEVICE && def_.compute == TENON_COMPUTE_OUTPUT)
        return static_cast<tenon_device_id>(args_[i].v.i);
    if (!inputs_.empty()) return inputs_[0]->device;
    const tenon_tensor* out = as_tensor(outs_[0]);
    return out ? out->device : host->device_host();
  }

  void below(tenon_value* outs) {
    Watch parts(true);
    err_.check(host->op_call_below(layer, op_, args_, def_.nparams, outs, def_.nouts, err_));
  }

  // Results without data, by the operator's own rule. Empty: only a kernel gives the shape, or the
  // call is wrong and says so itself.
  std::vector<Tensor> describe_results() {
    bool says_where = !inputs_.empty();
    for (uint32_t i = 0; i < def_.nparams; ++i)
      says_where |= def_.params[i].kind == TENON_PARAM_DEVICE;
    if (!says_where || def_.flags & TENON_OP_DATA_DEPENDENT) return {};
    Arguments meta(def_, args_, TENON_DEVICE_META, [](tenon_tensor* tensor) {
      return create(TENON_DEVICE_META, tensor->dtype, tensor->ndim, tensor->shape);
    });
    ErrorSink ignored;
    Results results;
    if (host->op_call_below(layer, op_, meta.values.data(), def_.nparams, results.values,
                            def_.nouts, ignored) != TENON_OK)
      return {};
    std::vector<Tensor> like;
    for (uint32_t i = 0; i < def_.nouts; ++i) {
      like.push_back(Tensor::borrow(as_tensor(results.values[i])));
      const tenon_tensor* given = as_tensor(outs_[i]);
      if (given && !can_stand_in(*like.back().get(), *given)) return {};
    }
    return like;
  }

  // What does not fit, the host converts or refuses: it must see the caller's own tensor.
  bool can_stand_in(const tenon_tensor& like, const tenon_tensor& given) const {
    return given.dtype == like.dtype && given.device == device_ && given.ndim == like.ndim &&
           std::equal(like.shape, like.shape + like.ndim, given.shape) &&
           !(given.flags & TENON_TENSOR_READONLY);
  }

  void guard(const std::vector<Tensor>& like, unsigned char fill) {
    guarded_.clear();
    for (const Tensor& each : like) guarded_.emplace_back(device_, *each.get(), fill);
  }

  void call(Results& results) {
    if (guarded_.empty()) {
      for (uint32_t i = 0; i < def_.nouts; ++i)
        if (tenon_tensor* given = as_tensor(outs_[i]))
          results.values[i] = boxed(Tensor::borrow(given).release());
    }
    for (size_t i = 0; i < guarded_.size(); ++i)
      results.values[i] = boxed(Tensor::borrow(guarded_[i].tensor()).release());
    Watching watching;
    below(results.values);
    err_.check(host->stream_sync(device_, host->stream_current(device_), err_));
  }

  [[noreturn]] void fail(const std::string& text) const {
    throw Error(TENON_INTERNAL, "[" + std::string(def_.name) + "] validation: " +
                                    blame(op_, args_, device_, outs_) + " " + text);
  }

  std::string result_name(size_t index) const {
    std::string name = def_.out_names && def_.out_names[index] ? def_.out_names[index] : "out";
    return "result `" + name + "`";
  }

  void check_inputs(std::vector<Snapshot>& snapshots) const {
    for (size_t i = 0; i < snapshots.size(); ++i)
      if (auto byte = snapshots[i].restore())
        fail("wrote into argument tensor " + std::to_string(i) + ", at byte offset " +
             std::to_string(*byte) +
             "; expected arguments to be read only: write to the results, "
             "or to host->scratch (the argument was restored)");
  }

  void check_bounds() const {
    for (size_t i = 0; i < guarded_.size(); ++i) {
      auto stray = guarded_[i].find_stray();
      if (!stray) continue;
      const tenon_tensor* out = guarded_[i].tensor();
      const int64_t bytes = out->numel * host->dtype_size(out->dtype);
      const bool is_before = stray->first < 0;
      fail("wrote " + std::to_string(stray->count) +
           (is_before ? " bytes before " : " bytes past ") +
           (is_before ? "the start of " : "the end of ") + result_name(i) +
           ", first at byte offset " + std::to_string(stray->first) +
           "; expected writes to offsets 0 to " + std::to_string(bytes) + " of " +
           host->dtype_name(out->dtype) + " " + shape_text(*out) +
           ": check its loop against out->numel");
    }
  }

  // What still shows the fill may be a result that looks like it: then another fill is overwritten.
  void check_unwritten(const std::vector<Tensor>& like, uint64_t seed, uint64_t offset) {
    std::vector<std::vector<int64_t>> suspects;
    bool any = false;
    for (const GuardedOutput& output : guarded_) {
      suspects.push_back(output.find_unwritten());
      any |= !suspects.back().empty();
    }
    if (!any) return;
    std::vector<GuardedOutput> first = std::move(guarded_);
    guard(like, GuardedOutput::kSecondFill);
    host->random_set(device_, seed, offset);
    Results again;
    call(again);
    for (size_t i = 0; i < guarded_.size(); ++i) {
      std::vector<int64_t> now = guarded_[i].find_unwritten(), both;
      std::set_intersection(now.begin(), now.end(), suspects[i].begin(), suspects[i].end(),
                            std::back_inserter(both));
      if (!both.empty())
        fail("left " + std::to_string(both.size()) + " of " +
             std::to_string(guarded_[i].tensor()->numel) + " elements of " + result_name(i) +
             " unwritten, first element " + std::to_string(both[0]) +
             "; expected all to be written: check its loop against out->numel");
    }
    guarded_ = std::move(first);
  }

  void check_finite(const Results& results) const {
    for (tenon_tensor* input : inputs_)
      if (find_nonfinite(input)) return;
    for (uint32_t i = 0; i < def_.nparams; ++i)
      if (args_[i].tag == TENON_VALUE_FLOAT && !(args_[i].v.f - args_[i].v.f == 0)) return;
    for (uint32_t i = 0; i < def_.nouts; ++i)
      if (auto found = find_nonfinite(as_tensor(results.values[i])))
        fail("made " + found->text + " at element " + std::to_string(found->index) + " of " +
             result_name(i) +
             " from finite arguments; expected finite results: keep its arguments "
             "within the function's domain, or leave out nan='error'");
  }

  void compare(const Results& results) const {
    const tenon_device_id host_id = host->device_host();
    if (is_host_memory(device_) || def_.flags & TENON_OP_RANDOM) return;
    Arguments there(def_, args_, host_id,
                    [&](tenon_tensor* tensor) { return copy_to(host_id, tensor); });
    Results expected;
    err_.check(
        host->op_call(op_, there.values.data(), def_.nparams, expected.values, def_.nouts, err_));
    for (uint32_t i = 0; i < def_.nouts; ++i) {
      tenon_tensor *got = as_tensor(results.values[i]), *right = as_tensor(expected.values[i]);
      if (got->dtype != right->dtype || shape_text(*got) != shape_text(*right))
        fail("gave " + result_name(i) + " as " + host->dtype_name(got->dtype) + " " +
             shape_text(*got) + "; expected " + host->dtype_name(right->dtype) + " " +
             shape_text(*right) + ", as on the host");
      const auto& options = state.options;
      if (auto found = find_difference(got, right, options.rtol, options.atol))
        fail("differs from the host at element " + std::to_string(found->index) + " of " +
             result_name(i) + ": " + found->text +
             "; correct it, or widen rtol and atol if that is rounding");
    }
  }

  void deliver(Results& results) {
    for (uint32_t i = 0; i < def_.nouts; ++i) {
      tenon_tensor* given = as_tensor(outs_[i]);
      if (given && !guarded_.empty())
        err_.check(host->tensor_copy(given, guarded_[i].tensor(), err_));
      else if (!given)
        outs_[i] = std::exchange(results.values[i], {});
    }
  }

  const tenon_op* op_;
  const tenon_op_def& def_;
  tenon_value* args_;
  tenon_value* outs_;
  const ErrorSink& err_;
  std::vector<tenon_tensor*> inputs_;
  tenon_device_id device_ = TENON_DEVICE_NONE;
  std::vector<GuardedOutput> guarded_;
};

}  // namespace

tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t, tenon_value* outs,
                        uint32_t, tenon_err* err) {
  return guarded(err, [&] {
    ErrorSink local;
    Call(op, args, outs, local).run();
  });
}

}  // namespace tenon::validation
