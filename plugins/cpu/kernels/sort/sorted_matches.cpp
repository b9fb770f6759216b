// SPDX-License-Identifier: Apache-2.0
// sorted_matches: a walk through an ascending list that goes on from the last value where the next one is not smaller, in
// steps that double, so that neighbours cost one step and others a binary search.
#include "kernel.hpp"

#include <tenon/signatures/sets.h>

#include <algorithm>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// The first of sorted[from:] that is not below `value`.
int64_t first_from(const int64_t* sorted, int64_t count, int64_t from, int64_t value) {
  int64_t step = 1, low = from;
  while (low + step < count && sorted[low + step] < value) {
    low += step;
    step *= 2;
  }
  const int64_t high = std::min(count, low + step + 1);
  return std::lower_bound(sorted + low, sorted + high, value) - sorted;
}

tenon_status sorted_matches(tenon_ctx* ctx, const tenon_tensor* sorted, const tenon_tensor* values,
                            tenon_err* err) {
  if (sorted->ndim != 1 || values->ndim != 1)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[sorted_matches] expected two vectors, got shapes %s and %s",
                       shape_text(*sorted).c_str(), shape_text(*values).c_str());
  const int64_t count = sorted->numel, wanted = values->numel;
  const int64_t *list = data_of<int64_t>(sorted), *from = data_of<int64_t>(values);
  void* memory;
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(wanted, 1)) * 2 * sizeof(int64_t);
  tenon_status status = host->scratch(ctx, bytes, &memory, err);
  if (status != TENON_OK) return status;
  auto *at = static_cast<int64_t*>(memory), *place = at + wanted;
  int64_t found = 0, next = 0;
  for (int64_t i = 0; i < wanted; ++i) {
    if (i > 0 && from[i] < from[i - 1]) next = 0;
    next = first_from(list, count, next, from[i]);
    if (next == count || list[next] != from[i]) continue;
    at[found] = i;
    place[found++] = next;
  }
  for (uint32_t result = 0; result < 2; ++result) {
    tenon_tensor* out;
    status = host->output_alloc(ctx, result, TENON_DTYPE_I64, 1, &found, &out, err);
    if (status != TENON_OK) return status;
    std::copy_n(result == 0 ? at : place, found, data_of<int64_t>(out));
  }
  return TENON_OK;
}
TENON_BOX_sorted_matches(sorted_matches_boxed, sorted_matches);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_sorted_matches(sorted_matches, nullptr, dtype_bit(TENON_DTYPE_I64), 0, 0)};

}  // namespace

KernelList sorted_matches_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
