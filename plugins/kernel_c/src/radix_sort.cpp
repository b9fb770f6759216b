// SPDX-License-Identifier: Apache-2.0
#include "radix_sort.hpp"

#include <utility>

#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

namespace tenon::kernel_c {
namespace {

constexpr uint32_t kGroup = 256;
constexpr int kDigitBits = 4, kDigits = 1 << kDigitBits;
constexpr char kCount[] = "COUNT", kScan[] = "SCAN", kScatter[] = "SCATTER";

struct Pass {
  int dtype;
  bool descending, first, last;
};

// Elements of an item. Keys, indices and counters of a tile fit into 48 KiB.
int64_t each_of(int dtype) { return dtype_text(dtype).bytes == 8 ? 8 : 16; }

tenon_status step(Device& device, const char* which, const Pass& pass, tenon_kernel* out,
                  tenon_err* err) {
  const uint64_t variant = static_cast<uint64_t>(pass.dtype) << 3 | uint64_t{pass.descending} << 2 |
                           uint64_t{pass.first} << 1 | uint64_t{pass.last};
  return device.kernel(
      {which, variant},
      [&] {
        SourceText text(device, "radix_sort_" + suffix(pass.dtype));
        text.element(pass.dtype).memory("", pass.dtype).define(which, 1);
        text.define("KEY", bits_type(pass.dtype));
        text.define("KEY_BITS", int64_t{dtype_text(pass.dtype).bytes} * 8);
        text.define("GROUP", int64_t{kGroup}).define("EACH", each_of(pass.dtype));
        if (pass.descending) text.define("DESCENDING", 1);
        if (pass.first) text.define("FIRST_PASS", 1);
        if (pass.last) text.define("LAST_PASS", 1);
        return std::move(text.add(piece::radix_sort)).finish();
      },
      out, err);
}

}  // namespace

bool radix_sort_pays(const Device& device, const AxisView& view) {
  return !device.host_like() && device.limits.max_group_size >= kGroup &&
         device.limits.local_bytes >= 48 << 10 && view.length >= 1024 &&
         view.length <= int64_t{UINT32_MAX} && view.lanes() * view.length >= 1 << 16;
}

tenon_status radix_sort(tenon_ctx* ctx, Device& device, const tenon_tensor* x, const AxisView& view,
                        bool descending, void** indices, tenon_err* err) {
  const int64_t tile = kGroup * each_of(x->dtype);
  const int64_t tiles = (view.length + tile - 1) / tile, lanes = view.lanes();
  const uint64_t elements = static_cast<uint64_t>(x->numel);
  void *keys[2], *index[2], *counts;
  for (void*& each : keys)
    TRY(host->scratch(ctx, elements * static_cast<uint64_t>(dtype_text(x->dtype).bytes), &each,
                      err));
  for (void*& each : index) TRY(host->scratch(ctx, elements * sizeof(uint32_t), &each, err));
  TRY(host->scratch(ctx, static_cast<uint64_t>(lanes * tiles * kDigits) * sizeof(uint32_t), &counts,
                    err));
  const int bits = dtype_text(x->dtype).bytes * 8;
  for (int32_t shift = 0; shift < bits; shift += kDigitBits) {
    const Pass pass = {x->dtype, descending, shift == 0, shift + kDigitBits == bits};
    tenon_kernel count, scan, scatter;
    TRY(step(device, kCount, {x->dtype, descending, pass.first, false}, &count, err));
    TRY(step(device, kScan, {TENON_DTYPE_U32, false, false, false}, &scan, err));
    TRY(step(device, kScatter, pass, &scatter, err));
    Launch counting(ctx, device, err);
    counting.buffer(x);
    counting.buffer(keys[0]);
    counting.buffer(counts);
    for (int64_t value : {view.length, view.inner, lanes, tiles}) counting.value(value);
    counting.value(shift);
    TRY(counting.run_groups(count, lanes * tiles, kGroup));
    Launch scanning(ctx, device, err);
    scanning.buffer(counts);
    scanning.value(tiles);
    scanning.value(lanes);
    TRY(scanning.run_groups(scan, lanes, kGroup));
    Launch scattering(ctx, device, err);
    scattering.buffer(x);
    for (void* each : {keys[0], index[0], keys[1], index[1], counts}) scattering.buffer(each);
    for (int64_t value : {view.length, view.inner, lanes, tiles}) scattering.value(value);
    scattering.value(shift);
    TRY(scattering.run_groups(scatter, lanes * tiles, kGroup));
    std::swap(keys[0], keys[1]);
    std::swap(index[0], index[1]);
  }
  *indices = index[0];
  return TENON_OK;
}

}  // namespace tenon::kernel_c
