// SPDX-License-Identifier: Apache-2.0
// The driver of generated reductions, and the loops that it makes of an operator's traits.
//
// tenon-codegen writes one struct per operator and element type:
//
//   struct SumF32 {
//     using In = float; using Acc = float; using Out = float;
//     explicit SumF32(const tenon_value* attributes);
//     Acc init() const;                  // left out where there is no identity (max)
//     Acc map(In x) const;
//     Acc combine(Acc a, Acc b) const;   // associative and commutative up to rounding
//     Out finish(Acc a, int64_t n) const;
//     static constexpr bool kIsMax;    // only where the largest, or else the least, is all there
//     is to it bool holds(In x) const;            // only where those are counted of which it is
//     true
//   };
//
// Sums are blocked: accumulators, then blocks, then segments, so that errors grow slowly with length.
// The partition depends on the shape alone, so results do not depend on the number of threads.
#pragma once

#include "dtypes.hpp"
#include "elementwise/elementwise.hpp"
#include "reduce/bool_rows.hpp"
#include "reduce/min_max_row.hpp"
#include "reduce/rows.hpp"
#include "result_types.hpp"
#include "simd/vec.hpp"
#include "table.hpp"

#include <tenon/abi.h>

namespace tenon::cpu::TENON_CPU_ISA {

// The loops of a reduction. Accumulators are opaque to the driver.
struct ReductionLoops {
  int accumulator_size;
  // One accumulator from n >= 1 dense elements.
  void (*row)(const char* x, int64_t n, char* accumulator, const tenon_value* attributes);
  // `rows` accumulators, each from n >= 1 dense elements; rows are `stride` bytes apart.
  void (*rows)(const char* x, int64_t stride, int64_t rows, int64_t n, char* accumulators,
               const tenon_value* attributes);
  // n accumulators from rows >= 1 rows of n elements, `stride` bytes apart.
  void (*columns)(const char* x, int64_t stride, int64_t rows, int64_t n, char* accumulators,
                  const tenon_value* attributes);
  void (*merge)(char* accumulators, const char* others, int64_t n, const tenon_value* attributes);
  void (*finish)(const char* accumulators, char* out, int64_t n, int64_t count,
                 const tenon_value* attributes);
  void (*empty)(char* accumulator, const tenon_value* attributes);  // NULL: there is no identity
  // Whether nothing that follows can change the accumulator. NULL: something always can.
  bool (*settled)(const char* accumulator, const tenon_value* attributes);
};

struct ReductionKernel {
  const char* op;
  uint32_t axis_argument;  // index of `axis` in the arguments: INT, INTS or NONE
  uint32_t attributes;     // index of the first attribute
  uint64_t dtype_mask;
  const ReductionLoops*
      loops[TENON_DTYPE_SLOTS];  // by input dtype; reduced floats without take float32's
};

tenon_status run_reduction(const ReductionKernel& kernel, tenon_ctx* ctx, const tenon_value* args,
                           uint32_t nargs, tenon_value* outs, tenon_err* err);

constexpr tenon_kernel_def reduction_kernel(const ReductionKernel& kernel, tenon_boxed_fn run) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .traits = TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT | TENON_KERNEL_HOST_SCALARS |
                    TENON_KERNEL_ROWS,
          .op = kernel.op,
          .dtype_mask = kernel.dtype_mask,
          .boxed = run};
}

template <class Traits>
struct ReductionLoopsOf {
  static constexpr int64_t kNarrowSum = 1 << 15;
  using In = typename Traits::In;
  using Acc = typename Traits::Acc;
  using Out = typename Traits::Out;
  // The accumulator is bool: any, all.
  static constexpr bool kDecides = std::is_same_v<Acc, bool> && std::is_arithmetic_v<In>;

  // The reduction counts elements for which `holds` is true.
  static constexpr bool kCounts = requires(const Traits& traits, In x) { traits.holds(x); };

  static Acc fold(const Traits& traits, const In* x, int64_t n) {
    if constexpr (kCounts) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(x);
      if (sizeof(In) == 1 && traits.holds(In(1)) && traits.holds(In(128)))
        return count_nonzero_bytes(bytes, n);
      using Count = std::conditional_t<
          sizeof(In) >= 8, uint64_t,
          std::conditional_t<sizeof(In) == 4, uint32_t,
                             std::conditional_t<sizeof(In) == 2, uint16_t, uint8_t>>>;
      return count_row<Count>(n, [=](int64_t i) { return traits.holds(x[i]); });
    }
    if constexpr (requires { Traits::kIsMax; } && std::is_floating_point_v<In>) {
      if (n >= kMinMaxRow<In>) return min_max_row<Traits::kIsMax>(x, n);
    }
    if constexpr (std::is_same_v<In, bool> && std::is_same_v<Acc, int64_t>) {
      if (traits.combine(3, 3) == 6 && traits.map(1) == 1) {
        return count_nonzero_bytes(reinterpret_cast<const uint8_t*>(x), n);
      }
    } else if constexpr (std::is_integral_v<In> && sizeof(In) <= 2 && std::is_integral_v<Acc> &&
                         sizeof(Acc) == 8) {
      if (traits.combine(3, 3) == 6 && traits.map(3) == 3) {
        // This many small integers cannot overflow a 32-bit sum, of which a register holds twice as
        // many.
        Acc total = 0;
        for (int64_t done = 0; done < n; done += kNarrowSum) {
          const In* from = x + done;
          total += reduce_row<int32_t>(
              std::min(n - done, kNarrowSum), [from](int64_t i) { return int32_t{from[i]}; },
              [](int32_t a, int32_t b) { return a + b; });
        }
        return total;
      }
    }
    if constexpr (kDecides && sizeof(In) == 1) {
      if (!traits.map(In(0)) && traits.map(In(1)) && traits.map(In(128))) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(x);
        return traits.combine(false, true) ? any_or_all_bytes<false>(bytes, n)
                                           : any_or_all_bytes<true>(bytes, n);
      }
    } else if constexpr (kDecides) {
      // The truth values are as wide as the elements, so that vectors need no narrowing.
      using Mask = typename Vec<In>::Index;
      const auto truth = [=](int64_t i) { return static_cast<Mask>(traits.map(x[i]) ? 1 : 0); };
      return (traits.combine(false, true)
                  ? reduce_row<Mask>(n, truth, [](Mask a, Mask b) -> Mask { return a | b; })
                  : reduce_row<Mask>(n, truth, [](Mask a, Mask b) -> Mask { return a & b; })) != 0;
    }
    return reduce_row<Acc>(
        n, [=](int64_t i) -> Acc { return traits.map(x[i]); },
        [=](Acc a, Acc b) -> Acc { return traits.combine(a, b); });
  }

  [[gnu::noipa]] static void rows(const char* data, int64_t stride, int64_t count, int64_t n,
                                  char* accumulators, const tenon_value* attributes) {
    const Traits traits(attributes);
    Acc* result = reinterpret_cast<Acc*>(accumulators);
    for (int64_t i = 0; i < count; ++i, data += stride) {
      prefetch_pages(data + stride, n * static_cast<int64_t>(sizeof(In)));
      result[i] = fold(traits, reinterpret_cast<const In*>(data), n);
    }
  }

  static void row(const char* data, int64_t n, char* accumulator, const tenon_value* attributes) {
    // rows() has the only copy of these loops. The memory that follows is likely to be the next
    // row.
    rows(data, n * static_cast<int64_t>(sizeof(In)), 1, n, accumulator, attributes);
  }

  static void columns(const char* data, int64_t stride, int64_t rows, int64_t n, char* accumulators,
                      const tenon_value* attributes) {
    const Traits traits(attributes);
    Acc* result = reinterpret_cast<Acc*>(accumulators);
    const auto at = [&](int64_t row) { return reinterpret_cast<const In*>(data + row * stride); };
    const In* first = at(0);
    for (int64_t j = 0; j < n; ++j) result[j] = traits.map(first[j]);
    int64_t i = 1;
    for (; i + 4 <= rows; i += 4) {
      const In *a = at(i), *b = at(i + 1), *c = at(i + 2), *d = at(i + 3);
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) {
        const Acc left = traits.combine(traits.map(a[j]), traits.map(b[j]));
        const Acc right = traits.combine(traits.map(c[j]), traits.map(d[j]));
        result[j] = traits.combine(result[j], traits.combine(left, right));
      }
    }
    for (; i < rows; ++i) {
      const In* a = at(i);
#pragma GCC ivdep
      for (int64_t j = 0; j < n; ++j) result[j] = traits.combine(result[j], traits.map(a[j]));
    }
  }

  static void merge(char* accumulators, const char* others, int64_t n,
                    const tenon_value* attributes) {
    const Traits traits(attributes);
    Acc* a = reinterpret_cast<Acc*>(accumulators);
    const Acc* b = reinterpret_cast<const Acc*>(others);
    for (int64_t j = 0; j < n; ++j) a[j] = traits.combine(a[j], b[j]);
  }

  static void finish(const char* accumulators, char* out, int64_t n, int64_t count,
                     const tenon_value* attributes) {
    const Traits traits(attributes);
    const Acc* a = reinterpret_cast<const Acc*>(accumulators);
    Out* result = reinterpret_cast<Out*>(out);
    for (int64_t j = 0; j < n; ++j) result[j] = static_cast<Out>(traits.finish(a[j], count));
  }

  static void empty(char* accumulator, const tenon_value* attributes) {
    if constexpr (requires(const Traits& traits) { traits.init(); }) {
      *reinterpret_cast<Acc*>(accumulator) = Traits(attributes).init();
    }
  }

  static bool settled(const char* accumulator, const tenon_value* attributes) {
    const Traits traits(attributes);
    const Acc a = *reinterpret_cast<const Acc*>(accumulator);
    if constexpr (std::is_same_v<Acc, bool>) {
      return traits.combine(a, false) == a && traits.combine(a, true) == a;
    }
    return false;
  }

  static constexpr bool kHasIdentity = requires(const Traits& traits) { traits.init(); };
};

template <class Traits>
inline constexpr ReductionLoops reduction_loops = {
    .accumulator_size = sizeof(typename Traits::Acc),
    .row = ReductionLoopsOf<Traits>::row,
    .rows = ReductionLoopsOf<Traits>::rows,
    .columns = ReductionLoopsOf<Traits>::columns,
    .merge = ReductionLoopsOf<Traits>::merge,
    .finish = ReductionLoopsOf<Traits>::finish,
    .empty = ReductionLoopsOf<Traits>::kHasIdentity ? ReductionLoopsOf<Traits>::empty : nullptr,
    .settled =
        std::is_same_v<typename Traits::Acc, bool> ? ReductionLoopsOf<Traits>::settled : nullptr};

}  // namespace tenon::cpu::TENON_CPU_ISA
