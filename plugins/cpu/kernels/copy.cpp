// SPDX-License-Identifier: Apache-2.0
// Copies between any strides: memcpy where it can be, tiles transposed in registers where the two sides
// run along different axes.
#include "kernel.hpp"
#include "stream.hpp"
#include "strided.hpp"
#include "transpose.hpp"

#include <cstdlib>
#include <cstring>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kTile = 64;  // elements of a tile's side, a multiple of every register tile

// One copy: operand 0 is read, operand 1 written.
class Copy {
 public:
  Copy(const tenon_tensor* x, const tenon_tensor* out)
      : axes_(broadcast_axes(&x, 1, out)), from_(data_of<char>(x)), to_(data_of<char>(out)),
        size_(kDtypeSize[out->dtype]) {
    find_transposition();
  }

  void run(int64_t total) {
    streams_ = pays_to_stream(total * size_, 2 * total * size_) && axes_.inner_extent() * size_ >= kStreamBlock &&
               axes_.inner_stride(0) == size_ && axes_.inner_stride(1) == size_;
    if (across_ < 0) {
      parallel(total, 1, [&](int64_t begin, int64_t end) { copy_rows(begin, end); });
    } else {
      const int64_t tiles = tiles_of(across_) * tiles_of(axes_.count - 1);
      const int64_t planes = total / (axes_.extent[across_] * axes_.extent[axes_.count - 1]);
      parallel(planes * tiles, 2 * kTile * kTile, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) copy_tile(i / tiles, i % tiles);
      });
    }
  }

 private:
  // The axis along which the input is dense, if the output is dense along another.
  void find_transposition() {
    const int last = axes_.count - 1;
    if (last < 1 || size_ > 8 || axes_.stride[last][1] != size_ || axes_.stride[last][0] == size_ ||
        axes_.extent[last] < 4) {
      return;
    }
    for (int i = 0; i < last; ++i) {
      if (axes_.stride[i][0] == size_ && axes_.extent[i] >= 4) across_ = i;
    }
  }

  int64_t tiles_of(int axis) const { return (axes_.extent[axis] + kTile - 1) / kTile; }

  void copy_rows(int64_t begin, int64_t end) const {
    Position position(axes_, begin);
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(end - at, position.left_in_row(axes_));
      char* to = to_ + position.offset(axes_, 1);
      const char* from = from_ + position.offset(axes_, 0);
      if (streams_) {
        stream_copy(to, from, n * size_);
      } else {
        copy_row(to, axes_.inner_stride(1), from, axes_.inner_stride(0), n, size_);
      }
      position.advance(axes_, n);
      at += n;
    }
    if (streams_) stream_end();
  }

  void copy_tile(int64_t plane, int64_t tile) const {
    const int last = axes_.count - 1;
    int64_t from = 0, to = 0;
    for (int i = last - 1; i >= 0; --i) {
      if (i == across_) continue;
      const int64_t index = plane % axes_.extent[i];
      plane /= axes_.extent[i];
      from += index * axes_.stride[i][0];
      to += index * axes_.stride[i][1];
    }
    const int64_t i = tile % tiles_of(last) * kTile, j = tile / tiles_of(last) * kTile;
    from += i * axes_.stride[last][0] + j * size_;
    to += i * size_ + j * axes_.stride[across_][1];
    transpose_bytes(size_, from_ + from, axes_.stride[last][0], to_ + to,
                    axes_.stride[across_][1], std::min(kTile, axes_.extent[last] - i),
                    std::min(kTile, axes_.extent[across_] - j));
  }

  Axes axes_;
  const char* from_;
  char* to_;
  int size_;
  int across_ = -1;
  bool streams_ = false;
};

tenon_status clone(tenon_ctx*, const tenon_tensor* x, tenon_tensor* out, tenon_err*) {
  if (out->numel == 0) return TENON_OK;
  if (x->flags & out->flags & TENON_TENSOR_CONTIGUOUS && x->numel <= kSerialWork) {
    std::memcpy(out->data, x->data, static_cast<size_t>(x->numel) * kDtypeSize[x->dtype]);
    return TENON_OK;
  }
  Copy(x, out).run(out->numel);
  return TENON_OK;
}
TENON_BOX_clone(clone_boxed, clone)

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_clone(clone, nullptr, kAllDtypes, kAnyStrides | TENON_KERNEL_HOST_SCALARS, 0)};

}  // namespace

KernelList copy_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
