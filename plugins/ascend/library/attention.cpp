// SPDX-License-Identifier: Apache-2.0
// tenon::attention without a mask by aclnnFusedInferAttentionScoreV2 (ops-transformer/attention/fused_infer_attention_score/docs/
// aclnnFusedInferAttentionScoreV2.md). Its logarithm is that of "query times key", which does not say whether they are scaled, so
// that the query is scaled before. What a row that sees nothing gives is not promised; no row is such a one without a mask.
#include <algorithm>
#include <functional>
#include <numeric>

#include "handwritten.hpp"

namespace ascend {
namespace {

Function scale_function{.name = "aclnnMuls"};
Function fill_function{.name = "aclnnInplaceFillScalar"};
Function triangle_function{.name = "aclnnTriu"};
// How the tensors of lists and absent ones are numbered for new addresses is not told of so many.
Function attention_function{.name = "aclnnFusedInferAttentionScoreV2", .is_reusable = false};

constexpr char kOp[] = "tenon::attention";
enum Parameter { kQuery, kKey, kValue, kMask, kCausal, kScale };

// [batch, heads, length, features]
struct Layout {
  int64_t batch, heads, length, features;

  explicit Layout(const tenon_tensor& t)
      : batch(std::accumulate(t.shape, t.shape + std::max(t.ndim - 3, 0), int64_t{1},
                              std::multiplies<>())),
        heads(t.ndim > 2 ? t.shape[t.ndim - 3] : 1),
        length(t.shape[t.ndim - 2]),
        features(t.shape[t.ndim - 1]) {}
  std::vector<int64_t> shape() const { return {batch, heads, length, features}; }
};

const tenon_tensor& tensor_of(const tenon_value& value) { return *tenon_arg_tensor(&value); }

// True above the diagonal: what is not to be seen.
tenon_status make_causal_mask(tenon_ctx* ctx, int64_t rows, int64_t columns, Tensor* mask,
                              tenon_err* err) {
  Call fill(ctx, kOp, fill_function, err);
  const Tensor all = fill.scratch_of({rows, columns}, TENON_DTYPE_BOOL);
  if (const tenon_status status = fill.run(all, fill.scalar(int64_t{1}))) return status;
  Call triangle(ctx, kOp, triangle_function, err);
  *mask = triangle.scratch_of({rows, columns}, TENON_DTYPE_BOOL);
  return triangle.run(all, int64_t{1}, *mask);
}

tenon_status run_attention(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                           uint32_t, tenon_err* err) try {
  const Layout from(tensor_of(args[kQuery])), to(tensor_of(args[kKey]));
  Call scale(ctx, kOp, scale_function, err);
  const Tensor query = scale.scratch_of(from.shape(), tensor_of(args[kQuery]).dtype);
  if (const tenon_status status = scale.run(scale.shaped(args[kQuery], from.shape()),
                                            scale.scalar(tenon_arg_float(&args[kScale])), query))
    return status;
  Call call(ctx, kOp, attention_function, err);
  Tensor mask = call.no_tensor();
  const bool is_causal = tenon_arg_bool(&args[kCausal]);
  if (is_causal)
    if (const tenon_status status = make_causal_mask(ctx, from.length, to.length, &mask, err))
      return status;
  const TensorList key{{call.shaped(args[kKey], to.shape())}};
  const TensorList value{{call.shaped(args[kValue], to.shape())}};
  const Tensor none = call.no_tensor();
  constexpr int64_t kEverySeen = INT32_MAX;  // preTokens and nextTokens, which mask nothing
  constexpr int64_t kWholeMask = 1, kPrecise = 0;
  return call.run(query, key, value, /*pseShift=*/none, mask, /*actualSeqLengths=*/nullptr,
                  /*actualSeqLengthsKv=*/nullptr,
                  /*deqScale1, quantScale1, deqScale2, quantScale2, quantOffset2=*/none, none, none,
                  none, none, /*antiquantScale, antiquantOffset=*/none, none, /*blockTable=*/none,
                  /*queryPaddingSize, kvPaddingSize=*/none, none,
                  /*keyAntiquantScale, keyAntiquantOffset=*/none, none,
                  /*valueAntiquantScale, valueAntiquantOffset=*/none, none,
                  /*keySharedPrefix, valueSharedPrefix=*/none, none,
                  /*actualSharedPrefixLen=*/nullptr, from.heads, /*scaleValue=*/1.0, kEverySeen,
                  kEverySeen, "BNSD", from.heads, is_causal ? kWholeMask : int64_t{0}, kPrecise,
                  /*blockSize=*/int64_t{0}, /*antiquantMode=*/int64_t{0}, /*softmaxLseFlag=*/true,
                  /*keyAntiquantMode=*/int64_t{0}, /*valueAntiquantMode=*/int64_t{0},
                  call.shaped(outs[0], from.shape()),
                  call.shaped(outs[1], {from.batch, from.heads, from.length, 1}));
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

// The limits of the page for more than one position of the query.
int32_t can_run_attention(const tenon_value* args, uint32_t nargs) {
  if (!takes_shapes(args, nargs) || args[kMask].tag != TENON_VALUE_NONE) return 0;
  const Layout from(tensor_of(args[kQuery])), to(tensor_of(args[kKey]));
  constexpr int64_t kLongest = 20971520, kLargestMask = int64_t{1} << 28;
  return from.batch <= 65536 && from.heads <= 256 && from.length > 1 && from.length <= kLongest &&
         to.length <= kLongest && from.features % 16 == 0 && from.features <= 512 &&
         Layout(tensor_of(args[kValue])).features == from.features &&
         (!tenon_arg_bool(&args[kCausal]) || from.length <= kLargestMask / to.length);
}

}  // namespace

const HandwrittenKernel kAttention = {
    .op = kOp,
    .traits = 0,
    .dtype_mask = bit(TENON_DTYPE_F16) | bit(TENON_DTYPE_BF16),
    .run = run_attention,
    .can_run = can_run_attention,
    .functions = {&attention_function, &scale_function, &fill_function, &triangle_function},
};

}  // namespace ascend
