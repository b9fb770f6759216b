// SPDX-License-Identifier: Apache-2.0
// attention_grad: weights and their gradients a block of queries against a block of keys at a time,
// computed again from the logarithms of their sums (Dao, 2023, "FlashAttention-2",
// arXiv:2307.08691).
#include "attention/blocks.hpp"
#include "attention/items.hpp"
#include "attention/softmax.hpp"
#include "parallel_scratch.hpp"
#include "reduce/rows.hpp"
#include "simd/vector_math.hpp"

#include <tenon/signatures/attention.h>

#include <algorithm>
#include <cmath>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// Two blocks of scores and the keys and values of one block stay in the second-level cache; queries
// are streamed.
constexpr int64_t kRows = 96, kKeys = 96;

// The most parts that the keys are divided into, each with accumulators of its own for dquery. The
// number depends on the shape alone, since it determines the order of additions.
constexpr int64_t kParts = 8;

template <class Format>
struct Item {
  using Source = typename Format::Left;
  using Sum = typename Format::Accumulator;
  Matrix<Source> query, key, value, grad_out, out;
  MaskBlock<Source> mask;
  const Sum* logsumexp;
  int64_t logsumexp_stride;
  Sum* dquery;  // not yet scaled
  Source *dkey, *dvalue;
};

template <class Format>
class Backward {
  using Source = typename Format::Left;
  using Packed = typename Format::Packed;
  using Sum = typename Format::Accumulator;
  using Blocks = Layout<Format>;
  static constexpr bool kPairs = Format::kDepth > 1, kAmx = uses_amx<Format>;

 public:
  Backward(const AttentionSizes& size, double scale, void* memory)
      : size_(size), scale_(static_cast<Sum>(scale)) {
    ScratchLayout layout(memory);
    query_ = take_rows(layout, size.features);
    grad_ = take_rows(layout, size.values);
    logsumexp_ = layout.take<Sum>(size.rows);
    row_factor_ = layout.take<Sum>(size.rows);
    delta_ = layout.take<Sum>(size.rows);
    keys_across_ = layout.take<Packed>(Blocks::panels_size(size.features, kKeys));
    values_across_ = layout.take<Packed>(Blocks::panels_size(size.values, kKeys));
    keys_ = layout.take<Packed>(kKeys / Format::kDepth * Blocks::right_row(size.features));
    probs_ = layout.take<Sum>(kRows * kScoresRow);
    dscores_ = layout.take<Sum>(kRows * kScoresRow);
    if (kPairs) {
      rounded_ = layout.take<Packed>(kRows * Blocks::left_row(kKeys));
      transposed_ = layout.take<Packed>(kAmx ? kKeys * Blocks::left_row(kRows)
                                             : kRows / Format::kDepth * kKeys);
    }
    dkey_ = layout.take<Sum>(kKeys * size.features);
    dvalue_ = layout.take<Sum>(kKeys * size.values);
    bytes_ = layout.bytes();
  }
  int64_t bytes() const { return bytes_; }

  // Computes dkey and dvalue of the blocks of keys [begin, end), and their part of dquery.
  void run(const Item<Format>& item, int64_t begin, int64_t end) {
    [[maybe_unused]] const ProcessorState<Format> state;
    std::fill_n(item.dquery, size_.rows * size_.features, Sum(0));
    lay_out_rows(item);
    separate_large_rows(item);
    for (int64_t j = begin * kKeys; j < std::min(end * kKeys, size_.keys); j += kKeys) {
      run_keys(item, j, std::min(kKeys, size_.keys - j));
    }
  }

 private:
  static constexpr int64_t kScoresRow = kKeys + kWidth<Sum>;

  // Rows packed as left and as right operand of a GEMM, which is one layout for formats without
  // pairs.
  struct Rows {
    Packed *left, *right;
    int64_t left_row, right_row;
    Left<Format> left_at(int64_t i) const { return {left + i * left_row, left_row, 1}; }
    Right<Format> right_at(int64_t i) const {
      return {right + i / Format::kDepth * right_row, right_row, Blocks::kColumns};
    }
  };

  Rows take_rows(ScratchLayout& layout, int64_t width) {
    Rows rows;
    rows.right_row = Blocks::right_row(width);
    rows.left_row = kPairs ? Blocks::left_row(width) : rows.right_row;
    rows.right = layout.take<Packed>(Blocks::depth_of(size_.rows) * rows.right_row);
    const int64_t count = kAmx ? rounded_up<kRowsOf<Format>>(size_.rows) : size_.rows;
    rows.left = kPairs ? layout.take<Packed>(count * rows.left_row) : rows.right;
    return rows;
  }

  void lay_out(Matrix<Source> from, int64_t width, const Rows& to) {
    Blocks::pack_right(from, size_.rows, width, to.right, to.right_row);
    if (kPairs) Blocks::pack_left(from, size_.rows, width, to.left, to.left_row);
  }

  void lay_out_rows(const Item<Format>& item) {
    lay_out(item.query, size_.features, query_);
    lay_out(item.grad_out, size_.values, grad_);
    for (int64_t i = 0; i < size_.rows; ++i) {
      // For a row without visible keys logsumexp is -inf; with +inf all its probabilities become 0.
      const Sum logsumexp = item.logsumexp[i * item.logsumexp_stride];
      logsumexp_[i] = logsumexp == -std::numeric_limits<Sum>::infinity() ? -logsumexp : logsumexp;
      const Source *grad = item.grad_out.data + i * item.grad_out.row,
                   *out = item.out.data + i * item.out.row;
      const int64_t grad_step = item.grad_out.column, out_step = item.out.column;
      delta_[i] = sum_row<Sum>(size_.values, [=](int64_t j) {
        return Format::value(grad[j * grad_step]) * Format::value(out[j * out_step]);
      });
    }
  }

  // Blocks of rows whose logsumexp is large, where its rounding error would change the weights: a
  // mask of -1e30 for every key leaves nothing of the logarithm of the sum. For those rows the
  // scores are computed once more, to take their maximum and the sum of exponentials separately.
  void separate_large_rows(const Item<Format>& item) {
    std::fill_n(row_factor_, size_.rows, Sum(1));
    for (int64_t i = 0; i < size_.rows; i += kRows) {
      const int64_t rows = std::min(kRows, size_.rows - i);
      if (std::any_of(logsumexp_ + i, logsumexp_ + i + rows, is_large))
        separate_rows(item, i, rows);
    }
  }

  static bool is_large(Sum logsumexp) {
    return std::abs(logsumexp) > Sum(512) && std::isfinite(logsumexp);
  }

  void separate_rows(const Item<Format>& item, int64_t i, int64_t rows) {
    constexpr Sum minus_infinity = -std::numeric_limits<Sum>::infinity();
    Sum top[kRows], sum[kRows];
    std::fill_n(top, rows, minus_infinity);
    std::fill_n(sum, rows, Sum(0));
    const int64_t keys = size_.keys_until(i + rows);
    for (int64_t j = 0; j < keys; j += kKeys) {
      const int64_t columns = std::min(kKeys, keys - j);
      const Matrix<Source> key = {item.key.data + j * item.key.row, item.key.row, item.key.column};
      Blocks::pack_transposed(key, size_.features, columns, keys_across_);
      const CausalMask causal_mask = {size_.causal ? i - j : CausalMask::kAll};
      multiply_scores<Format>(rows, columns, Blocks::depth_of(size_.features), query_.left_at(i),
                              across(keys_across_, size_.features), {probs_, kScoresRow},
                              causal_mask);
      const MaskBlock<Source> mask = mask_at(item.mask, i, j);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t visible = causal_mask.columns_of_row(r, columns);
        if (visible == 0) continue;
        Sum* x = probs_ + r * kScoresRow;
        scale_and_mask<Format>(x, visible, scale_, mask, r);
        const Sum before = top[r], largest = std::max(before, max_row(x, visible));
        if (largest == minus_infinity) continue;
        if (before != minus_infinity) sum[r] *= softmax_exp(before - largest);
        for (int64_t k = 0; k < visible; ++k) sum[r] += softmax_exp(x[k] - largest);
        top[r] = largest;
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      if (!is_large(logsumexp_[i + r]) || !(sum[r] > 0)) continue;
      logsumexp_[i + r] = top[r];
      row_factor_[i + r] = Sum(1) / sum[r];
    }
  }

  void run_keys(const Item<Format>& item, int64_t j, int64_t keys) {
    const Matrix<Source> key = {item.key.data + j * item.key.row, item.key.row, item.key.column};
    const Matrix<Source> value = {item.value.data + j * item.value.row, item.value.row,
                                  item.value.column};
    Blocks::pack_transposed(key, size_.features, keys, keys_across_);
    Blocks::pack_transposed(value, size_.values, keys, values_across_);
    Blocks::pack_right(key, keys, size_.features, keys_, Blocks::right_row(size_.features));
    std::fill_n(dkey_, keys * size_.features, Sum(0));
    std::fill_n(dvalue_, keys * size_.values, Sum(0));
    for (int64_t i = size_.causal ? j / kRows * kRows : 0; i < size_.rows; i += kRows) {
      run_block(item, i, std::min(kRows, size_.rows - i), j, keys);
    }
    for (int64_t k = 0; k < keys * size_.features; ++k) dkey_[k] *= scale_;
    store<Format>(dkey_, keys * size_.features, item.dkey + j * size_.features);
    store<Format>(dvalue_, keys * size_.values, item.dvalue + j * size_.values);
  }

  void run_block(const Item<Format>& item, int64_t i, int64_t rows, int64_t j, int64_t keys) {
    const CausalMask causal_mask = {size_.causal ? i - j : CausalMask::kAll};
    multiply_scores<Format>(rows, keys, Blocks::depth_of(size_.features), query_.left_at(i),
                            across(keys_across_, size_.features), {probs_, kScoresRow},
                            causal_mask);
    multiply_scores<Format>(rows, keys, Blocks::depth_of(size_.values), grad_.left_at(i),
                            across(values_across_, size_.values), {dscores_, kScoresRow},
                            causal_mask);
    const MaskBlock<Source> mask = mask_at(item.mask, i, j);
    for (int64_t r = 0; r < rows; ++r) exp_row(i, r, keys, mask, causal_mask);
    narrow_scores(probs_, rows, keys);
    multiply_visible_rows<Format>(keys, size_.values, rows, transposed(probs_), grad_.right_at(i),
                                  {dvalue_, size_.values}, causal_mask);
    narrow_scores(dscores_, rows, keys);
    multiply_visible_rows<Format>(keys, size_.features, rows, transposed(dscores_),
                                  query_.right_at(i), {dkey_, size_.features}, causal_mask);
    const int64_t key_row = Blocks::right_row(size_.features);
    multiply_visible_columns<Format>(
        rows, size_.features, keys, straight(dscores_), {keys_, key_row, Blocks::kColumns},
        {item.dquery + i * size_.features, size_.features}, causal_mask);
  }

  Right<Format> across(const Packed* panels, int64_t k) const {
    return {panels, Blocks::kColumns, Blocks::kColumns * Blocks::depth_of(k)};
  }

  // Replaces a row of scores by its probabilities P, and a row of dP by dS = P * (dP - delta).
  void exp_row(int64_t i, int64_t r, int64_t keys, const MaskBlock<Source>& mask,
               CausalMask causal_mask) {
    Sum *x = probs_ + r * kScoresRow, *dscore = dscores_ + r * kScoresRow;
    const int64_t visible = causal_mask.columns_of_row(r, keys);
    scale_and_mask<Format>(x, visible, scale_, mask, r);
    const Sum logsumexp = logsumexp_[i + r], delta = delta_[i + r];
    const int64_t whole = rounded_up<kWidth<Sum>>(visible);  // loops without a rest
    const Sum factor = row_factor_[i + r];
#pragma GCC ivdep
    for (int64_t k = 0; k < whole; ++k) {
      x[k] = softmax_exp(x[k] - logsumexp) * factor;
      dscore[k] = x[k] * (dscore[k] - delta);
    }
    const int64_t end = Blocks::depth_of(keys) * Format::kDepth;
    std::fill(x + visible, x + end, Sum(0));
    std::fill(dscore + visible, dscore + end, Sum(0));
  }

  // A block of scores, and its transpose, as the left operand of a GEMM; both after
  // narrow_scores().
  Left<Format> straight(const Sum* scores) const {
    if constexpr (kPairs) {
      return {rounded_, Blocks::left_row(kKeys), 1};
    } else {
      return {scores, kScoresRow, 1};
    }
  }

  Left<Format> transposed(const Sum* scores) const {
    if constexpr (kAmx) {
      return {transposed_, Blocks::left_row(kRows), 1};
    } else if constexpr (kPairs) {
      return {transposed_, 1, kKeys};
    } else {
      return {scores, 1, kScoresRow};
    }
  }

  // Rounds scores to pairs along a row, and to pairs of rows for the transpose; AMX takes the
  // latter along a row of the transpose.
  void narrow_scores(const Sum* scores, int64_t rows, int64_t keys) {
    if constexpr (kPairs) {
      const int64_t row = Format::kDepth * Blocks::left_row(kKeys);
      Source* to = reinterpret_cast<Source*>(rounded_);
      for (int64_t r = 0; r < rows; ++r) {
        store<Format>(scores + r * kScoresRow, Blocks::depth_of(keys) * Format::kDepth,
                      to + r * row);
      }
      if constexpr (kAmx) {
        const int64_t column = Format::kDepth * Blocks::left_row(kRows);
        uint16_t* transposed = reinterpret_cast<uint16_t*>(transposed_);
        transpose_block(reinterpret_cast<const uint16_t*>(to), row, transposed, column, rows, keys);
        for (int64_t k = 0; k < keys; ++k) {
          std::fill(transposed + k * column + rows,
                    transposed + k * column + Blocks::depth_of(rows) * Format::kDepth, 0);
        }
      } else {
        for (int64_t r = 0; r < rows; r += 2, to += 2 * row) {
          Blocks::pair_rows(to, r + 1 == rows ? nullptr : to + row, 1, keys,
                            transposed_ + r / 2 * kKeys);
        }
      }
    }
  }

  const AttentionSizes& size_;
  Sum scale_;
  Rows query_, grad_;
  Packed *keys_across_, *values_across_, *keys_, *rounded_ = nullptr, *transposed_ = nullptr;
  // Weights are exp(score - logsumexp) * row_factor: the factor is 1, but for large rows the two are
  // the maximum of the scores and the inverse of the sum.
  Sum *logsumexp_, *row_factor_, *delta_, *probs_, *dscores_, *dkey_, *dvalue_;
  int64_t bytes_;
};

// dquery = scale * (the sum of its parts)
template <class Format>
void finish_query(typename Format::Accumulator* sums, int64_t parts, const AttentionSizes& size,
                  double scale, typename Format::Left* dquery) {
  using Sum = typename Format::Accumulator;
  const int64_t n = size.features, item = size.rows * n;
  parallel(size.items * size.rows, n * (parts + 1), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Sum* row = sums + i / size.rows * parts * item + i % size.rows * n;
      for (int64_t part = 1; part < parts; ++part) {
        for (int64_t j = 0; j < n; ++j) row[j] += row[part * item + j];
      }
      for (int64_t j = 0; j < n; ++j) row[j] *= static_cast<Sum>(scale);
      if (static_cast<void*>(row) != dquery + i * n) store<Format>(row, n, dquery + i * n);
    }
  });
}

struct Arguments {
  const tenon_tensor *grad_out, *query, *key, *value, *mask, *out, *logsumexp;
  tenon_tensor *dquery, *dkey, *dvalue;
};

template <class Format>
Item<Format> item_of(const Arguments& args, const AttentionSizes& size, int64_t i,
                     typename Format::Accumulator* dquery) {
  using Source = typename Format::Left;
  using Sum = typename Format::Accumulator;
  const tenon_tensor* query = args.query;
  return {item_matrix<Source>(query, query, i),
          item_matrix<Source>(args.key, query, i),
          item_matrix<Source>(args.value, query, i),
          item_matrix<Source>(args.grad_out, query, i),
          item_matrix<Source>(args.out, query, i),
          mask_of_item<Source>(args.mask, query, i),
          data_of<Sum>(args.logsumexp) + item_offset(args.logsumexp, 1, query, i),
          last_stride(args.logsumexp, 1),
          dquery,
          data_of<Source>(args.dkey) + i * size.keys * size.features,
          data_of<Source>(args.dvalue) + i * size.keys * size.values};
}

template <class Format>
tenon_status run(tenon_ctx* ctx, const Arguments& args, bool causal, double scale, tenon_err* err) {
  using Source = typename Format::Left;
  using Sum = typename Format::Accumulator;
  const AttentionSizes size(args.query, args.value, causal);
  if (size.items == 0) return TENON_OK;
  const int64_t blocks = (size.keys + kKeys - 1) / kKeys;
  const int64_t parts = std::max<int64_t>(1, std::min(blocks, kParts / size.items));
  const int64_t query_size = size.rows * size.features;
  Sum* sums = data_of<Sum>(args.dquery);
  if (parts > 1 || !std::is_same_v<Source, Sum>) {
    void* memory;
    const auto bytes = static_cast<uint64_t>(std::max<int64_t>(1, size.items * parts * query_size));
    const tenon_status status = host->scratch(ctx, bytes * sizeof(Sum), &memory, err);
    if (status != TENON_OK) return status;
    sums = static_cast<Sum*>(memory);
  }
  const int64_t work = size.rows * size.keys * (3 * size.features + 2 * size.values) /
                       (parts * kWidth<Sum> * (causal ? 2 : 1));
  const int64_t bytes = Backward<Format>(size, scale, nullptr).bytes();
  const tenon_status status = parallel_for_with_scratch(
      ctx, size.items * parts, work, bytes, err, [&](int64_t t, void* memory) {
        const int64_t part = t % parts;
        Backward<Format>(size, scale, memory)
            .run(item_of<Format>(args, size, t / parts, sums + t * query_size),
                 blocks * part / parts, blocks * (part + 1) / parts);
      });
  if (status == TENON_OK) {
    finish_query<Format>(sums, parts, size, scale, data_of<Source>(args.dquery));
  }
  return status;
}

tenon_status attention_grad(tenon_ctx* ctx, const tenon_tensor* grad_out, const tenon_tensor* query,
                            const tenon_tensor* key, const tenon_tensor* value,
                            const tenon_tensor* mask, const tenon_tensor* out,
                            const tenon_tensor* logsumexp, int32_t causal, double scale,
                            tenon_tensor* dquery, tenon_tensor* dkey, tenon_tensor* dvalue,
                            tenon_err* err) {
  const Arguments args = {grad_out, query, key, value, mask, out, logsumexp, dquery, dkey, dvalue};
  const auto as = [&]<class Format>(Type<Format>) {
    return run<Format>(ctx, args, causal != 0, scale, err);
  };
  if (query->dtype >= TENON_DTYPE_F16) return with_attention_format(query->dtype, as);
  return run_as_float32(attention_grad, ctx, err, grad_out, query, key, value, mask, out, logsumexp,
                        causal, scale, dquery, dkey, dvalue);
}
TENON_BOX_attention_grad(attention_grad_boxed, attention_grad);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_attention_grad(attention_grad, nullptr, kAttentionDirect, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_attention_grad(attention_grad, nullptr, kAttentionConverted, 0, 0)};

}  // namespace

KernelList attention_grad_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
