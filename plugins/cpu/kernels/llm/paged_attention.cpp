// SPDX-License-Identifier: Apache-2.0
// Attention of ragged batches to keys and values in blocks, which are read where they lie. Tasks are some rows of a sequence and
// the heads that share keys. Keys are taken 16 positions at a time, from multiples of 16 on, and each row folds them into its softmax
// in that order: so that its bits depend on its position and what it sees, not on what else a step computes.
#include "kernel.hpp"
#include "llm/block_weights.hpp"
#include "math/hyperbolic.hpp"
#include "norm/softmax_exp.hpp"
#include "parallel_scratch.hpp"
#include "simd/transpose.hpp"

#include <tenon/signatures/fused.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

constexpr int64_t kKeys = kLanes;     // of a chunk
constexpr int64_t kLinesOfTask = 32;  // rows times the heads that share keys, if these are fewer
// Lines for each reading of keys and values: what the registers have accumulators for.
constexpr int kTile = kVectorBytes == 64 ? 4 : 2;
constexpr int64_t kAhead = 2;  // turns of a head and a chunk
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

int64_t whole_at(const tenon_tensor* tensor, int64_t i) {
  return tensor->dtype == TENON_DTYPE_I32 ? data_of<int32_t>(tensor)[i]
                                          : data_of<int64_t>(tensor)[i];
}

int64_t padded(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

struct Problem {
  const tenon_tensor *query, *keys, *values, *table, *lengths, *offsets;
  tenon_tensor* out;
  float scale;
  int64_t window;  // of no limit: the largest number
  float softcap;   // 0: none
  int64_t sequences, heads, kv_heads, group, features, made, block_size, width;

  int64_t first_row(int64_t sequence) const {
    return offsets ? whole_at(offsets, sequence) : sequence;
  }
  int64_t block_of(int64_t sequence, int64_t position) const {
    return whole_at(table, sequence * width + position / block_size);
  }
  int64_t rows_of_task() const { return std::max<int64_t>(1, kLinesOfTask / group); }
  // Where tasks have few rows: no more than leave each thread a task.
  int64_t heads_of_task(int64_t rows, int64_t threads) const {
    const int64_t fitting = std::max<int64_t>(1, kLinesOfTask / (rows * group));
    return std::min((kv_heads + threads - 1) / threads, fitting);
  }
};

// Every number that says what is read, before anything is.
tenon_status check(const Problem& p, tenon_err* err) {
  const int64_t rows = p.query->shape[0], blocks = p.keys->shape[0];
  const auto refuse = [&](tenon_status code, const char* what, int64_t low, int64_t high,
                          int64_t got, int64_t sequence) {
    return fail_format(err, code,
                       "[paged_attention] expected %s from %lld to %lld, got %lld of sequence %lld",
                       what, static_cast<long long>(low), static_cast<long long>(high),
                       static_cast<long long>(got), static_cast<long long>(sequence));
  };
  int64_t before = 0;
  for (int64_t n = 0; n < p.sequences; ++n) {
    const int64_t first = p.first_row(n), end = p.offsets ? p.first_row(n + 1) : n + 1;
    if (first != before) return refuse(TENON_INVALID_ARGUMENT, "a first offset", 0, 0, first, n);
    if (end < first || end > rows)
      return refuse(TENON_INVALID_ARGUMENT, "offsets", first, rows, end, n);
    before = end;
    const int64_t length = whole_at(p.lengths, n), most = p.width * p.block_size;
    if (length < 0 || length > most)
      return refuse(TENON_INVALID_ARGUMENT, "lengths", 0, most, length, n);
    if (p.offsets && length < end - first)
      return refuse(TENON_INVALID_ARGUMENT, "lengths", end - first, most, length, n);
    for (int64_t position = 0; position < length; position += p.block_size) {
      const int64_t block = p.block_of(n, position);
      if (block < 0 || block >= blocks)
        return refuse(TENON_OUT_OF_RANGE, "blocks of block_table", 0, blocks - 1, block, n);
    }
  }
  if (before == rows) return TENON_OK;
  return refuse(TENON_INVALID_ARGUMENT, "a last offset", rows, rows, before, p.sequences - 1);
}

// `n` elements of a tensor from element `at` on, as float32.
void load_floats(const tenon_tensor* tensor, int64_t at, int64_t n, float* to) {
  if (tensor->dtype == TENON_DTYPE_F32) {
    std::memcpy(to, data_of<float>(tensor) + at, static_cast<size_t>(n) * sizeof(float));
  } else {
    widen(tensor->dtype, data_of<char>(tensor) + 2 * at, 2, to, n);
  }
}

// Rows of int8 end in the four bytes of a float32, by which their codes are multiplied.
constexpr int64_t kScaleBytes = 4;

int64_t numbers_of_row(const tenon_tensor& pool) {
  return pool.shape[3] - (pool.dtype == TENON_DTYPE_I8 ? kScaleBytes : 0);
}

// The numbers of `count` rows of a pool from row `row` on, `n` of each, as float32 rows `stride` apart.
void load_rows(const tenon_tensor* pool, int64_t row, int64_t count, int64_t n, float* to,
               int64_t stride) {
  if (pool->dtype != TENON_DTYPE_I8) {
    if (stride == n) return load_floats(pool, row * n, count * n, to);
    for (int64_t r = 0; r < count; ++r) load_floats(pool, (row + r) * n, n, to + r * stride);
    return;
  }
  const int8_t* codes = data_of<int8_t>(pool) + row * (n + kScaleBytes);
  for (int64_t r = 0; r < count; ++r, codes += n + kScaleBytes, to += stride) {
    float scale;
    std::memcpy(&scale, codes + n, sizeof scale);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(codes[i]) * scale;
  }
}

class Task {
 public:
  static int64_t bytes(const Problem& p) {
    const int64_t lines = p.rows_of_task() * p.group, made = padded(p.made);
    const int64_t floats = lines * (padded(p.features) + made + kKeys) + 3 * padded(lines) +
                           kKeys * (padded(p.features) + std::max(p.features, made));
    return floats * static_cast<int64_t>(sizeof(float));
  }

  Task(const Problem& p, void* memory) : p_(p), made_(padded(p.made)) {
    const int64_t lines = p.rows_of_task() * p.group;
    float* at = static_cast<float*>(memory);
    const auto take = [&](int64_t count) { return std::exchange(at, at + count); };
    query_ = take(lines * padded(p.features));
    acc_ = take(lines * made_);
    weights_ = take(lines * kKeys);
    largest_ = take(padded(lines));
    sum_ = take(padded(lines));
    factor_ = take(padded(lines));
    keys_ = take(kKeys * padded(p.features));
    rows_ = take(kKeys * std::max(p.features, made_));
  }

  // `count` rows of a sequence from its row `first` on, for the heads that share the keys of `heads` heads from `kv_head` on.
  void run(int64_t sequence, int64_t first, int64_t count, int64_t kv_head, int64_t heads) {
    sequence_ = sequence;
    const int64_t begin = p_.first_row(sequence);
    const int64_t rows = (p_.offsets ? p_.first_row(sequence + 1) : begin + 1) - begin;
    const int64_t position = whole_at(p_.lengths, sequence) - rows + first;  // of the first row
    lines_ = count * p_.group;                                               // of each head of keys
    const auto element = [&](int64_t line, int64_t n) {
      const int64_t head = kv_head + line / lines_;
      const int64_t row = begin + first + line % lines_ / p_.group;
      return (row * p_.heads + head * p_.group + line % p_.group) * n;
    };
    for (int64_t line = 0; line < lines_ * heads; ++line) {
      load_floats(p_.query, element(line, p_.features), p_.features, query_ + line * p_.features);
      largest_[line] = kMinusInfinity;
      sum_[line] = 0;
    }
    std::fill_n(acc_, lines_ * heads * made_, 0.0f);
    std::fill_n(keys_, kKeys * p_.features, 0.0f);
    const int64_t end = position + count, from = std::max<int64_t>(0, lowest(position));
    // Of a chunk, the heads lie one after another, and are read so.
    for (int64_t key = from / kKeys * kKeys; key < end; key += kKeys) {
      for (kv_head_ = kv_head; kv_head_ < kv_head + heads; ++kv_head_) {
        look_ahead(key, end, kv_head_ + kAhead, kv_head, heads);
        fold(key, std::min(end, key + kKeys), position, (kv_head_ - kv_head) * count * p_.group);
      }
    }
    for (int64_t line = 0; line < lines_ * heads; ++line) {
      float* acc = acc_ + line * made_;
      const float share = sum_[line] == 0 ? 0 : 1 / sum_[line];
      for (int64_t i = 0; i < p_.made; ++i) acc[i] *= share;
      const int64_t at = element(line, p_.made);
      if (p_.out->dtype == TENON_DTYPE_F32) {
        std::memcpy(data_of<float>(p_.out) + at, acc, static_cast<size_t>(p_.made) * sizeof(float));
      } else {
        narrow(p_.out->dtype, acc, data_of<char>(p_.out) + 2 * at, 2, p_.made);
      }
    }
  }

 private:
  // The first key that the row at `position` sees.
  int64_t lowest(int64_t position) const {
    return position < p_.window ? 0 : position - p_.window + 1;
  }

  // The keys at positions [begin, end), of one chunk and head, for its lines, which are those from `base` on. The first row is at
  // `position`.
  void fold(int64_t begin, int64_t end, int64_t position, int64_t base) {
    load_keys(begin, end);
    load_values(begin, end);
    for (int64_t line = 0; line < lines_;) {
      int64_t low, high, next_low, next_high;
      see(position + line / p_.group, begin, end, &low, &high);
      int64_t same = 1;  // lines that see the same keys
      for (; line + same < lines_ && same < kTile; ++same) {
        see(position + (line + same) / p_.group, begin, end, &next_low, &next_high);
        if (next_low != low || next_high != high) break;
      }
      if (low >= high) {
        line += same;
        continue;
      }
      if (same == kTile) {
        fold_lines<kTile>(base + line, low, high);
        line += kTile;
      } else {
        fold_lines<1>(base + line, low, high);
        ++line;
      }
    }
  }

  // Which keys of a chunk a row sees: those from `low` to `high`, counted from its beginning.
  void see(int64_t position, int64_t begin, int64_t end, int64_t* low, int64_t* high) const {
    *low = std::max<int64_t>(0, lowest(position) - begin);
    *high = std::min(end, position + 1) - begin;
  }

  // Calls f(place, count, element) for each part of a chunk that lies in one block.
  template <class F>
  void for_each_block(int64_t begin, int64_t end, F&& f) const {
    for (int64_t key = begin; key < end;) {
      const int64_t place = key % p_.block_size;
      const int64_t count = std::min(end - key, p_.block_size - place);
      const int64_t block = p_.block_of(sequence_, key);
      f(key - begin, count, (block * p_.kv_heads + kv_head_) * p_.block_size + place);
      key += count;
    }
  }

  // Where the keys and values lie that are folded kAhead turns later, for prefetches into the L2 cache: parts of blocks are too
  // short for the processor's own prefetcher, which begins anew with each page.
  void look_ahead(int64_t key, int64_t end, int64_t head, int64_t first, int64_t heads) {
    key += (head - first) / heads * kKeys;
    head = first + (head - first) % heads;
    key = std::min(key, end - 1);
    const int64_t row =
        (p_.block_of(sequence_, key) * p_.kv_heads + head) * p_.block_size + key % p_.block_size;
    keys_ahead_ = data_of<char>(p_.keys) + row * p_.keys->shape[3] * kDtypeSize[p_.keys->dtype];
    values_ahead_ =
        data_of<char>(p_.values) + row * p_.values->shape[3] * kDtypeSize[p_.values->dtype];
  }

  // Keys side by side: [features, 16].
  void load_keys(int64_t begin, int64_t end) {
    const int64_t n = p_.features;
    for_each_block(begin, end, [&](int64_t place, int64_t count, int64_t row) {
      const float* rows = data_of<float>(p_.keys) + row * n;
      if (p_.keys->dtype != TENON_DTYPE_F32) {
        load_rows(p_.keys, row, count, n, rows_, n);
        rows = rows_;
      }
      transpose_block(reinterpret_cast<const uint32_t*>(rows), n,
                      reinterpret_cast<uint32_t*>(keys_ + place), kKeys, count, n);
    });
  }

  // Where the values of each key are: in place, or in a copy of whole vectors in float32.
  void load_values(int64_t begin, int64_t end) {
    const bool in_place = p_.values->dtype == TENON_DTYPE_F32 && p_.made == made_;
    for_each_block(begin, end, [&](int64_t place, int64_t count, int64_t row) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = (row + i) * p_.made;
        if (in_place) {
          values_[place + i] = data_of<float>(p_.values) + at;
          continue;
        }
        float* copy = rows_ + (place + i) * made_;
        load_rows(p_.values, row + i, 1, p_.made, copy, made_);
        std::fill(copy + p_.made, copy + made_, 0.0f);
        values_[place + i] = copy;
      }
    });
  }

  template <int lines>
  void fold_lines(int64_t line, int64_t low, int64_t high) {
    float* weights = weights_ + line * kKeys;
    score<lines>(query_ + line * p_.features, weights);
    for (int t = 0; t < lines; ++t) weigh(line + t, low, high, weights + t * kKeys);
    int64_t i = 0;
    for (; i + 4 * kLanes <= made_; i += 4 * kLanes) add_values<lines, 4>(line, i, low, high);
    for (; i < made_; i += kLanes) add_values<lines, 1>(line, i, low, high);
  }

  // Weighted values of keys [low, high), of which `vectors` from element `i` on are added to the sums of lines.
  template <int lines, int vectors>
  void add_values(int64_t line, int64_t i, int64_t low, int64_t high) {
    const float* weights = weights_ + line * kKeys;
    float* acc = acc_ + line * made_ + i;
    Lanes sums[lines][vectors];
#pragma GCC unroll 4
    for (int t = 0; t < lines; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        sums[t][v] = load_lanes(acc + t * made_ + v * kLanes) * factor_[line + t];
    }
    for (int64_t key = low; key < high; ++key) {
      if (lines == 1) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          __builtin_prefetch(values_ahead_ + (key * made_ + i + v * kLanes) * 4, 0, 2);
      }
      Lanes values[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) values[v] = load_lanes(values_[key] + i + v * kLanes);
#pragma GCC unroll 4
      for (int t = 0; t < lines; ++t) {
        const Lanes weight = weights[t * kKeys + key] - Lanes{};
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sums[t][v] = multiply_add(values[v], weight, sums[t][v]);
      }
    }
#pragma GCC unroll 4
    for (int t = 0; t < lines; ++t) std::memcpy(acc + t * made_, sums[t], sizeof sums[t]);
  }

  // Products of lines with the 16 keys, in two chains along the features.
  template <int lines>
  void score(const float* query, float* to) const {
    const int64_t n = p_.features;
    Lanes even[lines] = {}, odd[lines] = {};
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
      if (lines == 1) {
        __builtin_prefetch(keys_ahead_ + i * 64, 0, 2);
        __builtin_prefetch(keys_ahead_ + i * 64 + 64, 0, 2);
      }
      const Lanes first = load_lanes(keys_ + i * kKeys),
                  second = load_lanes(keys_ + (i + 1) * kKeys);
      for (int t = 0; t < lines; ++t) {
        even[t] = multiply_add(first, query[t * n + i] - Lanes{}, even[t]);
        odd[t] = multiply_add(second, query[t * n + i + 1] - Lanes{}, odd[t]);
      }
    }
    for (int t = 0; i < n && t < lines; ++t)
      even[t] = multiply_add(load_lanes(keys_ + i * kKeys), query[t * n + i] - Lanes{}, even[t]);
    for (int t = 0; t < lines; ++t) {
      const Lanes sum = (even[t] + odd[t]) * p_.scale;
      std::memcpy(to + t * kKeys, &sum, sizeof sum);
    }
  }

  // Scores of a line to weights relative to the largest so far: 0 of keys that it does not see.
  void weigh(int64_t line, int64_t low, int64_t high, float* x) {
    if (p_.softcap > 0) {
#pragma GCC ivdep
      for (int64_t j = 0; j < kKeys; ++j) x[j] = p_.softcap * math::tanh(x[j] / p_.softcap);
    }
    for (int64_t j = 0; j < low; ++j) x[j] = kMinusInfinity;
    for (int64_t j = high; j < kKeys; ++j) x[j] = kMinusInfinity;
    float largest = largest_[line];
    for (int64_t j = 0; j < kKeys; ++j) largest = std::max(largest, x[j]);
    const float base = largest == kMinusInfinity ? 0 : largest;
    factor_[line] = largest_[line] == largest ? 1 : softmax_exp(largest_[line] - base);
    largest_[line] = largest;
#pragma GCC ivdep
    for (int64_t j = 0; j < kKeys; ++j) x[j] = softmax_exp(x[j] - base);
    sum_[line] = sum_[line] * factor_[line] + sum_of(load_lanes(x));
  }

  const Problem& p_;
  int64_t made_, sequence_ = 0, kv_head_ = 0, lines_ = 0;
  // Of each line: its query, the sum of weighted values, weights of 16 keys, the largest score, the sum of weights, and what
  // earlier sums are multiplied by. Then keys and values of a chunk.
  float *query_, *acc_, *weights_, *largest_, *sum_, *factor_, *keys_, *rows_;
  const float* values_[kKeys];
  const char *keys_ahead_ = nullptr, *values_ahead_ = nullptr;
};

tenon_status paged_attention(tenon_ctx* ctx, const tenon_tensor* query, const tenon_tensor* keys,
                             const tenon_tensor* values, const tenon_tensor* block_table,
                             const tenon_tensor* lengths, const tenon_value* scale,
                             const tenon_tensor* offsets, const tenon_value* window,
                             const tenon_value* softcap, tenon_tensor* out, tenon_err* err) {
  const int64_t heads = query->shape[1], kv_heads = keys->shape[1], features = query->shape[2];
  const auto number = [](const tenon_value* value, double otherwise) {
    return value->tag == TENON_VALUE_NONE ? otherwise : scalar_as<double>(*value);
  };
  const Problem p{
      .query = query,
      .keys = keys,
      .values = values,
      .table = block_table,
      .lengths = lengths,
      .offsets = offsets,
      .out = out,
      .scale = static_cast<float>(number(scale, 1 / std::sqrt(static_cast<double>(features)))),
      .window = window->tag == TENON_VALUE_NONE ? std::numeric_limits<int64_t>::max()
                                                : scalar_as<int64_t>(*window),
      .softcap = static_cast<float>(number(softcap, 0)),
      .sequences = lengths->shape[0],
      .heads = heads,
      .kv_heads = kv_heads,
      .group = heads / kv_heads,
      .features = features,
      .made = numbers_of_row(*values),
      .block_size = keys->shape[2],
      .width = block_table->shape[1]};
  TENON_TRY(check(p, err));
  if (out->numel == 0) return TENON_OK;
  // tasks[n]: how many parts the sequences before n have.
  void* memory = nullptr;
  TENON_TRY(
      host->scratch(ctx, static_cast<uint64_t>(p.sequences + 1) * sizeof(int64_t), &memory, err));
  auto* tasks = static_cast<int64_t*>(memory);
  const int64_t rows_of_task = p.rows_of_task();
  tasks[0] = 0;
  int64_t longest = 0;
  for (int64_t n = 0; n < p.sequences; ++n) {
    const int64_t rows = offsets ? p.first_row(n + 1) - p.first_row(n) : 1;
    tasks[n + 1] = tasks[n] + (rows + rows_of_task - 1) / rows_of_task;
    longest = std::max(longest, std::min(p.window, whole_at(lengths, n)));
  }
  const int64_t parts = tasks[p.sequences];
  const int64_t most = std::min(rows_of_task, query->shape[0]);  // rows of a task
  const int64_t heads_of_task = p.heads_of_task(most, host->thread_count());
  const int64_t groups = (kv_heads + heads_of_task - 1) / heads_of_task;
  const int64_t lines = most * p.group * heads_of_task;
  const int64_t work = longest * (features + p.made) * lines / kLanes;
  return parallel_for_with_scratch(
      ctx, parts * groups, work, Task::bytes(p), err, [&](int64_t task, void* own) {
        const int64_t part = parts - 1 - task / groups;  // later parts of a sequence take longer
        const int64_t n = std::upper_bound(tasks, tasks + p.sequences + 1, part) - tasks - 1;
        const int64_t rows = offsets ? p.first_row(n + 1) - p.first_row(n) : 1;
        const int64_t first = (part - tasks[n]) * rows_of_task;
        const int64_t head = task % groups * heads_of_task;
        Task(p, own).run(n, first, std::min(rows_of_task, rows - first), head,
                         std::min(heads_of_task, kv_heads - head));
      });
}
TENON_BOX_paged_attention(paged_attention_boxed, paged_attention);

bool is_index(const tenon_value& value) {
  if (value.tag != TENON_VALUE_TENSOR) return false;
  const int dtype = static_cast<const tenon_tensor*>(value.v.p)->dtype;
  return dtype == TENON_DTYPE_I32 || dtype == TENON_DTYPE_I64;
}
bool is_pool(const tenon_value& value) {
  if (value.tag != TENON_VALUE_TENSOR) return false;
  const auto* tensor = static_cast<const tenon_tensor*>(value.v.p);
  const int dtype = tensor->dtype;
  return tensor->ndim == 4 && tensor->shape[2] > 0 &&
         (dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16 || dtype == TENON_DTYPE_F32 ||
          (dtype == TENON_DTYPE_I8 && tensor->shape[3] >= kScaleBytes));
}

// A composite operator: its arguments have not been checked yet. What does not fit goes to the decomposition, which tells.
int32_t paged_attention_fits(const tenon_value* args, uint32_t) {
  const bool typed = args[0].tag == TENON_VALUE_TENSOR && is_pool(args[1]) && is_pool(args[2]) &&
                     is_index(args[3]) && is_index(args[4]) &&
                     (args[6].tag == TENON_VALUE_NONE || is_index(args[6]));
  if (!typed) return 0;
  const auto tensor = [&](int i) { return static_cast<const tenon_tensor*>(args[i].v.p); };
  const tenon_tensor *query = tensor(0), *keys = tensor(1), *values = tensor(2), *table = tensor(3),
                     *lengths = tensor(4);
  const bool has_offsets = args[6].tag != TENON_VALUE_NONE;
  if (query->ndim != 3 || lengths->ndim != 1 || table->ndim != 2) return 0;
  const int64_t sequences = lengths->shape[0];
  const bool rows = has_offsets ? tensor(6)->ndim == 1 && tensor(6)->shape[0] == sequences + 1
                                : query->shape[0] == sequences;
  const bool shapes = std::equal(keys->shape, keys->shape + 3, values->shape) &&
                      numbers_of_row(*keys) == query->shape[2] && keys->shape[1] > 0 &&
                      query->shape[1] % keys->shape[1] == 0 && table->shape[0] == sequences;
  const bool numbers = (args[7].tag == TENON_VALUE_NONE || args[7].v.i > 0) &&
                       (args[8].tag == TENON_VALUE_NONE || scalar_as<double>(args[8]) > 0);
  return rows && shapes && numbers;
}

constexpr uint64_t kComputed =
    dtype_bit(TENON_DTYPE_F16) | dtype_bit(TENON_DTYPE_BF16) | dtype_bit(TENON_DTYPE_F32);

const tenon_kernel_def kKernels[] = {with_can_run(
    TENON_KERNEL_paged_attention(paged_attention, nullptr, kComputed, 0, 0), paged_attention_fits)};

}  // namespace

KernelList paged_attention_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
