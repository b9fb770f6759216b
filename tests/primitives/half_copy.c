/* SPDX-License-Identifier: Apache-2.0
 *
 * The template's device with float16 and bfloat16: one more kernel, the copy, brought by another
 * plugin. That is all a device needs for them; everything else about them is the host's. */
#include "kernels/primitives.c"

#include <string.h>

const tenon_host* acme_host;

tenon_status acme_fail(tenon_err* err, tenon_status code, const char* text) {
  acme_host->fail(err, code, 0, text, strlen(text));
  return code;
}

#define HALVES (BIT(F16) | BIT(BF16))
static int is_half(int32_t dtype) { return (HALVES >> dtype & 1) != 0; }

typedef struct Format {
  int exponent_bits, mantissa_bits, bias, top;
} Format;
static Format format_of(int32_t dtype) {
  return dtype == TENON_DTYPE_F16 ? (Format){5, 10, 15, 31} : (Format){8, 7, 127, 255};
}

static double from_half(uint16_t bits, Format f) {
  const int exponent = bits >> f.mantissa_bits & f.top,
            mantissa = bits & ((1 << f.mantissa_bits) - 1);
  const double size = exponent == f.top
                          ? (mantissa ? (double)NAN : (double)INFINITY)
                          : ldexp(mantissa + (exponent ? 1 << f.mantissa_bits : 0),
                                  (exponent ? exponent : 1) - f.bias - f.mantissa_bits);
  return bits >> 15 ? -size : size;
}

/* To the nearest, halves to even; a carry out of the mantissa goes into the exponent by itself. */
static uint16_t to_half(double x, Format f) {
  const uint32_t sign = signbit(x) ? 0x8000u : 0, infinity = (uint32_t)f.top << f.mantissa_bits;
  int exponent;
  if (x != x) return (uint16_t)(sign | infinity | 1u << (f.mantissa_bits - 1));
  if (x == 0 || isinf(x)) return (uint16_t)(sign | (x == 0 ? 0 : infinity));
  frexp(x, &exponent);
  exponent = exponent - 1 < 1 - f.bias ? 1 - f.bias : exponent - 1;
  const double units = nearbyint(ldexp(fabs(x), f.mantissa_bits - exponent));
  const int64_t bits = (int64_t)units + ((int64_t)(exponent + f.bias - 1) << f.mantissa_bits);
  return (uint16_t)(sign | (bits < infinity ? (uint32_t)bits : infinity));
}

static tenon_status half_copy(tenon_ctx* ctx, const tenon_tensor* x, int32_t dtype,
                              tenon_tensor* out, tenon_err* err) {
  (void)ctx, (void)err;
  for (int64_t i = 0; i < out->numel; ++i) {
    const int64_t from = place_of(x, i), to = place_of(out, i);
    const Number value =
        is_half(x->dtype) ? real(from_half(((const uint16_t*)x->data)[from], format_of(x->dtype)))
                          : load(x, from);
    if (is_half(dtype))
      ((uint16_t*)out->data)[to] =
          to_half(value.is_float ? value.real : (double)value.integer, format_of(dtype));
    else
      store(out, to, value);
  }
  return TENON_OK;
}
TENON_BOX_primitive_copy(half_copy_boxed, half_copy)

    static int32_t can_half_copy(const tenon_value* args, uint32_t nargs) {
  (void)nargs;
  return (int32_t)((SERVED | HALVES) >> tenon_arg_id(&args[1]) & 1);
}

static const tenon_kernel_def kernels[] = {
    {sizeof(tenon_kernel_def), TENON_KERNEL_STRIDED | TENON_KERNEL_STRIDED_OUT,
     "tenon::primitive_copy", "acme", TENON_HASH_primitive_copy, SERVED | HALVES, 0, 0,
     half_copy_boxed, (tenon_typed_fn)half_copy, can_half_copy},
};

static const tenon_plugin plugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "acme_half",
    .version = "1.0.0",
    .vendor = "Acme",
    .kernels = kernels,
    .kernel_size = sizeof(tenon_kernel_def),
    .nkernels = 1,
};

TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t host_min, uint32_t host_max,
                                                    const tenon_host* host, tenon_err* err) {
  (void)host_min, (void)host_max, (void)err;
  acme_host = host;
  return &plugin;
}
