// SPDX-License-Identifier: Apache-2.0
// A region of a network as one executable. Its images are NHWC with channels padded to whole vectors
// (conv/nhwc_conv.hpp), so that convolutions need no transposition at either end; what follows one runs on
// each part of its results while a cache holds it. Values share one workspace, laid out once; those that
// are joined along channels lie side by side from the beginning, where they can.
#pragma once

#include "region_tail.hpp"

#include <atomic>
#include <memory>

namespace tenon::cpu {

class Region {
 public:
  // Packs what the steps compute with. Throws std::bad_alloc.
  Region(const RegionSteps& steps, const tenon_subgraph& graph);

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  tenon_status run(const tenon_executable_request& request, tenon_err* err) const;

 private:
  // A step, or a tail of steps, that computes each pixel of its value from the same pixel of others.
  struct Flat {
    uint32_t out;
    uint32_t from;    // What a tail begins with.
    RegionTail tail;  // If there is no kernel.
    tenon_boxed_fn kernel = nullptr;
    std::vector<RegionOperand> operands;
    std::vector<std::vector<float>> constants;  // Padded; of operands in order.
  };
  // A step that reads whole values, if there is one, and flat ones behind it.
  struct Stage {
    RegionStep::Kind kind = RegionStep::kKernel;  // This: there is none.
    uint32_t out;
    std::vector<uint32_t> inputs;
    PoolDescription pool = {};
    std::unique_ptr<NhwcConv> conv;
    bool reads_planes = false;
    std::vector<Flat> flats;
    size_t joined = 0;  // The convolution computes this many of them: its tail, or none.
  };
  // Values that share memory: one is made of the other, element by element.
  struct Slot {
    int64_t pixels, channels, row;  // Elements from one pixel to the next.
    size_t first, last;             // Stages in which it is used.
    uint64_t offset = 0;            // Bytes.
    uint32_t around = ~0u;          // The slot in whose pixels it lies, or none.
    int64_t channel = 0;            // Of that slot, where it begins.
    bool is_changed = false;        // After it was made, another value took its place.
  };
  struct Run;

  void add_stage(const RegionSteps& steps, const RegionStep& step);
  void add_flat(const RegionSteps& steps, size_t index, const RegionStep& step);
  void add_kernel(Flat& flat, const RegionStep& step) const;
  void use(uint32_t value, size_t stage);
  void join_tails();
  void place_joined();
  bool can_lie_in(const Slot& slot, uint32_t around, size_t joined_at) const;
  void lay_out();
  int64_t padded(uint32_t value) const;
  int64_t row(uint32_t value) const { return slots_[slot_of_[value]].row; }
  void run_flats(const Run& run, const Stage& stage, int64_t first, int64_t count) const;
  void run_flat(const Run& run, const Flat& flat, int64_t first, int64_t count) const;
  tenon_status run_stage(const Run& run, const Stage& stage, tenon_err* err) const;
  void join(const Run& run, const Stage& stage) const;

  std::vector<RegionValue> values_;
  std::vector<uint32_t> slot_of_;
  std::vector<size_t> last_read_;  // The last step that reads a value.
  std::vector<Slot> slots_;
  std::vector<Stage> stages_;
  std::vector<uint32_t> converted_;  // Inputs that are read as NHWC.
  std::vector<int32_t> input_of_;    // By value: which input of the executable it is, or -1.
  std::vector<uint32_t> outputs_;    // Values.
  uint64_t workspace_bytes_ = 0;
};

}  // namespace tenon::cpu
