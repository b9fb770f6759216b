// SPDX-License-Identifier: Apache-2.0
// One call of an author's kernel.
#include <paddle/common/enforce.h>
#include <tenon/services/autograd.h>

#include <algorithm>

#include "api/arguments.hpp"
#include "api/definition.hpp"
#include "api/offer.hpp"
#include "api/tensor.hpp"

namespace tenon::paddle {
namespace {

// A kernel's own calls of operators are below differentiation.
class NoRecording {
 public:
  NoRecording() {
    if (autograd()) before_ = autograd()->set_enabled(0);
  }
  ~NoRecording() {
    if (autograd()) autograd()->set_enabled(before_);
  }
  NoRecording(const NoRecording&) = delete;
  NoRecording& operator=(const NoRecording&) = delete;

 private:
  static const tenon_autograd_api* autograd() {
    return static_cast<const tenon_autograd_api*>(
        host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  }
  int32_t before_ = 0;
};

Tensor clone(const Tensor& tensor) {
  ErrorSink err;
  tenon_tensor* copy = nullptr;
  err.check(
      host->tensor_create(tensor->device, tensor->dtype, tensor->ndim, tensor->shape, &copy, err));
  Tensor result = Tensor::adopt(copy);
  err.check(host->tensor_copy(copy, tensor.get(), err));
  return result;
}

void copy(const Tensor& to, const Tensor& from) {
  ErrorSink err;
  err.check(host->tensor_copy(to.get(), from.get(), err));
}

bool share_storage(const tenon_tensor* a, const tenon_tensor* b) {
  return host->tensor_storage(a) == host->tensor_storage(b);
}

std::string form(const tenon_tensor& tensor) {
  std::string text = std::string(host->dtype_name(tensor.dtype)) + " of shape [";
  for (int32_t axis = 0; axis < tensor.ndim; ++axis)
    text += (axis ? ", " : "") + std::to_string(tensor.shape[axis]);
  return text + "]";
}

class Call {
 public:
  Call(const Declaration& op, const std::vector<uint32_t>& counts, const tenon_value* args,
       std::span<Tensor> outs, bool has_open_extents)
      : op_(op), counts_(counts), args_(args), outs_(outs), has_open_extents_(has_open_extents) {}

  void run() {
    set_inputs();
    context_.attrs = attributes_of(op_, args_);
    set_outputs();
    {
      NoRecording scope;
      // Outputs that are parameters are the results themselves: nothing is left to offer.
      Offer offer(op_.info.kernel.returns_outputs ? std::span<const Tensor>(fresh_)
                                                  : std::span<const Tensor>());
      op_.info.kernel.run(&context_);
      std::vector<Tensor> results = take_results();
      keep_reassigned();
      context_ = {};
      for (size_t k = 0; k < results.size(); ++k) store(results[k], *places_[k]);
      results.clear();
      offer.settle();
    }
    for (auto& [from, to] : written_back_) copy(to, from);
  }

 private:
  // Inputs that are written in place are results from the start, with the argument's values.
  void set_inputs() {
    context_.inputs.resize(op_.inputs.size());
    std::vector<std::vector<Tensor>> written(op_.inputs.size());
    size_t at = 0;
    for (size_t j = 0; j < op_.outputs.size(); ++j) {
      for (uint32_t k = 0; k < counts_[j]; ++k, ++at) {
        if (op_.written_input[j] < 0) {
          places_.push_back(&outs_[at]);
          fresh_.push_back(outs_[at]);
          continue;
        }
        auto input = static_cast<size_t>(op_.written_input[j]);
        written[input].push_back(start_of(outs_[at], tensors_of(args_[input])[k]));
      }
    }
    for (size_t i = 0; i < op_.inputs.size(); ++i) {
      size_t k = 0;
      set_input(context_.inputs[i], op_.inputs[i], args_[i], [&](tenon_tensor* tensor) {
        if (written[i].empty()) return wrap(Tensor::borrow(tensor));
        started_.push_back({i, k, written[i][k]});
        return wrap(written[i][k++]);
      });
    }
  }

  // A kernel may have given a written argument another tensor instead of other values.
  void keep_reassigned() {
    for (auto& [input, index, start] : started_) {
      pd::Tensor now = written_tensor(input, index);
      if (now.defined() && now.impl()->handle && now.impl()->handle->data == start->data &&
          now.impl()->handle->dtype == start->dtype)
        continue;
      Tensor made = handle_of(now, "an input that is written in place");
      expect_form(*made.get(), *start.get(), ", the form of the input that is written in place");
      copy(start, made);
    }
  }
  pd::Tensor written_tensor(size_t input, size_t index) const {
    const auto& given = context_.inputs[input];
    const Name& name = op_.inputs[input];
    if (name.is_list) return name.is_optional ? (*given.maybe_list)[index] : given.list[index];
    return name.is_optional ? *given.maybe_value : given.value;
  }

  // The tensor that stands for a written argument while the kernel runs.
  Tensor start_of(Tensor& out, tenon_tensor* argument) {
    Tensor from = Tensor::borrow(argument);
    if (!out) return out = clone(from);
    if (out->data == argument->data) return out;
    for (size_t i = 0; i < op_.inputs.size(); ++i) {
      for (tenon_tensor* other : tensors_of(args_[i])) {
        if (!share_storage(other, out.get())) continue;
        // The result goes over another argument, which the kernel has yet to read.
        written_back_.emplace_back(clone(from), out);
        return written_back_.back().first;
      }
    }
    copy(out, from);
    return out;
  }

  void set_outputs() {
    size_t at = 0;
    for (size_t j = 0; j < op_.outputs.size(); ++j) {
      if (op_.written_input[j] >= 0) continue;
      auto& output = context_.outputs.emplace_back();
      for (uint32_t k = 0; k < counts_[j]; ++k) {
        pd::Tensor tensor = fresh_[at] ? wrap(fresh_[at]) : pd::Tensor(pd::CPUPlace());
        ++at;
        if (op_.outputs[j].is_list)
          output.list.push_back(tensor);
        else
          output.tensor = tensor;
      }
    }
  }

  // In the order of places_.
  std::vector<Tensor> take_results() {
    std::vector<pd::Tensor> made;
    if (op_.info.kernel.returns_outputs) {
      made = std::move(context_.results);
      // A result that may be none is left out or undefined.
      std::erase_if(made, [&](const pd::Tensor& tensor) {
        return made.size() > places_.size() && !tensor.defined();
      });
    } else {
      size_t at = 0;
      for (size_t j = 0; j < op_.outputs.size(); ++j) {
        if (op_.written_input[j] >= 0) continue;
        auto& output = context_.outputs[at++];
        if (op_.outputs[j].is_list)
          made.insert(made.end(), output.list.begin(), output.list.end());
        else if (counts_[j])
          made.push_back(output.tensor);
      }
    }
    if (made.size() != places_.size())
      throw Error(TENON_INTERNAL, "its kernel returned " + std::to_string(made.size()) +
                                      " tensors, expected " + std::to_string(places_.size()));
    std::vector<Tensor> results;
    for (size_t k = 0; k < made.size(); ++k) {
      Tensor result = handle_of(made[k], "a result of its kernel");
      // Another result's memory: that one is written yet.
      for (size_t other = 0; other < places_.size() && *places_[k]; ++other)
        if (other != k && share_storage(result.get(), places_[other]->get())) {
          result = clone(result);
          break;
        }
      results.push_back(std::move(result));
    }
    return results;
  }

  void store(Tensor& result, Tensor& place) {
    if (!place) {
      place = std::move(result);
      return;
    }
    if (result->data == place->data && share_storage(result.get(), place.get())) return;
    if (has_open_extents_ && fills_open_extents(*result.get(), *place.get())) {
      give_memory(result, place);
      return;
    }
    expect_form(
        *result.get(), *place.get(),
        std::string(op_.info.infer_shape.run ? " as its shape function says"
                                             : ", the form of its input; set a shape function with "
                                               "SetInferShapeFn") +
            (op_.info.infer_dtype.run ? "" : " (and no SetInferDtypeFn: the input's dtype)"));
    copy(place, result);
  }

  static void expect_form(const tenon_tensor& made, const tenon_tensor& expected,
                          const std::string& why) {
    if (made.dtype != expected.dtype || !same_shape(made, expected))
      throw Error(TENON_INTERNAL,
                  "its kernel made a " + form(made) + ", expected " + form(expected) + why);
  }
  static bool same_shape(const tenon_tensor& a, const tenon_tensor& b) {
    return a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape);
  }

  // An extent that the shape function left open is 0 in the place: of dtype and rank it spoke.
  static bool fills_open_extents(const tenon_tensor& made, const tenon_tensor& place) {
    if (made.dtype != place.dtype || made.ndim != place.ndim || same_shape(made, place))
      return false;
    for (int32_t axis = 0; axis < made.ndim; ++axis)
      if (place.shape[axis] != 0 && place.shape[axis] != made.shape[axis]) return false;
    return true;
  }
  // The place becomes the result's own tensor, or a copy where others hold it.
  static void give_memory(const Tensor& result, const Tensor& place) {
    ErrorSink err;
    const bool is_shared = host->tensor_storage_use_count(result.get()) > 1;
    err.check(host->tensor_assign(place.get(), (is_shared ? clone(result) : result).get(), err));
  }

  const Declaration& op_;
  const std::vector<uint32_t>& counts_;
  const tenon_value* args_;
  std::span<Tensor> outs_;
  const bool has_open_extents_;
  struct Started {
    size_t input, index;
    Tensor tensor;
  };
  std::vector<Started> started_;  // what stands for the arguments that are written in place
  ::paddle::CustomOpKernelContext context_;
  std::vector<Tensor*> places_;                          // of results that are not written in place
  std::vector<Tensor> fresh_;                            // the same, as they were before the call
  std::vector<std::pair<Tensor, Tensor>> written_back_;  // from, to
};

tenon_status status_of(::common::ErrorCode code) {
  switch (code) {
    case ::common::ErrorCode::INVALID_ARGUMENT:
      return TENON_INVALID_ARGUMENT;
    case ::common::ErrorCode::NOT_FOUND:
      return TENON_NOT_FOUND;
    case ::common::ErrorCode::OUT_OF_RANGE:
      return TENON_OUT_OF_RANGE;
    case ::common::ErrorCode::ALREADY_EXISTS:
      return TENON_ALREADY_EXISTS;
    case ::common::ErrorCode::RESOURCE_EXHAUSTED:
      return TENON_OUT_OF_MEMORY;
    case ::common::ErrorCode::PRECONDITION_NOT_MET:
      return TENON_FAILED_PRECONDITION;
    case ::common::ErrorCode::PERMISSION_DENIED:
      return TENON_PERMISSION_DENIED;
    case ::common::ErrorCode::EXECUTION_TIMEOUT:
      return TENON_DEADLINE_EXCEEDED;
    case ::common::ErrorCode::UNIMPLEMENTED:
      return TENON_UNSUPPORTED;
    case ::common::ErrorCode::UNAVAILABLE:
      return TENON_UNAVAILABLE;
    case ::common::ErrorCode::FATAL:
      return TENON_INTERNAL;
    default:
      return TENON_UNKNOWN;
  }
}

// Hand a kernel's own tensor over as result `index` of a data-dependent operator.
void give(tenon_ctx* ctx, uint32_t index, const Tensor& result, const ErrorSink& err) {
  const tenon_tensor& made = *result.get();
  tenon_tensor* out = nullptr;
  if (host->tensor_storage_use_count(result.get()) > 1) {  // an argument, or kept by the author
    err.check(host->output_alloc(ctx, index, made.dtype, made.ndim, made.shape, &out, err));
    err.check(host->tensor_copy(out, result.get(), err));
    return;
  }
  int64_t nothing = 0;
  err.check(host->output_alloc(ctx, index, made.dtype, 1, &nothing, &out, err));
  err.check(host->tensor_assign(out, result.get(), err));
}

}  // namespace

void call_kernel(const Declaration& op, const std::vector<uint32_t>& counts,
                 const tenon_value* args, std::span<Tensor> outs, bool has_open_extents) {
  try {
    Call(op, counts, args, outs, has_open_extents).run();
  } catch (const Error& error) {
    throw Error(error.code(), "[" + op.info.name + "] " + error.what());
  } catch (const ::common::enforce::EnforceNotMet& error) {
    throw Error(status_of(error.code()), "[" + op.info.name + "] " + error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(TENON_UNKNOWN, "[" + op.info.name + "] " + error.what());
  } catch (...) {
    throw Error(TENON_UNKNOWN,
                "[" + op.info.name + "] its kernel threw something that is no std::exception");
  }
}

tenon_status kernel_entry(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                          uint32_t nouts, tenon_err* sink) {
  return guarded(sink, [&] {
    const auto& definition = *static_cast<const Definition*>(host->op_def(host->ctx_op(ctx))->self);
    std::vector<Tensor> results(nouts);
    if (definition.can_infer())
      for (uint32_t k = 0; k < nouts; ++k)
        results[k] = Tensor::borrow(static_cast<tenon_tensor*>(outs[k].v.p));
    call_kernel(definition.op(), definition.counts(), args, results, definition.has_open_extents());
    if (definition.can_infer()) return;
    ErrorSink err;
    for (uint32_t k = 0; k < nouts; ++k) give(ctx, k, results[k], err);
  });
}

tenon_status counting_entry(const tenon_value* args, uint32_t nargs, tenon_value* outs, uint32_t,
                            tenon_err* sink, void* self) {
  return guarded(sink, [&] {
    const Declaration& op = static_cast<const Definition*>(self)->op();
    std::vector<uint32_t> counts = count_results(op, args);
    uint32_t total = 0;
    for (uint32_t count : counts) total += count;
    tenon_value results[kMaxResults] = {};
    ErrorSink err;
    if (total > 0) {
      const tenon_op* target = find_operator(op, counts);
      std::vector<tenon_value> values(args, args + nargs);
      err.check(host->op_call(target, values.data(), nargs, results, total, err));
    }
    tenon_tensor** list = host->list_create(total);
    for (uint32_t k = 0; k < total; ++k) {
      auto* tensor = static_cast<tenon_tensor*>(results[k].v.p);
      if (list)
        list[k] = tensor;
      else
        host->tensor_release(tensor);
    }
    if (!list) throw std::bad_alloc();
    outs[0] = {TENON_VALUE_TENSORS, total, {.p = list}};
  });
}

}  // namespace tenon::paddle
