// SPDX-License-Identifier: Apache-2.0
#include "api/offer.hpp"

#include <algorithm>

namespace tenon::paddle {
namespace {

constinit thread_local Offer* current = nullptr;

}  // namespace

Offer::Offer(std::span<const Tensor> results) : outer_(std::exchange(current, this)) {
  for (const Tensor& result : results)
    if (result && result->numel > 0 && result->flags & TENON_TENSOR_CONTIGUOUS)
      entries_.push_back({result, host->tensor_storage_use_count(result.get()), false, {}});
}

Offer::~Offer() { current = outer_; }

void Offer::settle() {
  for (Entry& entry : entries_) {
    if (auto kept = entry.taker.lock()) {
      ErrorSink err;
      tenon_tensor* copy = nullptr;
      const tenon_tensor& result = *entry.result.get();
      err.check(
          host->tensor_create(result.device, result.dtype, result.ndim, result.shape, &copy, err));
      kept->handle = Tensor::adopt(copy);
      err.check(host->tensor_copy(copy, entry.result.get(), err));
    }
    if (host->tensor_storage_use_count(entry.result.get()) > entry.users)
      throw Error(TENON_UNSUPPORTED,
                  "its kernel keeps a slice or reshape of its result beyond the call; keep a copy "
                  "(paddle::assign) instead");
  }
}

bool take_offer(pd::DataType dtype, const std::vector<int64_t>& shape, tenon_device_id device,
                pd::Tensor* out) {
  if (!current) return false;
  for (Offer::Entry& entry : current->entries_) {
    const tenon_tensor& result = *entry.result.get();
    if (entry.is_taken || result.device != device || result.dtype != dtype_id(dtype) ||
        !std::equal(shape.begin(), shape.end(), result.shape, result.shape + result.ndim))
      continue;
    entry.is_taken = true;
    *out = wrap(entry.result);
    entry.taker = out->impl();
    return true;
  }
  return false;
}

}  // namespace tenon::paddle
