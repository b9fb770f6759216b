// SPDX-License-Identifier: Apache-2.0
// Attention, by the page aclnnFusedInferAttentionScoreV2.md of hicann/ops-transformer: in the layout BNSD, without
// quantisation, shifts, pages, prefixes and lengths of sequences.
#include <cmath>
#include <limits>
#include <string>

#include "checks.hpp"

namespace simulated::aclnn {
namespace {

ACLNN_EXPORT int aclnnFusedInferAttentionScoreV2GetWorkspaceSize(
    const aclTensor* query, const aclTensorList* keys, const aclTensorList* values,
    const aclTensor* pse_shift, const aclTensor* mask, const aclIntArray* lengths,
    const aclIntArray* kv_lengths, const aclTensor* dequant_scale1, const aclTensor* quant_scale1,
    const aclTensor* dequant_scale2, const aclTensor* quant_scale2, const aclTensor* quant_offset2,
    const aclTensor* antiquant_scale, const aclTensor* antiquant_offset,
    const aclTensor* block_table, const aclTensor* query_padding, const aclTensor* kv_padding,
    const aclTensor* key_scale, const aclTensor* key_offset, const aclTensor* value_scale,
    const aclTensor* value_offset, const aclTensor* key_prefix, const aclTensor* value_prefix,
    const aclIntArray* prefix_lengths, int64_t heads, double scale, int64_t, int64_t, char* layout,
    int64_t kv_heads, int64_t sparse_mode, int64_t precision, int64_t block_size,
    int64_t antiquant_mode, bool wants_lse, int64_t key_mode, int64_t value_mode,
    const aclTensor* out, const aclTensor* lse, uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(query, out, lse);
  if (!is_alive(keys) || !is_alive(values) || !layout)
    return refuse(__func__, kNullPointer, "a list or the layout is nullptr");
  for (const aclTensor* one :
       {pse_shift, dequant_scale1, quant_scale1, dequant_scale2, quant_scale2, quant_offset2,
        antiquant_scale, antiquant_offset, block_table, query_padding, kv_padding, key_scale,
        key_offset, value_scale, value_offset, key_prefix, value_prefix})
    REQUIRE(!one, "this option is not simulated");
  REQUIRE(!lengths && !kv_lengths && !prefix_lengths && block_size == 0 && antiquant_mode == 0 &&
              key_mode == 0 && value_mode == 0 && wants_lse,
          "this option is not simulated");
  REQUIRE(std::string(layout) == "BNSD" && query->shape.size() == 4, "expected BNSD");
  REQUIRE(keys->tensors.size() == 1 && values->tensors.size() == 1, "expected one key and value");
  const aclTensor *key = keys->tensors[0], *value = values->tensors[0];
  NEEDS(key, value);
  for (const aclTensor* one : {key, value, out})
    REQUIRE(one->dtype == query->dtype && one->shape.size() == 4, "a dtype or shape differs");
  REQUIRE(is_one_of(query->dtype, {kF16, kBf16}), "a dtype is not served");
  const int64_t batch = query->shape[0], rows = query->shape[2], features = query->shape[3];
  const int64_t seen = key->shape[2];
  REQUIRE(key->shape == value->shape && key->shape[0] == batch && key->shape[1] == kv_heads &&
              key->shape[3] == features && out->shape == query->shape,
          "expected one shape of keys and values, and that of the query for the result");
  REQUIRE(heads == query->shape[1] && kv_heads == heads, "groups of heads are not simulated");
  REQUIRE(batch <= 65536 && heads <= 256 && features <= 512 && features % 16 == 0 && rows > 1,
          "a length is beyond what is supported");
  REQUIRE((sparse_mode == 0 && !mask) || (sparse_mode == 1 && is_alive(mask)),
          "expected no mask in mode 0, and one in mode 1");
  const std::vector<int64_t> pairs = {rows, seen};
  REQUIRE(!mask || (mask->dtype == kBool && mask->shape == pairs),
          "expected a mask of rows and columns");
  REQUIRE(precision == 0 || precision == 1, "rows that see nothing are not simulated");
  const std::vector<int64_t> one_each = {batch, heads, rows, 1};
  REQUIRE(lse->dtype == kF32 && lse->shape == one_each, "expected a logarithm for each row");
  std::vector<const aclTensor*> tensors = {query, key, value};
  if (mask) tensors.push_back(mask);
  tensors.insert(tensors.end(), {out, lse});
  return plan(
      "aclnnFusedInferAttentionScoreV2", tensors,
      [=, has_mask = mask != nullptr](std::vector<View>& views) {
        const auto at = [](const View& view, Coordinates coordinates) {
          return view.number(offset_of(view, coordinates));
        };
        View &to = views[views.size() - 2], &logarithm = views.back();
        for (int64_t i = 0; i < batch * heads * rows; ++i) {
          const int64_t b = i / rows / heads, h = i / rows % heads, row = i % rows;
          std::vector<double> products(static_cast<size_t>(seen),
                                       -std::numeric_limits<double>::infinity());
          for (int64_t k = 0; k < seen; ++k) {
            if (has_mask && views[3].integer(offset_of(views[3], {row, k}))) continue;
            double sum = 0;
            for (int64_t d = 0; d < features; ++d)
              sum += at(views[0], {b, h, row, d}) * at(views[1], {b, h, k, d});
            products[static_cast<size_t>(k)] = sum;
          }
          const double largest = *std::max_element(products.begin(), products.end());
          double total = 0, scaled_total = 0;
          for (const double product : products) {
            total += std::exp(product - largest);
            scaled_total += std::exp(scale * (product - largest));
          }
          // "The result of query times key" is that before it is scaled.
          logarithm.store(offset_of(logarithm, {b, h, row, 0}), largest + std::log(total));
          for (int64_t d = 0; d < features; ++d) {
            double sum = 0;
            for (int64_t k = 0; k < seen; ++k)
              sum += std::exp(scale * (products[static_cast<size_t>(k)] - largest)) *
                     at(views[2], {b, h, k, d});
            to.store(offset_of(to, {b, h, row, d}), sum / scaled_total);
          }
        }
      },
      bytes, executor);
}
ACLNN_EXECUTE(aclnnFusedInferAttentionScoreV2)

}  // namespace
}  // namespace simulated::aclnn
