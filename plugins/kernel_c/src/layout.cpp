// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <algorithm>
#include <cstdlib>

namespace tenon::kernel_c {

Layout::Layout(int ndim, const int64_t* extents) : rank(ndim) { std::copy_n(extents, ndim, shape); }

void Layout::add(const tenon_tensor* tensor) {
  int64_t* to = strides[tensors++];
  const int first = rank - tensor->ndim;
  std::fill_n(to, first, int64_t{0});
  for (int i = 0; i < tensor->ndim; ++i)
    to[first + i] = tensor->shape[i] == 1 ? 0 : tensor->strides[i];
}

void Layout::collapse() {
  int kept = 0;
  for (int i = 0; i < rank; ++i) {
    if (shape[i] == 1) continue;
    bool joins = kept > 0;
    for (int t = 0; t < tensors && joins; ++t)
      joins = strides[t][kept - 1] == strides[t][i] * shape[i];
    if (joins)
      shape[kept - 1] *= shape[i];
    else
      shape[kept++] = shape[i];
    for (int t = 0; t < tensors; ++t) strides[t][kept - 1] = strides[t][i];
  }
  rank = kept;
}

void Layout::sort(int by) {
  for (int i = 1; i < rank; ++i)
    for (int k = i; k > 0 && std::abs(strides[by][k - 1]) < std::abs(strides[by][k]); --k) {
      std::swap(shape[k - 1], shape[k]);
      for (int t = 0; t < tensors; ++t) std::swap(strides[t][k - 1], strides[t][k]);
    }
}

bool Layout::is_dense(int tensor) const {
  int64_t expected = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (strides[tensor][i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

namespace {

LayoutValue last_of(const int64_t* values, int rank, int64_t fallback) {
  LayoutValue result = {};
  if (rank == 0) result.v[0] = fallback;
  const int first = std::max(rank - kLayoutRank, 0);
  std::copy_n(values + first, rank - first, result.v);
  return result;
}

}  // namespace

LayoutValue Layout::shape_value() const { return last_of(shape, rank, 1); }
LayoutValue Layout::strides_value(int tensor) const { return last_of(strides[tensor], rank, 0); }

int64_t Layout::launch_count() const {
  int64_t count = 1;
  for (int i = std::max(rank - kLayoutRank, 0); i < rank; ++i) count *= shape[i];
  return count;
}

int64_t Layout::launches() const {
  int64_t count = 1;
  for (int i = 0; i < rank - kLayoutRank; ++i) count *= shape[i];
  return count;
}

int64_t Layout::offset(int tensor, int64_t launch) const {
  int64_t result = 0;
  for (int i = rank - kLayoutRank - 1; i >= 0; --i) {
    result += launch % shape[i] * strides[tensor][i];
    launch /= shape[i];
  }
  return result;
}

}  // namespace tenon::kernel_c
