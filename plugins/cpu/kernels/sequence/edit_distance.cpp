// SPDX-License-Identifier: Apache-2.0
// edit_distance: one row of the table of distances between beginnings at a time (Wagner, Fischer,
// 1974). Threads divide the sequences.
#include "index/indices.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/sequence.h>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

template <class T>
int64_t distance(const T* x, int64_t n, const T* target, int64_t m, int64_t* row) {
  for (int64_t j = 0; j <= m; ++j) row[j] = j;
  for (int64_t i = 1; i <= n; ++i) {
    int64_t diagonal = row[0];
    row[0] = i;
    for (int64_t j = 1; j <= m; ++j) {
      const int64_t replaced = diagonal + (x[i - 1] != target[j - 1]);
      diagonal = row[j];
      row[j] = std::min(replaced, std::min(row[j], row[j - 1]) + 1);
    }
  }
  return row[m];
}

int64_t number_at(const tenon_tensor* numbers, int64_t i) {
  int64_t result = 0;
  with_index_type(numbers, [&]<class P>(const P* from) { result = signed_index(from[i]); });
  return result;
}

tenon_status edit_distance(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* target,
                           const tenon_tensor* input_lengths, const tenon_tensor* target_lengths,
                           int32_t normalized, tenon_tensor* out, tenon_err* err) {
  const int64_t batch = x->shape[0], rows = x->shape[1], columns = target->shape[1];
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t n = number_at(input_lengths, i), m = number_at(target_lengths, i);
    if (n < 0 || n > rows || m < 0 || m > columns)
      return fail_format(err, TENON_INVALID_ARGUMENT,
                         "[edit_distance] expected %s from 0 to %lld, got %lld",
                         n < 0 || n > rows ? "input_lengths" : "target_lengths",
                         static_cast<long long>(n < 0 || n > rows ? rows : columns),
                         static_cast<long long>(n < 0 || n > rows ? n : m));
  }
  tenon_status status = TENON_OK;
  with_index_type(x, [&]<class P>(const P* labels) {
    status = parallel_for_with_scratch(
        ctx, batch, 4 * rows * columns, (columns + 1) * static_cast<int64_t>(sizeof(int64_t)), err,
        [&](int64_t i, void* memory) {
          const int64_t n = number_at(input_lengths, i), m = number_at(target_lengths, i);
          const int64_t steps = distance(labels + i * rows, n, data_of<P>(target) + i * columns, m,
                                         static_cast<int64_t*>(memory));
          float result = static_cast<float>(steps);
          if (normalized && steps > 0) result /= static_cast<float>(m);
          data_of<float>(out)[i] = result;
        });
  });
  return status;
}
TENON_BOX_edit_distance(edit_distance_boxed, edit_distance);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_edit_distance(edit_distance, nullptr, kIntegers, 0, 0)};

}  // namespace

KernelList edit_distance_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
