// SPDX-License-Identifier: Apache-2.0
#include "positions.hpp"

#include "kernel.hpp"
#include "launch.hpp"
#include "source.hpp"

#include <algorithm>
#include <cstdlib>

namespace tenon::kernel_c {
namespace {

bool checks_indices(const Device& device) {
  const char* wish = std::getenv("TENON_KERNEL_C_CHECK");
  return wish && *wish ? *wish == '1' : device.host_like();
}

SourceText indices_source(const Device& device, const char* name, int dtype) {
  SourceText text(device, std::string(name) + "_" + suffix(dtype));
  text.define("STORAGE", dtype_text(dtype).storage);
  if (dtype == TENON_DTYPE_U64) text.define("UNSIGNED", 1);
  return text;
}

tenon_status check(tenon_ctx* ctx, Device& device, const char* op, const tenon_tensor* index,
                   int64_t length, tenon_err* err) {
  static constexpr char family = 0;
  tenon_kernel kernel;
  TRY(device.kernel(
      {&family, index->dtype},
      [&] {
        return std::move(indices_source(device, "check_positions", index->dtype)
                             .define("CHECK", 1)
                             .add(piece::positions))
            .finish();
      },
      &kernel, err));
  void* found;
  TRY(host->scratch(ctx, 2 * sizeof(int64_t), &found, err));
  Launch launch(ctx, device, err);
  launch.buffer(index);
  launch.buffer(found);
  launch.value(length);
  launch.value(index->numel);
  TRY(launch.run_exactly(kernel, {1, 1, 1}, {1, 1, 1}));
  int64_t answer[2];
  TRY(read_back(device, found, answer, 2, err));
  if (!answer[0]) return TENON_OK;
  return fail(err, TENON_OUT_OF_RANGE,
              "[" + std::string(op) + "] expected positions from " + std::to_string(-length) +
                  " to " + std::to_string(length - 1) + ", got " + std::to_string(answer[1]));
}

}  // namespace

tenon_status read_back(const Device& device, void* scratch, int64_t* out, int64_t count,
                       tenon_err* err) {
  tenon_tensor* handle;
  TRY(host->tensor_wrap(device.id, TENON_DTYPE_I64, 1, &count, nullptr, scratch, 0, nullptr,
                        nullptr, &handle, err));
  const Tensor there = Tensor::adopt(handle);
  TRY(host->tensor_create(host->device_host(), TENON_DTYPE_I64, 1, &count, &handle, err));
  const Tensor here = Tensor::adopt(handle);
  TRY(host->tensor_copy(here.get(), there.get(), err));
  std::copy_n(static_cast<const int64_t*>(here->data), count, out);
  return TENON_OK;
}

tenon_status linear_indices(tenon_ctx* ctx, Device& device, const char* op, const tenon_tensor* x,
                            const tenon_tensor* const* indices, uint64_t count, int64_t axis,
                            LinearIndices* out, tenon_err* err) {
  static constexpr char family = 0;
  axis = normalize_axis(axis, x->ndim);
  for (uint64_t k = 0; k < count; ++k) out->ndim = std::max(out->ndim, indices[k]->ndim);
  std::fill_n(out->shape, out->ndim, int64_t{1});
  for (uint64_t k = 0; k < count; ++k) {
    if (!is_integer(indices[k]->dtype))
      return fail(err, TENON_TYPE_MISMATCH,
                  "[" + std::string(op) + "] expected positions of an integer dtype, got " +
                      host->dtype_name(indices[k]->dtype));
    for (int32_t i = 0; i < indices[k]->ndim; ++i)
      if (indices[k]->shape[i] != 1)
        out->shape[out->ndim - indices[k]->ndim + i] = indices[k]->shape[i];
  }
  for (int32_t i = 0; i < out->ndim; ++i) out->count *= out->shape[i];
  TRY(host->scratch(ctx, static_cast<uint64_t>(std::max<int64_t>(out->count, 1)) * sizeof(int64_t),
                    &out->linear, err));
  for (uint64_t k = 0; k < count; ++k) {
    const tenon_tensor* index = indices[k];
    const int64_t length = x->ndim ? x->shape[axis + static_cast<int64_t>(k)] : 1;
    if (index->numel > 0 && checks_indices(device)) TRY(check(ctx, device, op, index, length, err));
    if (out->count == 0) continue;
    Layout layout(out->ndim, out->shape);
    layout.add(index);
    layout.collapse();
    if (layout.rank > kLayoutRank)
      return fail(err, TENON_UNSUPPORTED,
                  "[" + std::string(op) +
                      "] expected index tensors that broadcast along at most 8 "
                      "separate runs of axes; expand them first");
    const int rank = layout.launch_rank();
    tenon_kernel kernel;
    TRY(device.kernel(
        {&family, static_cast<uint64_t>(index->dtype) << 4 | static_cast<uint64_t>(rank)},
        [&] {
          return std::move(indices_source(device, "positions", index->dtype)
                               .define("RANK", rank)
                               .add(piece::positions))
              .finish();
        },
        &kernel, err));
    Launch launch(ctx, device, err);
    launch.buffer(index);
    launch.buffer(out->linear);
    launch.value(length);
    launch.value(int32_t{k == 0});
    launch.value(layout.shape_value());
    launch.value(layout.strides_value(0));
    launch.value(out->count);
    TRY(launch.run(kernel, out->count, 4));
  }
  return TENON_OK;
}

}  // namespace tenon::kernel_c
