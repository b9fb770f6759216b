// SPDX-License-Identifier: Apache-2.0
#include "region.hpp"

#include <tenon/error.hpp>
#include <tenon/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::cpu {
namespace {

constexpr uint32_t kNoSlot = ~0u;
constexpr size_t kEnd = SIZE_MAX;         // Behind all stages.
constexpr int64_t kPieceElements = 4096;  // Of each value that flat steps work on together.

std::vector<float> padded_copy(const float* from, int64_t count, int64_t padded) {
  std::vector<float> copy(static_cast<size_t>(padded), 0.0f);
  if (from) std::copy_n(from, count, copy.begin());
  return copy;
}

// The head of a tensor, as kernels read it.
struct Head {
  tenon_tensor tensor = {};
  int64_t shape[2], strides[2];

  void set(const float* data, int64_t rows, int64_t columns) {
    const bool is_row = rows == 1;
    shape[0] = is_row ? columns : rows;
    shape[1] = columns;
    strides[0] = is_row ? 1 : columns;
    strides[1] = 1;
    tensor.data = const_cast<float*>(data);
    tensor.ndim = is_row ? 1 : 2;
    tensor.dl_dtype = {2, 32, 1};  // kDLFloat
    tensor.dtype = TENON_DTYPE_F32;
    tensor.shape = shape;
    tensor.strides = strides;
    tensor.numel = rows * columns;
    tensor.flags = TENON_TENSOR_CONTIGUOUS;
  }
  void set_number(const float* number) {
    set(number, 1, 1);
    tensor.ndim = 0;
    tensor.flags |= TENON_TENSOR_HOST_SCALAR;
  }
  tenon_value value() {
    tenon_value value = {};
    value.tag = TENON_VALUE_TENSOR;
    value.v.p = &tensor;
    return value;
  }
};

}  // namespace

struct Region::Run {
  const tenon_executable_request& request;
  const Region& region;
  mutable std::atomic<bool> failed = false;

  float* at(uint32_t value) const {
    return reinterpret_cast<float*>(static_cast<char*>(request.workspace) +
                                    region.slots_[region.slot_of_[value]].offset);
  }
  const float* input(uint32_t value) const {
    return static_cast<const float*>(request.inputs[region.input_of_[value]]->data);
  }
};

int64_t Region::padded(uint32_t value) const {
  const int64_t width = nhwc().width;
  return (values_[value].channels + width - 1) / width * width;
}

// -- making ---------------------------------------------------------------------------------------

Region::Region(const RegionSteps& steps, const tenon_subgraph& graph)
    : values_(steps.values()),
      slot_of_(values_.size(), kNoSlot),
      last_read_(values_.size(), 0),
      input_of_(values_.size(), -1) {
  for (size_t i = 0; i < steps.steps().size(); ++i)
    for (uint32_t value : steps.steps()[i].inputs) last_read_[value] = i;
  for (uint32_t i = 0; i < graph.noutputs; ++i) {
    const std::optional<uint32_t> value = steps.value_of(graph.outputs[i]);
    if (!value) throw Error(TENON_INTERNAL, "a region lacks a value that it has to give");
    outputs_.push_back(*value);
    last_read_[*value] = kEnd;
  }
  for (uint32_t i = 0; i < graph.ninputs; ++i)
    if (const std::optional<uint32_t> value = steps.value_of(graph.inputs[i]))
      input_of_[*value] = static_cast<int32_t>(i);
  for (size_t i = 0; i < steps.steps().size(); ++i) {
    const RegionStep& step = steps.steps()[i];
    if (step.kind == RegionStep::kNorm || step.kind == RegionStep::kKernel)
      add_flat(steps, i, step);
    else
      add_stage(steps, step);
  }
  for (uint32_t value : outputs_) slots_[slot_of_[value]].last = kEnd;
  lay_out();
  for (RegionValue& value : values_) value.tensor = nullptr;  // They end with the call.
}

// A stage reads or makes a value.
void Region::use(uint32_t value, size_t stage) {
  const RegionValue& of = values_[value];
  if (slot_of_[value] == kNoSlot) {
    const int64_t bytes =
        of.batch * of.pixels() * padded(value) * static_cast<int64_t>(sizeof(float));
    slot_of_[value] = static_cast<uint32_t>(slots_.size());
    slots_.push_back({static_cast<uint64_t>(bytes), 0, of.is_input ? 0 : stage, stage});
    if (of.is_input) converted_.push_back(value);
  }
  slots_[slot_of_[value]].last = std::max(slots_[slot_of_[value]].last, stage);
}

void Region::add_stage(const RegionSteps& steps, const RegionStep& step) {
  Stage& stage = stages_.emplace_back();
  stage.kind = step.kind;
  stage.out = step.out;
  stage.inputs = step.inputs;
  stage.pool = step.pool;
  if (step.kind == RegionStep::kConv) {
    stage.reads_planes =
        values_[step.inputs[0]].is_input && nhwc().input(step.conv) == NhwcInput::kEither;
    stage.conv =
        nhwc().pack(step.conv, constants_of(steps.constants(), step.tensors), stage.reads_planes);
  }
  if (!stage.reads_planes)
    for (uint32_t value : step.inputs) use(value, stages_.size() - 1);
  use(step.out, stages_.size() - 1);
}

void Region::add_flat(const RegionSteps& steps, size_t index, const RegionStep& step) {
  if (stages_.empty() || !values_[stages_.back().out].has_shape_of(values_[step.out]))
    stages_.emplace_back().out = step.out;
  const size_t last = stages_.size() - 1;
  Flat& flat = stages_.back().flats.emplace_back();
  flat.out = step.out;
  flat.kernel = step.kernel;
  flat.operands = step.operands;
  const int64_t channels = values_[step.out].channels, width = padded(step.out);
  for (const RegionOperand& operand : flat.operands) {
    flat.constants.push_back(
        operand.kind == RegionOperand::kConstant
            ? padded_copy(static_cast<const float*>(operand.constant->data), channels, width)
            : std::vector<float>());
  }
  if (!flat.kernel) {
    flat.normalised = step.inputs[0];
    const ConvConstants constants = constants_of(steps.constants(), step.tensors);
    std::vector<float> scale(static_cast<size_t>(width), 0.0f);
    for (int64_t c = 0; c < channels; ++c) {  // As batch_norm_inference() does.
      const float factor = constants.factor ? constants.factor[c] : 1.0f;
      scale[static_cast<size_t>(c)] = factor / std::sqrt(constants.var[c] + constants.eps);
    }
    flat.constants = {padded_copy(constants.mean, channels, width), std::move(scale),
                      padded_copy(constants.shift, channels, width)};
  }
  // The result takes the place of a value that this stage has made and that nothing reads any more.
  for (uint32_t value : step.inputs) {
    const bool is_made_here = slot_of_[value] != kNoSlot && slots_[slot_of_[value]].first == last &&
                              !values_[value].is_input;
    if (is_made_here && last_read_[value] == index && slot_of_[step.out] == kNoSlot &&
        values_[value].has_shape_of(values_[step.out]))
      slot_of_[step.out] = slot_of_[value];
  }
  for (uint32_t value : step.inputs) use(value, last);
  use(step.out, last);
}

// Gives each slot the first place that no other one has at the same time.
void Region::lay_out() {
  std::vector<const Slot*> placed;
  for (Slot& slot : slots_) {
    slot.bytes = (slot.bytes + 63) & ~uint64_t{63};
    bool is_free = false;
    while (!is_free) {
      is_free = true;
      for (const Slot* other : placed) {
        const bool meet = slot.first <= other->last && other->first <= slot.last &&
                          slot.offset < other->offset + other->bytes &&
                          other->offset < slot.offset + slot.bytes;
        if (meet) slot.offset = other->offset + other->bytes;
        is_free = is_free && !meet;
      }
    }
    placed.push_back(&slot);
    workspace_bytes_ = std::max(workspace_bytes_, slot.offset + slot.bytes);
  }
}

// -- running --------------------------------------------------------------------------------------

tenon_status Region::run(const tenon_executable_request& request, tenon_err* err) const {
  const Run run{request, *this};
  for (uint32_t value : converted_) {
    const RegionValue& of = values_[value];
    for (int64_t n = 0; n < of.batch; ++n)
      nhwc().from_planes(run.input(value) + n * of.channels * of.pixels(), of.channels, of.pixels(),
                         run.at(value) + n * of.pixels() * padded(value));
  }
  for (const Stage& stage : stages_)
    if (const tenon_status status = run_stage(run, stage, err); status != TENON_OK) return status;
  if (run.failed.load(std::memory_order_relaxed))
    return fail(err, TENON_INTERNAL, "an elementwise kernel of float32 has refused a piece");
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const RegionValue& of = values_[outputs_[i]];
    auto* to = static_cast<float*>(request.outputs[i]->data);
    for (int64_t n = 0; n < of.batch; ++n)
      nhwc().to_planes(run.at(outputs_[i]) + n * of.pixels() * padded(outputs_[i]), of.channels,
                       of.pixels(), to + n * of.channels * of.pixels());
  }
  return TENON_OK;
}

tenon_status Region::run_stage(const Run& run, const Stage& stage, tenon_err* err) const {
  struct Piece {
    const Region& region;
    const Run& run;
    const Stage& stage;
  } piece{*this, run, stage};
  const PixelsDone done{[](void* user, int64_t first, int64_t count) {
                          const auto& [region, of, at] = *static_cast<const Piece*>(user);
                          region.run_flats(of, at, first, count);
                        },
                        &piece};
  const RegionValue& out = values_[stage.out];
  if (stage.kind == RegionStep::kConv) {
    const uint32_t x = stage.inputs[0];
    return stage.conv->run(run.request.outputs[0]->device,
                           stage.reads_planes ? run.input(x) : run.at(x), run.at(stage.out), done,
                           err);
  }
  if (stage.kind == RegionStep::kMean) {
    const uint32_t x = stage.inputs[0];
    const int64_t pixels = values_[x].pixels();
    for (int64_t n = 0; n < out.batch; ++n)
      nhwc().mean(run.at(x) + n * pixels * padded(x), padded(x), pixels,
                  run.at(stage.out) + n * padded(x));
  } else if (stage.kind == RegionStep::kMaximum) {
    const uint32_t x = stage.inputs[0];
    const tenon_status status =
        nhwc().maximum(run.request.outputs[0]->device, stage.pool, out.batch, padded(x), run.at(x),
                       run.at(stage.out), err);
    if (status != TENON_OK) return status;
  } else if (stage.kind == RegionStep::kConcat) {
    join(run, stage);
  }
  if (stage.flats.empty()) return TENON_OK;
  const int64_t all = out.batch * out.pixels();
  const int64_t some = std::max<int64_t>(1, kPieceElements / padded(stage.out));
  parallel((all + some - 1) / some, some * padded(stage.out), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) done(i * some, std::min(some, all - i * some));
  });
  return TENON_OK;
}

void Region::join(const Run& run, const Stage& stage) const {
  const RegionValue& out = values_[stage.out];
  const int64_t row = padded(stage.out);
  parallel(out.batch * out.pixels(), row, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      float* to = run.at(stage.out) + p * row;
      const float* const last = to + row;
      for (uint32_t value : stage.inputs) {
        const int64_t channels = values_[value].channels;
        std::memcpy(to, run.at(value) + p * padded(value),
                    static_cast<size_t>(channels) * sizeof(float));
        to += channels;
      }
      std::fill(to, const_cast<float*>(last), 0.0f);
    }
  });
}

// In pieces, so that the L1 cache holds what one step makes until the next one has read it.
void Region::run_flats(const Run& run, const Stage& stage, int64_t first, int64_t count) const {
  if (stage.flats.empty()) return;
  const int64_t pixels = values_[stage.out].pixels();
  const int64_t some = std::max<int64_t>(1, kPieceElements / padded(stage.out));
  for (const int64_t end = first + count; first < end;) {
    const int64_t left_in_image = pixels - first % pixels;
    const int64_t now = std::min({some, end - first, left_in_image});
    for (const Flat& flat : stage.flats) run_flat(run, flat, first, now);
    first += now;
  }
}

void Region::run_flat(const Run& run, const Flat& flat, int64_t first, int64_t count) const {
  const int64_t width = padded(flat.out);
  float* to = run.at(flat.out) + first * width;
  if (!flat.kernel) {
    const float* from = run.at(flat.normalised) + first * width;
    if (from != to) std::copy_n(from, count * width, to);
    nhwc().norm(to, count, width, flat.constants[0].data(), flat.constants[1].data(),
                flat.constants[2].data());
    return;
  }
  Head heads[kMaxKernelArguments], out;
  tenon_value args[kMaxKernelArguments];
  const size_t nargs = flat.operands.size();
  const bool is_row = std::all_of(flat.operands.begin(), flat.operands.end(), [](const auto& each) {
    return each.kind != RegionOperand::kScale && each.kind != RegionOperand::kConstant;
  });
  const int64_t rows = is_row ? 1 : count, columns = is_row ? count * width : width;
  for (size_t i = 0; i < nargs; ++i) {
    const RegionOperand& operand = flat.operands[i];
    switch (operand.kind) {
      case RegionOperand::kAttribute:
        args[i] = operand.attribute;
        continue;
      case RegionOperand::kValue:
        heads[i].set(run.at(operand.value) + first * width, rows, columns);
        break;
      case RegionOperand::kScale:
        heads[i].set(run.at(operand.value) + first / values_[flat.out].pixels() * width, 1, width);
        break;
      case RegionOperand::kConstant:
        heads[i].set(flat.constants[i].data(), 1, width);
        break;
      case RegionOperand::kNumber:
        heads[i].set_number(&operand.number);
        break;
    }
    args[i] = heads[i].value();
  }
  out.set(to, rows, columns);
  tenon_value result = out.value();
  if (flat.kernel(nullptr, args, static_cast<uint32_t>(nargs), &result, 1, nullptr) != TENON_OK)
    run.failed.store(true, std::memory_order_relaxed);
}

}  // namespace tenon::cpu
