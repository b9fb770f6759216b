// SPDX-License-Identifier: Apache-2.0
#include "solver/matrices.hpp"

#include <climits>

#include <tenon/status.hpp>
#include <tenon/text.hpp>

namespace gpu::solver {
namespace {

// " in matrix (1, 0) of the batch", or nothing where there is one matrix alone.
std::string where(std::span<const int64_t> batch, int64_t index) {
  if (batch.empty()) return "";
  std::vector<int64_t> indices(batch.size());
  for (size_t axis = batch.size(); axis-- > 0; index /= batch[axis])
    indices[axis] = index % batch[axis];
  return " in matrix " + tenon::list_text(indices) + " of the batch";
}

int64_t product(std::span<const int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents) result *= extent;
  return result;
}

// The strides by which matrices of a packed batch `own`, each `pitch` apart, broadcast to `batch`.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> own, std::span<const int64_t> batch,
                                       int64_t pitch) {
  std::vector<int64_t> strides(batch.size(), 0);
  for (size_t i = 1; i <= own.size(); ++i) {
    const int64_t extent = own[own.size() - i];
    if (extent != 1) strides[batch.size() - i] = pitch;
    pitch *= extent;
  }
  return strides;
}

}  // namespace

int64_t Batch::index_in(std::span<const int64_t> batch, int64_t index) const {
  const std::span<const int64_t> own = leading();
  int64_t result = 0, step = 1;
  for (size_t i = 1; i <= own.size(); ++i) {
    const int64_t extent = own[own.size() - i], at = index % batch[batch.size() - i];
    index /= batch[batch.size() - i];
    if (extent != 1) result += at * step;
    step *= extent;
  }
  return result;
}

tenon_status SolverCall::expect_int(std::initializer_list<int64_t> extents) const {
  for (int64_t extent : extents)
    if (extent > INT_MAX)
      return tenon::fail_format(err(), TENON_UNSUPPORTED,
                                "[%s] expected matrices with at most %d rows and columns, got %lld",
                                op(), INT_MAX, static_cast<long long>(extent));
  return TENON_OK;
}

tenon_status SolverCall::pack(const Batch& from, std::span<const int64_t> batch, const Packed& to,
                              const CopyOptions& options) const {
  CopyAxes axes;
  const size_t added = batch.size() - from.leading().size();
  int64_t pitch = to.pitch * product(batch);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i] == 0) return TENON_OK;
    pitch /= batch[i];
    const bool is_own = i >= added && from.leading()[i - added] != 1;
    axes.add(batch[i], is_own ? from.leading_stride(i - added) : 0, pitch);
  }
  axes.add_apart(from.rows(), from.row_stride(), to.row_stride());
  axes.add_apart(from.columns(), from.column_stride(), to.column_stride());
  return copy(dtype_, from.data(), to.data, axes, options);
}

tenon_status SolverCall::unpack(const Packed& from, const Batch& to,
                                const CopyOptions& options) const {
  CopyAxes axes;
  int64_t pitch = from.pitch * to.count();
  for (size_t i = 0; i < to.leading().size(); ++i) {
    if (to.leading()[i] == 0) return TENON_OK;
    pitch /= to.leading()[i];
    axes.add(to.leading()[i], pitch, to.leading_stride(i));
  }
  axes.add_apart(to.rows(), from.row_stride(), to.row_stride());
  axes.add_apart(to.columns(), from.column_stride(), to.column_stride());
  return copy(dtype_, from.data, to.data(), axes, options);
}

tenon_status SolverCall::addresses(const Batch& of, std::span<const int64_t> batch,
                                   const Packed& packed, void*** out) const {
  GPU_TRY(scratch(product(batch), out));
  return ArrayCall::addresses(packed.data, *out, batch,
                              broadcast_strides(of.leading(), batch, packed.pitch * bytes_));
}

tenon_status SolverCall::make_infos(int64_t count, int** out) const {
  GPU_TRY(scratch(count, out));
  return fill(*out, static_cast<uint64_t>(count) * sizeof(int), 0);
}

tenon_status SolverCall::check_infos(const int* infos, const Batch& own,
                                     std::span<const int64_t> batch, const char* expected,
                                     const char* hint) const {
  std::vector<int> found(static_cast<size_t>(own.count()));
  GPU_TRY(read(found.data(), infos, found.size() * sizeof(int)));
  for (int64_t index = 0, count = product(batch); index < count; ++index) {
    const int info = found[static_cast<size_t>(own.index_in(batch, index))];
    if (info < 0)
      return tenon::fail_format(err(), TENON_INTERNAL, "[%s] %s refused its parameter %d", op(),
                                vendor::kSolver, -info);
    if (info > 0)
      return tenon::fail_format(err(), TENON_INVALID_ARGUMENT,
                                "[%s] expected %s%s (%s: info %d); %s", op(), expected,
                                where(batch, index).c_str(), vendor::kSolver, info, hint);
  }
  return TENON_OK;
}

tenon_status SolverCall::check_finite(const int* faults, const Batch& own) const {
  std::vector<int> found(static_cast<size_t>(own.count()));
  GPU_TRY(read(found.data(), faults, found.size() * sizeof(int)));
  for (size_t index = 0; index < found.size(); ++index)
    if (found[index])
      return tenon::fail_format(err(), TENON_INVALID_ARGUMENT,
                                "[%s] expected finite elements, got NaN or infinity%s; check the "
                                "computation before it with isfinite()",
                                op(), where(own.leading(), static_cast<int64_t>(index)).c_str());
  return TENON_OK;
}

tenon_status SolverCall::fail_status(Status status) const {
  return fail(err(), TENON_INTERNAL, "%s: %s or %s returned status %d", op(), vendor::kSolver,
              vendor::kDenseBlas, status);
}

int32_t can_run(const tenon_value* args, uint32_t) {
  const tenon_tensor* x = tenon_arg_tensor(&args[0]);
  if (!library() || !x) return 0;
  const tenon_device device = open_device(TENON_DEVICE_INDEX(x->device));
  return device && has_array_kernels(device);
}

}  // namespace gpu::solver
