// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <string>

#include <tenon/plugin.hpp>

namespace tenon::onednn {
namespace {

constexpr uint64_t kAlignment = 64;

tenon_status failed(tenon_err* err, const char* what, Status status) {
  return fail(err, TENON_INTERNAL,
              std::string("oneDNN: ") + what + " failed with status " + std::to_string(status));
}

}  // namespace

Program::~Program() {
  const CommonSymbols& dnnl = api_.common();
  for (Step& step : steps_) dnnl.primitive_destroy(step.primitive);
  for (Memory& memory : memories_) dnnl.memory_destroy(memory.handle);
  if (stream_) dnnl.stream_destroy(stream_);
}

dnnl_memory* Program::add_memory(MemoryDesc layout, int operand) {
  const CommonSymbols& dnnl = api_.common();
  dnnl_memory* memory = nullptr;
  if (dnnl.memory_create(&memory, layout, api_.engine(), nullptr) != 0) {
    has_failed_ = true;
    return nullptr;
  }
  memories_.push_back({memory, operand, scratch_bytes_});
  if (operand < 0) {
    const uint64_t bytes = dnnl.memory_desc_get_size(layout);
    scratch_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return memory;
}

bool Program::add_step(const PrimitiveDesc& desc, std::vector<ExecArgument> arguments) {
  const CommonSymbols& dnnl = api_.common();
  Step step{.primitive = nullptr, .arguments = std::move(arguments)};
  MemoryDesc scratchpad = dnnl.primitive_desc_query_md(desc.get(), kQueryScratchpad, 0);
  if (scratchpad && dnnl.memory_desc_get_size(scratchpad) > 0)
    step.arguments.push_back({kScratchpad, add_memory(scratchpad, -1)});
  if (has_failed_ || dnnl.primitive_create(&step.primitive, desc.get()) != 0) return false;
  steps_.push_back(std::move(step));
  return true;
}

bool Program::add_reorder(MemoryDesc from, dnnl_memory* source, MemoryDesc to,
                          dnnl_memory* destination) {
  const CommonSymbols& dnnl = api_.common();
  dnnl_primitive_desc* desc = nullptr;
  if (dnnl.reorder_primitive_desc_create(&desc, from, api_.engine(), to, api_.engine(),
                                         api_.attributes()) != 0)
    return false;
  const PrimitiveDesc owned(desc,
                            [&](dnnl_primitive_desc* each) { dnnl.primitive_desc_destroy(each); });
  return add_step(owned, {{kSource, source}, {kDestination, destination}});
}

std::unique_ptr<Program> Program::make(const Api& api, const PrimitiveDesc& primitive,
                                       std::span<const Operand> operands) {
  if (!primitive) return nullptr;
  const CommonSymbols& dnnl = api.common();
  std::unique_ptr<Program> program(new Program(api));
  if (dnnl.stream_create(&program->stream_, api.engine(), kStreamInOrder) != 0) return nullptr;
  struct After {
    Layout to;
    MemoryDesc from;
    dnnl_memory *source, *destination;
  };
  std::vector<After> after;
  std::vector<ExecArgument> arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    const Layout own = api.layout(operand.description);
    if (!own) return nullptr;
    MemoryDesc wanted =
        operand.query ? dnnl.primitive_desc_query_md(primitive.get(), operand.query, 0) : own.get();
    if (!wanted) return nullptr;
    dnnl_memory* memory = program->add_memory(own.get(), static_cast<int>(i));
    if (!dnnl.memory_desc_equal(own.get(), wanted)) {
      dnnl_memory* reordered = program->add_memory(wanted, -1);
      if (program->has_failed_) return nullptr;
      if (operand.is_result)
        after.push_back({own, wanted, reordered, memory});
      else if (!program->add_reorder(own.get(), memory, wanted, reordered))
        return nullptr;
      memory = reordered;
    }
    arguments.push_back({operand.argument, memory});
  }
  if (program->has_failed_ || !program->add_step(primitive, std::move(arguments))) return nullptr;
  for (const After& each : after)
    if (!program->add_reorder(each.from, each.source, each.to.get(), each.destination))
      return nullptr;
  return program;
}

tenon_status Program::run(tenon_ctx* ctx, std::span<void* const> data, tenon_err* err) {
  const CommonSymbols& dnnl = api_.common();
  void* scratch = nullptr;
  if (scratch_bytes_ > 0)
    if (tenon_status status = host->scratch(ctx, scratch_bytes_ + kAlignment, &scratch, err))
      return status;
  const uint64_t base =
      (reinterpret_cast<uintptr_t>(scratch) + kAlignment - 1) / kAlignment * kAlignment;
  for (const Memory& memory : memories_) {
    void* address = memory.operand < 0 ? reinterpret_cast<void*>(base + memory.offset)
                                       : data[static_cast<size_t>(memory.operand)];
    if (Status status = dnnl.memory_set_data_handle(memory.handle, address))
      return failed(err, "an address", status);
  }
  for (const Step& step : steps_)
    if (Status status =
            dnnl.primitive_execute(step.primitive, stream_, static_cast<int>(step.arguments.size()),
                                   step.arguments.data()))
      return failed(err, "a primitive", status);
  if (Status status = dnnl.stream_wait(stream_)) return failed(err, "the wait", status);
  return TENON_OK;
}

}  // namespace tenon::onednn
