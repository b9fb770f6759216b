// SPDX-License-Identifier: Apache-2.0
// nonzero and compress. Two passes: the first counts the nonzero elements of each segment, a prefix
// sum gives where each segment writes, and the second pass writes. Flags are read as words of 64
// bits; vectors of results are compressed by these.
#include "kernel.hpp"
#include "simd/shuffle.hpp"
#include "simd/vec.hpp"

#include <tenon/signatures/indexing.h>

#include <bit>
#include <cstring>
#include <utility>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kSegment = 1 << 14;
constexpr int64_t kWord = 64;  // elements whose flags are the bits of one word

// Reads whether elements are nonzero, 64 at a time. -0.0 is zero, so floating and complex elements
// are compared as numbers.
template <class T>
struct Flags {
  const T* from;
  uint64_t word(int64_t at, int64_t count) const {
    if constexpr (sizeof(T) == 1) {
      if (count == kWord) return nonzero_bits(reinterpret_cast<const uint8_t*>(from + at));
    }
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) {
      if (count == kWord) {
        uint64_t bits = 0;
        for (int i = 0; i < kWord; i += Vec<T>::count)
          bits |= uint64_t{mask_bits(Vec<T>::load(from + at + i) != T{})} << i;
        return bits;
      }
    }
    uint8_t flags[kWord] = {};
    if (count == kWord) {
      for (int64_t i = 0; i < kWord; ++i) flags[i] = from[at + i] != T{};
    } else {
      for (int64_t i = 0; i < count; ++i) flags[i] = from[at + i] != T{};
    }
    return nonzero_bits(flags);
  }
};

// Low precision floats are nonzero if any bit but the sign is set.
template <class Bits>
struct LowPrecisionFlags {
  const Bits* from;
  uint64_t word(int64_t at, int64_t count) const {
    uint8_t flags[kWord] = {};
    constexpr Bits magnitude = static_cast<Bits>(~Bits{0}) >> 1;
    for (int64_t i = 0; i < count; ++i) flags[i] = (from[at + i] & magnitude) != 0;
    return nonzero_bits(flags);
  }
};

template <class F>
void with_flags(const tenon_tensor* x, F&& f) {
  if (is_low_precision(x->dtype)) {
    if (kDtypeSize[x->dtype] == 1) return f(LowPrecisionFlags<uint8_t>{data_of<uint8_t>(x)});
    return f(LowPrecisionFlags<uint16_t>{data_of<uint16_t>(x)});
  }
  with_type(x->dtype, [&]<class T>(Type<T>) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    f(Flags<Stored>{data_of<Stored>(x)});
  });
}

// f(at, bits) for every word of [begin, end).
template <class Flags, class F>
void for_words(const Flags& flags, int64_t begin, int64_t end, F f) {
  for (int64_t at = begin; at < end; at += kWord) f(at, flags.word(at, std::min(kWord, end - at)));
}

// The number of nonzero elements before each segment; the last entry is the total.
class Starts {
 public:
  tenon_status count(tenon_ctx* ctx, const tenon_tensor* x, tenon_err* err) {
    segments_ = (x->numel + kSegment - 1) / kSegment;
    if (segments_ > 1) {
      void* memory;
      const uint64_t bytes = static_cast<uint64_t>(segments_ + 1) * sizeof(int64_t);
      const tenon_status status = host->scratch(ctx, bytes, &memory, err);
      if (status != TENON_OK) return status;
      starts_ = static_cast<int64_t*>(memory);
    }
    starts_[0] = starts_[1] = 0;
    with_flags(x, [&](auto flags) {
      parallel(segments_, kSegment / 8, [&](int64_t begin, int64_t end) {
        for (int64_t s = begin; s < end; ++s) {
          int64_t set = 0;
          for_words(flags, s * kSegment, std::min(x->numel, (s + 1) * kSegment),
                    [&](int64_t, uint64_t bits) { set += std::popcount(bits); });
          starts_[s + 1] = set;
        }
      });
    });
    for (int64_t s = 1; s < segments_; ++s) starts_[s + 1] += starts_[s];
    return TENON_OK;
  }
  int64_t segments() const { return segments_; }
  int64_t total() const { return starts_[segments_]; }
  int64_t operator[](int64_t segment) const { return starts_[segment]; }

 private:
  int64_t one_segment_[2];
  int64_t* starts_ = one_segment_;
  int64_t segments_ = 0;
};

// Writes f(i) for each set bit i, one at a time, and returns the end.
template <class T, class F>
T* write_each(uint64_t bits, T* to, F f) {
  for (; bits != 0; bits &= bits - 1) *to++ = f(std::countr_zero(bits));
  return to;
}

// The same for whole registers: vectors(i) holds the results for bits i and following. A store
// writes a whole register, whose end is overwritten by the next; nothing is written at or after
// `limit`.
template <class T, class Vectors, class F>
T* write_compressed(uint64_t bits, T* to, const T* limit, Vectors vectors, F f) {
  constexpr int width = Vec<T>::count;
  if (limit - to < kWord + width) return write_each(bits, to, f);
  for (int i = 0; i < kWord; i += width) {
    const auto mask = static_cast<uint32_t>(bits >> i & ((uint64_t{1} << width) - 1));
    Vec<T>::store(to, compressed(vectors(i), mask));
    to += std::popcount(mask);
  }
  return to;
}

// -- compress
// -----------------------------------------------------------------------------------------

#ifdef __AVX512F__
// Elements of 1 and 2 bytes are widened to 4 bytes for the compress instruction.
template <class T>
T* write_widened(uint64_t bits, T* to, const T* limit, const T* from) {
  if (limit - to < kWord + 16) return write_each(bits, to, [from](int i) { return from[i]; });
  for (int i = 0; i < kWord; i += 16) {
    const auto mask = static_cast<__mmask16>(bits >> i);
    const auto pack = [mask](__m512i lanes) { return _mm512_maskz_compress_epi32(mask, lanes); };
    constexpr __mmask16 all = 0xffff;  // without masks these functions warn of their own registers
    if constexpr (sizeof(T) == 1) {
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(to),
          _mm512_maskz_cvtepi32_epi8(all, pack(_mm512_maskz_cvtepu8_epi32(all, part))));
    } else {
      const __m256i part = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(to),
          _mm512_maskz_cvtepi32_epi16(all, pack(_mm512_maskz_cvtepu16_epi32(all, part))));
    }
    to += std::popcount(static_cast<uint32_t>(mask));
  }
  return to;
}
#endif

template <class T>
T* compress_word(uint64_t bits, int64_t count, const T* from, T* to, const T* limit) {
  if (bits == 0) return to;
  const auto each = [from](int i) { return from[i]; };
  if (count < kWord) return write_each(bits, to, each);
  if (bits == ~uint64_t{0}) {
    std::memcpy(to, from, kWord * sizeof(T));
    return to + kWord;
  }
  if constexpr (can_compress(sizeof(T))) {
    return write_compressed(
        bits, to, limit, [from](int i) { return Vec<T>::load(from + i); }, each);
  }
#ifdef __AVX512F__
  if constexpr (sizeof(T) <= 2) return write_widened(bits, to, limit, from);
#endif
  return write_each(bits, to, each);
}

tenon_status compress(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* mask,
                      tenon_err* err) {
  if (x->numel != mask->numel) {
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[compress] expected a mask of the %lld elements of x, got %lld",
                       static_cast<long long>(x->numel), static_cast<long long>(mask->numel));
  }
  // The dispatcher checks no argument of an operator whose shape depends on data.
  if (mask->dtype != TENON_DTYPE_BOOL) {
    return fail_format(err, TENON_TYPE_MISMATCH, "[compress] expected mask of dtype bool, got %s",
                       host->dtype_name(mask->dtype));
  }
  Starts starts;
  tenon_status status = starts.count(ctx, mask, err);
  if (status != TENON_OK) return status;
  const int64_t count = starts.total();
  tenon_tensor* out;
  status = host->output_alloc(ctx, 0, x->dtype, 1, &count, &out, err);
  if (status != TENON_OK || count == 0) return status;
  const Flags<uint8_t> flags{data_of<uint8_t>(mask)};
  with_size(kDtypeSize[x->dtype], [&]<class T>(Type<T>) {
    parallel(starts.segments(), kSegment / 2, [&](int64_t begin, int64_t end) {
      T* to = data_of<T>(out) + starts[begin];
      const T* limit = data_of<T>(out) + starts[end];
      const T* from = data_of<T>(x);
      const int64_t last = std::min(x->numel, end * kSegment);
      for_words(flags, begin * kSegment, last, [&](int64_t at, uint64_t bits) {
        to = compress_word(bits, last - at, from + at, to, limit);
      });
    });
  });
  return TENON_OK;
}
TENON_BOX_compress(compress_boxed, compress);

// -- nonzero
// ------------------------------------------------------------------------------------------

// Positions in a vector.
struct Line {
  int64_t* to;
  const int64_t* limit;
  void write(int64_t at, uint64_t bits) {
    const auto each = [at](int i) { return at + i; };
    if constexpr (can_compress(sizeof(int64_t))) {
      const auto counted = Vec<int64_t>::iota() + at;
      to = write_compressed(
          bits, to, limit, [=](int i) { return counted + i; }, each);
    } else {
      to = write_each(bits, to, each);
    }
  }
};

// Writes the coordinates of nonzero elements of a tensor of several axes, row by row.
class Rows {
 public:
  Rows(const tenon_tensor* x, int64_t* to, const int64_t* limit)
      : x_(x), to_(to), limit_(limit), last_(x->ndim - 1) {}
  void write(int64_t at, uint64_t bits) {
    while (bits != 0) {
      const int64_t first = at + std::countr_zero(bits);
      if (first >= row_end_) find_row(first);
      const int64_t left = row_end_ - at;  // in this row
      const uint64_t here = left < kWord ? bits & ((uint64_t{1} << left) - 1) : bits;
      last_ == 1 ? write_pairs(at - row_begin_, here) : write_each_axis(at - row_begin_, here);
      bits ^= here;
    }
  }

 private:
  void find_row(int64_t i) {
    int64_t row = i / x_->shape[last_];
    row_begin_ = row * x_->shape[last_];
    row_end_ = row_begin_ + x_->shape[last_];
    for (int axis = last_ - 1; axis >= 0; --axis) {
      outer_[axis] = row % x_->shape[axis];
      row /= x_->shape[axis];
    }
  }

  void write_each_axis(int64_t column, uint64_t bits) {
    for (; bits != 0; bits &= bits - 1) {
      for (int axis = 0; axis < last_; ++axis) to_[axis] = outer_[axis];
      to_[last_] = column + std::countr_zero(bits);
      to_ += last_ + 1;
    }
  }

  // Writes pairs of row and column. A store writes whole registers, whose end is overwritten by the
  // next.
  void write_pairs(int64_t column, uint64_t bits) {
    if constexpr (can_compress(sizeof(int64_t))) {
      constexpr int width = Vec<int64_t>::count, kFew = 8;
      if (std::popcount(bits) > kFew && limit_ - to_ >= 2 * (kWord + width)) {
        const auto row = outer_[0] - typename Vec<int64_t>::Vector{};
        for (int i = 0; i < kWord; i += width) {
          const auto mask = static_cast<uint32_t>(bits >> i & ((uint64_t{1} << width) - 1));
          const auto columns = compressed(Vec<int64_t>::iota() + (column + i), mask);
          store_interleaved(row, columns);
          to_ += 2 * std::popcount(mask);
        }
        return;
      }
    }
    const int64_t row = outer_[0];
    for (; bits != 0; bits &= bits - 1, to_ += 2) {
      to_[0] = row;
      to_[1] = column + std::countr_zero(bits);
    }
  }
  template <class Vector>
  void store_interleaved(Vector even, Vector odd) {
    Vec<int64_t>::store(to_, interleave_low(even, odd));
    Vec<int64_t>::store(to_ + Vec<int64_t>::count, interleave_high(even, odd));
  }

  const tenon_tensor* x_;
  int64_t* to_;
  const int64_t* limit_;
  int last_;
  int64_t row_begin_ = 0, row_end_ = 0;
  int64_t outer_[TENON_MAX_NDIM];
};

tenon_status nonzero(tenon_ctx* ctx, const tenon_tensor* x, tenon_err* err) {
  Starts starts;
  tenon_status status = starts.count(ctx, x, err);
  if (status != TENON_OK) return status;
  const int ndim = x->ndim;
  const int64_t shape[2] = {starts.total(), ndim};
  tenon_tensor* out;
  status = host->output_alloc(ctx, 0, TENON_DTYPE_I64, 2, shape, &out, err);
  if (status != TENON_OK || out->numel == 0) return status;
  with_flags(x, [&](auto flags) {
    parallel(starts.segments(), kSegment, [&](int64_t begin, int64_t end) {
      int64_t* to = data_of<int64_t>(out) + starts[begin] * ndim;
      const int64_t last = std::min(x->numel, end * kSegment);
      const auto run = [&](auto writer) {
        for_words(flags, begin * kSegment, last,
                  [&](int64_t at, uint64_t bits) { writer.write(at, bits); });
      };
      const int64_t* limit = data_of<int64_t>(out) + starts[end] * ndim;
      ndim == 1 ? run(Line{to, limit}) : run(Rows(x, to, limit));
    });
  });
  return TENON_OK;
}
TENON_BOX_nonzero(nonzero_boxed, nonzero);

const tenon_kernel_def kKernels[] = {TENON_KERNEL_nonzero(nonzero, nullptr, kAllDtypes, 0, 0),
                                     TENON_KERNEL_compress(compress, nullptr, kAllDtypes, 0, 0)};

}  // namespace

KernelList selection_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
