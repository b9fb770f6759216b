// SPDX-License-Identifier: Apache-2.0
#include "elementwise/strided.hpp"

#include <cstdlib>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {

void Axes::push(int64_t length, const int64_t* strides) {
  if (length == 1) return;
  extent[count] = length;
  for (int i = 0; i < operands; ++i) stride[count][i] = strides[i];
  ++count;
}

void Axes::order_by(int operand) {
  // Insertion sort: few axes, mostly in order.
  for (int i = 1; i < count; ++i) {
    for (int j = i; j > 0 && std::llabs(stride[j - 1][operand]) < std::llabs(stride[j][operand]);
         --j) {
      std::swap(extent[j - 1], extent[j]);
      for (int k = 0; k < operands; ++k) std::swap(stride[j - 1][k], stride[j][k]);
    }
  }
}

void Axes::merge() {
  int last = 0;
  for (int i = 1; i < count; ++i) {
    bool together = true;
    for (int k = 0; k < operands; ++k) together &= stride[last][k] == stride[i][k] * extent[i];
    if (together) {
      extent[last] *= extent[i];
    } else {
      ++last;
      extent[last] = extent[i];
    }
    for (int k = 0; k < operands; ++k) stride[last][k] = stride[i][k];
  }
  if (count > 0) count = last + 1;
}

bool Axes::is_contiguous(int operand, int64_t size) const {
  for (int i = count - 1; i >= 0; --i) {
    if (stride[i][operand] != size) return false;
    size *= extent[i];
  }
  return true;
}

bool Axes::is_constant(int operand) const {
  for (int i = 0; i < count; ++i) {
    if (stride[i][operand] != 0) return false;
  }
  return true;
}

Axes broadcast_axes(const tenon_tensor* const* inputs, int count, const tenon_tensor* out) {
  Axes axes;
  axes.operands = count + 1;
  for (int axis = 0; axis < out->ndim; ++axis) {
    int64_t strides[kMaxOperands];
    for (int i = 0; i <= count; ++i) {
      const tenon_tensor* t = i < count ? inputs[i] : out;
      const int own = axis - (out->ndim - t->ndim);
      strides[i] = own < 0 || (t->shape[own] == 1 && out->shape[axis] != 1)
                       ? 0
                       : t->strides[own] * kDtypeSize[t->dtype];
    }
    axes.push(out->shape[axis], strides);
  }
  if (!(out->flags & TENON_TENSOR_CONTIGUOUS)) axes.order_by(count);
  axes.merge();
  return axes;
}

StridedIterator::StridedIterator(const Axes& axes, int64_t linear) {
  for (int i = axes.count - 1; i >= 0; --i) {
    index[i] = linear % axes.extent[i];
    linear /= axes.extent[i];
  }
}

int64_t StridedIterator::offset(const Axes& axes, int operand) const {
  int64_t result = 0;
  for (int i = 0; i < axes.count; ++i) result += index[i] * axes.stride[i][operand];
  return result;
}

void StridedIterator::advance(const Axes& axes, int64_t n, int axis) {
  int i = axis;
  if (i < 0) return;
  index[i] += n;
  while (i > 0 && index[i] >= axes.extent[i]) {
    index[i] = 0;
    ++index[--i];
  }
}

namespace {

// Copies every kStep-th element to dense memory. A step known at compile time becomes shuffles of
// whole vectors. Rows longer than a page are prefetched, since hardware prefetchers stop at page
// boundaries.
template <class T, int64_t kStep>
void gather_row(T* to, const T* from, int64_t n) {
  constexpr int64_t together = 256 / sizeof(T), line = 64 / sizeof(T), ahead = 2048 / sizeof(T);
  constexpr int64_t sign = kStep < 0 ? -1 : 1, bytes = sign * kStep * sizeof(T);
  const bool prefetches = n * bytes > 4096;
  int64_t i = 0;
  for (; i + together <= n; i += together) {
    const T* const next = from + i * kStep + sign * ahead;
    for (int64_t at = 0; prefetches && at < together * kStep * sign; at += line)
      __builtin_prefetch(next + sign * at);
    for (int64_t j = i; j < i + together; ++j) to[j] = from[j * kStep];
  }
  for (; i < n; ++i) to[i] = from[i * kStep];
}

template <class T>
void gather_row(T* to, const char* from, int64_t stride, int64_t n) {
  const T* elements = reinterpret_cast<const T*>(from);
  switch (stride) {
    case -static_cast<int64_t>(sizeof(T)):
      return gather_row<T, -1>(to, elements, n);
    case 2 * sizeof(T):
      return gather_row<T, 2>(to, elements, n);
    case 3 * sizeof(T):
      return gather_row<T, 3>(to, elements, n);
    case 4 * sizeof(T):
      return gather_row<T, 4>(to, elements, n);
    default:
      break;
  }
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, from += 4 * stride) {
    const T a = *reinterpret_cast<const T*>(from);
    const T b = *reinterpret_cast<const T*>(from + stride);
    const T c = *reinterpret_cast<const T*>(from + 2 * stride);
    const T d = *reinterpret_cast<const T*>(from + 3 * stride);
    to[i] = a;
    to[i + 1] = b;
    to[i + 2] = c;
    to[i + 3] = d;
  }
  for (; i < n; ++i, from += stride) to[i] = *reinterpret_cast<const T*>(from);
}

}  // namespace

void copy_row(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n,
              int size) {
  if (to_stride == size && from_stride == size) {
    std::memcpy(to, from, static_cast<size_t>(n * size));
    return;
  }
  with_size(size, [&]<class T>(Type<T>) {
    if (from_stride == 0) {
      const T value = *reinterpret_cast<const T*>(from);
      if (to_stride == size) {
        for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(to)[i] = value;
      } else {
        for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * to_stride) = value;
      }
    } else if (to_stride == size) {
      gather_row(reinterpret_cast<T*>(to), from, from_stride, n);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        *reinterpret_cast<T*>(to + i * to_stride) =
            *reinterpret_cast<const T*>(from + i * from_stride);
      }
    }
  });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
