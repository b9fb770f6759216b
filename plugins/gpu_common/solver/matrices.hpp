// SPDX-License-Identifier: Apache-2.0
// What kernels of batches of matrices have in common: matrices of any strides, their copies as the libraries take them, the
// calls for each matrix or for all at once, and errors that name a matrix of the batch.
//
// The libraries store matrices by columns and tensors by rows. A matrix that is copied row by row therefore is its own
// transpose to a library. Some kernels use that: inv(A.T) is inv(A).T. Others copy by columns.
#pragma once

#include <tenon/unbox.h>

#include <algorithm>
#include <span>
#include <vector>

#include "libraries/array_call.hpp"
#include "libraries/dtypes.hpp"
#include "libraries/library_call.hpp"
#include "solver/solver_handles.hpp"

namespace gpu::solver {

namespace number = vendor::solver_number;

inline constexpr int32_t kScore = 50;
inline constexpr uint64_t kDtypes =
    uint64_t{1} << TENON_DTYPE_F32 | uint64_t{1} << TENON_DTYPE_F64 |
    uint64_t{1} << TENON_DTYPE_C64 | uint64_t{1} << TENON_DTYPE_C128;

// Matrices up to this size are worth one call for the whole batch; larger ones keep the device busy alone.
inline constexpr int64_t kMaxBatchedExtent = 256;
// Up to this size the libraries have Jacobi's method for batches.
inline constexpr int64_t kMaxJacobiExtent = 32;

// The matrices in the last two axes of a tensor. `vector`: the last axis alone, as one column.
class Batch {
 public:
  explicit Batch(const tenon_tensor* x, bool vector = false) : x_(x), axes_(vector ? 1 : 2) {}
  void* data() const { return x_->data; }
  int64_t rows() const { return x_->shape[x_->ndim - axes_]; }
  int64_t columns() const { return axes_ == 1 ? 1 : x_->shape[x_->ndim - 1]; }
  int64_t row_stride() const { return x_->strides[x_->ndim - axes_]; }
  int64_t column_stride() const { return axes_ == 1 ? 1 : x_->strides[x_->ndim - 1]; }
  int64_t size() const { return rows() * columns(); }
  int64_t count() const {
    int64_t count = 1;
    for (int64_t extent : leading()) count *= extent;
    return count;
  }
  std::span<const int64_t> leading() const {
    return {x_->shape, static_cast<size_t>(x_->ndim - axes_)};
  }
  int64_t leading_stride(size_t axis) const { return x_->strides[axis]; }
  bool is_contiguous() const { return (x_->flags & TENON_TENSOR_CONTIGUOUS) != 0; }
  // Which of these matrices is number `index` of a batch of shape `batch`, to which they broadcast.
  int64_t index_in(std::span<const int64_t> batch, int64_t index) const;

 private:
  const tenon_tensor* x_;
  int axes_;
};

enum class Order { kRows, kColumns };

// Matrices one behind the other; `pitch` elements lead from one to the next, `ld` from row to row or column to column.
struct Packed {
  void* data;
  Order order;
  int64_t ld, pitch;

  int64_t row_stride() const { return order == Order::kRows ? ld : 1; }
  int64_t column_stride() const { return order == Order::kRows ? 1 : ld; }
};
inline Packed by_rows(void* data, int64_t rows, int64_t columns) {
  return {data, Order::kRows, columns, rows * columns};
}
inline Packed by_columns(void* data, int64_t rows, int64_t columns) {
  return {data, Order::kColumns, rows, rows * columns};
}

class SolverCall : public ArrayCall {
 public:
  SolverCall(tenon_ctx* ctx, const char* op, int dtype, tenon_err* err)
      : ArrayCall(ctx, op, err), dtype_(dtype), bytes_(host->dtype_size(dtype)) {}

  int dtype() const { return dtype_; }
  const Routines& routines() const { return library()->routines(dtype_); }
  void* at(void* data, int64_t element) const {
    return static_cast<char*>(data) + element * bytes_;
  }
  void* matrix(const Packed& packed, int64_t index) const {
    return at(packed.data, index * packed.pitch);
  }

  // The libraries count in 32 bits.
  tenon_status expect_int(std::initializer_list<int64_t> extents) const;

  tenon_status elements(int64_t count, void** out) const {
    return scratch(static_cast<uint64_t>(count * bytes_), out);
  }
  // Copies matrices, broadcast to `batch`, and back. `packed` may be what the tensor itself holds.
  tenon_status pack(const Batch& from, std::span<const int64_t> batch, const Packed& to,
                    const CopyOptions& options = {}) const;
  tenon_status pack(const Batch& from, const Packed& to, const CopyOptions& options = {}) const {
    return pack(from, from.leading(), to, options);
  }
  tenon_status unpack(const Packed& from, const Batch& to, const CopyOptions& options = {}) const;
  // The addresses of matrices that are packed as those of `of`, broadcast to `batch`.
  tenon_status addresses(const Batch& of, std::span<const int64_t> batch, const Packed& packed,
                         void*** out) const;

  // Calls question(handles), which queues nothing and returns the status of a library.
  template <class Question>
  tenon_status ask(const Question& question) const {
    return with_handles([&](Handles& handles) {
      const Status status = question(handles);
      return status ? fail_status(status) : TENON_OK;
    });
  }
  // Memory to work in, of as many elements as query(handles, &size) says.
  template <class Query>
  tenon_status workspace(const Query& query, void** work, int* size) const {
    *size = 0;
    GPU_TRY(ask([&](Handles& handles) { return query(handles, size); }));
    return elements(std::max(*size, 1), work);
  }
  // Queues the work queue(handles), which returns the status of a library.
  template <class Queue>
  tenon_status queue(const Queue& work) const {
    return with_handles([&](Handles& handles) {
      return queue_library_call(
          ctx(), device(), op(), [&](Stream) { return work(handles); },
          [&](Status status) { return fail_status(status); }, err());
    });
  }
  // The same for each matrix: work(handles, index).
  template <class Queue>
  tenon_status queue_each(int64_t count, const Queue& work) const {
    return queue([&](Handles& handles) {
      Status status = 0;
      for (int64_t index = 0; index < count && status == 0; ++index) status = work(handles, index);
      return status;
    });
  }

  // Zeros for `count` numbers that say what happened to a matrix each.
  tenon_status make_infos(int64_t count, int** out) const;
  // Waits for them. An error that names the first matrix of `batch` whose number is not 0, where `own` broadcasts to it.
  tenon_status check_infos(const int* infos, const Batch& own, std::span<const int64_t> batch,
                           const char* expected, const char* hint) const;
  // Likewise for what a copy noted.
  tenon_status check_finite(const int* faults, const Batch& own) const;

 private:
  template <class Work>
  tenon_status with_handles(const Work& work) const {
    Current current(device());
    Status status = 0;
    const std::shared_ptr<Handles> handles =
        handles_of(device()).find(stream_of(device(), host->ctx_stream(ctx())), &status);
    if (!handles) return fail_status(status);
    std::lock_guard lock(handles->mutex);
    return work(*handles);
  }
  tenon_status fail_status(Status status) const;

  int dtype_;
  int64_t bytes_;
};

int32_t can_run(const tenon_value* args, uint32_t);

constexpr tenon_kernel_def definition(const char* op, tenon_boxed_fn run, uint64_t dtypes = kDtypes,
                                      int32_t (*can)(const tenon_value*, uint32_t) = can_run) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = TENON_KERNEL_STRIDED,
          .op = op,
          .device = nullptr,
          .schema_hash = 0,
          .dtype_mask = dtypes,
          .score = kScore,
          .reserved = 0,
          .boxed = run,
          .typed = nullptr,
          .can_run = can};
}

// A kernel whose body may throw for want of memory.
template <tenon_status (*Body)(tenon_ctx*, const tenon_value* args, tenon_value* outs, tenon_err*)>
tenon_status boxed(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                   tenon_err* err) {
  try {
    return Body(ctx, args, outs, err);
  } catch (const std::bad_alloc&) {
    return fail_host_memory(err);
  }
}

}  // namespace gpu::solver
