// SPDX-License-Identifier: Apache-2.0
// The functions of cuBLASLt and hipBLASLt that multiply matrices. Every descriptor, size, address and
// algorithm is checked, and what does not fit is refused with the status of the real library or, where
// that would read or write wrong memory, with INVALID_VALUE.
//
// Sources: the cuBLAS reference (13.1), section cuBLASLt, and the hipBLASLt API reference.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../algorithm_time.hpp"
#include "../failures.hpp"
#include "../objects.hpp"
#include "gemm.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

#if SIMULATED_HIP
#define NAME(name) hipblasLt##name
extern "C" int hipGetDevice(int*);
#else
#define NAME(name) cublasLt##name
extern "C" int cuCtxGetDevice(int*);
#endif
extern "C" void* simulated_access(const void* memory, size_t bytes);
extern "C" int simulated_enqueue(void* stream, void (*call)(void*), void* user,
                                 void (*destroy)(void*));

using namespace simulated;

namespace {

#if SIMULATED_HIP
enum Status {
  kSuccess = 0,
  kNotInitialized = 1,
  kInvalidValue = 3,
  kFailed = 6,
  kNotSupported = 7
};
enum DescAttribute { kTransposeA = 0, kTransposeB = 1, kEpilogue = 2, kBiasPointer = 3 };
enum LayoutAttribute { kBatchCount = 0, kBatchStride = 1 };
enum PreferenceAttribute { kWorkspace = 1, kAlignmentA = -100 };
enum Operation { kNone = 111, kTransposed = 112 };
enum Compute { kCompute32 = 2, kCompute64 = 7 };
constexpr size_t kAlgorithmWords = 3;
#else
enum Status {
  kSuccess = 0,
  kNotInitialized = 1,
  kInvalidValue = 7,
  kFailed = 13,
  kNotSupported = 15
};
enum DescAttribute { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8 };
enum LayoutAttribute { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute { kWorkspace = 1, kAlignmentA = 5 };
enum Operation { kNone = 0, kTransposed = 1 };
enum Compute { kCompute32 = 68, kCompute64 = 70 };
constexpr size_t kAlgorithmWords = 8;
#endif
constexpr uint32_t kNoEpilogue = 1, kBiasEpilogue = 4;

struct Algorithm {
  uint64_t words[kAlgorithmWords];
};
struct HeuristicResult {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

struct Handle {
  int device;
};
struct Desc {
  int compute, scale;
  int32_t a = kNone, b = kNone;
  uint32_t epilogue = kNoEpilogue;
  const void* bias = nullptr;
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batches = 1;
  int64_t batch_stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

// What an algorithm was chosen for; its number is the first word of the caller's structure.
struct Chosen {
  uint64_t shape;
  uint32_t alignments[4];
  uint64_t workspace;
  uint64_t place;  // in the list of the heuristic

  bool operator==(const Chosen&) const = default;
};

Objects<Handle> handles;
Objects<Desc> descs;
Objects<Layout> layouts;
Objects<Preference> preferences;
std::mutex choosing;
std::vector<Chosen> chosen;

int status_of(bool success) { return success ? kSuccess : kInvalidValue; }

template <class T>
int read(T* member, const void* value, size_t bytes) {
  if (!value || bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(member, value, sizeof(T));
  return kSuccess;
}

int current_device() {
  int device = -1;
#if SIMULATED_HIP
  hipGetDevice(&device);
#else
  cuCtxGetDevice(&device);
#endif
  return device;
}

bool describe(const Layout& layout, int32_t operation, GemmMatrix* out) {
  if (operation != kNone && operation != kTransposed) return false;
  *out = {.rows = layout.rows,
          .columns = layout.columns,
          .ld = layout.ld,
          .batch_stride = layout.batch_stride,
          .transposed = operation == kTransposed};
  return true;
}

// Whether the descriptors describe one product.
int check(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, const Layout& d,
          Gemm* out) {
  // hipBLASLt multiplies no complex numbers, and cuBLASLt adds no bias to them.
  const bool is_complex = d.type == kComplex32 || d.type == kComplex64;
  if (is_complex && (SIMULATED_HIP || desc.epilogue != kNoEpilogue)) return kNotSupported;
  const bool is_double = d.type == kReal64 || d.type == kComplex64;
  if (desc.compute != (is_double ? kCompute64 : kCompute32) ||
      desc.scale != (is_complex  ? d.type
                     : is_double ? kReal64
                                 : kReal32))
    return kNotSupported;
  for (const Layout* each : {&a, &b, &c})
    if (each->type != d.type || each->batches != d.batches) return kInvalidValue;
  for (const Layout* each : {&a, &b, &c, &d})
    if (each->rows == 0 || each->columns == 0 || each->ld < static_cast<int64_t>(each->rows) ||
        each->batches < 1)
      return kInvalidValue;
  if (std::memcmp(&c, &d, sizeof c) != 0) return kNotSupported;
  Gemm gemm{.type = d.type, .batches = d.batches};
  if (!describe(a, desc.a, &gemm.a) || !describe(b, desc.b, &gemm.b) ||
      !describe(d, kNone, &gemm.d))
    return kInvalidValue;
  const auto height = [](const GemmMatrix& m) { return m.transposed ? m.columns : m.rows; };
  const auto width = [](const GemmMatrix& m) { return m.transposed ? m.rows : m.columns; };
  if (height(gemm.a) != d.rows || width(gemm.b) != d.columns || width(gemm.a) != height(gemm.b))
    return kInvalidValue;
  // Batches of the result must not overlap.
  if (d.batches > 1 && d.batch_stride < d.ld * static_cast<int64_t>(d.columns))
    return kInvalidValue;
  if (desc.epilogue != kNoEpilogue && desc.epilogue != kBiasEpilogue) return kNotSupported;
  *out = gemm;
  return kSuccess;
}

uint64_t hash(const Desc& desc, const Layout& a, const Layout& b, const Layout& d) {
  uint64_t result = 14695981039346656037u;
  const auto mix = [&](uint64_t word) { result = (result ^ word) * 1099511628211u; };
  for (uint64_t word : {static_cast<uint64_t>(desc.compute), static_cast<uint64_t>(desc.a),
                        static_cast<uint64_t>(desc.b), static_cast<uint64_t>(desc.epilogue)})
    mix(word);
  for (const Layout* each : {&a, &b, &d})
    for (uint64_t word : {static_cast<uint64_t>(each->type), each->rows, each->columns,
                          static_cast<uint64_t>(each->ld), static_cast<uint64_t>(each->batches),
                          static_cast<uint64_t>(each->batch_stride)})
      mix(word);
  return result;
}

bool is_aligned(const void* address, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

bool is_device_memory(const GemmMatrix& matrix, const Gemm& gemm) {
  return simulated_access(matrix.data, extent_bytes(matrix, gemm.batches, gemm.type)) != nullptr;
}

struct Queued {
  Gemm gemm;
  uint64_t microseconds;
};

}  // namespace

#define COUNT(name) \
  if (int error = count_call(#name)) return error

EXPORT int NAME(Create)(void** out) {
  COUNT(BlasLtCreate);
  const int device = current_device();
  return device < 0 ? int{kNotInitialized} : status_of(handles.add(out, {device}));
}
EXPORT int NAME(Destroy)(void* handle) { return status_of(handles.drop(handle)); }

EXPORT int NAME(MatmulDescCreate)(void** out, int compute, int scale) {
  return status_of(descs.add(out, {.compute = compute, .scale = scale}));
}
EXPORT int NAME(MatmulDescDestroy)(void* desc) { return status_of(descs.drop(desc)); }
EXPORT int NAME(MatmulDescSetAttribute)(void* handle, int attribute, const void* value,
                                        size_t bytes) {
  int status = kNotSupported;
  const bool known = descs.change(handle, [&](Desc& desc) {
    if (attribute == kTransposeA) status = read(&desc.a, value, bytes);
    if (attribute == kTransposeB) status = read(&desc.b, value, bytes);
    if (attribute == kEpilogue) status = read(&desc.epilogue, value, bytes);
    if (attribute == kBiasPointer) status = read(&desc.bias, value, bytes);
  });
  return known ? status : kInvalidValue;
}

EXPORT int NAME(MatrixLayoutCreate)(void** out, int type, uint64_t rows, uint64_t columns,
                                    int64_t ld) {
  if (!blas_type_bytes(type)) return kInvalidValue;
  return status_of(layouts.add(out, {.type = type, .rows = rows, .columns = columns, .ld = ld}));
}
EXPORT int NAME(MatrixLayoutDestroy)(void* layout) { return status_of(layouts.drop(layout)); }
EXPORT int NAME(MatrixLayoutSetAttribute)(void* handle, int attribute, const void* value,
                                          size_t bytes) {
  int status = kNotSupported;
  const bool known = layouts.change(handle, [&](Layout& layout) {
    if (attribute == kBatchCount) status = read(&layout.batches, value, bytes);
    if (attribute == kBatchStride) status = read(&layout.batch_stride, value, bytes);
  });
  return known ? status : kInvalidValue;
}

EXPORT int NAME(MatmulPreferenceCreate)(void** out) { return status_of(preferences.add(out)); }
EXPORT int NAME(MatmulPreferenceDestroy)(void* handle) {
  return status_of(preferences.drop(handle));
}
EXPORT int NAME(MatmulPreferenceSetAttribute)(void* handle, int attribute, const void* value,
                                              size_t bytes) {
  int status = kNotSupported;
  const bool known = preferences.change(handle, [&](Preference& preference) {
    if (attribute == kWorkspace) status = read(&preference.workspace, value, bytes);
    if (attribute >= kAlignmentA && attribute < kAlignmentA + 4)
      status = read(&preference.alignments[attribute - kAlignmentA], value, bytes);
  });
  return known ? status : kInvalidValue;
}

// Every algorithm wants exactly the alignment that it was chosen for, and the first two want memory to work in. An equal
// request gets equal algorithms.
EXPORT int NAME(MatmulAlgoGetHeuristic)(void* handle, void* desc_handle, void* a_handle,
                                        void* b_handle, void* c_handle, void* d_handle,
                                        void* preference_handle, int wanted,
                                        HeuristicResult* results, int* count) {
  COUNT(BlasLtMatmulAlgoGetHeuristic);
  Handle owner;
  Desc desc;
  Layout a, b, c, d;
  Preference preference;
  if (!handles.find(handle, &owner)) return kNotInitialized;
  if (!descs.find(desc_handle, &desc) || !layouts.find(a_handle, &a) ||
      !layouts.find(b_handle, &b) || !layouts.find(c_handle, &c) || !layouts.find(d_handle, &d) ||
      !preferences.find(preference_handle, &preference) || wanted < 1 || !results || !count)
    return kInvalidValue;
  Gemm gemm;
  if (int status = check(desc, a, b, c, d, &gemm)) return status;
  constexpr uint64_t kWorkspaceBytes = 4096;
  constexpr int kAlgorithms = 3;
  std::lock_guard lock(choosing);
  *count = std::min(wanted, kAlgorithms);
  for (int i = 0; i < *count; ++i) {
    const bool has_workspace = i < 2 && preference.workspace >= kWorkspaceBytes;
    Chosen algorithm{.shape = hash(desc, a, b, d),
                     .alignments = {},
                     .workspace = has_workspace ? kWorkspaceBytes : 0,
                     .place = static_cast<uint64_t>(i)};
    std::memcpy(algorithm.alignments, preference.alignments, sizeof algorithm.alignments);
    auto known = std::find(chosen.begin(), chosen.end(), algorithm);
    if (known == chosen.end()) known = chosen.insert(known, algorithm);
    results[i] = {.workspace_bytes = algorithm.workspace, .state = kSuccess, .waves = 1};
    results[i].algorithm.words[0] = static_cast<uint64_t>(known - chosen.begin()) + 1;
  }
  return kSuccess;
}

EXPORT int NAME(Matmul)(void* handle, void* desc_handle, const void* alpha, const void* a_data,
                        void* a_handle, const void* b_data, void* b_handle, const void* beta,
                        const void* c_data, void* c_handle, void* d_data, void* d_handle,
                        const Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                        void* stream) {
  COUNT(BlasLtMatmul);
  Handle owner;
  Desc desc;
  Layout a, b, c, d;
  if (!handles.find(handle, &owner) || owner.device != current_device()) return kNotInitialized;
  if (!descs.find(desc_handle, &desc) || !layouts.find(a_handle, &a) ||
      !layouts.find(b_handle, &b) || !layouts.find(c_handle, &c) || !layouts.find(d_handle, &d) ||
      !alpha || !beta || !algorithm)
    return kInvalidValue;
  auto queued = std::make_unique<Queued>();
  Gemm& gemm = queued->gemm;
  if (int status = check(desc, a, b, c, d, &gemm)) return status;
  const bool is_double = d.type == kReal64 || d.type == kComplex64;
  gemm.alpha = is_double ? *static_cast<const double*>(alpha)
                         : static_cast<double>(*static_cast<const float*>(alpha));
  const double scale_c = is_double ? *static_cast<const double*>(beta)
                                   : static_cast<double>(*static_cast<const float*>(beta));
  if (scale_c != 0) return kNotSupported;
  gemm.a.data = a_data;
  gemm.b.data = b_data;
  gemm.d.data = d_data;
  Chosen own;
  {
    std::lock_guard lock(choosing);
    if (algorithm->words[0] == 0 || algorithm->words[0] > chosen.size()) return kInvalidValue;
    own = chosen[algorithm->words[0] - 1];
  }
  if (own.shape != hash(desc, a, b, d)) return kInvalidValue;
  const void* addresses[] = {a_data, b_data, c_data, d_data};
  for (int i = 0; i < 4; ++i)
    if (kAlignmentA >= 0 && !is_aligned(addresses[i], own.alignments[i])) return kInvalidValue;
  if (workspace_bytes < own.workspace ||
      (own.workspace &&
       (!is_aligned(workspace, 16) || !simulated_access(workspace, own.workspace))))
    return kInvalidValue;
  for (const GemmMatrix* each : {&gemm.a, &gemm.b, &gemm.d})
    if (!is_device_memory(*each, gemm)) return kInvalidValue;
  if (desc.epilogue == kBiasEpilogue) {
    gemm.bias = desc.bias;
    if (!simulated_access(gemm.bias, d.rows * blas_type_bytes(d.type))) return kInvalidValue;
  }
  if (int error = count_call(("BlasLtAlgorithm" + std::to_string(own.place)).c_str())) return error;
  queued->microseconds = algorithm_microseconds(own.place);
  const auto call = [](void* user) {
    take_time(static_cast<const Queued*>(user)->microseconds);
    run_gemm(static_cast<const Queued*>(user)->gemm,
             [](const void* memory, uint64_t bytes) { return simulated_access(memory, bytes); });
  };
  return simulated_enqueue(stream, call, queued.release(),
                           [](void* user) { delete static_cast<Queued*>(user); })
             ? int{kFailed}
             : int{kSuccess};
}
