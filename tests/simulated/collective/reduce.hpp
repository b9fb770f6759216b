// SPDX-License-Identifier: Apache-2.0
// Reductions of the elements of several ranks, in the order of the ranks, so that every rank
// computes the same bits.
#pragma once

#include <cstdint>

namespace simulated {

// ncclDataType_t, ncclRedOp_t.
enum Type : uint32_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  kTypes,
  // Of HCCL, which numbers all types otherwise.
  kInt16 = 100,
  kUint16
};
enum Reduction : uint32_t { kSum, kProduct, kMax, kMin, kMean, kReductions };

uint64_t type_bytes(uint32_t type);
bool can_reduce(uint32_t type);
// dst[i] = the reduction of sources[rank][i] over `ranks` ranks; `dst` may be one of the sources.
void reduce(void* dst, const void* const* sources, int ranks, uint64_t count, uint32_t type,
            uint32_t reduction);

}  // namespace simulated
