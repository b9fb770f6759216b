// SPDX-License-Identifier: Apache-2.0
#include "blas/blas_plan.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libraries/algorithm_ranks.hpp"
#include "libraries/dtypes.hpp"
#include "runtime/errors.hpp"

namespace gpu::blas {
namespace {

namespace number = vendor::blas_number;

// NVIDIA recommends 32 MiB for GPUs of compute capability 9.0, and less for others.
constexpr uint64_t kMaxWorkspaceBytes = uint64_t{32} << 20;
// Programs whose shapes change all the time would fill memory with plans otherwise.
constexpr size_t kMaxPlans = 4096;

template <class Set, class Object, class T>
bool set(Set function, Object object, int attribute, const T& value) {
  return function(object, attribute, &value, sizeof value) == 0;
}

bool make_layout(const Library& library, int type, const Matrix& matrix, int64_t rows,
                 int64_t columns, int64_t batches, Layout* out) {
  const auto [height, width] =
      matrix.transposed ? std::pair(rows, columns) : std::pair(columns, rows);
  return library.layout_create(out, type, static_cast<uint64_t>(height),
                               static_cast<uint64_t>(width), matrix.ld) == 0 &&
         (batches == 1 ||
          (set(library.layout_set, *out, number::kLayoutBatchCount,
               static_cast<int32_t>(batches)) &&
           set(library.layout_set, *out, number::kLayoutBatchStride, matrix.batch_stride)));
}

}  // namespace

std::unique_ptr<Plan> Plan::make(const Library& library, Handle handle, const Gemm& gemm) {
  std::unique_ptr<Plan> plan(new Plan(library, handle, gemm));
  return plan->build() ? std::move(plan) : nullptr;
}

Plan::~Plan() {
  for (Layout layout : {x_, y_, out_})
    if (layout) library_.layout_destroy(layout);
  if (desc_) library_.desc_destroy(desc_);
}

bool Plan::build() {
  const Gemm& gemm = gemm_;
  const int type = data_type(static_cast<int>(gemm.dtype));
  if (type < 0) return false;
  const int dtype = static_cast<int>(gemm.dtype);
  scale_dtype_ = is_complex(dtype) ? dtype : real_of(dtype);
  const Matrix result = {.ld = gemm.n, .batch_stride = gemm.m * gemm.n};
  return build_desc() && make_layout(library_, type, gemm.x, gemm.m, gemm.k, gemm.batches, &x_) &&
         make_layout(library_, type, gemm.y, gemm.k, gemm.n, gemm.batches, &y_) &&
         make_layout(library_, type, result, gemm.m, gemm.n, gemm.batches, &out_) &&
         ask_heuristic(1, &first_) == 1;
}

bool Plan::build_desc() {
  const int compute = is_double(scale_dtype_) ? number::kCompute64 : number::kCompute32;
  const int scale = data_type(scale_dtype_);
  const auto operation = [](const Matrix& matrix) {
    return static_cast<int32_t>(matrix.transposed ? number::kTransposed : number::kNotTransposed);
  };
  return library_.desc_create(&desc_, compute, scale) == 0 &&
         set(library_.desc_set, desc_, number::kDescTransposeA, operation(gemm_.y)) &&
         set(library_.desc_set, desc_, number::kDescTransposeB, operation(gemm_.x)) &&
         (!gemm_.has_bias || set(library_.desc_set, desc_, number::kDescEpilogue, kEpilogueBias));
}

int Plan::ask_heuristic(int count, HeuristicResult* results) const {
  Preference preference = nullptr;
  if (library_.preference_create(&preference) != 0) return 0;
  bool is_set =
      set(library_.preference_set, preference, number::kPreferenceWorkspace, kMaxWorkspaceBytes);
  if constexpr (number::kPreferenceAlignment >= 0) {
    const int64_t alignments[] = {gemm_.y.alignment, gemm_.x.alignment, gemm_.result_alignment,
                                  gemm_.result_alignment};
    for (int i = 0; i < 4; ++i)
      is_set = is_set && set(library_.preference_set, preference, number::kPreferenceAlignment + i,
                             static_cast<uint32_t>(alignments[i]));
  }
  int found = 0;
  const Status status = is_set ? library_.heuristic(handle_, desc_, y_, x_, out_, out_, preference,
                                                    count, results, &found)
                               : -1;
  library_.preference_destroy(preference);
  if (status != 0) return 0;
  const auto end = std::remove_if(results, results + std::clamp(found, 0, count),
                                  [](const HeuristicResult& each) { return each.state != 0; });
  return static_cast<int>(end - results);
}

const HeuristicResult* Plan::algorithm(size_t rank, tenon_device device) const {
  if (rank == 0) return &first_;
  std::call_once(others_once_, [&] {
    Current current(device);
    std::vector<HeuristicResult> list(kMaxAlgorithms);
    list.resize(static_cast<size_t>(ask_heuristic(kMaxAlgorithms, list.data())));
    std::erase_if(list, [this](const HeuristicResult& each) {
      return std::memcmp(&each.algorithm, &first_.algorithm, sizeof first_.algorithm) == 0;
    });
    others_ = std::move(list);
  });
  return rank <= others_.size() ? &others_[rank - 1] : nullptr;
}

Status Plan::run(const HeuristicResult& algorithm, const void* x, const void* y, const void* bias,
                 void* out, void* workspace, Stream stream) const {
  const void *one = number_of(scale_dtype_, 1), *zero = number_of(scale_dtype_, 0);
  std::unique_lock lock(bias_mutex_, std::defer_lock);
  if (bias) {
    lock.lock();
    if (!set(library_.desc_set, desc_, number::kDescBiasPointer, bias)) return -1;
  }
  return library_.matmul(handle_, desc_, one, y, y_, x, x_, zero, out, out_, out, out_,
                         &algorithm.algorithm, workspace, algorithm.workspace_bytes, stream);
}

Plans::~Plans() {
  plans_.clear();
  if (handle_) library_.destroy(handle_);
}

std::shared_ptr<const Plan> Plans::find(const Gemm& gemm) {
  std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(gemm); found != plans_.end()) return found->second;
  if (is_broken_) return nullptr;
  if (!handle_) {
    if (const Status status = library_.create(&handle_)) {
      is_broken_ = true;
      log(2,
          "%s does not start on this device (status %d); matmul falls back to the generated "
          "kernels",
          vendor::kBlas, status);
      return nullptr;
    }
  }
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_[gemm] = Plan::make(library_, handle_, gemm);
}

}  // namespace gpu::blas
