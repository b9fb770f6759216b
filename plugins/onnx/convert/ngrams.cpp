// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: windows of the input, with letters left out between their items, beside the n-grams of the model.
#include <algorithm>
#include <map>

#include "convert/converters.hpp"
#include "text/texts.hpp"

namespace tenon::onnx {
namespace {

constexpr int64_t kMaxPool = int64_t{1} << 20;      // n-grams
constexpr int64_t kMaxCompared = int64_t{1} << 26;  // windows times n-grams of a row

struct Pool {
  int64_t length;  // of its n-grams
  Ints items;      // row after row
  Ints indices;    // in the result
};

// The n-grams by their length, of those from `least` to `most`.
std::vector<Pool> pools_of(Conversion& c, const Ints& items, int64_t least, int64_t most) {
  Ints begins = c.integers("ngram_counts");
  const Ints indices = c.integers("ngram_indexes");
  begins.push_back(static_cast<int64_t>(items.size()));
  std::vector<Pool> pools;
  size_t number = 0;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto length = static_cast<int64_t>(i + 1);
    const int64_t begin = begins[i], end = begins[i + 1];
    if (begin < 0 || end < begin || end > static_cast<int64_t>(items.size()) ||
        (end - begin) % length != 0)
      c.fail("attribute `ngram_counts`: expected beginnings of n-grams within the pool of " +
             std::to_string(items.size()) + ", in order");
    Pool pool{length, {items.begin() + begin, items.begin() + end}, {}};
    for (int64_t k = 0; k < (end - begin) / length; ++k) {
      if (number >= indices.size())
        c.fail("attribute `ngram_indexes`: expected one for each n-gram, got " +
               std::to_string(indices.size()));
      pool.indices.push_back(indices[number++]);
    }
    if (length >= least && length <= most && !pool.indices.empty())
      pools.push_back(std::move(pool));
  }
  if (number != indices.size())
    c.fail("attribute `ngram_indexes`: expected " + std::to_string(number) + ", got " +
           std::to_string(indices.size()));
  return pools;
}

// How often each n-gram is in each row: float32 [rows, n-grams]; nothing where rows are too short for one.
Tensor counted(Conversion& c, const Tensor& x, const Pool& pool, int64_t skips) {
  const int64_t columns = x->shape[1], grams = static_cast<int64_t>(pool.indices.size());
  Tensor total;
  for (int64_t skip = 0; skip <= (pool.length == 1 ? 0 : skips); ++skip) {
    const int64_t windows = columns - (pool.length - 1) * (skip + 1);
    if (windows <= 0) break;
    if (windows * grams > kMaxCompared) c.refuse("more than 2^26 comparisons of n-grams in a row");
    Tensor matches;
    for (int64_t k = 0; k < pool.length; ++k) {
      Ints items;
      for (int64_t g = 0; g < grams; ++g)
        items.push_back(pool.items[static_cast<size_t>(g * pool.length + k)]);
      const Tensor window = c.call("narrow", {x, int64_t{1}, k * (skip + 1), windows});
      const Tensor equal =
          c.call("equal", {c.call("unsqueeze", {window, Ints{2}}), known_ints(items)});
      matches = matches ? c.call("logical_and", {matches, equal}) : equal;
    }
    const Tensor count = c.call("sum", {c.cast(matches, TENON_DTYPE_F32), Ints{1}});
    total = total ? c.call("add", {total, count}) : count;
  }
  return total;
}

// [rows, width], of as many rows as x has, whose number may be open.
Tensor no_counts(Conversion& c, const Tensor& x, int64_t width) {
  const Tensor row = known_floats(Floats(static_cast<size_t>(width), 0.0));
  if (x->shape[1] == 0) return c.call("expand", {row, Ints{x->shape[0], width}});
  const Tensor column = c.call("narrow", {x, int64_t{1}, int64_t{0}, int64_t{1}});
  return c.call("multiply", {c.cast(c.call("equal", {column, column}), TENON_DTYPE_F32), row});
}

}  // namespace

Values convert_tf_idf_vectorizer(Conversion& c) {
  const int64_t least = c.integer("min_gram_length"), most = c.integer("max_gram_length"),
                skips = c.integer("max_skip_count");
  if (least < 1 || most < least || skips < 0)
    c.fail("expected 1 <= min_gram_length <= max_gram_length and max_skip_count >= 0");
  const std::string mode = c.text("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    c.fail("attribute `mode`: expected TF, IDF or TFIDF, got `" + mode + "`");
  Tensor x;
  Ints items;
  const Value given_x = c.input("X");
  if (const Text* text = given_x.get<Text>()) {
    const Value pool = c.attribute("pool_strings");
    if (!pool.get<Texts>()) c.fail("expected attribute `pool_strings` for an input of text");
    const Texts& words = *pool.get<Texts>();
    const auto both =
        with_one_vocabulary(c, {*text, make_text(words, {static_cast<int64_t>(words.size())})});
    x = both[0].codes;
    items = ints_of(both[1].codes, "pool_strings");
  } else {
    if (!c.has_attribute("pool_int64s"))
      c.fail("expected attribute `pool_int64s` for an input of numbers");
    x = c.cast(c.tensor("X"), TENON_DTYPE_I64);
    items = c.integers("pool_int64s");
  }
  if (x->ndim != 1 && x->ndim != 2) c.fail("expected X of one or two axes");
  if (static_cast<int64_t>(items.size()) > kMaxPool) c.refuse("more than 2^20 n-grams");
  const bool is_row = x->ndim == 1;
  if (is_row) x = c.call("unsqueeze", {x, Ints{0}});

  const Ints indices = c.integers("ngram_indexes");
  int64_t width = 0;
  for (int64_t place : indices) {
    if (place < 0 || place >= kMaxPool)
      c.fail("attribute `ngram_indexes`: expected indices from 0 on");
    width = std::max(width, place + 1);
  }
  Floats weights(static_cast<size_t>(width), 1.0);
  if (const Value given = c.attribute("weights"); !given.is_none() && mode != "TF") {
    const Floats list = floats_of(given, "weights");
    if (list.size() != indices.size())
      c.fail("attribute `weights`: expected " + std::to_string(indices.size()) + ", got " +
             std::to_string(list.size()));
    const bool is_uniform =
        std::all_of(list.begin(), list.end(), [&](double weight) { return weight == list[0]; });
    for (size_t i = 0; i < list.size(); ++i) {
      if (indices[i] != static_cast<int64_t>(i) && !is_uniform)
        c.refuse(
            "attribute `weights` beside `ngram_indexes` other than 0, 1, 2, ...: runtimes differ "
            "in "
            "which weight is whose");
      weights[static_cast<size_t>(indices[i])] = list[i];
    }
  }
  Tensor result = no_counts(c, x, width);
  for (const Pool& pool : pools_of(c, items, least, most)) {
    const Tensor counts = counted(c, x, pool, skips);
    if (counts) result = c.call("index_add", {result, known_ints(pool.indices), counts, 1});
  }
  if (mode == "IDF") result = c.call("minimum", {result, 1.0});
  if (mode != "TF") result = c.call("multiply", {result, known_floats(weights)});
  return {is_row ? c.call("squeeze", {result, Ints{0}}) : result};
}

}  // namespace tenon::onnx
