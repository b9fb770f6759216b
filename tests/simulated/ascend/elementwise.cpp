// SPDX-License-Identifier: Apache-2.0
// Functions of aclnn that take one element of each operand to one of the result. Prototypes and formulas are those
// of the pages aclnn*.md of hicann/ops-math and hicann/ops-nn. Numbers are computed in float64.
#include <cmath>
#include <type_traits>

#include "tensor.hpp"

namespace simulated::aclnn {
namespace {

// f(double...) for floats, g(int64_t...) for others; the result is stored as it comes.
template <class F, class G, size_t... I>
int plan_map(const char* name, std::vector<const aclTensor*> operands, const aclTensor* out,
             bool same_dtype, F f, G g, std::index_sequence<I...>, uint64_t* bytes,
             aclOpExecutor** executor) {
  for (const aclTensor* operand : operands) {
    if (!operand || !out) return refuse(name, kNullPointer, "a tensor is nullptr");
    if (!is_alive(operand) || !is_alive(out))
      return refuse(name, kInvalid, "a tensor was destroyed");
    if (!broadcasts(operand->shape, out->shape))
      return refuse(name, kInvalid, "an operand does not broadcast to the result");
    if (operand->dtype != operands.back()->dtype) return refuse(name, kInvalid, "dtypes differ");
  }
  if (same_dtype ? out->dtype != operands.back()->dtype : out->dtype != kBool)
    return refuse(name, kInvalid, "the result has an unexpected dtype");
  if (!std::is_invocable_v<G, decltype(int64_t{I})...> && !is_float(operands.back()->dtype))
    return refuse(name, kInvalid, "expected floats");
  if (!std::is_invocable_v<F, decltype(double(I))...> && is_float(operands.back()->dtype))
    return refuse(name, kInvalid, "expected integers");
  const bool floats = is_float(operands.back()->dtype);
  operands.push_back(out);
  return plan(
      name, operands,
      [=](std::vector<View>& views) {
        View& to = views.back();
        const std::vector<int64_t>& shape = to.of.shape;
        const int64_t n = to.count();
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = to.offset(i, shape);
          if (floats) {
            if constexpr (std::is_invocable_v<F, decltype(double(I))...>)
              to.store(at, static_cast<double>(f(views[I].number(views[I].offset(i, shape))...)));
          } else {
            if constexpr (std::is_invocable_v<G, decltype(int64_t{I})...>)
              to.store(at, static_cast<int64_t>(g(views[I].integer(views[I].offset(i, shape))...)));
          }
        }
      },
      bytes, executor);
}

struct None {};  // no function for these dtypes

template <size_t N, class F, class G>
int map_to(const char* name, std::vector<const aclTensor*> operands, const aclTensor* out,
           bool same_dtype, F f, G g, uint64_t* bytes, aclOpExecutor** executor) {
  return plan_map(name, std::move(operands), out, same_dtype, f, g, std::make_index_sequence<N>(),
                  bytes, executor);
}

double gelu(double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double relu6(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
double digamma(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (x < 0 && x == std::floor(x)) return NAN;
  if (x < 0) return digamma(1 - x) - M_PI / std::tan(M_PI * x);
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  const double z = 1 / (x * x);
  return shift + std::log(x) - 0.5 / x -
         z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132))));
}
// Giles, "Approximating the erfinv function", as a start for Newton's method.
double erfinv(double x) {
  if (x <= -1 || x >= 1) return std::fabs(x) == 1 ? x * INFINITY : NAN;
  const double w = std::log((1 - x) * (1 + x)), a = 2 / (M_PI * 0.147) + w / 2;
  double y = std::copysign(std::sqrt(std::sqrt(a * a - w / 0.147) - a), x);
  for (int i = 0; i < 4; ++i) y -= (std::erf(y) - x) / (2 / std::sqrt(M_PI) * std::exp(-y * y));
  return y;
}
double nan_or(double x, double y, double otherwise) { return x != x ? x : y != y ? y : otherwise; }

#define UNARY(NAME, FLOATS, INTEGERS)                                                             \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* bytes, \
                                          aclOpExecutor** executor) {                             \
    return map_to<1>(#NAME, {self}, out, true, FLOATS, INTEGERS, bytes, executor);                \
  }                                                                                               \
  ACLNN_EXECUTE(NAME)
#define TEST(NAME, FLOATS, INTEGERS)                                                              \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* bytes, \
                                          aclOpExecutor** executor) {                             \
    return map_to<1>(#NAME, {self}, out, false, FLOATS, INTEGERS, bytes, executor);               \
  }                                                                                               \
  ACLNN_EXECUTE(NAME)
#define BINARY(NAME, SAME, FLOATS, INTEGERS)                                              \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclTensor* other,  \
                                          aclTensor* out, uint64_t* bytes,                \
                                          aclOpExecutor** executor) {                     \
    return map_to<2>(#NAME, {self, other}, out, SAME, FLOATS, INTEGERS, bytes, executor); \
  }                                                                                       \
  ACLNN_EXECUTE(NAME)
#define OF_X(...) [=](double x) { return __VA_ARGS__; }
#define OF_I(...) [=](int64_t x) { return __VA_ARGS__; }
#define OF_XY(...) [=](double x, double y) { return __VA_ARGS__; }
#define OF_IJ(...) [=](int64_t x, int64_t y) { return __VA_ARGS__; }

UNARY(aclnnAbs, OF_X(std::fabs(x)), OF_I(x < 0 ? -x : x))
UNARY(aclnnNeg, OF_X(-x), OF_I(-x))
UNARY(aclnnSquare, OF_X(x* x), OF_I(x* x))
UNARY(aclnnRelu, OF_X(x != x ? x : std::fmax(x, 0)), OF_I(x > 0 ? x : 0))
UNARY(aclnnAcos, OF_X(std::acos(x)), None{})
UNARY(aclnnAcosh, OF_X(std::acosh(x)), None{})
UNARY(aclnnAsin, OF_X(std::asin(x)), None{})
UNARY(aclnnAsinh, OF_X(std::asinh(x)), None{})
UNARY(aclnnAtan, OF_X(std::atan(x)), None{})
UNARY(aclnnAtanh, OF_X(std::atanh(x)), None{})
UNARY(aclnnCeil, OF_X(std::ceil(x)), None{})
UNARY(aclnnCos, OF_X(std::cos(x)), None{})
UNARY(aclnnCosh, OF_X(std::cosh(x)), None{})
UNARY(aclnnErf, OF_X(std::erf(x)), None{})
UNARY(aclnnErfc, OF_X(std::erfc(x)), None{})
UNARY(aclnnExp, OF_X(std::exp(x)), None{})
UNARY(aclnnExp2, OF_X(std::exp2(x)), None{})
UNARY(aclnnExpm1, OF_X(std::expm1(x)), None{})
UNARY(aclnnFloor, OF_X(std::floor(x)), None{})
UNARY(aclnnLog, OF_X(std::log(x)), None{})
UNARY(aclnnLog10, OF_X(std::log10(x)), None{})
UNARY(aclnnLog1p, OF_X(std::log1p(x)), None{})
UNARY(aclnnLog2, OF_X(std::log2(x)), None{})
UNARY(aclnnReciprocal, OF_X(1 / x), None{})
UNARY(aclnnRound, OF_X(std::nearbyint(x)), None{})
UNARY(aclnnRsqrt, OF_X(1 / std::sqrt(x)), None{})
UNARY(aclnnSin, OF_X(std::sin(x)), None{})
UNARY(aclnnSinc, OF_X(x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x)), None{})
UNARY(aclnnSinh, OF_X(std::sinh(x)), None{})
UNARY(aclnnSqrt, OF_X(std::sqrt(x)), None{})
UNARY(aclnnTan, OF_X(std::tan(x)), None{})
UNARY(aclnnTanh, OF_X(std::tanh(x)), None{})
UNARY(aclnnTrunc, OF_X(std::trunc(x)), None{})
UNARY(aclnnFrac, OF_X(x - std::trunc(x)), None{})
UNARY(aclnnSigmoid, OF_X(sigmoid(x)), None{})
UNARY(aclnnSilu, OF_X(x* sigmoid(x)), None{})
UNARY(aclnnMish, OF_X(x* std::tanh(std::log1p(std::exp(x)))), None{})
UNARY(aclnnSelu, OF_X(1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x))),
      None{})
UNARY(aclnnHardswish, OF_X(x* relu6(x + 3) / 6), None{})
UNARY(aclnnHardsigmoid, OF_X(relu6(x + 3) / 6), None{})
UNARY(aclnnLogSigmoid, OF_X(std::fmin(x, 0) - std::log1p(std::exp(-std::fabs(x)))), None{})
UNARY(aclnnErfinv, OF_X(erfinv(x)), None{})
UNARY(aclnnLgamma, OF_X(std::lgamma(x)), None{})
UNARY(aclnnDigamma, OF_X(digamma(x)), None{})
UNARY(aclnnSign, OF_X(x > 0 ? 1 : x < 0 ? -1 : x), OF_I((x > 0) - (x < 0)))
ACLNN_EXPORT int aclnnBitwiseNotGetWorkspaceSize(const aclTensor* self, aclTensor* out,
                                                 uint64_t* bytes, aclOpExecutor** executor) {
  const bool is_bool = is_alive(self) && self->dtype == kBool;
  return map_to<1>("aclnnBitwiseNot", {self}, out, true, None{}, OF_I(is_bool ? !x : ~x), bytes,
                   executor);
}
ACLNN_EXECUTE(aclnnBitwiseNot)
TEST(aclnnIsFinite, OF_X(std::isfinite(x)), None{})
TEST(aclnnIsInf, OF_X(std::isinf(x)), None{})
TEST(aclnnIsPosInf, OF_X(x == INFINITY), None{})
TEST(aclnnIsNegInf, OF_X(x == -INFINITY), None{})
TEST(aclnnLogicalNot, OF_X(x == 0), OF_I(x == 0))

BINARY(aclnnMul, true, OF_XY(x* y),
       OF_IJ(static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y))))
BINARY(aclnnDiv, true, OF_XY(x / y), None{})
BINARY(aclnnMaximum, true, OF_XY(nan_or(x, y, x > y ? x : y)), OF_IJ(x > y ? x : y))
BINARY(aclnnMinimum, true, OF_XY(nan_or(x, y, x < y ? x : y)), OF_IJ(x < y ? x : y))
BINARY(aclnnPowTensorTensor, true, OF_XY(std::pow(x, y)), None{})
BINARY(aclnnAtan2, true, OF_XY(std::atan2(x, y)), None{})
BINARY(aclnnLogAddExp, true,
       OF_XY(x == y ? x + M_LN2
                    : nan_or(x, y, std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y))))),
       None{})
BINARY(aclnnLogAddExp2, true,
       OF_XY(x == y ? x + 1
                    : nan_or(x, y,
                             std::fmax(x, y) + std::log1p(std::exp2(-std::fabs(x - y))) / M_LN2)),
       None{})
BINARY(aclnnBitwiseAndTensor, true, None{}, OF_IJ(x& y))
BINARY(aclnnBitwiseOrTensor, true, None{}, OF_IJ(x | y))
BINARY(aclnnBitwiseXorTensor, true, None{}, OF_IJ(x ^ y))
BINARY(aclnnEqTensor, false, OF_XY(x == y), OF_IJ(x == y))
BINARY(aclnnNeTensor, false, OF_XY(x != y), OF_IJ(x != y))
BINARY(aclnnLtTensor, false, OF_XY(x < y), OF_IJ(x < y))
BINARY(aclnnLeTensor, false, OF_XY(x <= y), OF_IJ(x <= y))
BINARY(aclnnGtTensor, false, OF_XY(x > y), OF_IJ(x > y))
BINARY(aclnnGeTensor, false, OF_XY(x >= y), OF_IJ(x >= y))
BINARY(aclnnLogicalAnd, false, OF_XY(x&& y), OF_IJ(x&& y))
BINARY(aclnnLogicalOr, false, OF_XY(x || y), OF_IJ(x || y))
BINARY(aclnnLogicalXor, false, OF_XY((x != 0) != (y != 0)), OF_IJ((x != 0) != (y != 0)))
BINARY(aclnnHeaviside, true, OF_XY(x == 0 ? y : x < 0 ? 0 : x > 0 ? 1 : x), None{})
BINARY(aclnnSigmoidBackward, true, OF_XY(x* y*(1 - y)), None{})
BINARY(aclnnTanhBackward, true, OF_XY(x*(1 - y * y)), None{})
BINARY(aclnnSiluBackward, true, OF_XY(x* sigmoid(y) * (1 + y * (1 - sigmoid(y)))), None{})

// Functions with further parameters. A scalar that is nullptr or was destroyed is refused.
#define NEEDS(...)                              \
  for (const aclScalar* scalar : {__VA_ARGS__}) \
    if (!is_alive(scalar))                      \
  return refuse(__func__, kNullPointer, "a scalar is nullptr or was destroyed")

#define SCALED(NAME, SIGN)                                                                         \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclTensor* other,           \
                                          const aclScalar* alpha, aclTensor* out, uint64_t* bytes, \
                                          aclOpExecutor** executor) {                              \
    NEEDS(alpha);                                                                                  \
    const double a = alpha->number;                                                                \
    const int64_t b = alpha->integer;                                                              \
    return map_to<2>(#NAME, {self, other}, out, true, OF_XY(x SIGN a * y), OF_IJ(x SIGN b * y),    \
                     bytes, executor);                                                             \
  }                                                                                                \
  ACLNN_EXECUTE(NAME)
SCALED(aclnnAdd, +)
SCALED(aclnnSub, -)

#define WITH_ONE(NAME, EXPRESSION)                                                         \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclScalar* first,   \
                                          aclTensor* out, uint64_t* bytes,                 \
                                          aclOpExecutor** executor) {                      \
    NEEDS(first);                                                                          \
    const double a = first->number;                                                        \
    return map_to<1>(#NAME, {self}, out, true, OF_X(EXPRESSION), None{}, bytes, executor); \
  }                                                                                        \
  ACLNN_EXECUTE(NAME)
#define WITH_TWO(NAME, EXPRESSION)                                                         \
  ACLNN_EXPORT int NAME##GetWorkspaceSize(const aclTensor* self, const aclScalar* first,   \
                                          const aclScalar* second, aclTensor* out,         \
                                          uint64_t* bytes, aclOpExecutor** executor) {     \
    NEEDS(first, second);                                                                  \
    const double a = first->number, b = second->number;                                    \
    return map_to<1>(#NAME, {self}, out, true, OF_X(EXPRESSION), None{}, bytes, executor); \
  }                                                                                        \
  ACLNN_EXECUTE(NAME)
WITH_ONE(aclnnCelu, x > 0 ? x : a * std::expm1(x / a))
WITH_ONE(aclnnLeakyRelu, x > 0 ? x : a * x)
WITH_ONE(aclnnMuls, x* a)
WITH_ONE(aclnnPowTensorScalar, std::pow(x, a))
WITH_TWO(aclnnHardtanh, x<a ? a : x> b ? b : x)
WITH_TWO(aclnnSoftplus, a* x > b ? x : std::log1p(std::exp(a * x)) / a)

ACLNN_EXPORT int aclnnEluGetWorkspaceSize(const aclTensor* self, const aclScalar* alpha,
                                          const aclScalar* scale, const aclScalar* input_scale,
                                          aclTensor* out, uint64_t* bytes,
                                          aclOpExecutor** executor) {
  NEEDS(alpha, scale, input_scale);
  const double a = alpha->number, b = scale->number, c = input_scale->number;
  return map_to<1>("aclnnElu", {self}, out, true, OF_X(b * (x > 0 ? x : a * std::expm1(c * x))),
                   None{}, bytes, executor);
}
ACLNN_EXECUTE(aclnnElu)

ACLNN_EXPORT int aclnnGeluV2GetWorkspaceSize(const aclTensor* self, int64_t approximate,
                                             aclTensor* out, uint64_t* bytes,
                                             aclOpExecutor** executor) {
  if (approximate != 0 && approximate != 1)
    return refuse("aclnnGeluV2", kInvalid, "approximate is 0 or 1");
  return map_to<1>("aclnnGeluV2", {self}, out, true, OF_X(approximate ? gelu_tanh(x) : gelu(x)),
                   None{}, bytes, executor);
}
ACLNN_EXECUTE(aclnnGeluV2)

// Outside [0, 1] the result is NaN, whatever eps; without a positive one nothing is limited.
ACLNN_EXPORT int aclnnLogitGetWorkspaceSize(const aclTensor* self, double eps, aclTensor* out,
                                            uint64_t* bytes, aclOpExecutor** executor) {
  return map_to<1>("aclnnLogit", {self}, out, true, [=](double x) {
        const double z = eps <= 0 ? x : std::fmin(std::fmax(x, eps), 1 - eps);
        return x < 0 || x > 1 ? NAN : std::log(z / (1 - z));
      }, None{}, bytes, executor);
}
ACLNN_EXECUTE(aclnnLogit)

double gelu_slope(double x) {
  return 0.5 * std::erfc(-x * M_SQRT1_2) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
// (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where it is small.
double gelu_tanh_slope(double x) {
  const double c = 2 * std::sqrt(2 / M_PI), u = c * (x + 0.044715 * x * x * x);
  return sigmoid(u) * (1 + x * sigmoid(-u) * c * (1 + 3 * 0.044715 * x * x));
}
ACLNN_EXPORT int aclnnGeluBackwardV2GetWorkspaceSize(const aclTensor* grad, const aclTensor* self,
                                                     char* approximate, aclTensor* out,
                                                     uint64_t* bytes, aclOpExecutor** executor) {
  if (!approximate) return refuse("aclnnGeluBackwardV2", kNullPointer, "approximate is nullptr");
  const std::string mode = approximate;
  if (mode != "none" && mode != "tanh")
    return refuse("aclnnGeluBackwardV2", kInvalid, "approximate is none or tanh");
  const bool is_tanh = mode == "tanh";
  return map_to<2>("aclnnGeluBackwardV2", {grad, self}, out, true,
                   OF_XY(x*(is_tanh ? gelu_tanh_slope(y) : gelu_slope(y))), None{}, bytes,
                   executor);
}
ACLNN_EXECUTE(aclnnGeluBackwardV2)

ACLNN_EXPORT int aclnnThresholdBackwardGetWorkspaceSize(const aclTensor* grad,
                                                        const aclTensor* self,
                                                        const aclScalar* threshold, aclTensor* out,
                                                        uint64_t* bytes, aclOpExecutor** executor) {
  NEEDS(threshold);
  const double a = threshold->number;
  return map_to<2>("aclnnThresholdBackward", {grad, self}, out, true, OF_XY(y <= a ? 0 : x),
                   OF_IJ(y <= a ? 0 : x), bytes, executor);
}
ACLNN_EXECUTE(aclnnThresholdBackward)

ACLNN_EXPORT int aclnnLerpGetWorkspaceSize(const aclTensor* self, const aclTensor* end,
                                           const aclTensor* weight, aclTensor* out, uint64_t* bytes,
                                           aclOpExecutor** executor) {
  return map_to<3>(
      "aclnnLerp", {self, end, weight}, out, true,
      [](double x, double y, double w) { return x + w * (y - x); }, None{}, bytes, executor);
}
ACLNN_EXECUTE(aclnnLerp)

}  // namespace
}  // namespace simulated::aclnn
