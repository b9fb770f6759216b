// SPDX-License-Identifier: Apache-2.0
// erfinv and ndtri of float32, as opdefs/special.yaml has them for every dtype, with polynomials of as many terms as
// float32 needs. They approximate the quotient erfinv(x) / x with a relative error below 3e-8.
#include "elementwise/elementwise.hpp"

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

// For w = -log(1 - x^2) below 6.25.
TENON_INLINE float near_zero(float w) {
  const float t = w * 0.32f - 1;
  return math::detail::polynomial(t, 1.65365456f, 0.750494317f, -0.058922687f, -0.0226043307f,
                                  0.0178107645f, -0.00413865438f, -0.0012852012f, 0.00123884177f,
                                  -0.000233311555f, -0.00013095719f, 6.20275451e-5f);
}

// For z = sqrt(w) from 2.5 to 5; that of the erfinv of a float is less than 4.
TENON_INLINE float far_from_zero(float z) {
  const float t = z * 0.8f - 3;
  return math::detail::polynomial(
      t, 3.58750419f, 1.2608475f, 0.00320985561f, -0.0025220234f, 0.00133399691f, -0.000760876329f,
      0.000584078607f, -0.000566743221f, 0.000339466217f, -1.73798535e-5f, -4.56858597e-5f);
}

// For z above 5.
TENON_INLINE float tail(float z) {
  const float t = 11.8518519f / z - 1.37037037f;
  return z * math::detail::polynomial(t, 0.986339538f, -0.0150929901f, -0.00198353163f,
                                      0.000848214397f, -0.000162057102f, 3.95381367e-5f,
                                      -1.4012533e-5f, 1.28859851e-5f, -6.31325733e-6f);
}

void loop(char* const* data, const int64_t* strides, int64_t n, const tenon_value* attributes) {
  if (attribute_bool(attributes[0])) {
    run_loop<float, float>(data, strides, n, [](float p) {
      const float w = -math::log(4 * p * (1 - p)), z = math::sqrt(w);
      const float quotient =
          math::select(w < 6.25f, near_zero(w), math::select(z < 5, far_from_zero(z), tail(z)));
      return 1.41421356f * ((2 * p - 1) * quotient);
    });
  } else {
    run_loop<float, float>(data, strides, n, [](float x) {
      const float w = -math::log((1 - x) * (1 + x));
      const float z = math::sqrt(w);  // infinite for -1 and 1
      return x * math::select(w < 6.25f, near_zero(w), math::select(z < 5, far_from_zero(z), z));
    });
  }
}

constexpr ElementwiseKernel make_kernel() {
  ElementwiseKernel kernel = {.op = "tenon::inverse_normal",
                              .inputs = 1,
                              .dtype_input = 0,
                              .cost = 40,
                              .promises = 0,
                              .dtype_mask = uint64_t{1} << TENON_DTYPE_F32,
                              .loops = {}};
  kernel.loops[TENON_DTYPE_F32] = loop;
  return kernel;
}
constexpr ElementwiseKernel kKernel = make_kernel();

tenon_status run(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                 uint32_t, tenon_err* err) {
  return run_elementwise(kKernel, ctx, args, nargs, outs, err);
}

// Before the generated kernel of all dtypes.
constexpr tenon_kernel_def make_definition() {
  tenon_kernel_def definition = elementwise_kernel(kKernel, run);
  definition.score = 1;
  return definition;
}
const tenon_kernel_def kKernels[] = {make_definition()};

}  // namespace

KernelList inverse_normal_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ISA
