// SPDX-License-Identifier: Apache-2.0
// An author's operator as one of Tenon's: schema, shape rule, kernel. Where the number of result
// tensors depends on the arguments (lists, optional results), the operator that users call only
// counts them and calls one that has this number: there is a definition for each number that
// occurred.
#pragma once

#include <tenon/schema.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "api/declaration.hpp"
#include "core/host.hpp"

namespace tenon::paddle {

constexpr uint32_t kMaxResults = 8;  // of one operator in Tenon

class Definition {
 public:
  // `counts`: how many tensors each output is; empty: the counting operator.
  Definition(const Declaration& op, std::vector<uint32_t> counts);
  Definition(const Definition&) = delete;
  Definition& operator=(const Definition&) = delete;

  const Declaration& op() const { return op_; }
  const std::string& name() const { return schema_->name(); }
  const std::vector<uint32_t>& counts() const { return counts_; }
  // Result tensor that output `index` begins with.
  uint32_t offset(size_t index) const { return offsets_[index]; }
  uint32_t result_count() const { return offsets_.back(); }
  bool can_infer() const { return can_infer_; }
  // Its shape function has given -1: an extent of 0 of a result may be another one after the run.
  bool has_open_extents() const { return has_open_extents_.load(std::memory_order_relaxed); }

  const tenon_op_def& op_def() const { return op_def_; }
  const tenon_kernel_def* kernel_def() const { return counts_.empty() ? nullptr : &kernel_def_; }

  void infer(const tenon_value* args, tenon_meta* outs) const;

 private:
  std::string schema_text() const;
  bool find_can_infer() const;
  void expect_processor(const tenon_value* args, const std::string& output, size_t axis) const;

  const Declaration& op_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> offsets_;
  bool can_infer_ = false;
  mutable std::atomic<bool> has_open_extents_ = false;
  std::unique_ptr<Schema> schema_;
  std::string doc_;
  tenon_op_def op_def_ = {};
  tenon_kernel_def kernel_def_ = {};
};

// One for each output, for these arguments. A gradient operator's results are counted by the
// arguments of the operator that it is the gradient of, where those are known.
std::vector<uint32_t> count_results(const Declaration& op, const tenon_value* args,
                                    const tenon_value* forward_args = nullptr);

// The operator of Tenon with these counts; attached at its first use.
const tenon_op* find_operator(const Declaration& op, const std::vector<uint32_t>& counts);

// Run the author's kernel on the processor. `outs` are the host's tensors for the results, or empty
// ones, which are set to what the kernel made. With `has_open_extents` an extent of 0 of theirs may
// stand for one that the kernel decides; the tensor is then given the memory that the kernel made.
void call_kernel(const Declaration& op, const std::vector<uint32_t>& counts,
                 const tenon_value* args, std::span<Tensor> outs, bool has_open_extents = false);

// As a tenon_boxed_fn and a tenon_decompose_self_fn.
tenon_status kernel_entry(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs,
                          tenon_value* outs, uint32_t nouts, tenon_err* err);
tenon_status counting_entry(const tenon_value* args, uint32_t nargs, tenon_value* outs,
                            uint32_t nouts, tenon_err* err, void* self);

}  // namespace tenon::paddle
