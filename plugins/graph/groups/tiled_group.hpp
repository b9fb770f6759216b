// SPDX-License-Identifier: Apache-2.0
// A group of steps that runs tile by tile: each step's kernel is called on one tile before any is
// called on the next, so that what passes between the steps stays in a cache and never becomes a
// tensor. The kernels are those that run step by step, and chains of plain arithmetic become loops
// of machine code with the same bits (groups/jit_loop.hpp). The steps are elementwise or work along
// rows (groups/rows.hpp), of which a tile has some; one element for each row, such as a sum, is a
// column.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "groups/group.hpp"
#include "groups/jit_loop.hpp"
#include "support/host.hpp"

namespace tenon::graph {

// How a value lies in a group, whose rows are [outer, inner].
enum class Extent : uint8_t {
  kFull,    // [outer, inner]
  kRow,     // [inner], the same for every row
  kColumn,  // [outer, 1], or [outer]
  kOne,     // a single element
};

class TiledGroup final : public Group {
 public:
  // Groups of at least two steps that gain by it, each as long as its steps fit together.
  static std::vector<GroupPtr> find(const GroupContext& context, uint32_t begin, uint32_t end);
  ~TiledGroup() override;

  bool makes_tensor(ValueId value) const override;
  // Declines tensors that are not dense or overlap, calls that a layer wants to see, and failures,
  // which a run step by step then reports.
  Outcome run(std::vector<tenon_tensor*>& values) const override;
  bool writes_into_given_results() const override { return true; }
  // "steps 3 to 7: one pass over float32[64, 128] cpu:0 in blocks of 2048; 3 of 4 results stay in
  // the cache (96 KiB)"
  std::string describe() const override;

 private:
  static constexpr size_t kMaxAxes = 8;  // of what steps along rows read and make

  struct Place {
    Extent extent = Extent::kFull;
    ValueId value = kNoValueId;
    int32_t buffer = -1;    // where the tile of a value is that only the group knows
    uint32_t row_axis = 0;  // of a step along rows: the axes before them; its pieces have all axes
  };
  struct TiledStep {
    uint32_t step;
    uint32_t operands, results;  // the first of each in places_
    uint32_t noperands;
    bool is_along_rows;
  };
  // A view of a column that the group makes: the column in another shape, or repeated along the
  // rows.
  struct Alias {
    ValueId view, base;
    Axes strides;
    bool repeats, is_needed;
  };
  class Worker;
  struct Prepared;
  struct Part;
  // What a loop of machine code reads or writes: the piece of a place, or a number that is no
  // tensor.
  struct Array {
    uint32_t place;
    void* number;
  };

  TiledGroup(const Graph& graph, uint32_t first, uint32_t limit)
      : Group(graph, first, first), limit_(limit) {}
  bool add_step();
  bool add_view(const Step& step);
  // Where the operands and results of a step lie, if it fits: `*inner` is what it asks of the last
  // axis, if it asks.
  bool place_elements(const Step& step, std::vector<Place>& added, int64_t* inner) const;
  bool place_rows(const Step& step, size_t row_axis, std::vector<Place>& added,
                  int64_t* inner) const;
  bool place(const Type& type, Extent* extent, int64_t* inner) const;
  bool place_operand(ValueId value, Place& known, int64_t* inner) const;
  bool is_column(const Axes& shape) const;
  // The extent of a value that the group makes.
  std::optional<Extent> made_extent(ValueId value) const;
  const Alias* find_alias(ValueId value) const;
  // False: the steps gain nothing by running together.
  bool finish(const GroupContext& context);
  bool finish_with(const std::vector<bool>& is_needed);
  bool has_rows() const;
  // Does a full value stay in the cache between two steps?
  bool saves_traffic(const std::vector<bool>& is_needed) const;
  bool is_made_here(ValueId value) const;
  bool is_written_alone(const std::vector<tenon_tensor*>& values) const;
  Axes column_shape() const;
  std::unique_ptr<Prepared> prepare(const tenon_calls_api& api,
                                    const std::vector<tenon_tensor*>& values) const;
  struct Chain;
  Chain chain_of(const Prepared& prepared, const tenon_calls_api& api, uint32_t begin,
                 uint32_t end) const;
  void compile_loops(Prepared& prepared, const tenon_calls_api& api) const;
  bool is_current(Prepared& prepared, const tenon_calls_api& api,
                  const std::vector<tenon_tensor*>& values) const;
  bool make_results(std::vector<tenon_tensor*>& values) const;
  void drop_results(std::vector<tenon_tensor*>& values) const;
  bool run_tiles(Prepared& prepared, const tenon_calls_api& api,
                 const std::vector<tenon_tensor*>& values) const;
  int64_t tile_bytes() const { return rows_ * inner_ * element_bytes_; }

  // Below, one thread runs all tiles, with the same tensors for its pieces in each run.
  static constexpr int64_t kShared = 16384;

  // Owned; NULL while a run uses it, and before the first one.
  mutable std::atomic<Prepared*> prepared_{nullptr};
  uint32_t limit_;
  ValueId shape_of_ = kNoValueId;  // a value with the shape and device of all results
  std::vector<ValueId> results_;   // that steps make
  std::vector<ValueId> in_place_;  // values from outside that steps write into, for each write
  std::vector<ValueId> external_;  // operands from outside the group, and results that others need
  std::vector<bool> is_written_;   // external_: a result
  std::vector<TiledStep> steps_;
  std::vector<Alias> aliases_;
  std::vector<Place> places_;
  int64_t numel_ = 0, inner_ = 0;  // inner_ 0: not known yet; no operand is broadcast
  int64_t rows_ = 0;               // of a tile
  int64_t element_bytes_ = 0;      // of the widest value in a buffer
  int32_t buffers_ = 0;
};

}  // namespace tenon::graph
