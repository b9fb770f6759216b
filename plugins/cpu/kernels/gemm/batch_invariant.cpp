// SPDX-License-Identifier: Apache-2.0
// linear with bits that do not depend on the number of rows. The kernels of `linear` for few rows add products in other
// orders than those for many. Here an element is one chain of multiply-adds along k for any number of rows: parts of the
// weight are transposed into the L1 cache, and every row of x is multiplied by them there. One row takes about as long as
// reading the weight.
#include "gemm/pack.hpp"
#include "kernel.hpp"
#include "parallel_scratch.hpp"

#include <tenon/signatures/linalg.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kDepth = 64;     // along k, of a part of a panel of the weight
constexpr int64_t kRowsKept = 96;  // rows of x whose accumulators the L2 cache holds beside a part
constexpr int kTile = 6;           // rows of x for each reading of a part

// `tile` rows of x, `x_row` apart, times a part of `depth` rows of kNR elements: added to `sums`, whose rows are as long.
template <class Format, int tile>
void multiply_part(const typename Format::Packed* part, int64_t depth,
                   const typename Format::Packed* x, int64_t x_row, typename Format::Packed* sums) {
  using T = typename Format::Packed;
  constexpr int width = kWidth<T>, vectors = kNRVectors<T>;
  typename Format::Vector acc[tile][vectors];
#pragma GCC unroll 8
  for (int t = 0; t < tile; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      acc[t][v] = VecMask<T>::load_all(sums + t * kNR<T> + v * width);
  }
  for (int64_t p = 0; p < depth; ++p) {
    typename Format::Vector row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) row[v] = VecMask<T>::load_all(part + p * kNR<T> + v * width);
#pragma GCC unroll 8
    for (int t = 0; t < tile; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) Format::add(acc[t][v], x[t * x_row + p], row[v]);
    }
  }
  const VecMask<T> all(width);
#pragma GCC unroll 8
  for (int t = 0; t < tile; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) all.store(sums + t * kNR<T> + v * width, acc[t][v]);
  }
}

template <class Format>
struct Rows {
  using T = typename Format::Packed;
  using Element = typename Format::Right;
  const T* x;
  const Element *weight, *bias;  // the second may be NULL
  Element* out;
  int64_t m, n, k;

  // Of each thread: accumulators and a part of a panel.
  static constexpr int64_t kScratch = (kRowsKept + kDepth) * kNR<T> * int64_t{sizeof(T)};

  // Columns [j, j + columns) of rows [first, last) of the result.
  void run(int64_t j, int64_t columns, int64_t first, int64_t last, void* memory) const {
    T* sums = static_cast<T*>(memory);
    T* part = sums + kRowsKept * kNR<T>;
    std::fill_n(sums, (last - first) * kNR<T>, T(0));
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t depth = std::min(kDepth, k - p);
      const Element* from = weight + j * k + p;
      prefetch(from + depth, std::min(kDepth, k - p - depth), columns);
      pack_panel(Format(), Matrix<Element>{from, 1, k}, depth, columns, part);
      int64_t i = first;
      const auto rows = [&]<int tile>() {
        for (; i + tile <= last; i += tile)
          multiply_part<Format, tile>(part, depth, x + i * k + p, k, sums + (i - first) * kNR<T>);
      };
      rows.template operator()<kTile>();
      rows.template operator()<2>();
      rows.template operator()<1>();
    }
    for (int64_t i = first; i < last; ++i) {
      T* row = sums + (i - first) * kNR<T>;
      for (int64_t c = 0; bias && c < columns; ++c) row[c] += Format::value(bias[j + c]);
      put(row, out + i * n + j, columns);
    }
  }

 private:
  // The hardware prefetcher follows fewer rows than a panel has.
  void prefetch(const Element* from, int64_t depth, int64_t columns) const {
    const int64_t bytes = depth * int64_t{sizeof(Element)};
    for (int64_t c = 0; bytes > 0 && c < columns; ++c) {
      const char* row = reinterpret_cast<const char*>(from + c * k);
      for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(row + line, 0, 2);
    }
  }
  static void put(const T* from, Element* to, int64_t count) {
    if constexpr (std::is_same_v<T, Element>) {
      std::copy_n(from, count, to);
    } else if constexpr (std::is_same_v<Element, Float16>) {
      narrow(TENON_DTYPE_F16, from, reinterpret_cast<char*>(to), sizeof(Float16), count);
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] = Element(from[c]);
    }
  }
};

template <class Format>
tenon_status run(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* weight,
                 const tenon_tensor* bias, tenon_tensor* out, tenon_err* err) {
  using T = typename Format::Packed;
  using Element = typename Format::Right;
  const int64_t n = weight->shape[0], k = weight->shape[1], m = out->numel / n;
  constexpr bool widens = !std::is_same_v<T, Element>;
  const int64_t panels = (n + kNR<T> - 1) / kNR<T>;
  const int64_t bands = (m + kRowsKept - 1) / kRowsKept;
  const int64_t work = kNR<T> * std::max<int64_t>(k, 1) * (1 + (m + bands - 1) / bands / 8);
  const int64_t stride = (Rows<Format>::kScratch + 63) & ~int64_t{63};
  const int64_t x_bytes = widens ? (m * k * int64_t{sizeof(T)} + 63) & ~int64_t{63} : 0;
  void* memory = nullptr;
  TENON_TRY(host->scratch(
      ctx, static_cast<uint64_t>(x_bytes + stride * workers_for(panels * bands, work)), &memory,
      err));
  Rows<Format> rows{.x = data_of<T>(x),
                    .weight = data_of<Element>(weight),
                    .bias = bias ? data_of<Element>(bias) : nullptr,
                    .out = data_of<Element>(out),
                    .m = m,
                    .n = n,
                    .k = k};
  if constexpr (widens) {
    T* wide = static_cast<T*>(memory);
    parallel(m, k, [&](int64_t begin, int64_t end) {
      widen_row(data_of<Element>(x) + begin * k, 1, (end - begin) * k, wide + begin * k);
    });
    rows.x = wide;
  }
  parallel_for_in_slots(static_cast<char*>(memory) + x_bytes, stride, panels * bands, work,
                        [&](int64_t task, void* own) {
                          const int64_t j = task / bands * kNR<T>, band = task % bands;
                          rows.run(j, std::min<int64_t>(kNR<T>, n - j), band * kRowsKept,
                                   std::min(m, (band + 1) * kRowsKept), own);
                        });
  return TENON_OK;
}

tenon_status linear_batch_invariant(tenon_ctx* ctx, const tenon_tensor* x,
                                    const tenon_tensor* weight, const tenon_tensor* bias,
                                    tenon_tensor* out, tenon_err* err) {
  if (out->numel == 0) return TENON_OK;
  switch (x->dtype) {
    case TENON_DTYPE_F32:
      return run<Plain<float>>(ctx, x, weight, bias, out, err);
    case TENON_DTYPE_F64:
      return run<Plain<double>>(ctx, x, weight, bias, out, err);
    case TENON_DTYPE_F16:
      return run<Widened<Float16>>(ctx, x, weight, bias, out, err);
    case TENON_DTYPE_BF16:
      return run<Widened<BFloat16>>(ctx, x, weight, bias, out, err);
    default:
      return run_as_float32(linear_batch_invariant, ctx, err, x, weight, bias, out);
  }
}
TENON_BOX_linear_batch_invariant(linear_batch_invariant_boxed, linear_batch_invariant);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_linear_batch_invariant(linear_batch_invariant, nullptr, kFloats, 0, 0)};

}  // namespace

KernelList batch_invariant_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
