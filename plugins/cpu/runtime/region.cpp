// SPDX-License-Identifier: Apache-2.0
#include "region.hpp"

#include <tenon/error.hpp>
#include <tenon/parallel.hpp>

#include <algorithm>

namespace tenon::cpu {
namespace {

constexpr uint32_t kNoSlot = ~0u;
constexpr size_t kEnd = SIZE_MAX;         // Behind all stages.
constexpr int64_t kPieceElements = 4096;  // Of each value that flat steps work on together.

// The head of a tensor, as kernels read it.
struct Head {
  tenon_tensor tensor = {};
  int64_t shape[2], strides[2];

  void set(const float* data, int64_t rows, int64_t row, int64_t columns) {
    const bool is_row = rows == 1;
    shape[0] = is_row ? columns : rows;
    shape[1] = columns;
    strides[0] = is_row ? 1 : row;
    strides[1] = 1;
    tensor.data = const_cast<float*>(data);
    tensor.ndim = is_row ? 1 : 2;
    tensor.dl_dtype = {2, 32, 1};  // kDLFloat
    tensor.dtype = TENON_DTYPE_F32;
    tensor.shape = shape;
    tensor.strides = strides;
    tensor.numel = rows * columns;
    tensor.flags = is_row || row == columns ? TENON_TENSOR_CONTIGUOUS : 0;
  }
  void set_number(const float* number) {
    set(number, 1, 1, 1);
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
  join_tails();
  place_joined();
  lay_out();
  for (RegionValue& value : values_) value.tensor = nullptr;  // They end with the call.
}

// A stage reads or makes a value.
void Region::use(uint32_t value, size_t stage) {
  const RegionValue& of = values_[value];
  if (slot_of_[value] == kNoSlot) {
    slot_of_[value] = static_cast<uint32_t>(slots_.size());
    slots_.push_back({of.batch * of.pixels(), of.channels, nhwc().row(of.channels),
                      of.is_input ? 0 : stage, stage});
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
  // The result takes the place of a value that this stage has made and that nothing reads any more.
  for (uint32_t value : step.inputs) {
    const bool is_made_here = slot_of_[value] != kNoSlot && slots_[slot_of_[value]].first == last &&
                              !values_[value].is_input;
    if (is_made_here && last_read_[value] == index && slot_of_[step.out] == kNoSlot &&
        values_[value].has_shape_of(values_[step.out])) {
      slot_of_[step.out] = slot_of_[value];
      slots_[slot_of_[value]].is_changed = true;
    }
  }
  for (uint32_t value : step.inputs) use(value, last);
  use(step.out, last);
  const int64_t channels = values_[step.out].channels;
  std::vector<Flat>& flats = stages_.back().flats;
  if (!flats.empty() && !flats.back().tail.empty() &&
      slot_of_[flats.back().out] == slot_of_[step.out] &&
      flats.back().tail.add(step, flats.back().out, steps.constants(), channels,
                            padded(step.out))) {
    flats.back().out = step.out;
    return;
  }
  Flat& flat = flats.emplace_back();
  flat.out = step.out;
  for (uint32_t value : step.inputs) {
    flat.from = value;
    if (values_[value].has_shape_of(values_[step.out]) &&
        flat.tail.add(step, value, steps.constants(), channels, padded(step.out)))
      return;
  }
  add_kernel(flat, step);
}

void Region::add_kernel(Flat& flat, const RegionStep& step) const {
  flat.kernel = step.kernel;
  flat.operands = step.operands;
  const int64_t channels = values_[step.out].channels;
  for (const RegionOperand& operand : flat.operands) {
    std::vector<float>& constant = flat.constants.emplace_back();
    if (operand.kind != RegionOperand::kConstant) continue;
    const auto* data = static_cast<const float*>(operand.constant->data);
    constant.assign(data, data + channels);
    constant.resize(static_cast<size_t>(padded(step.out)), 0.0f);
  }
}

// A tail that changes the results of a convolution in place runs on each tile of them.
void Region::join_tails() {
  for (Stage& stage : stages_) {
    if (!stage.conv || stage.flats.empty()) continue;
    const Flat& first = stage.flats[0];
    stage.joined = !first.tail.empty() && first.from == stage.out &&
                   slot_of_[first.out] == slot_of_[stage.out];
  }
}

// Whether what a slot holds can lie among the channels of the slot around it, to which a stage joins it.
bool Region::can_lie_in(const Slot& slot, uint32_t around, size_t joined_at) const {
  // A value that is made of the joined one takes its place: then nothing may read the parts any more.
  for (uint32_t at = around; at != kNoSlot; at = slots_[at].around)
    if (slots_[at].is_changed && slot.last > joined_at) return false;
  return true;
}

// Values that are joined lie side by side from the beginning. The last stage is first, as what it joins
// may be joined of others.
void Region::place_joined() {
  const int64_t width = nhwc().width;
  for (size_t i = stages_.size(); i-- > 0;) {
    const Stage& stage = stages_[i];
    if (stage.kind != RegionStep::kConcat) continue;
    // Steps of this stage may read the only part, of as many channels, after they changed the joined value.
    if (stage.inputs.size() == 1) continue;
    const uint32_t around = slot_of_[stage.out];
    int64_t channel = 0;
    for (uint32_t value : stage.inputs) {
      Slot& slot = slots_[slot_of_[value]];
      const int64_t channels = values_[value].channels;
      if (!values_[value].is_input && slot.around == kNoSlot && channel % width == 0 &&
          channels % width == 0 && can_lie_in(slot, around, i)) {
        slot.around = around;
        slot.channel = channel;
      }
      channel += channels;
    }
  }
  for (Slot& slot : slots_) {
    while (slot.around != kNoSlot && slots_[slot.around].around != kNoSlot) {
      slot.channel += slots_[slot.around].channel;
      slot.around = slots_[slot.around].around;
    }
    if (slot.around == kNoSlot) continue;
    Slot& around = slots_[slot.around];
    slot.row = around.row;
    around.first = std::min(around.first, slot.first);
    around.last = std::max(around.last, slot.last);
  }
}

// Gives each slot the first place that no other one has at the same time.
void Region::lay_out() {
  std::vector<const Slot*> placed;
  const auto bytes = [](const Slot& slot) {
    const int64_t elements = (slot.pixels * slot.row + 15) / 16 * 16;
    return static_cast<uint64_t>(elements) * sizeof(float);
  };
  for (Slot& slot : slots_) {
    bool is_free = slot.around != kNoSlot;
    while (!is_free) {
      is_free = true;
      for (const Slot* other : placed) {
        const bool meet = slot.first <= other->last && other->first <= slot.last &&
                          slot.offset < other->offset + bytes(*other) &&
                          other->offset < slot.offset + bytes(slot);
        if (meet) slot.offset = other->offset + bytes(*other);
        is_free = is_free && !meet;
      }
    }
    if (slot.around != kNoSlot) continue;
    placed.push_back(&slot);
    workspace_bytes_ = std::max(workspace_bytes_, slot.offset + bytes(slot));
  }
  for (Slot& slot : slots_)
    if (slot.around != kNoSlot)
      slot.offset =
          slots_[slot.around].offset + static_cast<uint64_t>(slot.channel) * sizeof(float);
}

// -- running --------------------------------------------------------------------------------------

tenon_status Region::run(const tenon_executable_request& request, tenon_err* err) const {
  const Run run{request, *this};
  for (uint32_t value : converted_) {
    const RegionValue& of = values_[value];
    for (int64_t n = 0; n < of.batch; ++n)
      nhwc().from_planes(run.input(value) + n * of.channels * of.pixels(), of.channels, of.pixels(),
                         run.at(value) + n * of.pixels() * row(value), row(value));
  }
  for (const Stage& stage : stages_)
    if (const tenon_status status = run_stage(run, stage, err); status != TENON_OK) return status;
  if (run.failed.load(std::memory_order_relaxed))
    return fail(err, TENON_INTERNAL, "an elementwise kernel of float32 has refused a piece");
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const RegionValue& of = values_[outputs_[i]];
    auto* to = static_cast<float*>(request.outputs[i]->data);
    for (int64_t n = 0; n < of.batch; ++n)
      nhwc().to_planes(run.at(outputs_[i]) + n * of.pixels() * row(outputs_[i]), row(outputs_[i]),
                       of.channels, of.pixels(), to + n * of.channels * of.pixels());
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
  const uint32_t x = stage.inputs.empty() ? stage.out : stage.inputs[0];
  const tenon_device_id device = run.request.outputs[0]->device;
  if (stage.kind == RegionStep::kConv) {
    NhwcRun of{};
    of.device = device;
    of.x = stage.reads_planes ? run.input(x) : run.at(x);
    of.x_row = stage.reads_planes ? 0 : row(x);
    of.out = run.at(stage.out);
    of.out_row = row(stage.out);
    if (stage.joined > 0) {
      const RegionTail& tail = stage.flats[0].tail;
      of.tail = &tail.pixels();
      if (tail.residual()) {
        of.residual = run.at(*tail.residual());
        of.residual_row = row(*tail.residual());
      }
    }
    of.done = stage.flats.size() > stage.joined ? &done : nullptr;
    return stage.conv->run(of, err);
  }
  if (stage.kind == RegionStep::kMean) {
    const int64_t pixels = values_[x].pixels();
    for (int64_t n = 0; n < out.batch; ++n)
      nhwc().mean(run.at(x) + n * pixels * row(x), row(x), out.channels, pixels,
                  run.at(stage.out) + n * row(stage.out));
  } else if (stage.kind == RegionStep::kMaximum || stage.kind == RegionStep::kAverage) {
    const auto pool = stage.kind == RegionStep::kMaximum ? nhwc().maximum : nhwc().average;
    pool({stage.pool, out.batch, out.channels, run.at(x), row(x), run.at(stage.out),
          row(stage.out)});
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

// Copies the values that do not lie among the channels of the joined one.
void Region::join(const Run& run, const Stage& stage) const {
  const RegionValue& out = values_[stage.out];
  const int64_t to_row = row(stage.out);
  int64_t channel = 0;
  const auto copy = [&](const float* from, int64_t from_row, int64_t channels) {
    parallel(out.batch * out.pixels(), channels, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float* to = run.at(stage.out) + p * to_row + channel;
        from ? std::copy_n(from + p * from_row, channels, to) : std::fill_n(to, channels, 0.0f);
      }
    });
    channel += channels;
  };
  for (uint32_t value : stage.inputs) {
    const int64_t channels = values_[value].channels;
    const float* from = run.at(value);
    if (from == run.at(stage.out) + channel)
      channel += channels;
    else
      copy(from, row(value), channels);
  }
  if (channel < padded(stage.out)) copy(nullptr, 0, padded(stage.out) - channel);
}

// In pieces, so that the L1 cache holds what one step makes until the next one has read it.
void Region::run_flats(const Run& run, const Stage& stage, int64_t first, int64_t count) const {
  const int64_t pixels = values_[stage.out].pixels();
  const int64_t some = std::max<int64_t>(1, kPieceElements / padded(stage.out));
  for (const int64_t end = first + count; first < end;) {
    const int64_t left_in_image = pixels - first % pixels;
    const int64_t now = std::min({some, end - first, left_in_image});
    for (size_t i = stage.joined; i < stage.flats.size(); ++i)
      run_flat(run, stage.flats[i], first, now);
    first += now;
  }
}

void Region::run_flat(const Run& run, const Flat& flat, int64_t first, int64_t count) const {
  const int64_t width = padded(flat.out), to_row = row(flat.out);
  float* to = run.at(flat.out) + first * to_row;
  if (!flat.kernel) {
    const std::optional<uint32_t> residual = flat.tail.residual();
    const int64_t from_row = row(flat.from), added_row = residual ? row(*residual) : 0;
    const float* added = residual ? run.at(*residual) + first * added_row : nullptr;
    nhwc().finish(
        flat.tail.pixels(),
        {run.at(flat.from) + first * from_row, from_row, added, added_row, to, to_row, count},
        width);
    return;
  }
  Head heads[kMaxKernelArguments], out;
  tenon_value args[kMaxKernelArguments];
  const size_t nargs = flat.operands.size();
  const bool is_row =
      to_row == width &&
      std::all_of(flat.operands.begin(), flat.operands.end(), [&](const RegionOperand& each) {
        if (each.kind == RegionOperand::kValue) return row(each.value) == width;
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
        heads[i].set(run.at(operand.value) + first * row(operand.value), rows, row(operand.value),
                     columns);
        break;
      case RegionOperand::kScale:
        heads[i].set(
            run.at(operand.value) + first / values_[flat.out].pixels() * row(operand.value), 1,
            width, width);
        break;
      case RegionOperand::kConstant:
        heads[i].set(flat.constants[i].data(), 1, width, width);
        break;
      case RegionOperand::kNumber:
        heads[i].set_number(&operand.number);
        break;
    }
    args[i] = heads[i].value();
  }
  out.set(to, rows, to_row, columns);
  tenon_value result = out.value();
  if (flat.kernel(nullptr, args, static_cast<uint32_t>(nargs), &result, 1, nullptr) != TENON_OK)
    run.failed.store(true, std::memory_order_relaxed);
}

}  // namespace tenon::cpu
