// SPDX-License-Identifier: Apache-2.0
#include "blocks.hpp"

#include <tenon/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <numeric>
#include <utility>

#include "elementwise.hpp"

namespace tenon::graph {
namespace {

// Elements of a block. Three buffers of float32 fit into a first-level cache of 32 KiB. Results that no cache holds are
// written at the speed of memory, where longer runs of one kind of access pay.
constexpr int64_t kCachedBlock = 2048, kStreamedBlock = 16384;
constexpr int64_t kCachedElements = int64_t{1} << 22;
// Steps that write in place read what they write: there are few results to save, and more tensors for the cache to hold
// at once. Both pay where all of them come from memory, and not for two steps (decision 81).
constexpr size_t kMinStepsInPlace = 3;
// A row that is longer is no block.
constexpr int64_t kMaxRow = 16384;
// Below, a step costs more to decide than its memory traffic.
constexpr int64_t kMinElements = 16384;
constexpr size_t kAlignment = 64;

int64_t product(const int64_t* begin, const int64_t* end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

// Memory of this thread for the values that only a group knows. It is kept from run to run.
class Scratch {
 public:
  std::byte* get(size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
      bytes_ = memory_ ? bytes : 0;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  size_t bytes_ = 0;
};

// On the heap: there is little room for variables of threads in a library that is opened late.
Scratch& scratch() {
  thread_local std::unique_ptr<Scratch> own = std::make_unique<Scratch>();
  return *own;
}

}  // namespace

// -- what belongs together ----------------------------------------------------------------------------

bool BlockGroup::is_made_here(ValueId value) const {
  return std::find(results_.begin(), results_.end(), value) != results_.end();
}

bool BlockGroup::makes_tensor(ValueId value) const {
  return std::find(external_.begin(), external_.end(), value) != external_.end();
}

// How a type lies beside the results. `*inner` is what it asks of the last axis, if it asks.
bool BlockGroup::place(const Type& type, Extent* extent, int64_t* inner) const {
  const std::vector<int64_t>& full = graph_->values[shape_of_].shape;
  const std::vector<int64_t>& own = type.shape;
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

bool BlockGroup::add_step() {
  if (end_ == graph_->steps.size()) return false;
  const Step& step = graph_->steps[end_];
  const bool is_in_place = is_elementwise_in_place(*graph_, step);
  if (!is_in_place && !is_elementwise(step)) return false;
  if (is_in_place && is_made_here(step.results[0])) return false;
  if (shape_of_ == kNoValueId) shape_of_ = step.results[0];
  const Type& type = graph_->values[shape_of_];
  if (steps_.empty()) {
    numel_ = element_count(type);
    if (numel_ < kMinElements || !is_host_memory(type.device)) return false;
  }
  if (is_in_place && numel_ < kCachedElements) return false;
  int64_t inner = inner_;
  std::vector<Place> operands;
  bool fits = true;
  for (ValueId result : step.results)
    fits &=
        graph_->values[result].shape == type.shape && graph_->values[result].device == type.device;
  for (const Operand& operand : step.operands) {
    if (operand.kind == Operand::kAttribute) continue;
    if (operand.kind == Operand::kList || graph_->values[operand.value].device != type.device) {
      fits = false;
      break;
    }
    Place known{.value = operand.value};
    int64_t wanted = inner;
    fits = fits && place(graph_->values[operand.value], &known.extent, &wanted) &&
           (inner == 0 || wanted == inner) && wanted <= kMaxRow;
    inner = wanted;
    operands.push_back(known);
  }
  if (!fits || operands.empty()) return false;
  inner_ = inner;
  BlockStep added{.step = end_,
                  .operands = static_cast<uint32_t>(places_.size()),
                  .results = static_cast<uint32_t>(places_.size() + operands.size()),
                  .noperands = static_cast<uint32_t>(operands.size())};
  places_.insert(places_.end(), operands.begin(), operands.end());
  for (ValueId result : step.results) {
    places_.push_back({.value = result});
    (is_in_place ? in_place_ : results_).push_back(result);
  }
  steps_.push_back(added);
  ++end_;
  return true;
}

bool BlockGroup::finish_with(const std::vector<bool>& is_needed) {
  if (steps_.size() < 2 || std::find(is_needed.begin(), is_needed.end(), false) == is_needed.end())
    return false;
  if (!in_place_.empty() && steps_.size() < kMinStepsInPlace) return false;
  if (inner_ == 0) inner_ = 1;
  rows_ = std::max<int64_t>(1, (numel_ < kCachedElements ? kCachedBlock : kStreamedBlock) / inner_);
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
    const BlockStep& step = steps_[i];
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
        const bool may_share = nresults == 1 && graph_->values[value].dtype == dtype;
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

std::string BlockGroup::text() const {
  const Type& type = graph_->values[shape_of_];
  int64_t kept = 0, bytes = 0;
  for (ValueId value : results_) {
    if (std::find(external_.begin(), external_.end(), value) != external_.end()) continue;
    ++kept;
    bytes += numel_ * int64_t{host->dtype_size(graph_->values[value].dtype)};
  }
  return "steps " + std::to_string(begin_) + " to " + std::to_string(end_ - 1) +
         ": one pass over " + type_text(type) + " in blocks of " + std::to_string(rows_ * inner_) +
         "; " + std::to_string(kept) + " of " + std::to_string(results_.size()) +
         " results stay in the cache (" + std::to_string(bytes >> 10) + " KiB)" +
         (in_place_.empty() ? "" : "; " + std::to_string(in_place_.size()) + " write in place");
}

// -- running ------------------------------------------------------------------------------------------

// One thread's tensors, which are moved from block to block.
class BlockGroup::Worker {
 public:
  Worker(const BlockGroup& group, const std::vector<tenon_tensor*>& values,
         const std::vector<tenon_tensor>& buffer_types)
      : group_(group), pieces_(group.places_.size()), pointers_(group.places_.size()) {
    const size_t bytes =
        (static_cast<size_t>(group.block_bytes()) + kAlignment - 1) & ~(kAlignment - 1);
    std::byte* memory = nullptr;
    if (group.buffers_ > 0) {
      memory = scratch().get(bytes * static_cast<size_t>(group.buffers_));
      is_ready_ = memory != nullptr;
    }
    for (size_t i = 0; i < pieces_.size() && is_ready_; ++i) {
      const Place& place = group.places_[i];
      Piece& piece = pieces_[i];
      if (place.buffer >= 0) {
        piece.tensor = buffer_types[i];
        piece.tensor.data = memory + bytes * static_cast<size_t>(place.buffer);
      } else {
        piece.tensor = *values[place.value];
        piece.tensor.data = static_cast<char*>(piece.tensor.data) + piece.tensor.byte_offset;
      }
      piece.start = static_cast<char*>(piece.tensor.data);
      describe(place, piece);
      pointers_[i] = &piece.tensor;
    }
  }
  Worker(const Worker&) = delete;

  bool is_ready() const { return is_ready_; }

  bool run(const std::vector<Piecewise>& calls, const tenon_calls_api& api, int64_t first_row,
           int64_t rows) {
    for (Piece& piece : pieces_) {
      piece.tensor.data = piece.start + first_row * piece.row_bytes;
      if (piece.has_rows) {
        piece.shape[0] = rows;
        piece.tensor.numel = rows * piece.columns;
      }
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      const BlockStep& step = group_.steps_[i];
      if (api.piecewise_run(calls[i].get(), pointers_.data() + step.operands,
                            pointers_.data() + step.results, nullptr) != TENON_OK)
        return false;
    }
    return true;
  }

 private:
  struct Piece {
    tenon_tensor tensor;
    int64_t shape[2], strides[2];
    char* start;
    int64_t row_bytes, columns;
    bool has_rows;
  };

  void describe(const Place& place, Piece& piece) const {
    const int64_t inner = group_.inner_;
    tenon_tensor& tensor = piece.tensor;
    piece.has_rows = place.extent == Extent::kFull || place.extent == Extent::kColumn;
    piece.columns = place.extent == Extent::kFull ? inner : 1;
    const int64_t element = host->dtype_size(tensor.dtype);
    piece.row_bytes = piece.has_rows && place.buffer < 0 ? piece.columns * element : 0;
    if (place.extent == Extent::kOne) {
      tensor.ndim = 0;
      tensor.numel = 1;
    } else if (place.extent == Extent::kRow) {
      tensor.ndim = 1;
      piece.shape[0] = tensor.numel = inner;
      piece.strides[0] = 1;
    } else {  // run() fills in the rows
      tensor.ndim = inner == 1 ? 1 : 2;
      piece.shape[1] = piece.columns;
      piece.strides[0] = piece.columns;
      piece.strides[1] = 1;
    }
    tensor.shape = piece.shape;
    tensor.strides = piece.strides;
    tensor.byte_offset = 0;
    tensor.flags = TENON_TENSOR_CONTIGUOUS;
    tensor.layers = 0;
  }

  const BlockGroup& group_;
  std::vector<Piece> pieces_;
  std::vector<tenon_tensor*> pointers_;
  bool is_ready_ = true;
};

// Whether no tensor that is written in place shares memory with another one of the group: a block would read what
// belongs to another block.
bool BlockGroup::is_written_alone(const std::vector<tenon_tensor*>& values) const {
  auto begin_of = [&](ValueId value) {
    return static_cast<const char*>(values[value]->data) + values[value]->byte_offset;
  };
  auto end_of = [&](ValueId value) {
    return begin_of(value) + values[value]->numel * int64_t{host->dtype_size(values[value]->dtype)};
  };
  for (ValueId written : in_place_) {
    if (values[written]->flags & TENON_TENSOR_READONLY) return false;
    for (size_t i = 0; i < external_.size(); ++i) {
      const ValueId other = external_[i];
      if (other != written && !is_written_[i] && begin_of(written) < end_of(other) &&
          begin_of(other) < end_of(written))
        return false;
    }
  }
  return true;
}

bool BlockGroup::run(std::vector<tenon_tensor*>& values, bool* is_broken) const {
  const tenon_calls_api* api = calls_with_pieces();
  if (!api) return false;
  for (size_t i = 0; i < external_.size(); ++i)
    if (!is_written_[i] && !(values[external_[i]]->flags & TENON_TENSOR_CONTIGUOUS)) return false;

  if (!is_written_alone(values)) return false;

  // The whole calls, as the dispatcher decides them; what the group makes itself stands in as a tensor of its type.
  std::vector<OwnedTensor> results;
  std::vector<tenon_tensor> buffer_types(places_.size());
  std::vector<tenon_tensor*> known = values;
  for (ValueId value : results_) {
    const Type& type = graph_->values[value];
    const auto at = std::find(external_.begin(), external_.end(), value);
    tenon_tensor* made = nullptr;
    if (at != external_.end()) {
      if (host->tensor_create(type.device, type.dtype, static_cast<int32_t>(type.shape.size()),
                              type.shape.data(), &made, nullptr) != TENON_OK)
        return false;
    } else if (host->tensor_create(type.device, type.dtype, 0, nullptr, &made, nullptr) !=
               TENON_OK) {
      return false;
    }
    results.emplace_back(made);
    known[value] = made;
  }
  for (size_t i = 0; i < places_.size(); ++i)
    if (places_[i].buffer >= 0) buffer_types[i] = *known[places_[i].value];

  std::vector<std::vector<tenon_value>> arguments;
  std::vector<Piecewise> prepared;
  for (const BlockStep& each : steps_) {
    const Step& step = graph_->steps[each.step];
    std::vector<tenon_value>& args = arguments.emplace_back();
    for (const Operand& operand : step.operands)
      args.push_back(operand.kind == Operand::kValue ? boxed(known[operand.value])
                                                     : operand.attribute.value());
    prepared.emplace_back(api->piecewise(step.op, args.data()));
    if (!prepared.back()) return false;
  }

  const int64_t outer = numel_ / inner_, blocks = (outer + rows_ - 1) / rows_;
  const int64_t work = rows_ * inner_ * static_cast<int64_t>(steps_.size());
  std::atomic<bool> has_failed{false};
  parallel(blocks, work, [&](int64_t begin, int64_t end) {
    bool is_fine = false;
    try {
      Worker worker(*this, known, buffer_types);
      is_fine = worker.is_ready();
      for (int64_t block = begin; block < end && is_fine; ++block) {
        const int64_t first = block * rows_;
        is_fine = worker.run(prepared, *api, first, std::min(rows_, outer - first));
      }
    } catch (const std::bad_alloc&) {  // nothing may be thrown into the pool
      is_fine = false;
    }
    if (!is_fine) has_failed.store(true, std::memory_order_relaxed);
  });
  for (ValueId value : in_place_) host->tensor_bump_version(values[value]);
  if (has_failed.load(std::memory_order_relaxed)) {
    *is_broken = !in_place_.empty();
    return false;
  }
  for (size_t i = 0; i < results_.size(); ++i)
    if (std::find(external_.begin(), external_.end(), results_[i]) != external_.end())
      values[results_[i]] = results[i].release();
  return true;
}

}  // namespace tenon::graph
