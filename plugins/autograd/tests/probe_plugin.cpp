// SPDX-License-Identifier: Apache-2.0
// Operators that only tests need, from outside: one without a gradient, one with a rule for real numbers
// alone, and one with several results, of which some have no gradient. Tests register the rules.
#include <tenon/plugin.hpp>

#include <algorithm>
#include <string_view>

namespace {

tenon_status infer_results(const tenon_value* args, uint32_t, tenon_meta* outs, uint32_t nouts,
                           tenon_err*) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  for (uint32_t k = 0; k < nouts; ++k) {
    outs[k].kind = TENON_META_NEW;
    outs[k].ndim = nouts == 1 ? x->ndim : 0;
    outs[k].dtype = k % 2 ? static_cast<uint8_t>(TENON_DTYPE_I64) : x->dtype;
    std::copy_n(x->shape, outs[k].ndim, outs[k].shape);
  }
  return TENON_OK;
}

tenon_status opaque(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                    tenon_err*) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* out = static_cast<const tenon_tensor*>(outs[0].v.p);
  const auto* from = static_cast<const float*>(x->data);
  std::copy_n(from, x->numel, static_cast<float*>(out->data));
  return TENON_OK;
}

tenon_status copy(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                  tenon_err*) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* out = static_cast<const tenon_tensor*>(outs[0].v.p);
  const int64_t size = x->dtype == TENON_DTYPE_C64 ? 8 : 4;
  std::copy_n(static_cast<const char*>(x->data), x->numel * size, static_cast<char*>(out->data));
  return TENON_OK;
}

// Smallest and largest element of a vector, each with its position.
tenon_status extremes(tenon_ctx*, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                      tenon_err*) {
  const auto* x = static_cast<const tenon_tensor*>(args[0].v.p);
  const auto* data = static_cast<const float*>(x->data);
  auto [low, high] = std::minmax_element(data, data + x->numel);
  auto result = [&](int k) { return static_cast<const tenon_tensor*>(outs[k].v.p)->data; };
  *static_cast<float*>(result(0)) = *low;
  *static_cast<int64_t*>(result(1)) = low - data;
  *static_cast<float*>(result(2)) = *high;
  *static_cast<int64_t*>(result(3)) = high - data;
  return TENON_OK;
}

constexpr tenon_param_def kX[] = {{.name = "x", .kind = TENON_PARAM_TENSOR}};
constexpr uint64_t kFloat32 = uint64_t{1} << TENON_DTYPE_F32;
constexpr uint64_t kFloat32AndComplex = kFloat32 | uint64_t{1} << TENON_DTYPE_C64;

constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

constexpr tenon_op_def define(const char* name, const char* schema, uint32_t nouts,
                              uint64_t dtypes = kFloat32) {
  return {.struct_size = sizeof(tenon_op_def),
          .name = name,
          .schema = schema,
          .schema_hash = fnv1a(schema),
          .doc = "",
          .origin = "probe",
          .params = kX,
          .nparams = 1,
          .param_size = sizeof(tenon_param_def),
          .nouts = nouts,
          .compute = TENON_COMPUTE_FIRST,
          .shape = TENON_SHAPE_INFER,
          .dtype_mask = dtypes,
          .infer = infer_results};
}
constexpr tenon_op_def kOps[] = {
    define("probe::opaque", "probe::opaque(Tensor x) -> Tensor", 1),
    define("probe::real_rule", "probe::real_rule(Tensor x) -> Tensor", 1, kFloat32AndComplex),
    define("probe::extremes",
           "probe::extremes(Tensor x) -> (Tensor low, Tensor "
           "where_low, Tensor high, Tensor where_high)",
           4)};

constexpr tenon_kernel_def serve(const char* op, tenon_boxed_fn kernel,
                                 uint64_t dtypes = kFloat32) {
  return {.struct_size = sizeof(tenon_kernel_def),
          .op = op,
          .device = "cpu",
          .dtype_mask = dtypes,
          .boxed = kernel};
}
constexpr tenon_kernel_def kKernels[] = {serve("probe::opaque", opaque),
                                         serve("probe::real_rule", copy, kFloat32AndComplex),
                                         serve("probe::extremes", extremes)};

constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "autograd_probe",
    .version = "1.0.0",
    .vendor = "Tenon",
    .ops = kOps,
    .kernels = kKernels,
    .nops = 3,
    .op_size = sizeof(tenon_op_def),
    .nkernels = 3,
    .kernel_size = sizeof(tenon_kernel_def),
};

}  // namespace

TENON_PLUGIN(kPlugin)
