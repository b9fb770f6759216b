// SPDX-License-Identifier: Apache-2.0
// Attention by FlashAttention-2 (Dao, 2023, arXiv:2307.08691): loop order blocks of queries, then
// blocks of keys. The scores of a block stay in cache, and the softmax of a row is updated block by
// block (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018,
// arXiv:1805.02867). Up to kSmallM queries read keys and values directly, without packing.
#include "attention/blocks.hpp"
#include "attention/items.hpp"
#include "attention/softmax.hpp"
#include "parallel_scratch.hpp"
#include "trace.hpp"

#include <tenon/signatures/attention.h>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

template <class Format>
struct Item {
  using Source = typename Format::Left;
  Matrix<Source> query, key, value;
  MaskBlock<Source> mask;
  Source* out;
  typename Format::Accumulator* logsumexp;
};

template <class Format>
class Forward {
  using Source = typename Format::Left;
  using Packed = typename Format::Packed;
  using Sum = typename Format::Accumulator;
  using Blocks = Layout<Format>;

 public:
  // A block of queries and scores stays in or near the first-level cache while keys and values are
  // streamed. AMX processes whole tiles of rows, and is so fast that the work per row outside of
  // the GEMMs counts: its blocks are larger.
  static constexpr int64_t kRows = uses_amx<Format> ? 64 : 48, kKeys = uses_amx<Format> ? 256 : 128;

  Forward(const AttentionSizes& size, double scale, void* memory)
      : size_(size), scale_(static_cast<Sum>(scale)) {
    ScratchLayout layout(memory);
    keys_ = layout.take<Packed>(Blocks::panels_size(size.features, rounded_up<kKeys>(size.keys)));
    values_ = layout.take<Packed>(Blocks::depth_of(size.keys) * Blocks::right_row(size.values));
    query_ = layout.take<Packed>(kRows * Blocks::left_row(size.features));
    scores_ = layout.take<Sum>(kRows * kScoresRow);
    if (Format::kDepth > 1) probs_ = layout.take<Packed>(kRows * Blocks::left_row(kKeys));
    acc_ = layout.take<Sum>(kRows * size.values);
    bytes_ = layout.bytes();
  }
  int64_t bytes() const { return bytes_; }

  // Rows [begin, end) of an item.
  void run(const Item<Format>& item, int64_t begin, int64_t end) {
    if constexpr (kMayReadInPlace) {
      if (size_.rows <= kSmallM && item.query.column == 1 && item.key.column == 1 &&
          item.value.column == 1) {
        return run_few_rows(item);
      }
    }
    [[maybe_unused]] const ProcessorState<Format> state;
    const int64_t keys = size_.keys_until(end);
    Blocks::pack_transposed(item.key, size_.features, keys, keys_);
    Blocks::pack_right(item.value, keys, size_.values, values_, Blocks::right_row(size_.values));
    for (int64_t i = begin; i < end; i += kRows) run_rows(item, i, std::min(kRows, end - i));
  }

 private:
  static constexpr int64_t kScoresRow = kKeys + kWidth<Sum>;
  // For so few rows, packing keys and values would take longer than the products. The probabilities
  // have to be elements of the format.
  static constexpr int64_t kSmallM = 4;
  static constexpr bool kMayReadInPlace = std::is_same_v<Source, Sum> || rounds_probs<Format>;

  void run_rows(const Item<Format>& item, int64_t i, int64_t rows) {
    const int64_t query_row = Blocks::left_row(size_.features);
    const Matrix<Source> query = {item.query.data + i * item.query.row, item.query.row,
                                  item.query.column};
    Blocks::pack_left(query, rows, size_.features, query_, query_row);
    run_blocks(
        item, i, rows,
        [&](int64_t j, int64_t columns, CausalMask causal_mask) {
          multiply_scores<Format>(rows, columns, Blocks::depth_of(size_.features),
                                  {query_, query_row, 1}, keys_from(j), {scores_, kScoresRow},
                                  causal_mask);
        },
        [&](int64_t j, int64_t columns, CausalMask causal_mask) {
          const Right<Format> values = {
              values_ + j / Format::kDepth * Blocks::right_row(size_.values),
              Blocks::right_row(size_.values), Blocks::kColumns};
          multiply_visible_columns<Format>(rows, size_.values, columns, probs(), values,
                                           {acc_, size_.values}, causal_mask);
        });
  }

  // All rows of an item, where keys and values are read once and without packing.
  void run_few_rows(const Item<Format>& item) {
    const int64_t rows = size_.rows;
    run_blocks(
        item, 0, rows,
        [&](int64_t j, int64_t columns, CausalMask causal_mask) {
          const Matrix<Source> keys = {item.key.data + j * item.key.row, 1, item.key.row};
          multiply_dots<Format>(rows, causal_mask.columns_of_row(rows - 1, columns), size_.features,
                                item.query, keys, scores_, kScoresRow, false);
        },
        [&](int64_t j, int64_t columns, CausalMask causal_mask) {
          const Matrix<Source> values = {item.value.data + j * item.value.row, item.value.row, 1};
          multiply_stream_b<Format>(rows, size_.values,
                                    causal_mask.columns_of_row(rows - 1, columns), probs_in_place(),
                                    values, acc_, size_.values, true);
        });
  }
  Matrix<Source> probs_in_place() const {
    const auto left = probs();
    return {reinterpret_cast<const Source*>(left.data), left.row * Format::kDepth, 1};
  }

  // Rows [i, i + rows) against all keys visible to them, block by block. multiply_keys(j, columns,
  // causal_mask) computes the scores of keys [j, j + columns), multiply_values accumulates the
  // values weighted by the probabilities.
  template <class Keys, class Values>
  void run_blocks(const Item<Format>& item, int64_t i, int64_t rows, Keys&& multiply_keys,
                  Values&& multiply_values) {
    std::fill_n(acc_, rows * size_.values, Sum(0));
    std::fill_n(row_max_, rows, kMinusInfinity);
    std::fill_n(row_sum_, rows, Sum(0));
    const int64_t keys = size_.keys_until(i + rows);
    for (int64_t j = 0; j < keys; j += kKeys) {
      const int64_t columns = std::min(kKeys, keys - j);
      const CausalMask causal_mask = {size_.causal ? i - j : CausalMask::kAll};
      multiply_keys(j, columns, causal_mask);
      exp_rows(rows, columns, mask_at(item.mask, i, j), causal_mask);
      multiply_values(j, columns, causal_mask);
    }
    finish_rows(item, i, rows);
  }

  Right<Format> keys_from(int64_t j) const {
    const int64_t panel = Blocks::kColumns * Blocks::depth_of(size_.features);
    return {keys_ + j / Blocks::kColumns * panel, Blocks::kColumns, panel};
  }

  // Without a mask the scores are scaled as exp is computed; otherwise a separate pass scales and
  // masks them before that.
  bool scales_first(const MaskBlock<Source>& mask) const {
    return mask.keep.data || mask.added.data || !(scale_ > 0);
  }
  // The scale that scores still need when exp is computed.
  Sum scale_left(const MaskBlock<Source>& mask) const {
    return scales_first(mask) ? Sum(1) : scale_;
  }

  // Replaces scores by exp((score - row_max) * scale), where row_max is the maximum of the row so far; the
  // accumulators of earlier blocks are rescaled to the new maximum.
  void exp_rows(int64_t rows, int64_t columns, const MaskBlock<Source>& mask,
                CausalMask causal_mask) {
    const bool passes = scales_first(mask);
    const Sum scale = scale_left(mask);
    Sum row_max[kRows], factor[kRows];
    for (int64_t r = 0; r < rows; ++r) {
      Sum* x = scores_ + r * kScoresRow;
      const int64_t visible = causal_mask.columns_of_row(r, columns);
      const int64_t whole = rounded_up<kWidth<Sum>>(visible);  // loops without a rest
      if (passes) scale_and_mask<Format>(x, visible, scale_, mask, r);
      std::fill(x + visible, x + whole, kMinusInfinity);
      row_max[r] = visible == 0 ? row_max_[r] : std::max(row_max_[r], max_score(x, whole));
    }
#pragma GCC ivdep
    for (int64_t r = 0; r < rows; ++r) {
      factor[r] =
          row_max_[r] == row_max[r] ? Sum(1) : softmax_exp((row_max_[r] - row_max[r]) * scale);
      row_max_[r] = row_max[r];
    }
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t whole = rounded_up<kWidth<Sum>>(causal_mask.columns_of_row(r, columns));
      const Sum base = row_max_[r] == kMinusInfinity ? Sum(0) : row_max_[r];
      row_sum_[r] = row_sum_[r] * factor[r] + exp_row(r, columns, whole, scale, base);
      if (factor[r] != 1) {
        Sum* acc = acc_ + r * size_.values;
        for (int64_t j = 0; j < size_.values; ++j) acc[j] *= factor[r];
      }
    }
  }

  // The probabilities of hidden keys are 0.
  Sum exp_row(int64_t r, int64_t columns, int64_t whole, Sum scale, Sum base) {
    Sum* x = scores_ + r * kScoresRow;
    if constexpr (rounds_probs<Format>) {
      Source* to = reinterpret_cast<Source*>(probs_ + r * Blocks::left_row(kKeys));
      std::fill(to + whole, to + std::max(whole, Blocks::depth_of(columns) * Format::kDepth),
                Source());
      return exp_scores(x, whole, scale, base, to);
    } else {
      std::fill(x + whole, x + std::max(whole, columns), Sum(0));
      return exp_scores(x, whole, scale, base);
    }
  }

  Left<Format> probs() const {
    if constexpr (rounds_probs<Format>) {
      return {probs_, Blocks::left_row(kKeys), 1};
    } else {
      return {scores_, kScoresRow, 1};
    }
  }

  void finish_rows(const Item<Format>& item, int64_t i, int64_t rows) {
    for (int64_t r = 0; r < rows; ++r) {
      const Sum scale = row_sum_[r] == 0 ? Sum(0) : Sum(1) / row_sum_[r];
      Sum* acc = acc_ + r * size_.values;
      for (int64_t j = 0; j < size_.values; ++j) acc[j] *= scale;
      store<Format>(acc, size_.values, item.out + (i + r) * size_.values);
    }
    const Sum scale = scale_left(item.mask);
    for (int64_t r = 0; r < rows; ++r) {
      item.logsumexp[i + r] =
          row_sum_[r] == 0 ? kMinusInfinity : row_max_[r] * scale + math::log(row_sum_[r]);
    }
  }

  static constexpr Sum kMinusInfinity = -std::numeric_limits<Sum>::infinity();

  const AttentionSizes& size_;
  Sum scale_;
  Packed *keys_, *values_, *query_, *probs_ = nullptr;
  Sum *scores_, *acc_;
  Sum row_max_[kRows],
      row_sum_[kRows];  // of each row: maximum of the scores so far, sum of exp(score - maximum)
  int64_t bytes_;
};

template <class Format>
tenon_status run(tenon_ctx* ctx, const tenon_tensor* query, const tenon_tensor* key,
                 const tenon_tensor* value, const tenon_tensor* mask, bool causal, double scale,
                 tenon_tensor* out, tenon_tensor* logsumexp, tenon_err* err) {
  using Source = typename Format::Left;
  using Sum = typename Format::Accumulator;
  const AttentionSizes size(query, value, causal);
  if (size.items == 0 || size.rows == 0) return TENON_OK;
  constexpr int64_t kRows = Forward<Format>::kRows;
  // Every part packs the keys and values itself, so there are no more parts than threads need.
  const int64_t blocks = (size.rows + kRows - 1) / kRows;
  const int64_t wanted = (4 * host->thread_count() + size.items - 1) / size.items;
  const int64_t parts = host->thread_count() == 1 ? 1 : std::min(blocks, wanted);
  const int64_t work = size.rows * size.keys * (size.features + size.values) /
                       (parts * kWidth<Sum> * (causal ? 2 : 1));
  const int64_t bytes = Forward<Format>(size, scale, nullptr).bytes();
  trace("attention", Format::kName);
  return parallel_for_with_scratch(
      ctx, size.items * parts, work, bytes, err, [&](int64_t t, void* memory) {
        const int64_t i = t / parts, part = parts - 1 - t % parts;  // the longest first
        const Item<Format> item = {item_matrix<Source>(query, query, i),
                                   item_matrix<Source>(key, query, i),
                                   item_matrix<Source>(value, query, i),
                                   mask_of_item<Source>(mask, query, i),
                                   data_of<Source>(out) + i * size.rows * size.values,
                                   data_of<Sum>(logsumexp) + i * size.rows};
        Forward<Format>(size, scale, memory)
            .run(item, blocks * part / parts * kRows,
                 std::min(size.rows, blocks * (part + 1) / parts * kRows));
      });
}

tenon_status attention(tenon_ctx* ctx, const tenon_tensor* query, const tenon_tensor* key,
                       const tenon_tensor* value, const tenon_tensor* mask, int32_t causal,
                       double scale, tenon_tensor* out, tenon_tensor* logsumexp, tenon_err* err) {
  const auto as = [&]<class Format>(Type<Format>) {
    return run<Format>(ctx, query, key, value, mask, causal != 0, scale, out, logsumexp, err);
  };
  if (query->dtype >= TENON_DTYPE_F16) return with_attention_format(query->dtype, as);
  return run_as_float32(attention, ctx, err, query, key, value, mask, causal, scale, out,
                        logsumexp);
}
TENON_BOX_attention(attention_boxed, attention);

const tenon_kernel_def kKernels[] = {
    TENON_KERNEL_attention(attention, nullptr, kAttentionDirect, TENON_KERNEL_STRIDED, 0),
    TENON_KERNEL_attention(attention, nullptr, kAttentionConverted, 0, 0)};

}  // namespace

KernelList attention_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
