// SPDX-License-Identifier: Apache-2.0
// One primitive with the reorders around it, ready to run on tensors of given shapes and strides.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "api.hpp"

namespace tenon::onednn {

// A tensor of the call: its memory layout, and which argument of the primitive it is.
struct Operand {
  int argument;  // ExecArgumentId
  int query;  // Query: returns the layout that the primitive requires; kNoQuery: the tensor's own
  bool is_result;
  Description description;
};

// Not for use by two threads at once.
class Program {
 public:
  // NULL: oneDNN cannot build it.
  static std::unique_ptr<Program> make(const Api& api, const PrimitiveDesc& primitive,
                                       std::span<const Operand> operands);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // `data`: one address for each operand.
  tenon_status run(tenon_ctx* ctx, std::span<void* const> data, tenon_err* err);

 private:
  explicit Program(const Api& api) : api_(api) {}
  struct Memory {
    dnnl_memory* handle;
    int operand;      // index of the operand that it holds; -1: scratch memory
    uint64_t offset;  // in scratch memory
  };
  struct Step {
    dnnl_primitive* primitive;
    std::vector<ExecArgument> arguments;
  };

  dnnl_memory* add_memory(MemoryDesc layout, int operand);
  bool add_step(const PrimitiveDesc& desc, std::vector<ExecArgument> arguments);
  bool add_reorder(MemoryDesc from, dnnl_memory* source, MemoryDesc to, dnnl_memory* destination);

  const Api& api_;
  dnnl_stream* stream_ = nullptr;
  std::vector<Memory> memories_;
  std::vector<Step> steps_;
  uint64_t scratch_bytes_ = 0;
  bool has_failed_ = false;
};

}  // namespace tenon::onednn
