// SPDX-License-Identifier: Apache-2.0
// The host's side of attention.cu. What the kernel does not take (a mask, other dtypes and extents) is left
// to the decomposition into matrix products and softmax.
#include "attention.hpp"

#include <tenon/unbox.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "kernels/device_programs.hpp"

namespace gpu::kernels {

// The files kernels/*.cu, embedded by the build.
namespace text {
extern const char mma[];
extern const char attention[];
}  // namespace text

namespace {

constexpr int32_t kScore = 50;
constexpr int64_t kRowsOfBlock = 128;  // ROWS and THREADS of attention.cu
constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxGridY = 65535;

struct RowStrides {
  int64_t batch = 0, head = 0, row = 0;
};

struct Attention {
  bool is_bfloat16 = false, causal = false;
  float scale = 1;
  int rows = 0, keys = 0, features = 0;
  int64_t batches = 1, heads = 1;
  std::array<RowStrides, 3> strides;  // of query, key and value
};

// The axes before the last two as at most two, for all operands alike.
bool join_batches(const std::array<const tenon_tensor*, 3>& tensors, Attention* out) {
  struct Axis {
    int64_t extent;
    std::array<int64_t, 3> strides;
  };
  std::array<Axis, 2> joined;  // the last one is the innermost
  int count = 0;
  for (int axis = tensors[0]->ndim - 3; axis >= 0; --axis) {
    const int64_t extent = tensors[0]->shape[axis];
    if (extent == 1) continue;
    Axis next = {extent, {}};
    for (size_t t = 0; t < 3; ++t) next.strides[t] = tensors[t]->strides[axis];
    bool joins = count > 0;
    for (size_t t = 0; t < 3 && joins; ++t)
      joins = next.strides[t] == joined[static_cast<size_t>(count - 1)].strides[t] *
                                     joined[static_cast<size_t>(count - 1)].extent;
    if (joins) {
      joined[static_cast<size_t>(count - 1)].extent *= extent;
    } else {
      if (count == 2) return false;
      joined[static_cast<size_t>(count++)] = next;
    }
  }
  if (count > 0) out->heads = joined[0].extent;
  if (count > 1) out->batches = joined[1].extent;
  for (size_t t = 0; t < 3; ++t) {
    if (count > 0) out->strides[t].head = joined[0].strides[t];
    if (count > 1) out->strides[t].batch = joined[1].strides[t];
  }
  return out->batches * out->heads <= kMaxGridY;
}

// The kernel reads 16 bytes at once.
bool is_readable(const tenon_tensor& tensor, const RowStrides& strides) {
  constexpr int64_t kPiece = 8;  // elements
  return tensor.strides[tensor.ndim - 1] == 1 &&
         reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0 && strides.batch % kPiece == 0 &&
         strides.head % kPiece == 0 && strides.row % kPiece == 0;
}

std::optional<Attention> describe(const tenon_value* args) {
  const std::array<const tenon_tensor*, 3> tensors = {
      tenon_arg_tensor(&args[0]), tenon_arg_tensor(&args[1]), tenon_arg_tensor(&args[2])};
  if (tenon_arg_tensor(&args[3])) return std::nullopt;  // a mask
  Attention attention;
  for (const tenon_tensor* tensor : tensors)
    if (!tensor || tensor->dtype != tensors[0]->dtype || tensor->ndim != tensors[0]->ndim ||
        tensor->ndim < 2 || tensor->numel == 0)
      return std::nullopt;
  const int last = tensors[0]->ndim - 1;
  const int64_t features = tensors[0]->shape[last], rows = tensors[0]->shape[last - 1],
                keys = tensors[1]->shape[last - 1];
  if (features != 64 && features != 128) return std::nullopt;
  for (int t = 1; t < 3; ++t) {
    const tenon_tensor& tensor = *tensors[static_cast<size_t>(t)];
    if (tensor.shape[last] != features || tensor.shape[last - 1] != keys) return std::nullopt;
    for (int axis = 0; axis < last - 1; ++axis)
      if (tensor.shape[axis] != tensors[0]->shape[axis]) return std::nullopt;
  }
  attention.is_bfloat16 = tensors[0]->dtype == TENON_DTYPE_BF16;
  attention.causal = tenon_arg_bool(&args[4]);
  attention.scale = static_cast<float>(tenon_arg_float(&args[5]));
  if (!(attention.scale > 0) || rows > INT32_MAX - kRowsOfBlock || keys > INT32_MAX - kRowsOfBlock)
    return std::nullopt;
  attention.rows = static_cast<int>(rows);
  attention.keys = static_cast<int>(keys);
  attention.features = static_cast<int>(features);
  if (!join_batches(tensors, &attention)) return std::nullopt;
  for (size_t t = 0; t < 3; ++t) {
    attention.strides[t].row = tensors[t]->strides[last - 1];
    if (!is_readable(*tensors[t], attention.strides[t])) return std::nullopt;
  }
  return attention;
}

std::string source_of(const Attention& attention) {
  std::string text;
  const auto define = [&](const char* name, int value) {
    text += std::string("#define ") + name + ' ' + std::to_string(value) + '\n';
  };
  if (attention.is_bfloat16) define("BFLOAT16", 1);
  if (attention.causal) define("CAUSAL", 1);
  define("FEATURES", attention.features);
  define("KEYS", attention.features == 64 ? 64 : 32);  // two stages fit 48 KiB of shared memory
  return text + text::mma + text::attention;
}

tenon_kernel kernel_of(tenon_device device, const Attention& attention) {
  const int variant =
      attention.features | int{attention.is_bfloat16} << 8 | int{attention.causal} << 9;
  return programs_of(device).kernel(variant, "tenon_attention",
                                    [&] { return source_of(attention); });
}

// Whether the device has the instructions of mma.cu: compute capability 8.0 or later.
bool has_tensor_cores(tenon_device device) {
  return std::atoi(device->architecture.c_str() + std::strlen("sm_")) >= 80;
}

int32_t can_run(const tenon_value* args, uint32_t) try {
  const tenon_tensor* query = tenon_arg_tensor(&args[0]);
  const tenon_device device = query ? open_device(TENON_DEVICE_INDEX(query->device)) : nullptr;
  if (!device || !has_tensor_cores(device)) return 0;
  const std::optional<Attention> attention = describe(args);
  return attention && kernel_of(device, *attention);
} catch (const std::bad_alloc&) {
  return 0;
}

tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t, tenon_value* outs, uint32_t,
                 tenon_err* err) try {
  const tenon_device device = host->ctx_device(ctx);
  const std::optional<Attention> attention = describe(args);
  const tenon_kernel kernel = attention ? kernel_of(device, *attention) : nullptr;
  if (!kernel)
    return fail(err, TENON_UNSUPPORTED,
                "attention: expected operands that the kernel for tensor cores takes");
  Arguments arguments;
  for (int i = 0; i < 3; ++i) arguments.buffer(tenon_arg_tensor(&args[i])->data);
  for (int i = 0; i < 2; ++i) arguments.buffer(tenon_out_tensor(&outs[i])->data);
  for (const RowStrides& strides : attention->strides) arguments.value(strides);
  arguments.value(static_cast<int>(attention->heads));
  arguments.value(attention->rows);
  arguments.value(attention->keys);
  arguments.value(attention->scale);
  const uint32_t blocks =
      static_cast<uint32_t>((attention->rows + kRowsOfBlock - 1) / kRowsOfBlock);
  return arguments.launch(device, kernel,
                          {blocks, static_cast<uint32_t>(attention->batches * attention->heads), 1},
                          {kThreads, 1, 1}, host->ctx_stream(ctx), err);
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

constexpr tenon_kernel_def kKernels[] = {
    {.struct_size = sizeof(tenon_kernel_def),
     .traits = TENON_KERNEL_STRIDED,
     .op = "tenon::attention",
     .device = nullptr,
     .schema_hash = 0,
     .dtype_mask = uint64_t{1} << TENON_DTYPE_F16 | uint64_t{1} << TENON_DTYPE_BF16,
     .score = kScore,
     .reserved = 0,
     .boxed = run,
     .typed = nullptr,
     .can_run = can_run}};

}  // namespace

std::span<const tenon_kernel_def> attention_kernels() { return kKernels; }

}  // namespace gpu::kernels
