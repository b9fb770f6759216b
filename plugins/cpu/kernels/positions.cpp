// SPDX-License-Identifier: Apache-2.0
#include "positions.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

tenon_status read_positions(tenon_ctx* ctx, const char* op, const tenon_tensor* index, int64_t length,
                            int64_t** out, tenon_err* err) {
  void* memory;
  const uint64_t bytes = static_cast<uint64_t>(index->numel) * sizeof(int64_t);
  if (tenon_status status = host->scratch(ctx, bytes, &memory, err); status != TENON_OK) return status;
  auto* positions = static_cast<int64_t*>(memory);
  int64_t bad = 0;
  bool failed = false;
  with_type(index->dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T>) {
      const T* from = data_of<T>(index);
      for (int64_t i = 0; i < index->numel; ++i) {
        int64_t position = static_cast<int64_t>(from[i]);
        // Above int64's range, an unsigned position is as far outside as a negative one.
        const bool inside = position < length && position >= -length &&
                            !(std::is_unsigned_v<T> && position < 0);
        if (!inside && !failed) bad = position, failed = true;
        positions[i] = position < 0 ? position + length : position;
      }
    } else {
      failed = true;
    }
  });
  if (failed)
    return fail_format(err, TENON_OUT_OF_RANGE, "[%s] expected positions from %lld to %lld, got %lld", op,
                       static_cast<long long>(-length), static_cast<long long>(length - 1),
                       static_cast<long long>(bad));
  *out = positions;
  return TENON_OK;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
