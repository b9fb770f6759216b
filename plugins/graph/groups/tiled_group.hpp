// SPDX-License-Identifier: Apache-2.0
// A group of steps that runs block by block: each step's kernel is called on one block before any is called on the next, so
// that what passes between the steps stays in a cache and never becomes a tensor. No code is generated; the kernels, and so
// the bits of the results, are those that run step by step. The steps are elementwise or work along rows (groups/rows.hpp), of
// which a block has some; one element for each row, such as a sum, is a column.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "groups/jit_loop.hpp"
#include "ir/graph.hpp"
#include "support/host.hpp"

namespace tenon::graph {

// How a value lies in a group, whose rows are [outer, inner].
enum class Extent : uint8_t {
  kFull,    // [outer, inner]
  kRow,     // [inner], the same for every row
  kColumn,  // [outer, 1], or [outer]
  kOne,     // a single element
};

class BlockGroup {
 public:
  // The steps from `first` on, as long as they fit into one group and lie before `limit`. `is_needed_after(value, step)` says
  // whether a value is read after a step, or when all have run. None: there are no two steps that gain by it.
  template <class IsNeededAfter>
  static std::optional<BlockGroup> find(const Graph& graph, uint32_t first, uint32_t limit,
                                        const IsNeededAfter& is_needed_after) {
    BlockGroup group(graph, first, limit);
    while (group.add_step()) continue;
    return group.finish([&](ValueId value) { return is_needed_after(value, group.end_ - 1); })
               ? std::optional<BlockGroup>(std::move(group))
               : std::nullopt;
  }

  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }
  // Is the result of one of its steps a tensor that others need?
  bool makes_tensor(ValueId value) const;

  // Runs all steps: `values` receives owned tensors for the results that others need. False where the steps have to
  // run one by one: tensors that are not dense or overlap, a layer that wants to see the calls, a failure, which a run
  // step by step then reports. Nothing is done then, or `*is_broken`: a step failed behind one that wrote in place.
  bool run(std::vector<tenon_tensor*>& values, bool* is_broken) const;

  // "steps 3 to 7: one pass over float32[64, 128] in blocks of 32 rows; 3 results of 4 stay in the cache (96.0 KiB)"
  std::string text() const;

 private:
  static constexpr size_t kMaxAxes = 8;  // of what steps along rows read and make

  struct Place {
    Extent extent = Extent::kFull;
    ValueId value = kNoValueId;
    int32_t buffer = -1;    // where the block of a value is that only the group knows
    uint32_t row_axis = 0;  // of a step along rows: the axes before them; its pieces have all axes
  };
  struct BlockStep {
    uint32_t step;
    uint32_t operands, results;  // the first of each in places_
    uint32_t noperands;
    bool is_along_rows;
  };
  // A view of a column that the group makes: the column in another shape, or repeated along the rows.
  struct Alias {
    ValueId view, base;
    Axes strides;
    bool repeats, is_needed;
  };
  class Worker;
  struct Prepared;
  struct Part;
  // What a loop of machine code reads or writes: the piece of a place, or a number that is no tensor.
  struct Array {
    uint32_t place;
    void* number;
  };
  struct Kept {
    std::atomic<Prepared*> prepared{nullptr};  // owned
    ~Kept();
  };

  BlockGroup(const Graph& graph, uint32_t first, uint32_t limit)
      : graph_(&graph), begin_(first), end_(first), limit_(limit) {}
  bool add_step();
  bool add_view(const Step& step);
  // Where the operands and results of a step lie, if it fits: `*inner` is what it asks of the last axis, if it asks.
  bool place_elements(const Step& step, std::vector<Place>& added, int64_t* inner) const;
  bool place_rows(const Step& step, size_t row_axis, std::vector<Place>& added,
                  int64_t* inner) const;
  bool place(const Type& type, Extent* extent, int64_t* inner) const;
  bool place_operand(ValueId value, Place& known, int64_t* inner) const;
  bool is_column(const Axes& shape) const;
  // The extent of a value that the group makes.
  std::optional<Extent> made_extent(ValueId value) const;
  const Alias* find_alias(ValueId value) const;
  template <class IsNeeded>
  bool finish(const IsNeeded& is_needed) {
    std::vector<bool> needed;
    for (Alias& alias : aliases_) alias.is_needed = is_needed(alias.view);
    for (ValueId value : results_)
      needed.push_back(is_needed(value) ||
                       std::any_of(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
                         return alias.base == value && alias.is_needed;
                       }));
    return finish_with(needed);
  }
  bool finish_with(const std::vector<bool>& is_needed);
  bool has_rows() const;
  // Does a full value stay in the cache between two steps?
  bool saves_traffic(const std::vector<bool>& is_needed) const;
  bool is_made_here(ValueId value) const;
  bool is_written_alone(const std::vector<tenon_tensor*>& values) const;
  Axes column_shape() const;
  std::unique_ptr<Prepared> prepare(const tenon_calls_api& api,
                                    const std::vector<tenon_tensor*>& values) const;
  std::vector<ChainStep> chain_of(const Prepared& prepared, const tenon_calls_api& api,
                                  uint32_t begin, uint32_t end, std::vector<Array>& arrays) const;
  void make_code(Prepared& prepared, const tenon_calls_api& api) const;
  bool holds(Prepared& prepared, const tenon_calls_api& api,
             const std::vector<tenon_tensor*>& values) const;
  bool make_results(std::vector<tenon_tensor*>& values) const;
  void drop_results(std::vector<tenon_tensor*>& values) const;
  bool run_blocks(Prepared& prepared, const tenon_calls_api& api,
                  const std::vector<tenon_tensor*>& values) const;
  int64_t block_bytes() const { return rows_ * inner_ * element_bytes_; }

  // Below, one thread runs all blocks, with the same tensors for its pieces in each run.
  static constexpr int64_t kShared = 16384;

  const Graph* graph_;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  uint32_t begin_, end_, limit_;
  ValueId shape_of_ = kNoValueId;  // a value with the shape and device of all results
  std::vector<ValueId> results_;   // that steps make
  std::vector<ValueId> in_place_;  // values from outside that steps write into, for each write
  std::vector<ValueId> external_;  // operands from outside the group, and results that others need
  std::vector<bool> is_written_;   // external_: a result
  std::vector<BlockStep> steps_;
  std::vector<Alias> aliases_;
  std::vector<Place> places_;
  int64_t numel_ = 0, inner_ = 0;  // inner_ 0: not known yet; no operand is broadcast
  int64_t rows_ = 0;               // of a block
  int64_t element_bytes_ = 0;      // of the widest value in a buffer
  int32_t buffers_ = 0;
};

}  // namespace tenon::graph
