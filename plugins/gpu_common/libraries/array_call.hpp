// SPDX-License-Identifier: Apache-2.0
// One call of a kernel that works by a vendor's library: scratch memory of its stream, and the kernels of arrays.cu around
// the library's own work.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/device.hpp"

namespace gpu {

// Axes of a copy with their strides in elements, the outermost first. Neighbours that are one axis in both layouts are
// joined, unless they are to be kept apart.
class CopyAxes {
 public:
  struct Axis {
    int64_t extent, from, to;
  };
  void add(int64_t extent, int64_t from, int64_t to);
  void add_apart(int64_t extent, int64_t from, int64_t to);
  std::span<const Axis> all() const { return {axes_, static_cast<size_t>(count_)}; }

 private:
  Axis axes_[TENON_MAX_NDIM + 2];
  int count_ = 0;
};

enum Triangle { kLower = -1, kAll = 0, kUpper = 1 };

struct CopyOptions {
  Triangle triangle = kAll;  // the rest of each matrix becomes zeros
  bool conjugates = false;
  double factor = 1;
  int* faults =
      nullptr;  // one for each matrix: becomes 1 if it is not finite; the last two axes were kept apart
};

class ArrayCall {
 public:
  // `op`: the operator's name in errors.
  ArrayCall(tenon_ctx* ctx, const char* op, tenon_err* err);

  tenon_ctx* ctx() const { return ctx_; }
  tenon_device device() const { return device_; }
  const char* op() const { return op_; }
  tenon_err* err() const { return err_; }

  // Memory until the call ends.
  tenon_status scratch(uint64_t bytes, void** out) const;
  template <class T>
  tenon_status scratch(int64_t count, T** out) const {
    return scratch(static_cast<uint64_t>(count) * sizeof(T), reinterpret_cast<void**>(out));
  }

  // The kernels of arrays.cu. `dtype` is that of the elements.
  tenon_status copy(int dtype, const void* from, void* to, const CopyAxes& axes,
                    const CopyOptions& options = {}) const;
  tenon_status complex_of_real(int dtype, const void* from, void* to, int64_t count) const;
  tenon_status identity(int dtype, void* to, int64_t rows, int64_t columns, int64_t batch) const;
  tenon_status addresses(void* memory, void** to, std::span<const int64_t> extents,
                         std::span<const int64_t> strides_in_bytes) const;
  tenon_status widen(const int* from, int64_t* to, int64_t count, int added) const;
  tenon_status permutation(const int64_t* pivots, int64_t* to, int64_t steps, int64_t rows,
                           int64_t batch, int64_t* fault) const;
  tenon_status mirror(int dtype, const void* half, void* to, std::span<const int64_t> extents,
                      std::span<const int64_t> half_strides, int halved, int transformed) const;
  tenon_status real_ends(int dtype, void* rows, int64_t length, bool is_even, int64_t count) const;
  // Products of Householder reflections, see tenon_reflect.
  tenon_status reflect(int dtype, const void* vectors, const void* tau, void* to, int64_t rows,
                       int64_t columns, int64_t reflections, int64_t pitch, int64_t batch) const;
  tenon_status norms(int dtype, const void* matrices, double* to, int64_t n, int64_t batch) const;
  tenon_status scale(int dtype, void* matrices, const double* factors, int64_t size,
                     int64_t batch) const;
  tenon_status add_scaled(int dtype, void* to, const void* from, double factor,
                          int64_t count) const;
  tenon_status add_diagonal(int dtype, void* to, double number, int64_t n, int64_t batch) const;

  tenon_status fill(void* memory, uint64_t bytes, unsigned char value) const;
  tenon_status wait() const;  // for the stream
  // Waits for the stream, after a copy of memory of the device. Recorded work cannot wait: an error.
  tenon_status read(void* to, const void* from, uint64_t bytes) const;
  tenon_status write(void* to, const void* from, uint64_t bytes) const;

 private:
  tenon_status transfer(int direction, void* to, const void* from, uint64_t bytes) const;
  template <class Add>
  tenon_status launch(int dtype, const char* name, int64_t count, const Add& add) const;

  tenon_ctx* ctx_;
  tenon_device device_;
  tenon_stream stream_;
  const char* op_;
  tenon_err* err_;
};

// Whether the kernels of arrays.cu compile on the device.
bool has_array_kernels(tenon_device device);

}  // namespace gpu
