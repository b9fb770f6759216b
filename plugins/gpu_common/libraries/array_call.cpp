// SPDX-License-Identifier: Apache-2.0
#include "libraries/array_call.hpp"

#include <algorithm>
#include <string>

#include "kernels/device_programs.hpp"
#include "libraries/dtypes.hpp"
#include "runtime/errors.hpp"

namespace gpu {

namespace kernels::text {
extern const char arrays[];
}

namespace {

constexpr int kMaxAxes = 8;  // of a kernel; the axes outside of these are repeated launches
constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxBlocks = 65535;

struct Extents {
  int64_t of[kMaxAxes] = {};
};
Extents extents_of(std::span<const int64_t> values) {
  Extents extents;
  std::copy(values.begin(), values.end(), extents.of);
  return extents;
}

tenon_kernel kernel_of(tenon_device device, int dtype, const char* name) {
  constexpr int kFirstVariant = 1 << 16;  // the attention's are below
  return kernels::programs_of(device).kernel(kFirstVariant + dtype, name, [&] {
    return std::string("#define COMPLEX ") + (is_complex(dtype) ? "1" : "0") +
           (is_double(dtype) ? "\ntypedef double Real;\n" : "\ntypedef float Real;\n") +
           kernels::text::arrays;
  });
}

int64_t product(std::span<const int64_t> values) {
  int64_t result = 1;
  for (int64_t value : values) result *= value;
  return result;
}

}  // namespace

void CopyAxes::add_apart(int64_t extent, int64_t from, int64_t to) {
  axes_[count_++] = {extent, from, to};
}

void CopyAxes::add(int64_t extent, int64_t from, int64_t to) {
  if (extent == 1) return;
  if (count_ > 0) {
    Axis& outer = axes_[count_ - 1];
    if (outer.from == from * extent && outer.to == to * extent) {
      outer = {outer.extent * extent, from, to};
      return;
    }
  }
  add_apart(extent, from, to);
}

ArrayCall::ArrayCall(tenon_ctx* ctx, const char* op, tenon_err* err)
    : ctx_(ctx),
      device_(host->ctx_device(ctx)),
      stream_(host->ctx_stream(ctx)),
      op_(op),
      err_(err) {}

tenon_status ArrayCall::scratch(uint64_t bytes, void** out) const {
  *out = nullptr;
  return bytes ? host->scratch(ctx_, bytes, out, err_) : TENON_OK;
}

template <class Add>
tenon_status ArrayCall::launch(int dtype, const char* name, int64_t count, const Add& add) const {
  if (count == 0) return TENON_OK;
  const tenon_kernel kernel = kernel_of(device_, dtype, name);
  if (!kernel)
    return fail(err_, TENON_UNAVAILABLE, "%s: the kernel %s does not compile on this device", op_,
                name);
  kernels::Arguments arguments;
  add(arguments);
  const int64_t blocks = std::min((count + kThreads - 1) / kThreads, kMaxBlocks);
  return arguments.launch(device_, kernel, {static_cast<uint32_t>(blocks), 1, 1}, {kThreads, 1, 1},
                          stream_, err_);
}

tenon_status ArrayCall::copy(int dtype, const void* from, void* to, const CopyAxes& axes,
                             const CopyOptions& options) const {
  const std::span<const CopyAxes::Axis> all = axes.all();
  const size_t outer = all.size() > kMaxAxes ? all.size() - kMaxAxes : 0;
  Extents extents, from_strides, to_strides;
  int64_t count = 1, repeats = 1;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i < outer) {
      repeats *= all[i].extent;
      continue;
    }
    count *= all[i].extent;
    extents.of[i - outer] = all[i].extent;
    from_strides.of[i - outer] = all[i].from;
    to_strides.of[i - outer] = all[i].to;
  }
  const int64_t element = host->dtype_size(dtype);
  const int used = static_cast<int>(all.size() - outer);
  const int64_t matrices =
      options.faults ? count / (extents.of[used - 1] * extents.of[used - 2]) : 0;
  for (int64_t repeat = 0; repeat < repeats && count > 0; ++repeat) {
    int64_t rest = repeat, source = 0, target = 0;
    for (size_t i = outer; i-- > 0; rest /= all[i].extent) {
      source += rest % all[i].extent * all[i].from;
      target += rest % all[i].extent * all[i].to;
    }
    GPU_TRY(launch(dtype, "tenon_copy", count, [&](kernels::Arguments& arguments) {
      arguments.buffer(static_cast<const char*>(from) + source * element);
      arguments.buffer(static_cast<char*>(to) + target * element);
      arguments.value(extents);
      arguments.value(from_strides);
      arguments.value(to_strides);
      arguments.value(used);
      arguments.value(count);
      arguments.value(static_cast<int>(options.triangle));
      arguments.value(static_cast<int>(options.conjugates));
      arguments.value(options.factor);
      arguments.buffer(options.faults ? options.faults + repeat * matrices : nullptr);
    }));
  }
  return TENON_OK;
}

tenon_status ArrayCall::complex_of_real(int dtype, const void* from, void* to,
                                        int64_t count) const {
  return launch(dtype, "tenon_complex_of_real", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(from);
    arguments.buffer(to);
    arguments.value(count);
  });
}

tenon_status ArrayCall::identity(int dtype, void* to, int64_t rows, int64_t columns,
                                 int64_t batch) const {
  const int64_t count = rows * columns * batch;
  return launch(dtype, "tenon_identity", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(to);
    arguments.value(rows);
    arguments.value(columns);
    arguments.value(count);
  });
}

tenon_status ArrayCall::addresses(void* memory, void** to, std::span<const int64_t> extents,
                                  std::span<const int64_t> strides_in_bytes) const {
  if (extents.size() > kMaxAxes) {
    const int64_t inner = product(extents.subspan(1));
    for (int64_t i = 0; i < extents[0]; ++i)
      GPU_TRY(addresses(static_cast<char*>(memory) + i * strides_in_bytes[0], to + i * inner,
                        extents.subspan(1), strides_in_bytes.subspan(1)));
    return TENON_OK;
  }
  const int64_t count = product(extents);
  return launch(TENON_DTYPE_F32, "tenon_addresses", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(memory);
    arguments.buffer(to);
    arguments.value(extents_of(extents));
    arguments.value(extents_of(strides_in_bytes));
    arguments.value(static_cast<int>(extents.size()));
    arguments.value(count);
  });
}

tenon_status ArrayCall::widen(const int* from, int64_t* to, int64_t count, int added) const {
  return launch(TENON_DTYPE_F32, "tenon_widen", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(from);
    arguments.buffer(to);
    arguments.value(count);
    arguments.value(added);
  });
}

tenon_status ArrayCall::permutation(const int64_t* pivots, int64_t* to, int64_t steps, int64_t rows,
                                    int64_t batch, int64_t* fault) const {
  return launch(TENON_DTYPE_F32, "tenon_permutation", batch, [&](kernels::Arguments& arguments) {
    arguments.buffer(pivots);
    arguments.buffer(to);
    arguments.value(steps);
    arguments.value(rows);
    arguments.value(batch);
    arguments.buffer(fault);
  });
}

tenon_status ArrayCall::mirror(int dtype, const void* half, void* to,
                               std::span<const int64_t> extents,
                               std::span<const int64_t> half_strides, int halved,
                               int transformed) const {
  const int64_t count = product(extents);
  return launch(dtype, "tenon_mirror", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(half);
    arguments.buffer(to);
    arguments.value(extents_of(extents));
    arguments.value(extents_of(half_strides));
    arguments.value(static_cast<int>(extents.size()));
    arguments.value(count);
    arguments.value(halved);
    arguments.value(transformed);
  });
}

tenon_status ArrayCall::real_ends(int dtype, void* rows, int64_t length, bool is_even,
                                  int64_t count) const {
  return launch(dtype, "tenon_real_ends", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(rows);
    arguments.value(length);
    arguments.value(static_cast<int>(is_even));
    arguments.value(count);
  });
}

tenon_status ArrayCall::reflect(int dtype, const void* vectors, const void* tau, void* to,
                                int64_t rows, int64_t columns, int64_t reflections, int64_t pitch,
                                int64_t batch) const {
  const int64_t count = columns * batch;
  return launch(dtype, "tenon_reflect", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(vectors);
    arguments.buffer(tau);
    arguments.buffer(to);
    arguments.value(rows);
    arguments.value(columns);
    arguments.value(reflections);
    arguments.value(pitch);
    arguments.value(count);
  });
}

tenon_status ArrayCall::norms(int dtype, const void* matrices, double* to, int64_t n,
                              int64_t batch) const {
  return launch(dtype, "tenon_norms", batch * kThreads, [&](kernels::Arguments& arguments) {
    arguments.buffer(matrices);
    arguments.buffer(to);
    arguments.value(n);
    arguments.value(batch);
  });
}

tenon_status ArrayCall::scale(int dtype, void* matrices, const double* factors, int64_t size,
                              int64_t batch) const {
  return launch(dtype, "tenon_scale", size * batch, [&](kernels::Arguments& arguments) {
    arguments.buffer(matrices);
    arguments.buffer(factors);
    arguments.value(size);
    arguments.value(size * batch);
  });
}

tenon_status ArrayCall::add_scaled(int dtype, void* to, const void* from, double factor,
                                   int64_t count) const {
  return launch(dtype, "tenon_add_scaled", count, [&](kernels::Arguments& arguments) {
    arguments.buffer(to);
    arguments.buffer(from);
    arguments.value(factor);
    arguments.value(count);
  });
}

tenon_status ArrayCall::add_diagonal(int dtype, void* to, double number, int64_t n,
                                     int64_t batch) const {
  return launch(dtype, "tenon_add_diagonal", n * batch, [&](kernels::Arguments& arguments) {
    arguments.buffer(to);
    arguments.value(number);
    arguments.value(n);
    arguments.value(n * batch);
  });
}

tenon_status ArrayCall::fill(void* memory, uint64_t bytes, unsigned char value) const {
  return gpu::fill(device_, memory, 0, bytes, &value, 1, stream_, err_);
}

tenon_status ArrayCall::read(void* to, const void* from, uint64_t bytes) const {
  if (stream_of(device_, stream_).capturing)
    return fail(err_, TENON_UNSUPPORTED,
                "%s: expected a call outside of a recording, as it waits for the device to say "
                "whether it succeeded; compute it before the recording",
                op_);
  return transfer(TENON_COPY_DEVICE_TO_HOST, to, from, bytes);
}

tenon_status ArrayCall::wait() const {
  Current current(device_);
  tenon_stream_s& stream = stream_of(device_, stream_);
  const Error error = wait_for(stream);
  return error ? fail_device(device_, &stream, error, err_, "%s", op_) : TENON_OK;
}

tenon_status ArrayCall::write(void* to, const void* from, uint64_t bytes) const {
  return transfer(TENON_COPY_HOST_TO_DEVICE, to, from, bytes);
}

tenon_status ArrayCall::transfer(int direction, void* to, const void* from, uint64_t bytes) const {
  const tenon_copy_request request = {.struct_size = sizeof request,
                                      .direction = direction,
                                      .must_understand = 0,
                                      .dst = to,
                                      .src = from,
                                      .bytes = bytes,
                                      .dst_offset = 0,
                                      .src_offset = 0,
                                      .stream = stream_};
  return bytes ? gpu::copy(device_, &request, err_) : TENON_OK;
}

bool has_array_kernels(tenon_device device) {
  return kernel_of(device, TENON_DTYPE_F32, "tenon_copy") != nullptr;
}

}  // namespace gpu
