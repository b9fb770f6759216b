// SPDX-License-Identifier: Apache-2.0
// How a group of blocks.hpp runs.
#include <tenon/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "blocks.hpp"
#include "elementwise.hpp"

namespace tenon::graph {
namespace {

constexpr size_t kAlignment = 64;

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

// A tensor of some shape for the dispatcher to decide a call by. Nothing reads its elements.
class StandIn {
 public:
  StandIn(const tenon_tensor& like, const std::vector<int64_t>& shape)
      : tensor_(like), strides_(shape.size()) {
    tensor_.ndim = static_cast<int32_t>(shape.size());
    tensor_.numel = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      strides_[axis] = tensor_.numel;
      tensor_.numel *= shape[axis];
    }
    tensor_.shape = const_cast<int64_t*>(shape.data());
    tensor_.strides = strides_.data();
    tensor_.flags = TENON_TENSOR_CONTIGUOUS;
    tensor_.layers = 0;
  }
  StandIn(StandIn&&) = default;
  tenon_tensor* get() { return &tensor_; }

 private:
  tenon_tensor tensor_;
  std::vector<int64_t> strides_;
};

}  // namespace

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
      place.row_axis > 0 ? describe_rows(place, piece) : describe(place, piece);
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
        piece.shape[piece.rows_axis] = rows;
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
    int64_t shape[kMaxAxes], strides[kMaxAxes];
    char* start;
    int64_t row_bytes, columns;
    size_t rows_axis;
    bool has_rows;
  };

  void describe(const Place& place, Piece& piece) const {
    const int64_t inner = group_.inner_;
    tenon_tensor& tensor = piece.tensor;
    begin_piece(place, piece);
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
  }

  // All axes of the value, as the attributes of a step along rows count them; those before the rows have one element, but
  // for the last, along which the rows of the block lie.
  void describe_rows(const Place& place, Piece& piece) const {
    const std::vector<int64_t>& shape = group_.graph_->values[place.value].shape;
    tenon_tensor& tensor = piece.tensor;
    begin_piece(place, piece);
    piece.rows_axis = place.row_axis - 1;
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.numel = piece.columns;
    int64_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      piece.shape[axis] = piece.has_rows && axis < place.row_axis ? 1 : shape[axis];
      piece.strides[axis] = stride;
      stride *= piece.shape[axis];
    }
    if (!piece.has_rows) tensor.numel = stride;
  }

  void begin_piece(const Place& place, Piece& piece) const {
    piece.has_rows = place.extent == Extent::kFull || place.extent == Extent::kColumn;
    piece.rows_axis = 0;
    piece.columns = place.extent == Extent::kFull ? group_.inner_ : 1;
    tenon_tensor& tensor = piece.tensor;
    const int64_t element = host->dtype_size(tensor.dtype);
    piece.row_bytes = piece.has_rows && place.buffer < 0 ? piece.columns * element : 0;
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
  std::vector<StandIn> stand_ins;
  stand_ins.reserve(results_.size() + aliases_.size());  // they stay where they are
  const bool shapes_matter = has_rows();                 // elementwise steps take any
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
    if (at == external_.end() && shapes_matter) {
      stand_ins.emplace_back(*made, type.shape);
      known[value] = stand_ins.back().get();
    }
  }
  std::vector<OwnedTensor> views;
  std::vector<int64_t> column;  // the shape with one element for each row
  if (!aliases_.empty()) column = graph_->values[shape_of_].shape;
  int64_t along = inner_;
  for (size_t axis = column.size(); axis > 0 && along > 1;)
    along /= std::exchange(column[--axis], 1);
  for (const Alias& alias : aliases_) {
    const std::vector<int64_t>& shape = graph_->values[alias.view].shape;
    stand_ins.emplace_back(*known[alias.base], alias.repeats ? column : shape);
    tenon_tensor* view = nullptr;
    if (alias.is_needed && host->tensor_view(known[alias.base], known[alias.base]->dtype,
                                             static_cast<int32_t>(shape.size()), shape.data(),
                                             alias.strides.data(), 0, &view, nullptr) != TENON_OK)
      return false;
    views.emplace_back(view);
    known[alias.view] = stand_ins.back().get();
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
  for (size_t i = 0; i < aliases_.size(); ++i) values[aliases_[i].view] = views[i].release();
  return true;
}

}  // namespace tenon::graph
