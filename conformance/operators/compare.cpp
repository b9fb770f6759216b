// SPDX-License-Identifier: Apache-2.0
#include "operators/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "operators/values.hpp"

namespace tenon::kit {
namespace {

// Relative, also to the largest element: sums lose digits by cancelling.
double tolerance(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F8E4M3:
      return 0.13;  // one unit in the last place
    case TENON_DTYPE_F8E5M2:
      return 0.26;
    case TENON_DTYPE_F16:
      return 4e-3;
    case TENON_DTYPE_BF16:
      return 3e-2;
    case TENON_DTYPE_F32:
    case TENON_DTYPE_C64:
      return 5e-5;
    case TENON_DTYPE_F64:
    case TENON_DTYPE_C128:
      return 1e-9;
    default:
      return 0;  // integers and truth are exact
  }
}

// The smallest normal number and the smallest of all.
struct Least {
  double normal, subnormal;
};
Least least(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return {0x1p-14, 0x1p-24};
    case TENON_DTYPE_BF16:
      return {0x1p-126, 0x1p-133};
    case TENON_DTYPE_F32:
      return {0x1p-126, 0x1p-149};
    default:
      return {0x1p-1022, 0x0.0000000000001p-1022};
  }
}

std::string element_text(size_t i, size_t count, double expected, double got) {
  std::ostringstream exact;
  exact.precision(9);
  exact << "element " << i << " of " << count << ": expected " << expected << ", got " << got;
  return exact.str();
}

// Dtype, shape and device; empty if they are right.
std::string difference_of_kind(Engine& engine, const Tensor& want, const Tensor& got) {
  if (want->dtype != got->dtype)
    return text("dtype ", dtype_name(got->dtype), " instead of ", dtype_name(want->dtype));
  if (shape_of(want) != shape_of(got))
    return text("shape ", list_text(shape_of(got)), " instead of ", list_text(shape_of(want)));
  if (got->device != engine.device()) return "a result that is not on the device";
  return "";
}

// Most results are the CPU's to the last bit, and large ones are quickly compared so.
bool are_same_bytes(Engine& engine, const Tensor& want, const Tensor& got) {
  Tensor here = engine.on(engine.cpu(), got), right = engine.on(engine.cpu(), want);
  size_t bytes = static_cast<size_t>(want->numel) * real_host()->dtype_size(want->dtype);
  return bytes == 0 || std::memcmp(here->data, right->data, bytes) == 0;
}

}  // namespace

std::string difference(Engine& engine, const Tensor& want, const Tensor& got,
                       const Closeness& closeness) {
  if (!is_floating(want->dtype)) return difference(engine, want, got);
  if (std::string problem = difference_of_kind(engine, want, got); !problem.empty()) return problem;
  if (are_same_bytes(engine, want, got)) return "";
  std::vector<double> expected = numbers(engine, want), found = numbers(engine, got);
  double relative = closeness.relative;
  if (want->dtype == TENON_DTYPE_F64) relative *= 1e-5;
  if (want->dtype != TENON_DTYPE_F64 && want->dtype != TENON_DTYPE_F32)
    relative = relative > 0 ? tolerance(want->dtype) : 0;
  // What is rounded twice may be off by one of the smallest steps.
  Least step = least(want->dtype);
  double absolute = closeness.keeps_subnormal ? (relative > 0 ? step.subnormal : 0) : step.normal;
  for (size_t i = 0; i < expected.size(); ++i) {
    double a = expected[i], b = found[i];
    if (std::isnan(a) && std::isnan(b)) continue;
    bool is_close = a == b || (std::isfinite(a) && std::isfinite(b) &&
                               std::abs(a - b) <= relative * std::abs(a) + absolute);
    bool is_other_zero =
        closeness.keeps_zero_sign && a == 0 && b == 0 && std::signbit(a) != std::signbit(b);
    if (!is_close || is_other_zero) return element_text(i, expected.size(), a, b);
  }
  return "";
}

std::string difference(Engine& engine, const Tensor& want, const Tensor& got) {
  if (std::string problem = difference_of_kind(engine, want, got); !problem.empty()) return problem;
  if (are_same_bytes(engine, want, got)) return "";
  double allowed = tolerance(want->dtype);
  if (allowed == 0) {  // by their bytes: int64 has more digits than double
    Tensor here = engine.on(engine.cpu(), got), right = engine.on(engine.cpu(), want);
    size_t size = real_host()->dtype_size(want->dtype);
    for (int64_t i = 0; i < want->numel; ++i) {
      const char* a = static_cast<const char*>(right->data) + static_cast<size_t>(i) * size;
      const char* b = static_cast<const char*>(here->data) + static_cast<size_t>(i) * size;
      if (std::memcmp(a, b, size) == 0) continue;
      auto whole = [&](const char* at) {
        uint64_t bits = 0;
        std::memcpy(&bits, at, size);
        bool is_signed = want->dtype == TENON_DTYPE_I8 || want->dtype == TENON_DTYPE_I16 ||
                         want->dtype == TENON_DTYPE_I32 || want->dtype == TENON_DTYPE_I64;
        int shift = static_cast<int>(64 - 8 * size);
        return is_signed ? text(static_cast<int64_t>(bits << shift) >> shift) : text(bits);
      };
      return text("element ", i, " of ", want->numel, ": expected ", whole(a), ", got ", whole(b));
    }
    return "";
  }
  std::vector<double> expected = numbers(engine, want), found = numbers(engine, got);
  double scale = 1e-3;
  for (double value : expected)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    double a = expected[i], b = found[i];
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    bool is_close = std::isfinite(a) && std::isfinite(b) &&
                    std::abs(a - b) <= allowed * (std::abs(a) + 0.2 * scale);
    if (!is_close) return element_text(i, expected.size(), a, b);
  }
  return "";
}

}  // namespace tenon::kit
