// SPDX-License-Identifier: Apache-2.0
// matmul, linear and matmul_integer: one primitive, [batches, m, k] x [batches, k, n] + bias.
//
// Each operator has two kernels. The first reads the right operand with its own strides, the second
// reorders it into oneDNN's own (blocked) layout in every call, which pays for many rows of x.
#include <algorithm>

#include "kernels.hpp"

namespace tenon::onednn {
namespace {

// The tensors with equally many axes, as the primitive requires.
struct MatmulShapes {
  Description left, right, bias, result;
  bool has_bias = false;
};

// Joins the leading axes of `left` where its strides allow it: a batch of rows times one matrix is
// one large GEMM.
void join_rows(Description& left) {
  auto& [type, dims, strides] = left;
  while (dims.size() > 2) {
    const size_t i = dims.size() - 3;
    const bool is_joined =
        dims[i] == 1 || dims[i + 1] == 1 || strides[i] == dims[i + 1] * strides[i + 1];
    if (!is_joined) return;
    if (dims[i + 1] == 1) strides[i + 1] = strides[i];
    dims[i + 1] *= dims[i];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void insert_axis(Description& description, size_t at) {
  description.dims.insert(description.dims.begin() + static_cast<std::ptrdiff_t>(at), 1);
  description.strides.insert(description.strides.begin() + static_cast<std::ptrdiff_t>(at), 1);
}

// False: oneDNN has no fast implementation for these strides.
bool read_shapes(const tenon_tensor* x, const tenon_tensor* y, const tenon_tensor* bias,
                 bool transposed, int result_dtype, MatmulShapes& shapes) {
  if (!has_elements(x) || !has_elements(y) || x->ndim == 0 || y->ndim == 0) return false;
  if (std::max(x->ndim, y->ndim) > kMaxAxes) return false;
  shapes.left = describe(*x);
  shapes.right = describe(*y);
  if (transposed) {
    if (y->ndim != 2) return false;
    std::swap(shapes.right.dims[0], shapes.right.dims[1]);
    std::swap(shapes.right.strides[0], shapes.right.strides[1]);
  }
  if (x->ndim == 1) insert_axis(shapes.left, 0);
  if (y->ndim == 1) insert_axis(shapes.right, 1);
  if (shapes.right.dims.size() == 2) join_rows(shapes.left);
  while (shapes.right.dims.size() < shapes.left.dims.size()) insert_axis(shapes.right, 0);
  while (shapes.left.dims.size() < shapes.right.dims.size()) insert_axis(shapes.left, 0);
  if (!normalize_strides(shapes.left) || !normalize_strides(shapes.right)) return false;

  const size_t last = shapes.left.dims.size() - 1;
  // Without an axis of stride 1 among the last two, oneDNN takes its reference implementation.
  for (const Description* each : {&shapes.left, &shapes.right})
    if (each->strides[last] != 1 && each->strides[last - 1] != 1 && each->dims[last] > 1 &&
        each->dims[last - 1] > 1)
      return false;
  std::vector<int64_t> dims(last + 1);
  for (size_t i = 0; i + 1 < last; ++i)
    dims[i] = std::max(shapes.left.dims[i], shapes.right.dims[i]);
  dims[last - 1] = shapes.left.dims[last - 1];
  dims[last] = shapes.right.dims[last];
  shapes.result = describe(result_dtype, dims);
  shapes.has_bias = bias != nullptr;
  if (!bias) return true;
  if (bias->ndim != 1 || !(bias->flags & TENON_TENSOR_CONTIGUOUS) || bias->shape[0] != dims[last])
    return false;
  std::vector<int64_t> one_row(last + 1, 1);
  one_row[last] = bias->shape[0];
  shapes.bias = describe(bias->dtype, one_row);
  return true;
}

std::unique_ptr<Program> build(const Api& api, const MatmulShapes& p, bool reordered) {
  const Layout right = reordered ? api.any_layout(p.right) : api.layout(p.right);
  const Layout bias = p.has_bias ? api.layout(p.bias) : Layout();
  if (p.has_bias && !bias) return nullptr;
  const Layout left = api.layout(p.left), result = api.layout(p.result);
  if (!left || !right || !result) return nullptr;
  std::vector<Operand> operands = {{kSource, kQuerySource, false, p.left},
                                   {kWeights, kQueryWeights, false, p.right},
                                   {kDestination, kQueryDestination, true, p.result}};
  if (p.has_bias) operands.push_back({kBias, kNoQuery, false, p.bias});
  return Program::make(api, api.matmul(left, right, bias, result), operands);
}

// Without VNNI instructions oneDNN adds pairs of products in int16, which saturates.
bool has_exact_int8() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
#else
  return true;
#endif
}

template <int Number, bool Reordered>
struct MatmulKernel {
  static constexpr bool kIsLinear = Number == kLinear, kIsInteger = Number == kMatmulInteger;

  static const tenon_tensor* bias_of(const tenon_value* args) {
    return kIsLinear ? tenon_arg_tensor(&args[2]) : nullptr;
  }
  static Key key_of(const tenon_value* args) {
    Key key(Number * 2 + Reordered);
    return key.add(tenon_arg_tensor(&args[0])).add(tenon_arg_tensor(&args[1])).add(bias_of(args));
  }
  static Build build_of(const tenon_value* args) {
    return [args](const Api& api) -> std::unique_ptr<Program> {
      MatmulShapes shapes;
      const tenon_tensor *x = tenon_arg_tensor(&args[0]), *y = tenon_arg_tensor(&args[1]);
      if (!read_shapes(x, y, bias_of(args), kIsLinear, kIsInteger ? int{TENON_DTYPE_I32} : x->dtype,
                       shapes))
        return nullptr;
      constexpr int64_t kInt32PerVector = 16;
      if (kIsInteger && !api.has_int8_tails() && shapes.result.dims.back() % kInt32PerVector != 0)
        return nullptr;
      return build(api, shapes, Reordered);
    };
  }
  // oneDNN has no matmul with weights of uint8.
  static int32_t can_run(const tenon_value* args, uint32_t) {
    const tenon_tensor *x = tenon_arg_tensor(&args[0]), *y = tenon_arg_tensor(&args[1]);
    if (kIsInteger && (y->dtype != TENON_DTYPE_I8 || !has_exact_int8())) return 0;
    if (!kIsInteger && x->dtype != y->dtype) return 0;
    return can_build(key_of(args), build_of(args));
  }
  static tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs,
                          uint32_t, tenon_err* err) {
    std::vector<void*> data = {data_of(tenon_arg_tensor(&args[0])),
                               data_of(tenon_arg_tensor(&args[1])),
                               data_of(tenon_out_tensor(&outs[0]))};
    if (const tenon_tensor* bias = bias_of(args)) data.push_back(data_of(bias));
    return run_cached(key_of(args), build_of(args), ctx, data, err);
  }
  static tenon_kernel_def definition(const char* op, uint64_t dtypes) {
    return kernel_of(op, dtypes, TENON_KERNEL_STRIDED, run, can_run,
                     Reordered ? kScore - 1 : kScore);
  }
};

}  // namespace

KernelList matmul_kernels() {
  constexpr uint64_t kInt8 = uint64_t{1} << TENON_DTYPE_I8 | uint64_t{1} << TENON_DTYPE_U8;
  return {MatmulKernel<kMatmul, false>::definition("tenon::matmul", kFloats),
          MatmulKernel<kMatmul, true>::definition("tenon::matmul", kFloats),
          MatmulKernel<kLinear, false>::definition("tenon::linear", kFloats),
          MatmulKernel<kLinear, true>::definition("tenon::linear", kFloats),
          MatmulKernel<kMatmulInteger, false>::definition("tenon::matmul_integer", kInt8),
          MatmulKernel<kMatmulInteger, true>::definition("tenon::matmul_integer", kInt8)};
}

}  // namespace tenon::onednn
