// SPDX-License-Identifier: Apache-2.0
// How a group of groups/tiled_group.hpp runs.
#include <tenon/services/register_functions.h>
#include <tenon/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "groups/elementwise.hpp"
#include "groups/jit_loop.hpp"
#include "groups/tiled_group.hpp"

namespace tenon::graph {
namespace {

constexpr size_t kAlignment = 64;

// Memory for the values that only a group knows. It is kept from run to run.
class Scratch {
 public:
  // NULL: there is none.
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

// This thread's. On the heap: there is little room for variables of threads in a library that is
// opened late.
Scratch& scratch() {
  thread_local std::unique_ptr<Scratch> own = std::make_unique<Scratch>();
  return *own;
}

// A tensor of some type for the dispatcher to decide a call by. Nothing reads its elements.
class Placeholder {
 public:
  // `like`: of the dtype and device.
  Placeholder(const tenon_tensor& like, const Axes& shape)
      : tensor_(like), shape_(shape.begin(), shape.end()), strides_(shape.size()) {
    tensor_.ndim = static_cast<int32_t>(shape.size());
    tensor_.numel = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      strides_[axis] = tensor_.numel;
      tensor_.numel *= shape[axis];
    }
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
    tensor_.flags = TENON_TENSOR_CONTIGUOUS;
    tensor_.layers = 0;
    tensor_.byte_offset = 0;
  }
  Placeholder(Placeholder&&) = default;
  tenon_tensor* get() { return &tensor_; }

 private:
  tenon_tensor tensor_;
  std::vector<int64_t> shape_, strides_;  // stay where they are when it moves
};

}  // namespace

// One thread's tensors, which are moved from tile to tile.
class TiledGroup::Worker {
 public:
  // `types`: by place, a tensor of the dtype and device.
  Worker(const TiledGroup& group, const std::vector<tenon_tensor>& types)
      : group_(group), pieces_(group.places_.size()), pointers_(group.places_.size()) {
    for (uint32_t i = 0; i < pieces_.size(); ++i) {
      const Place& place = group.places_[i];
      Piece& piece = pieces_[i];
      piece.tensor = types[i];
      place.row_axis > 0 ? describe_rows(place, piece) : describe(place, piece);
      pointers_[i] = &piece.tensor;
      if (place.buffer < 0) outside_.push_back(i);
    }
  }
  Worker(const Worker&) = delete;

  // False: there is no memory.
  bool use_buffers(Scratch& scratch) {
    if (group_.buffers_ == 0) return true;
    const size_t bytes =
        (static_cast<size_t>(group_.tile_bytes()) + kAlignment - 1) & ~(kAlignment - 1);
    std::byte* memory = scratch.get(bytes * static_cast<size_t>(group_.buffers_));
    for (size_t i = 0; i < pieces_.size() && memory; ++i)
      if (group_.places_[i].buffer >= 0)
        pieces_[i].tensor.data = memory + bytes * static_cast<size_t>(group_.places_[i].buffer);
    return memory != nullptr;
  }
  void use_tensors(const std::vector<tenon_tensor*>& values) {
    for (uint32_t i : outside_) {
      const tenon_tensor& tensor = *values[group_.places_[i].value];
      pieces_[i].start = static_cast<char*>(tensor.data) + tensor.byte_offset;
    }
  }

  bool run(const Prepared& prepared, const tenon_calls_api& api, int64_t first_row, int64_t rows);

 private:
  struct Piece {
    tenon_tensor tensor;
    int64_t shape[kMaxAxes], strides[kMaxAxes];
    char* start;
    int64_t row_bytes, columns;
    size_t rows_axis;
    bool has_rows;
  };

  void set_rows(int64_t rows) {
    rows_ = rows;
    for (Piece& piece : pieces_) {
      if (!piece.has_rows) continue;
      piece.shape[piece.rows_axis] = rows;
      piece.tensor.numel = rows * piece.columns;
    }
  }

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

  // All axes of the value, as the attributes of a step along rows count them; those before the rows
  // have one element, but for the last, along which the rows of the tile lie.
  void describe_rows(const Place& place, Piece& piece) const {
    const Axes& shape = group_.graph_->values[place.value].shape;
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

  const TiledGroup& group_;
  std::vector<Piece> pieces_;            // by place
  std::vector<tenon_tensor*> pointers_;  // to these
  std::vector<uint32_t> outside_;        // pieces of tensors from outside the group
  int64_t rows_ = -1;                    // that pieces have
};

// Steps that one loop may run.
struct TiledGroup::Chain {
  std::vector<ChainStep> steps;  // empty: they are none
  std::vector<Array> arrays;
  uint32_t bytes = 0;  // of the registers that functions take; 0: there are none
};

// Steps of a group that are done at once: by one loop, or by the kernel of each.
struct TiledGroup::Part {
  uint32_t begin, end;
  std::unique_ptr<JitLoop> code;  // NULL: kernels
  std::vector<Array> arrays;
};

// The group's calls, as the dispatcher decides them, kept from run to run: types and layouts are
// always the same.
struct TiledGroup::Prepared {
  std::vector<Placeholder> placeholders;
  std::vector<std::vector<tenon_value>> arguments;
  std::vector<Piecewise> calls;
  std::vector<Part> parts;
  int64_t runs = 0;  // before there was code
  bool has_loops = false;
  std::vector<tenon_tensor> types;  // by place
  std::vector<tenon_tensor*> read;  // by a run
  Scratch scratch;                  // of the worker
  std::unique_ptr<Worker> worker;   // of groups that one thread runs
};

bool TiledGroup::Worker::run(const Prepared& prepared, const tenon_calls_api& api,
                             int64_t first_row, int64_t rows) {
  if (rows != rows_) set_rows(rows);
  for (uint32_t i : outside_)
    pieces_[i].tensor.data = pieces_[i].start + first_row * pieces_[i].row_bytes;
  for (const Part& part : prepared.parts) {
    if (part.code) {
      void* arrays[JitLoop::kMaxArrays];
      for (size_t i = 0; i < part.arrays.size(); ++i)
        arrays[i] = part.arrays[i].number ? part.arrays[i].number
                                          : pieces_[part.arrays[i].place].tensor.data;
      part.code->run(arrays, rows * group_.inner_);
      continue;
    }
    for (uint32_t i = part.begin; i < part.end; ++i) {
      const TiledStep& step = group_.steps_[i];
      if (api.piecewise_run(prepared.calls[i].get(), pointers_.data() + step.operands,
                            pointers_.data() + step.results, nullptr) != TENON_OK)
        return false;
    }
  }
  return true;
}

TiledGroup::~TiledGroup() { delete prepared_.load(std::memory_order_relaxed); }

// Whether no tensor that is written in place shares memory with another one of the group: a tile
// would read what belongs to another tile.
bool TiledGroup::is_written_alone(const std::vector<tenon_tensor*>& values) const {
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

// NULL: a call needs more than its kernel, and the steps have to run one by one.
std::unique_ptr<TiledGroup::Prepared> TiledGroup::prepare(
    const tenon_calls_api& api, const std::vector<tenon_tensor*>& values) const {
  auto prepared = std::make_unique<Prepared>();
  std::vector<tenon_tensor*> known(graph_->values.size());
  size_t count = 0;
  for (const TiledStep& step : steps_) count += graph_->steps[step.step].operands.size();
  prepared->placeholders.reserve(external_.size() + results_.size() + aliases_.size() + count);
  auto placeholder = [&](const tenon_tensor& like, const Axes& shape) {
    return prepared->placeholders.emplace_back(like, shape).get();
  };
  for (size_t i = 0; i < external_.size(); ++i)
    if (!is_written_[i])
      known[external_[i]] = placeholder(*values[external_[i]], graph_->values[external_[i]].shape);
  for (ValueId value : results_) {
    const Type& type = graph_->values[value];
    tenon_tensor* like = nullptr;
    if (host->tensor_create(type.device, type.dtype, 0, nullptr, &like, nullptr) != TENON_OK)
      return nullptr;
    const OwnedTensor owned(like);
    known[value] = placeholder(*like, type.shape);
    known[value]->data = nullptr;
  }
  const Axes column = column_shape();
  for (const Alias& alias : aliases_)
    known[alias.view] =
        placeholder(*known[alias.base], alias.repeats ? column : graph_->values[alias.view].shape);
  for (const Place& place : places_) prepared->types.push_back(*known[place.value]);
  for (const TiledStep& each : steps_) {
    const Step& step = graph_->steps[each.step];
    std::vector<tenon_value>& args = prepared->arguments.emplace_back();
    for (const Operand& operand : step.operands)
      args.push_back(operand.kind == Operand::kValue ? boxed(known[operand.value])
                                                     : operand.attribute.value());
    prepared->calls.emplace_back(api.piecewise(step.op, args.data()));
    if (!prepared->calls.back()) return nullptr;
  }
  prepared->parts.push_back({0, static_cast<uint32_t>(steps_.size()), nullptr, {}});
  if (numel_ < kShared) {
    prepared->worker = std::make_unique<Worker>(*this, prepared->types);
    if (!prepared->worker->use_buffers(prepared->scratch)) return nullptr;
  }
  return prepared;
}

// -- machine code --------------------------------------------------------------------------------

namespace {

// What a loop does for a call: arithmetic that the kernel promises, or a function that it offers, whose
// registers have so many `*bytes`. False: the kernel has to be called.
bool find_operation(const Step& step, const tenon_kernel_def& kernel, const tenon_value* args,
                    int32_t dtype, ChainStep* next, uint32_t* bytes) {
  if (const auto arithmetic = arithmetic_named(step.name.text());
      arithmetic && kernel.traits & TENON_KERNEL_IEEE) {
    next->arithmetic = *arithmetic;
    return true;
  }
  const auto* functions = static_cast<const tenon_register_functions_api*>(
      host->service_find(TENON_REGISTER_FUNCTIONS_SERVICE, TENON_REGISTER_FUNCTIONS_VERSION));
  tenon_register_function function = {};
  if (!functions ||
      !functions->find(&kernel, args, static_cast<uint32_t>(step.operands.size()), dtype,
                       &function) ||
      function.operands > 2 || (*bytes != 0 && function.bytes != *bytes))
    return false;
  next->arithmetic = function.operands == 2 ? Arithmetic::kBinaryFunction : Arithmetic::kFunction;
  next->function = function.code;
  *bytes = function.bytes;
  return true;
}

}  // namespace

// The steps from `begin` to before `end` as one chain.
TiledGroup::Chain TiledGroup::chain_of(const Prepared& prepared, const tenon_calls_api& api,
                                       uint32_t begin, uint32_t end) const {
  const int32_t dtype = graph_->values[places_[steps_[begin].results].value].dtype;
  Chain found;
  std::vector<ChainStep>& chain = found.steps;
  std::vector<Array>& arrays = found.arrays;
  auto index_of = [&](uint32_t place, void* number) {
    const auto at = std::find_if(arrays.begin(), arrays.end(), [&](const Array& array) {
      return number || array.number ? array.number == number
                                    : places_[array.place].value == places_[place].value;
    });
    const auto index = static_cast<uint32_t>(at - arrays.begin());
    if (index == arrays.size()) arrays.push_back({place, number});
    return index;
  };
  auto made_in_chain = [&](ValueId value) -> int32_t {
    for (uint32_t i = begin; i < begin + chain.size(); ++i)
      if (places_[steps_[i].results].value == value) return static_cast<int32_t>(i - begin);
    return -1;
  };
  for (uint32_t i = begin; i < end; ++i) {
    const Step& step = graph_->steps[steps_[i].step];
    const Place& result = places_[steps_[i].results];
    const tenon_value* args = nullptr;
    const tenon_kernel_def* kernel = api.piecewise_kernel(prepared.calls[i].get(), &args);
    ChainStep next;
    if (steps_[i].is_along_rows || step.given || step.results.size() != 1 ||
        result.extent != Extent::kFull || graph_->values[result.value].dtype != dtype ||
        !find_operation(step, *kernel, args, dtype, &next, &found.bytes))
      return {};
    uint32_t place = steps_[i].operands;
    for (int k = 0; k < operand_count(next.arithmetic); ++k) {
      using Source = ChainStep::Source;
      if (step.operands[static_cast<size_t>(k)].kind == Operand::kAttribute) {
        const tenon_tensor* number = as_tensor(args[k]);
        if (!number || number->dtype != dtype) return {};
        next.sources[k] = {Source::kNumber, index_of(0, number->data)};
        continue;
      }
      const Place& operand = places_[place];
      if (graph_->values[operand.value].dtype != dtype) return {};
      if (const int32_t source = made_in_chain(operand.value); source >= 0)
        next.sources[k] = {Source::kResult, static_cast<uint32_t>(source)};
      else if (operand.extent == Extent::kFull)
        next.sources[k] = {Source::kArray, index_of(place, nullptr)};
      else if (operand.extent == Extent::kOne)
        next.sources[k] = {Source::kNumber, index_of(place, nullptr)};
      else
        return {};
      ++place;
    }
    chain.push_back(next);
  }
  // What others read is stored: other groups, or steps of this one behind the chain.
  for (uint32_t i = begin; i < end; ++i) {
    const Place& result = places_[steps_[i].results];
    bool is_read = result.buffer < 0;
    for (uint32_t k = end; k < steps_.size() && !is_read; ++k)
      for (uint32_t n = 0; n < steps_[k].noperands; ++n)
        is_read |= places_[steps_[k].operands + n].value == result.value;
    if (is_read)
      chain[i - begin].stored_to = static_cast<int32_t>(index_of(steps_[i].results, nullptr));
  }
  if (arrays.size() > JitLoop::kMaxArrays || JitLoop::fitting(chain) != chain.size()) return {};
  return found;
}

// Chains become loops; other steps keep their kernels.
void TiledGroup::compile_loops(Prepared& prepared, const tenon_calls_api& api) const {
  constexpr uint32_t kMaxSteps = 64;
  prepared.has_loops = true;
  prepared.parts.clear();
  const auto count = static_cast<uint32_t>(steps_.size());
  uint32_t kernels = 0;  // steps since the last loop
  auto add_kernels = [&](uint32_t end) {
    if (kernels < end) prepared.parts.push_back({kernels, end, nullptr, {}});
  };
  for (uint32_t begin = 0; begin < count;) {
    Chain longest;
    for (uint32_t end = begin + 1; end <= std::min(count, begin + kMaxSteps); ++end) {
      Chain chain = chain_of(prepared, api, begin, end);
      if (chain.steps.empty()) break;
      longest = std::move(chain);
    }
    const auto end = begin + static_cast<uint32_t>(longest.steps.size());
    std::unique_ptr<JitLoop> code;
    if (longest.steps.size() > 1)
      code = JitLoop::of(longest.steps, graph_->values[places_[steps_[begin].results].value].dtype,
                         longest.bytes);
    if (!code) {
      ++begin;
      continue;
    }
    add_kernels(begin);
    prepared.parts.push_back({begin, end, std::move(code), std::move(longest.arrays)});
    begin = kernels = end;
  }
  add_kernels(count);
}

// Would the dispatcher decide the same for these tensors, and does no layer want to see them?
bool TiledGroup::is_current(Prepared& prepared, const tenon_calls_api& api,
                            const std::vector<tenon_tensor*>& values) const {
  prepared.read.clear();
  for (size_t i = 0; i < external_.size(); ++i)
    if (!is_written_[i]) prepared.read.push_back(values[external_[i]]);
  return api.piecewise_holds(prepared.calls[0].get(), prepared.read.data(),
                             static_cast<uint32_t>(prepared.read.size()));
}

// The shape with one element for each row.
Axes TiledGroup::column_shape() const {
  Axes column;
  if (!aliases_.empty()) column = graph_->values[shape_of_].shape;
  int64_t along = inner_;
  for (size_t axis = column.size(); axis > 0 && along > 1;)
    along /= std::exchange(column[--axis], 1);
  return column;
}

// Results for others, and views of them. False: `values` is as before.
bool TiledGroup::make_results(std::vector<tenon_tensor*>& values) const {
  auto make = [&](ValueId value) {
    if (values[value]) return true;  // the caller's own tensor
    const Type& type = graph_->values[value];
    return host->tensor_create(type.device, type.dtype, static_cast<int32_t>(type.shape.size()),
                               type.shape.data(), &values[value], nullptr) == TENON_OK;
  };
  bool is_made = true;
  for (size_t i = 0; i < external_.size() && is_made; ++i)
    if (is_written_[i]) is_made = make(external_[i]);
  for (size_t i = 0; i < aliases_.size() && is_made; ++i) {
    const Alias& alias = aliases_[i];
    if (!alias.is_needed) continue;
    const Type& type = graph_->values[alias.view];
    is_made = host->tensor_view(values[alias.base], type.dtype,
                                static_cast<int32_t>(type.shape.size()), type.shape.data(),
                                alias.strides.data(), 0, &values[alias.view], nullptr) == TENON_OK;
  }
  if (!is_made) drop_results(values);
  return is_made;
}

void TiledGroup::drop_results(std::vector<tenon_tensor*>& values) const {
  for (const Alias& alias : aliases_)
    host->tensor_release(std::exchange(values[alias.view], nullptr));
  for (size_t i = 0; i < external_.size(); ++i)
    if (is_written_[i]) host->tensor_release(std::exchange(values[external_[i]], nullptr));
}

bool TiledGroup::run_tiles(Prepared& prepared, const tenon_calls_api& api,
                           const std::vector<tenon_tensor*>& values) const {
  const int64_t outer = numel_ / inner_, tiles = (outer + rows_ - 1) / rows_;
  auto run_from = [&](Worker& worker, int64_t begin, int64_t end) {
    worker.use_tensors(values);
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * rows_;
      if (!worker.run(prepared, api, first, std::min(rows_, outer - first))) return false;
    }
    return true;
  };
  if (prepared.worker) return run_from(*prepared.worker, 0, tiles);
  const int64_t work = rows_ * inner_ * static_cast<int64_t>(steps_.size());
  std::atomic<bool> has_failed{false};
  parallel(tiles, work, [&](int64_t begin, int64_t end) {
    bool is_fine = false;
    try {
      Worker worker(*this, prepared.types);
      is_fine = worker.use_buffers(scratch()) && run_from(worker, begin, end);
    } catch (const std::bad_alloc&) {  // nothing may be thrown into the pool
      is_fine = false;
    }
    if (!is_fine) has_failed.store(true, std::memory_order_relaxed);
  });
  return !has_failed.load(std::memory_order_relaxed);
}

Group::Outcome TiledGroup::run(std::vector<tenon_tensor*>& values) const {
  const tenon_calls_api* api = calls_with_pieces();
  if (!api) return Outcome::kDeclined;
  for (size_t i = 0; i < external_.size(); ++i)
    if (!is_written_[i] && !(values[external_[i]]->flags & TENON_TENSOR_CONTIGUOUS))
      return Outcome::kDeclined;
  if (!in_place_.empty() && !is_written_alone(values)) return Outcome::kDeclined;

  // Another thread that runs the program meanwhile prepares its own.
  std::unique_ptr<Prepared> prepared(prepared_.exchange(nullptr, std::memory_order_acquire));
  const bool is_reused = prepared && is_current(*prepared, *api, values);
  if (!is_reused) {
    prepared = prepare(*api, values);
    if (!prepared || !is_current(*prepared, *api, values)) return Outcome::kDeclined;
  }
  // Code for small groups has to be run some times before it has paid.
  constexpr int64_t kRunsOfSmall = 32;
  if (!prepared->has_loops && ++prepared->runs >= (numel_ < kShared ? kRunsOfSmall : 1))
    compile_loops(*prepared, *api);
  if (!make_results(values)) return Outcome::kDeclined;
  const bool is_fine = run_tiles(*prepared, *api, values);
  for (ValueId value : in_place_) host->tensor_bump_version(values[value]);
  Prepared* none = nullptr;
  if (prepared_.compare_exchange_strong(none, prepared.get(), std::memory_order_release,
                                        std::memory_order_relaxed))
    prepared.release();
  if (is_fine) return Outcome::kDone;
  drop_results(values);
  return in_place_.empty() ? Outcome::kDeclined : Outcome::kBroken;
}

}  // namespace tenon::graph
