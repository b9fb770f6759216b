// SPDX-License-Identifier: Apache-2.0
#include "groups/tiled_group.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "groups/elementwise.hpp"
#include "groups/rows.hpp"

namespace tenon::graph {
namespace {

// Elements of a tile. Three buffers of float32 fit into a first-level cache of 32 KiB. Results that no cache holds are
// written at the speed of memory, where longer runs of one kind of access pay.
constexpr int64_t kCachedTile = 2048, kStreamedTile = 16384;
constexpr int64_t kCachedElements = int64_t{1} << 22;
// Calls for rows cost more than those for elements. While all tensors fit into a second-level cache they gain nothing.
constexpr int64_t kRowsTile = 4096, kMinElementsOfRows = int64_t{1} << 17;
// Steps that write in place read what they write: there are few results to save, and more tensors for the cache to hold
// at once. Both pay where all of them come from memory, and not for two steps (decision 81).
constexpr size_t kMinStepsInPlace = 3;
// A row that is longer is no tile. Of shorter ones than kMinRow no kernel promises bits (TENON_KERNEL_ROWS).
constexpr int64_t kMaxRow = 16384, kMinRow = 32;

int64_t product(const int64_t* begin, const int64_t* end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

bool makes_view(const Step& step) {
  if (step.kind == StepKind::kCall)
    return !step.operands.empty() && step.operands[0].kind == Operand::kValue &&
           step.results.size() == 1 && !step.given && host->op_def(step.op)->flags & TENON_OP_VIEW;
  return step.kind == StepKind::kView;
}

// The strides of a view of a dense tensor from its first element on; empty where it is another or not known.
Axes view_strides(const Graph& graph, const Step& step) {
  if (step.kind == StepKind::kView) return step.offset == 0 ? Axes(step.strides) : Axes();
  const tenon_calls_api* api = calls();
  if (!api || !api->may_view(step.op)) return {};
  const Type& type = graph.values[step.operands[0].value];
  tenon_tensor *base = nullptr, *view = nullptr;
  if (host->tensor_create(type.device, type.dtype, static_cast<int32_t>(type.shape.size()),
                          type.shape.data(), &base, nullptr) != TENON_OK)
    return {};
  const OwnedTensor owned(base);
  std::vector<tenon_value> args;
  for (const Operand& operand : step.operands) {
    const bool is_base = &operand == &step.operands[0];
    if (operand.kind != Operand::kAttribute && !is_base) return {};
    args.push_back(is_base ? boxed(base) : operand.attribute.value());
  }
  if (!api->view(step.op, args.data(), &view)) return {};
  const OwnedTensor made(view);
  if (view->byte_offset != base->byte_offset) return {};
  return Axes(view->strides, view->strides + view->ndim);
}

}  // namespace

// -- what belongs together ----------------------------------------------------------------------------

std::vector<GroupPtr> TiledGroup::find(const GroupContext& context, uint32_t begin, uint32_t end) {
  std::vector<GroupPtr> found;
  for (uint32_t i = begin; i < end;) {
    std::unique_ptr<TiledGroup> group(new TiledGroup(context.graph, i, end));
    while (group->add_step()) continue;
    if (!group->finish(context)) {
      ++i;
      continue;
    }
    i = group->end();
    found.push_back(std::move(group));
  }
  return found;
}

bool TiledGroup::finish(const GroupContext& context) {
  const auto is_needed = [&](ValueId value) { return context.is_needed_after(value, end_ - 1); };
  std::vector<bool> needed;
  for (Alias& alias : aliases_) alias.is_needed = is_needed(alias.view);
  for (ValueId value : results_)
    needed.push_back(is_needed(value) ||
                     std::any_of(aliases_.begin(), aliases_.end(), [&](const Alias& alias) {
                       return alias.base == value && alias.is_needed;
                     }));
  return finish_with(needed);
}

bool TiledGroup::is_made_here(ValueId value) const {
  return std::find(results_.begin(), results_.end(), value) != results_.end();
}

bool TiledGroup::makes_tensor(ValueId value) const {
  return std::find(external_.begin(), external_.end(), value) != external_.end();
}

// How a type lies beside the results. `*inner` is what it asks of the last axis, if it asks.
bool TiledGroup::place(const Type& type, Extent* extent, int64_t* inner) const {
  const Axes& full = graph_->values[shape_of_].shape;
  const Axes& own = type.shape;
  if (own == full) return *extent = Extent::kFull, true;
  if (product(own.data(), own.data() + own.size()) == 1) return *extent = Extent::kOne, true;
  if (own.size() > full.size()) return false;
  size_t ones = 0;
  while (ones < own.size() && own[ones] == 1) ++ones;
  const size_t rest = own.size() - ones;
  if (std::equal(own.begin() + static_cast<ptrdiff_t>(ones), own.end(),
                 full.end() - static_cast<ptrdiff_t>(rest))) {
    *extent = Extent::kRow;
    *inner = product(own.data(), own.data() + own.size());
    return true;
  }
  if (own.size() != full.size()) return false;
  size_t same = 0;
  while (same < own.size() && own[same] == full[same]) ++same;
  if (std::any_of(own.begin() + static_cast<ptrdiff_t>(same), own.end(),
                  [](int64_t size) { return size != 1; }))
    return false;
  *extent = Extent::kColumn;
  *inner = product(full.data() + same, full.data() + full.size());
  return true;
}

std::optional<Extent> TiledGroup::made_extent(ValueId value) const {
  for (const TiledStep& step : steps_)
    for (size_t k = 0; k < graph_->steps[step.step].results.size(); ++k)
      if (const Place& result = places_[step.results + k];
          result.value == value && is_made_here(value))
        return result.extent;
  return std::nullopt;
}

const TiledGroup::Alias* TiledGroup::find_alias(ValueId value) const {
  const auto at = std::find_if(aliases_.begin(), aliases_.end(),
                               [&](const Alias& alias) { return alias.view == value; });
  return at == aliases_.end() ? nullptr : &*at;
}

// [outer], or [outer] with axes of one element after it.
bool TiledGroup::is_column(const Axes& shape) const {
  const Axes& full = graph_->values[shape_of_].shape;
  if (inner_ == 0 || shape.size() > full.size()) return false;
  size_t same = 0;
  int64_t outer = 1;
  while (same < shape.size() && shape[same] == full[same] && outer < numel_ / inner_)
    outer *= full[same++];
  return outer == numel_ / inner_ &&
         std::all_of(shape.begin() + static_cast<ptrdiff_t>(same), shape.end(),
                     [](int64_t size) { return size == 1; });
}

// An operand of a step whose result is a full one.
bool TiledGroup::place_operand(ValueId value, Place& known, int64_t* inner) const {
  const Alias* alias = find_alias(value);
  if (alias && alias->repeats) {
    known = {.extent = Extent::kColumn, .value = alias->base};
    return true;
  }
  known = {.value = alias ? alias->base : value};
  if (!place(graph_->values[value], &known.extent, inner)) return false;
  // What looks like a row may be a column that the group makes.
  const std::optional<Extent> made = made_extent(known.value);
  return !made || *made == known.extent;
}

bool TiledGroup::place_elements(const Step& step, std::vector<Place>& added, int64_t* inner) const {
  const Axes& shape = graph_->values[step.results[0]].shape;
  const bool is_full = shape == graph_->values[shape_of_].shape;
  if (!is_full && !is_column(shape)) return false;
  for (const Operand& operand : step.operands) {
    if (operand.kind == Operand::kAttribute) continue;
    if (operand.kind == Operand::kList) return false;
    Place known;
    int64_t wanted = *inner;
    if (is_full) {
      if (!place_operand(operand.value, known, &wanted)) return false;
    } else {
      const Alias* alias = find_alias(operand.value);
      const Type& type = graph_->values[operand.value];
      known = {.extent = Extent::kColumn, .value = alias ? alias->base : operand.value};
      if (element_count(type) == 1)
        known.extent = Extent::kOne;
      else if (type.shape != shape)
        return false;
      const std::optional<Extent> made = made_extent(known.value);
      if ((alias && alias->repeats) || (made && *made != known.extent)) return false;
    }
    if ((*inner != 0 && wanted != *inner) || wanted > kMaxRow) return false;
    *inner = wanted;
    added.push_back(known);
  }
  const size_t count = added.size();
  for (ValueId result : step.results) {
    if (graph_->values[result].shape != shape) return false;
    added.push_back({.extent = is_full ? Extent::kFull : Extent::kColumn, .value = result});
  }
  return count > 0;
}

bool TiledGroup::place_rows(const Step& step, size_t row_axis, std::vector<Place>& added,
                            int64_t* inner) const {
  const Axes& full = graph_->values[shape_of_].shape;
  if (full.size() > kMaxAxes || graph_->values[step.operands[0].value].shape != full) return false;
  const auto before = full.begin() + static_cast<ptrdiff_t>(row_axis);
  *inner = product(full.data() + row_axis, full.data() + full.size());
  if (*inner < kMinRow || *inner > kMaxRow || (inner_ != 0 && *inner != inner_)) return false;
  for (const Operand& operand : step.operands) {
    if (operand.kind == Operand::kAttribute) continue;
    if (operand.kind == Operand::kList || find_alias(operand.value)) return false;
    Place known;
    const bool fits = place_operand(operand.value, known, inner);
    const Axes& own = graph_->values[operand.value].shape;
    if (!fits ||
        !(known.extent == Extent::kFull ||
          (known.extent == Extent::kRow && std::equal(before, full.end(), own.begin(), own.end()))))
      return false;
    known.row_axis = static_cast<uint32_t>(row_axis);
    added.push_back(known);
  }
  for (ValueId result : step.results) {
    const Axes& own = graph_->values[result].shape;
    const bool is_reduced = own.size() >= row_axis &&
                            std::equal(full.begin(), before, own.begin()) &&
                            (own.size() == row_axis || own.size() == full.size()) &&
                            std::all_of(own.begin() + static_cast<ptrdiff_t>(row_axis), own.end(),
                                        [](int64_t size) { return size == 1; });
    if (own != full && !is_reduced) return false;
    added.push_back({.extent = own == full ? Extent::kFull : Extent::kColumn,
                     .value = result,
                     .row_axis = static_cast<uint32_t>(row_axis)});
  }
  return true;
}

// A view belongs to the group if it shows a column of it: in another shape, or repeated along the rows.
bool TiledGroup::add_view(const Step& step) {
  const ValueId base = step.operands[0].value, view = step.results[0];
  if (made_extent(base) != Extent::kColumn ||
      graph_->values[view].dtype != graph_->values[base].dtype)
    return false;
  const Axes& shape = graph_->values[view].shape;
  const bool repeats = shape == graph_->values[shape_of_].shape && inner_ > 1;
  if (!repeats && !is_column(shape)) return false;
  Axes strides = view_strides(*graph_, step);
  if (strides.size() != shape.size()) return false;
  // Those of a dense column; zero along the rows.
  int64_t expected = 1, along = repeats ? inner_ : 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const bool is_in_row = along > 1;
    if (is_in_row) along /= shape[axis];
    if (shape[axis] != 1 && strides[axis] != (is_in_row ? 0 : expected)) return false;
    if (!is_in_row) expected *= shape[axis];
  }
  aliases_.push_back({view, base, std::move(strides), repeats, false});
  ++end_;
  return true;
}

bool TiledGroup::add_step() {
  if (end_ == limit_) return false;
  const Step& step = graph_->steps[end_];
  if (makes_view(step)) return add_view(step);
  const bool is_in_place = is_elementwise_in_place(*graph_, step);
  const std::optional<size_t> row_axis =
      is_in_place || is_elementwise(step) ? std::nullopt : axes_before_rows(*graph_, step);
  if (!is_in_place && !row_axis && !is_elementwise(step)) return false;
  if (is_in_place && is_made_here(step.results[0])) return false;
  if (shape_of_ == kNoValueId) shape_of_ = row_axis ? step.operands[0].value : step.results[0];
  const Type& type = graph_->values[shape_of_];
  if (steps_.empty()) {
    numel_ = element_count(type);
    if (numel_ < 1 || !is_host_memory(type.device)) return false;
  }
  if (row_axis && numel_ < kMinElementsOfRows) return false;
  if (is_in_place &&
      (numel_ < kCachedElements || graph_->values[step.results[0]].shape != type.shape))
    return false;
  bool fits = true;
  auto is_on_device = [&](ValueId value) { fits &= graph_->values[value].device == type.device; };
  for_each_operand(step, is_on_device);
  for (ValueId result : step.results) is_on_device(result);
  std::vector<Place> added;
  int64_t inner = inner_;
  fits = fits && (row_axis ? place_rows(step, *row_axis, added, &inner)
                           : place_elements(step, added, &inner));
  if (!fits) return false;
  inner_ = inner;
  const auto noperands = static_cast<uint32_t>(added.size() - step.results.size());
  const auto first = static_cast<uint32_t>(places_.size());
  steps_.push_back({.step = end_,
                    .operands = first,
                    .results = first + noperands,
                    .noperands = noperands,
                    .is_along_rows = row_axis.has_value()});
  places_.insert(places_.end(), added.begin(), added.end());
  for (ValueId result : step.results) (is_in_place ? in_place_ : results_).push_back(result);
  ++end_;
  return true;
}

bool TiledGroup::has_rows() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const TiledStep& step) { return step.is_along_rows; });
}

bool TiledGroup::saves_traffic(const std::vector<bool>& is_needed) const {
  for (size_t i = 0; i < results_.size(); ++i)
    if (!is_needed[i] && made_extent(results_[i]) == Extent::kFull) return true;
  if (!has_rows()) return false;
  std::vector<ValueId> seen;
  for (const Place& place : places_) {
    if (place.extent != Extent::kFull) continue;
    if (std::find(seen.begin(), seen.end(), place.value) != seen.end()) return true;
    seen.push_back(place.value);
  }
  return false;
}

bool TiledGroup::finish_with(const std::vector<bool>& is_needed) {
  if (steps_.size() < 2 || !saves_traffic(is_needed)) return false;
  if (!in_place_.empty() && steps_.size() < kMinStepsInPlace) return false;
  if (inner_ == 0) inner_ = 1;
  const int64_t tile = has_rows()                 ? kRowsTile
                       : numel_ < kCachedElements ? kCachedTile
                                                  : kStreamedTile;
  rows_ = std::max<int64_t>(1, tile / inner_);
  std::vector<int32_t> buffer(graph_->values.size(), -1);
  std::vector<uint32_t> last(graph_->values.size());
  for (uint32_t i = 0; i < steps_.size(); ++i)
    for (uint32_t k = 0; k < steps_[i].noperands; ++k)
      last[places_[steps_[i].operands + k].value] = i;
  auto needed = [&](ValueId value) {
    const auto at = std::find(results_.begin(), results_.end(), value) - results_.begin();
    return is_needed[static_cast<size_t>(at)];
  };
  std::vector<int32_t> unused;
  auto add_external = [&](ValueId value, bool is_result) {
    if (std::find(external_.begin(), external_.end(), value) != external_.end()) return;
    external_.push_back(value);
    is_written_.push_back(is_result);
  };
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    const TiledStep& step = steps_[i];
    const size_t nresults = graph_->steps[step.step].results.size();
    const int32_t dtype = graph_->values[places_[step.results].value].dtype;
    for (uint32_t k = 0; k < step.noperands; ++k) {
      Place& operand = places_[step.operands + k];
      operand.buffer = buffer[operand.value];
      if (!is_made_here(operand.value)) add_external(operand.value, false);
    }
    // A result may take the buffer of an operand that is read for the last time, element by element of one dtype.
    auto release = [&](bool before_result) {
      for (uint32_t k = 0; k < step.noperands; ++k) {
        const ValueId value = places_[step.operands + k].value;
        const bool may_share = nresults == 1 && !step.is_along_rows &&
                               graph_->values[value].dtype == dtype &&
                               places_[step.operands + k].extent == places_[step.results].extent;
        if (buffer[value] < 0 || last[value] != i || may_share != before_result) continue;
        unused.push_back(std::exchange(buffer[value], -1));
      }
    };
    release(true);
    for (size_t k = 0; k < nresults; ++k) {
      Place& result = places_[step.results + k];
      if (!is_made_here(result.value)) {
        add_external(result.value, false);
        continue;
      }
      if (needed(result.value)) {
        add_external(result.value, true);
        continue;
      }
      if (unused.empty()) unused.push_back(buffers_++);
      result.buffer = buffer[result.value] = unused.back();
      unused.pop_back();
      const int64_t bytes = host->dtype_size(graph_->values[result.value].dtype);
      element_bytes_ = std::max(element_bytes_, bytes);
    }
    release(false);
    for (size_t k = 0; k < nresults; ++k) {  // what no step reads is free at once
      const ValueId value = places_[step.results + k].value;
      if (buffer[value] >= 0 && last[value] <= i)
        unused.push_back(std::exchange(buffer[value], -1));
    }
  }
  return true;
}

std::string TiledGroup::describe() const {
  const Type& type = graph_->values[shape_of_];
  int64_t kept = 0, bytes = 0;
  for (ValueId value : results_) {
    if (std::find(external_.begin(), external_.end(), value) != external_.end()) continue;
    ++kept;
    bytes += element_count(graph_->values[value]) *
             int64_t{host->dtype_size(graph_->values[value].dtype)};
  }
  return steps_text() + ": one pass over " + type_text(type) + " in blocks of " +
         std::to_string(rows_ * inner_) + "; " + std::to_string(kept) + " of " +
         std::to_string(results_.size()) + " results stay in the cache (" +
         std::to_string(bytes >> 10) + " KiB)" +
         (in_place_.empty() ? "" : "; " + std::to_string(in_place_.size()) + " write in place");
}

}  // namespace tenon::graph
