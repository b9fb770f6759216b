// SPDX-License-Identifier: Apache-2.0
#include "record/recording.hpp"

#include <tenon/error.hpp>

#include <algorithm>

#include "support/host.hpp"

namespace tenon::graph {

Recording::Recording(tenon_tensor* const* inputs, uint32_t ninputs,
                     const tenon_graph_recording_options& options)
    : options_(options), sources_(options), device_(host->device_host()) {
  frames_.push_back(std::make_unique<Frame>());
  for (uint32_t i = 0; i < ninputs; ++i) {
    if (frame().find(inputs[i]))
      throw Error(TENON_INVALID_ARGUMENT,
                  "export: expected each input once, got the same tensor as inputs " +
                      std::to_string(i) + " and before; pass it once, or a clone");
    frame().graph.inputs.push_back(frame().add(inputs[i]));
    if (requires_grad(inputs[i])) grad_state(inputs[i]);
  }
  host->random_get(device_, &seed_, &random_offset_);
}

// -- tensors -------------------------------------------------------------------------------------

ValueId Recording::resolve(size_t depth, tenon_tensor* tensor) {
  Frame& frame = *frames_[depth];
  if (alias_sets_.has_stale()) check_fresh(host->tensor_storage(tensor));
  if (auto known = frame.find(tensor)) {
    if (depth == 0 && frame.is_unrecorded(*known)) check_history(tensor, "a custom function");
    return *known;
  }
  const Layout layout(*tensor);
  if (layout.storage) {
    if (auto same = frame.find_same(layout)) return resolve_shared(frame, tensor, layout, *same);
    if (auto base = frame.find_sharing(layout)) return resolve_shared(frame, tensor, layout, *base);
  }
  if (depth == 0) return add_leaf(tensor, layout);
  const auto hidden = frame.hidden.find(layout.storage);
  if (hidden != frame.hidden.end() && !hidden->second)
    throw Error(
        TENON_UNSUPPORTED,
        "export: a branch or loop over a tensor writes into a tensor, and reads its memory under "
        "another name" +
            where() + "; use one name there, or assign the new value instead of writing");
  const ValueId outer = resolve(depth - 1, tensor);
  const ValueId value = frame.add(tensor);
  frame.graph.inputs.push_back(value);
  frame.imports.push_back(outer);
  return value;
}

// Another handle on memory that is known. It came by no operator: detach, or gradients at work.
ValueId Recording::resolve_shared(Frame& frame, tenon_tensor* tensor, const Layout& layout,
                                  ValueId base) {
  const Layout known = frame.layout(base);
  const bool is_same = known == layout;
  const bool has_history = requires_grad(tensor) && !autograd()->is_leaf(tensor);
  if (is_same && has_history && requires_grad(frame.handle(base))) {
    frame.bind(tensor, base);
    return base;
  }
  if (known.type.dtype != layout.type.dtype || known.type.device != layout.type.device)
    throw Error(TENON_UNSUPPORTED, "export: a tensor" + where() +
                                       " shows the memory of another one in another dtype; only "
                                       "operators may do that in a program");
  if (has_history) check_history(tensor, "a view");
  Step step;
  step.kind = is_same ? StepKind::kDetach : StepKind::kView;
  step.operands.push_back(Operand::of(base));
  sources_.locate(step);
  if (!is_same) {
    step.offset =
        (layout.first - known.first) / static_cast<int64_t>(host->dtype_size(layout.type.dtype));
    step.strides.assign(layout.strides.begin(), layout.strides.end());
    step.base_strides.assign(known.strides.begin(), known.strides.end());
  }
  const ValueId value = frame.add(tensor);
  step.results.push_back(value);
  frame.graph.steps.push_back(std::move(step));
  return value;
}

ValueId Recording::add_leaf(tenon_tensor* tensor, const Layout& layout) {
  if (foreign_.contains(layout.storage))
    throw Error(TENON_UNSUPPORTED,
                "export: a value that was made inside cond, while_loop or scan is used outside of "
                "it" +
                    where() +
                    "; return it from the function there. Gradients through these are supported "
                    "where the program is called, not inside the exported function");
  Frame& outermost = *frames_[0];
  Leaf leaf;
  leaf.value = outermost.add(tensor);
  leaf.tensor = Tensor::borrow(tensor);
  if (requires_grad(tensor)) grad_state(tensor);
  outermost.graph.leaves.push_back(std::move(leaf));
  return outermost.graph.leaves.back().value;
}

// Results of custom functions get their history after their operators ran without one.
void Recording::check_history(const tenon_tensor* tensor, const char* maker) {
  if (!refuses_gradients_.empty() || !requires_grad(tensor) || autograd()->is_leaf(tensor)) return;
  const char* name = autograd()->grad_fn(tensor);
  refuses_gradients_ = std::string("the gradient of ") + maker + " (" + (name ? name : "?") + ")" +
                       where() + " is no operator's";
}

void Recording::check_fresh(const void* storage) const {
  if (!alias_sets_.is_stale(storage)) return;
  throw Error(TENON_UNSUPPORTED,
              "export: a value is read" + where() +
                  " that has shared its memory, through a branch or loop over a tensor, with one "
                  "that was written "
                  "into since; write `x = x + 1` for `x += 1`, or hand on a clone()");
}

void Recording::mark_aliases_stale(const void* storage) {
  const Graph& graph = frames_[0]->graph;
  for (const void* other : alias_sets_.others(storage)) {
    const auto shows = [&](ValueId value) { return frames_[0]->layout(value).storage == other; };
    const bool is_seen = std::any_of(graph.inputs.begin(), graph.inputs.end(), shows) ||
                         std::any_of(graph.leaves.begin(), graph.leaves.end(),
                                     [&](const Leaf& leaf) { return shows(leaf.value); });
    if (is_seen)
      throw Error(
          TENON_UNSUPPORTED,
          "export: a write" + where() +
              " goes to what a branch or loop over a tensor handed on, which may be an argument or "
              "a tensor from outside; write `x = x + 1` for `x += 1`, or hand on a clone()");
    alias_sets_.mark_stale(other);
  }
}

void Recording::begin_write(tenon_tensor* tensor) {
  const void* storage = host->tensor_storage(tensor);
  if (!alias_sets_.empty()) mark_aliases_stale(storage);
  for (size_t depth = 0; depth + 1 < frames_.size(); ++depth)
    if (frames_[depth]->knows_storage(storage))
      throw Error(TENON_UNSUPPORTED,
                  "export: a branch or loop over a tensor writes into a tensor from outside" +
                      where() + "; return or assign the new value instead");
  if (frames_.size() > 1) return;
  for (Leaf& leaf : frame().graph.leaves)
    if (!leaf.original && host->tensor_storage(leaf.tensor.get()) == storage)
      leaf.original = copy_of(leaf.tensor);
}

// -- calls ---------------------------------------------------------------------------------------

Operand Recording::operand(const tenon_value& value) {
  if (tenon_tensor* tensor = as_tensor(value)) return Operand::of(value_of(tensor));
  if (value.tag != TENON_VALUE_TENSORS) return Operand::of(Attribute(value));
  Operand list;
  list.kind = Operand::kList;
  auto* tensors = static_cast<tenon_tensor* const*>(value.v.p);
  for (uint32_t i = 0; i < value.aux; ++i) list.list.push_back(value_of(tensors[i]));
  return list;
}

uint32_t Recording::begin_call(const tenon_op* op, const tenon_value* args, uint32_t nargs,
                               const tenon_value* outs, uint32_t nouts) {
  const tenon_op_def& def = *host->op_def(op);
  if (def.flags & TENON_OP_DATA_DEPENDENT)
    throw Error(TENON_UNSUPPORTED,
                "export: the shape of the result of `" + std::string(def.name) + "`" + where() +
                    " depends on data, and a program has fixed shapes; use an operator with a "
                    "fixed shape, such as where(mask, x, 0), or call it outside");
  if (def.flags & TENON_OP_LIST_OUTPUT || nargs > kMaxArguments || nouts > kMaxResults)
    throw Error(TENON_UNSUPPORTED, "export: `" + std::string(def.name) + "`" + where() +
                                       " has more results or arguments than a program can hold");
  Step& step = pending_;  // what other kinds of steps have stays empty
  step.op = op;
  step.given = 0;
  const tenon_tensor* first = nargs ? as_tensor(args[0]) : nullptr;
  step.copies_dense =
      def.flags & TENON_OP_MATERIALIZE && first && first->flags & TENON_TENSOR_CONTIGUOUS;
  step.schema_hash = def.schema_hash;
  step.name = name_of(op, def.name);
  step.is_recorded = autograd() && autograd()->enabled();
  sources_.locate(step);
  step.operands.clear();
  step.operands.reserve(nargs);
  for (uint32_t i = 0; i < nargs; ++i) step.operands.push_back(operand(args[i]));
  step.results = SmallVector<ValueId, 2>(nouts, kNoValueId);
  for (uint32_t i = 0; i < nouts; ++i) {
    tenon_tensor* out = as_tensor(outs[i]);
    if (!out) continue;
    step.given |= 1u << i;
    step.results[i] = value_of(out);
    begin_write(out);
  }
  return step.given;
}

void Recording::end_call(const tenon_value* outs) {
  Step& step = pending_;
  Frame& frame = this->frame();
  const bool may_alias = host->op_def(step.op)->flags & TENON_OP_VIEW;
  for (size_t i = 0; i < step.results.size(); ++i) {
    if (is_given(step, i)) continue;
    tenon_tensor* out = as_tensor(outs[i]);
    if (may_alias) {
      step.results[i] = frame.add(out);
    } else {
      const void* storage = host->tensor_storage(out);
      if (storage && frame.knows_storage(storage))
        throw Error(TENON_UNSUPPORTED, "export: the result of " + text_of(step) +
                                           " shares memory with an argument, though the operator "
                                           "is no view");
      step.results[i] = frame.add_made(out);
      if (!alias_sets_.empty()) alias_sets_.forget(storage);
      made_bytes_ += out->numel * int64_t{host->dtype_size(out->dtype)};
    }
    if (!step.is_recorded) frame.set_unrecorded(step.results[i]);
  }
  frame.graph.steps.push_back(std::move(step));
  // A recording would otherwise hold all results of a training step at once. The limit grows with
  // what is still in use, so that few calls look.
  if (made_bytes_ < made_limit_ || frames_.size() > 1) return;
  frame.forget_unreachable();
  made_bytes_ = 0;
  made_limit_ = std::max(kMinMade, frame.made_bytes() / 4);
}

void Recording::see_unrecorded(const tenon_value* outs, uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; ++i) {
    tenon_tensor* out = as_tensor(outs[i]);
    if (!out) continue;
    const void* storage = host->tensor_storage(out);
    const bool is_known = std::any_of(frames_.begin(), frames_.end(), [&](const auto& frame) {
      return frame->knows_storage(storage);
    });
    if (is_known || !storage) continue;
    foreign_.insert(storage);
    kept_.push_back(Tensor::borrow(out));
  }
}

// -- the rest ------------------------------------------------------------------------------------

void Recording::fail(const std::string& reason) {
  if (failure_.empty()) failure_ = reason;
}

std::string Recording::text_of(Step step) {
  step.location = sources_.location_of(step);
  return step_text(step);
}

const InternedText& Recording::name_of(const tenon_op* op, const char* name) {
  uint32_t& number = names_[op];
  if (number == PointerMap::kNone) {
    number = static_cast<uint32_t>(known_names_.size());
    known_names_.emplace_back(name);
  }
  return known_names_[number];
}

// -- .grad ---------------------------------------------------------------------------------------

Recording::GradState& Recording::grad_state(tenon_tensor* tensor) {
  for (GradState& state : grads_)
    if (state.tensor.get() == tensor) return state;
  grads_.push_back({Tensor::borrow(tensor), Tensor::borrow(autograd()->grad(tensor))});
  return grads_.back();
}

void Recording::begin_grad(tenon_tensor* tensor) {
  if (!autograd()) return;
  GradState& state = grad_state(tensor);
  const tenon_tensor* now = autograd()->grad(tensor);
  const bool was_read = now && frames_[0]->find(now);
  state.is_overwritten |= now == state.first.get() && !was_read;
}

// Writes down what became of each .grad. Where a run begins with what it finds there, that has to
// be what the recording found, which is put back.
void Recording::end_grads() {
  const bool accumulates = notes_ & TENON_GRAPH_NOTE_ACCUMULATE;
  for (size_t i = 0; i < grads_.size(); ++i) {  // resolving a .grad may find another one
    const GradState state = grads_[i];
    const Tensor last = Tensor::borrow(autograd()->grad(state.tensor.get()));
    const bool has_changed = last.get() != state.first.get();
    if (!accumulates && !state.is_overwritten && !has_changed) continue;
    GradUpdate update;
    update.tensor = resolve(0, state.tensor.get());
    if (last) update.grad = resolve(0, last.get());
    if (!state.is_overwritten) {
      if (options_.flags & TENON_GRAPH_RECORDING_GIVES_UP && (has_changed || state.first))
        throw Error(TENON_UNSUPPORTED,
                    "export: the function adds to a .grad that it has not assigned; set it to None "
                    "first in the function, as optimizer.zero_grad() does");
      update.from_none = !state.first;
      const auto& inputs = frame().graph.inputs;
      if (state.first && std::count(inputs.begin(), inputs.end(), update.tensor))
        throw Error(TENON_UNSUPPORTED,
                    "export: the function adds to .grad of an input, and at each run that is "
                    "another tensor; set it to None before, or first in the function");
      for (Leaf& leaf : frame().graph.leaves)
        if (leaf.value == update.tensor) leaf.grad = state.first;
      if (has_changed) {
        ErrorSink err;
        err.check(autograd()->set_grad(state.tensor.get(), state.first.get(), err));
      }
    }
    frame().graph.grads.push_back(update);
  }
}

ProgramPtr Recording::finish(tenon_tensor* const* results, uint32_t nresults) {
  if (!failure_.empty()) throw Error(TENON_UNSUPPORTED, failure_);
  if (frames_.size() != 1)
    throw Error(TENON_FAILED_PRECONDITION, "export: a region was begun and not ended");
  ProgramPtr program(new Program);
  for (uint32_t i = 0; i < nresults; ++i) frame().graph.results.push_back(resolve(0, results[i]));
  end_grads();
  program->graph = std::move(frame().graph);
  uint64_t seed = 0, offset = 0;
  host->random_get(device_, &seed, &offset);
  if (seed != seed_ || offset < random_offset_)
    throw Error(TENON_UNSUPPORTED,
                "export: the function sets the seed of random numbers, or the state that follows "
                "from it, and a program does not; call manual_seed outside of it");
  // Where a backward pass has run inside, its steps are those that the hook has made of it.
  const bool keeps_history = !(notes_ & TENON_GRAPH_NOTE_FREE_HISTORY);
  // Of custom functions, too: what they do backward has run by then, as operators.
  if (!keeps_history) refuses_gradients_.clear();
  if (notes_ & TENON_GRAPH_NOTE_HOOK && keeps_history && refuses_gradients_.empty())
    refuses_gradients_ = "the function hangs a hook on a gradient, or on what is saved for it";
  if (options_.flags & TENON_GRAPH_RECORDING_GIVES_UP && !refuses_gradients_.empty())
    throw Error(TENON_UNSUPPORTED, "export: gradients cannot be replayed: " + refuses_gradients_);
  program->is_detached = notes_ & TENON_GRAPH_NOTE_FREE_HISTORY;
  program->refuses_gradients = refuses_gradients_;
  sources_.name_steps(program->graph);
  program->made = frame().take_made();
  for (Tensor& tensor : made_) program->made.push_back(std::move(tensor));
  program->host_reads = std::move(host_reads_);
  program->is_verified = false;
  return program;
}

void Recording::keep_what_is_held(Program& program) {
  // Most are: nothing else has the tensor, and it has its memory alone.
  std::erase_if(program.made, [](const Tensor& tensor) {
    return host->tensor_use_count(tensor.get()) == 1 &&
           host->tensor_storage_use_count(tensor.get()) == 1;
  });
  PointerMap own;  // tensors by storage
  for (const Tensor& tensor : program.made)
    if (const void* storage = host->tensor_storage(tensor.get())) {
      uint32_t& count = own[storage];
      count = count == PointerMap::kNone ? 1 : count + 1;
    }
  std::erase_if(program.made, [&](const Tensor& tensor) {
    const void* storage = host->tensor_storage(tensor.get());
    const uint32_t count = storage ? own.find(storage) : 1;
    return host->tensor_use_count(tensor.get()) == 1 &&
           host->tensor_storage_use_count(tensor.get()) == count;
  });
}

}  // namespace tenon::graph
