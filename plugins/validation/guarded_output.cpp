// SPDX-License-Identifier: Apache-2.0
#include "guarded_output.hpp"

#include <algorithm>

namespace tenon::validation {
namespace {

// No constant, and no repetition of an element: whatever a kernel writes there shows.
unsigned char band_byte(int64_t at) {
  return static_cast<unsigned char>((at * 151 + 89) ^ (at >> 7));
}

}  // namespace

GuardedOutput::GuardedOutput(tenon_device_id device, const tenon_tensor& like, unsigned char fill)
    : bytes_(like.numel * host->dtype_size(like.dtype)), fill_(fill) {
  const int64_t room_bytes = bytes_ + 2 * kBandBytes;
  room_ = create(device, TENON_DTYPE_U8, 1, &room_bytes);
  std::vector<unsigned char> content(static_cast<size_t>(room_bytes), fill);
  for (int64_t i = 0; i < room_bytes; ++i)
    if (i < kBandBytes || i >= kBandBytes + bytes_) content[static_cast<size_t>(i)] = band_byte(i);
  write_bytes(room_.get(), 0, content.data(), room_bytes);

  int64_t strides[TENON_MAX_NDIM];
  int64_t step = 1;
  for (int32_t axis = like.ndim; axis-- > 0; step *= std::max<int64_t>(like.shape[axis], 1))
    strides[axis] = step;
  ErrorSink err;
  tenon_tensor* view = nullptr;
  err.check(host->tensor_view(room_.get(), like.dtype, like.ndim, like.shape, strides,
                              kBandBytes / host->dtype_size(like.dtype), &view, err));
  result_ = Tensor::adopt(view);
}

std::optional<GuardedOutput::Stray> GuardedOutput::find_stray() const {
  std::optional<Stray> stray;
  std::vector<unsigned char> band(kBandBytes);
  for (int64_t from : {int64_t{0}, kBandBytes + bytes_}) {
    read_bytes(room_.get(), from, band.data(), kBandBytes);
    for (int64_t i = 0; i < kBandBytes; ++i) {
      if (band[static_cast<size_t>(i)] == band_byte(from + i)) continue;
      if (!stray) stray = {from + i - kBandBytes, 0};
      ++stray->count;
    }
    if (stray) break;  // the band in front has its say first
  }
  return stray;
}

std::vector<int64_t> GuardedOutput::find_unwritten() const {
  std::vector<unsigned char> content(static_cast<size_t>(bytes_));
  read_bytes(room_.get(), kBandBytes, content.data(), bytes_);
  std::vector<int64_t> found;
  const int64_t size = host->dtype_size(result_->dtype);
  for (int64_t at = 0; at < bytes_; at += size) {
    auto begin = content.begin() + at;
    if (std::all_of(begin, begin + size, [&](unsigned char byte) { return byte == fill_; }))
      found.push_back(at / size);
  }
  return found;
}

}  // namespace tenon::validation
