// SPDX-License-Identifier: Apache-2.0
// Every word of Kernel C, as this plugin's prelude renders it.
#include <bit>
#include <cmath>

#include "support.hpp"

namespace opencl_test {
namespace {

class OpenclPrelude : public DeviceTest {
 protected:
  bool has_float64() {
    tenon_compile_limits limits = {};
    limits.struct_size = sizeof limits;
    EXPECT_OK(compile()->limits(device_, &limits, err));
    return limits.dtype_mask & (1u << TENON_DTYPE_F64);
  }
};

TEST_F(OpenclPrelude, TypesHaveTheirSizes) {
  tenon_program program = build(R"(
    struct pair { tk_i64 a; tk_u8 b; tk_f32 c; };
    TK_KERNEL void sizes(TK_BUFFER(tk_i32, out), struct pair p) {
      TK_BIND(tk_i32, out);
      out[0] = sizeof(tk_i8) == 1 && sizeof(tk_i16) == 2 && sizeof(tk_i32) == 4 && sizeof(tk_i64) == 8 &&
               sizeof(tk_u8) == 1 && sizeof(tk_u16) == 2 && sizeof(tk_u32) == 4 && sizeof(tk_u64) == 8 &&
               sizeof(tk_f32) == 4;
      out[1] = (tk_i8)200 < 0 && (tk_u8)200 > 0;
      out[2] = (tk_i32)p.a + p.b + (tk_i32)p.c;
    })");
  struct {
    int64_t a;
    uint8_t b;
    float c;
  } pair = {100, 20, 3};
  void* out = device_copy(std::vector<int32_t>(3, 0));
  launch(kernel(program, "sizes"), {buffer(out), value(pair)}, 1, 1);
  EXPECT_EQ(values<int32_t>(out, 3), (std::vector<int32_t>{1, 1, 123}));
}

TEST_F(OpenclPrelude, ItemsKnowWhereTheyAre) {
  tenon_program program = build(R"(
    TK_KERNEL void linear(TK_BUFFER(tk_i64, out)) {
      TK_BIND(tk_i64, out);
      tk_i64 at = tk_global_id(0) + tk_global_size(0) * (tk_global_id(1) + tk_global_size(1) * tk_global_id(2));
      out[at] = tk_group_id(0) + 10 * tk_local_id(1) + 100 * tk_group_count(2) + 1000 * tk_local_size(0);
    })");
  void* out = allocate(8 * 4 * 3 * 2 * 8);
  std::vector<tenon_launch_arg> args = {buffer(out)};
  tenon_launch_request request = request_for(kernel(program, "linear"), args, 2, 2);
  request.groups[2] = 2;
  request.group_size[1] = 3;
  EXPECT_OK(compile()->kernel_launch(device_, &request, err));
  auto seen = values<int64_t>(out, 4 * 3 * 2);
  for (int64_t z = 0; z < 2; ++z)
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t x = 0; x < 4; ++x)
        EXPECT_EQ(seen[static_cast<size_t>(x + 4 * (y + 3 * z))], x / 2 + 10 * y + 200 + 2000);
}

TEST_F(OpenclPrelude, GroupsShareLocalMemoryBehindBarriers) {
  tenon_program program = build(R"(
    TK_CONSTANT tk_i32 shift[2] = {1, 3};
    TK_KERNEL void shift_tile(TK_BUFFER(tk_i32, out)) {
      TK_BIND(tk_i32, out);
      TK_LOCAL tk_i32 tile[64];
      for (int round = 0; round < 2; ++round) {
        tile[tk_local_id(0)] = round ? out[tk_global_id(0)] : (tk_i32)tk_global_id(0);
        tk_barrier();
        out[tk_global_id(0)] = tile[(tk_local_id(0) + shift[round]) % 64];
        tk_barrier();
      }
    })");
  void* out = allocate(256 * 4);
  launch(kernel(program, "shift_tile"), {buffer(out)}, 4, 64);
  auto seen = values<int32_t>(out, 256);
  for (int32_t i = 0; i < 256; ++i)
    EXPECT_EQ(seen[static_cast<size_t>(i)], i / 64 * 64 + (i % 64 + 4) % 64) << i;
}

TEST_F(OpenclPrelude, AtomicsLoseNothing) {
  tenon_program program = build(R"(
    TK_KERNEL void count(TK_BUFFER(tk_i32, i), TK_BUFFER(tk_u32, u), TK_BUFFER(tk_f32, f)) {
      TK_BIND(tk_i32, i);
      TK_BIND(tk_u32, u);
      TK_BIND(tk_f32, f);
      tk_i32 id = (tk_i32)tk_global_id(0);
      tk_atomic_add_i32(i, -1);
      tk_atomic_max_i32(i + 1, id - 500);
      tk_atomic_min_i32(i + 2, id - 500);
      tk_atomic_add_u32(u, 2u);
      tk_atomic_max_u32(u + 1, (tk_u32)id);
      tk_atomic_min_u32(u + 2, (tk_u32)id + 7u);
      if (tk_atomic_cas_u32(u + 3, 0u, (tk_u32)id + 1u) == 0u) tk_atomic_add_u32(u + 4, 1u);
      tk_atomic_add_f32(f, 0.5f);
      if (tk_atomic_add_f32(f + 1, 1.0f) == 41.0f) f[2] = 42.0f;
    })");
  void* i = device_copy(std::vector<int32_t>{0, INT32_MIN, INT32_MAX});
  void* u = device_copy(std::vector<uint32_t>{0, 0, UINT32_MAX, 0, 0});
  void* f = device_copy(std::vector<float>{0, 0, 0});
  launch(kernel(program, "count"), {buffer(i), buffer(u), buffer(f)}, 64, 64);
  EXPECT_EQ(values<int32_t>(i, 3), (std::vector<int32_t>{-4096, 3595, -500}));
  auto unsigned_seen = values<uint32_t>(u, 5);
  EXPECT_EQ(unsigned_seen[0], 8192u);
  EXPECT_EQ(unsigned_seen[1], 4095u);
  EXPECT_EQ(unsigned_seen[2], 7u);
  EXPECT_EQ(unsigned_seen[4], 1u);  // one item alone saw the 0
  EXPECT_EQ(values<float>(f, 3), (std::vector<float>{2048, 4096, 42}));
}

TEST_F(OpenclPrelude, BitsKeepTheirPattern) {
  std::string source = R"(
    TK_KERNEL void bits(TK_BUFFER(tk_u64, out), tk_f32 single) {
      TK_BIND(tk_u64, out);
      out[0] = tk_f32_bits(single) + (tk_bits_f32(0x40490fdbu) == single);
    })";
  if (has_float64())
    source += R"(
    TK_KERNEL void bits64(TK_BUFFER(tk_u64, out), tk_f64 number) {
      TK_BIND(tk_u64, out);
      out[1] = tk_f64_bits(number) + (tk_bits_f64(0x400921fb54442d18ul) == number);
    })";
  tenon_program program = build(source);
  void* out = device_copy(std::vector<uint64_t>(2, 0));
  launch(kernel(program, "bits"), {buffer(out), value(3.14159274f)}, 1, 1);
  EXPECT_EQ(values<uint64_t>(out, 1)[0], 0x40490fdbu + 1);
  if (!has_float64()) return;
  launch(kernel(program, "bits64"), {buffer(out), value(M_PI)}, 1, 1);
  EXPECT_EQ(values<uint64_t>(out, 2)[1], 0x400921fb54442d18u + 1);
}

// A half by arithmetic, to compare with.
float half_value(uint32_t bits) {
  float sign = bits & 0x8000 ? -1.0f : 1.0f;
  int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

TEST_F(OpenclPrelude, HalvesConvertExactlyAndRoundToEven) {
  tenon_program program = build(R"(
    TK_KERNEL void widen(TK_BUFFER(tk_f32, out)) {
      TK_BIND(tk_f32, out);
      out[tk_global_id(0)] = tk_f16_to_f32((tk_u16)tk_global_id(0));
    }
    TK_KERNEL void narrow(TK_BUFFER(tk_f32, x), TK_BUFFER(tk_u16, out)) {
      TK_BIND(tk_f32, x);
      TK_BIND(tk_u16, out);
      out[tk_global_id(0)] = tk_f32_to_f16(x[tk_global_id(0)]);
    })");
  void* wide = allocate(65536 * 4);
  launch(kernel(program, "widen"), {buffer(wide)}, 1024, 64);
  std::vector<float> seen = values<float>(wide, 65536);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float expected = half_value(bits);
    ASSERT_TRUE(std::isnan(expected)
                    ? std::isnan(seen[bits])
                    : std::bit_cast<uint32_t>(seen[bits]) == std::bit_cast<uint32_t>(expected))
        << bits << ": " << seen[bits] << " for " << expected;
  }
  // Every half itself, the tie above it, and what lies just beyond the tie on either side.
  std::vector<float> inputs;
  std::vector<uint16_t> expected;
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    float here = half_value(bits);
    float next = bits + 1 == 0x7c00 ? 65536.0f : half_value(bits + 1);
    float tie = (here + next) / 2;
    for (float sign : {1.0f, -1.0f}) {
      auto signed_bits = [&](uint32_t half) {
        return static_cast<uint16_t>(half | (sign < 0 ? 0x8000 : 0));
      };
      inputs.insert(inputs.end(), {sign * here, sign * tie, sign * std::nextafter(tie, 0.0f),
                                   sign * std::nextafter(tie, INFINITY)});
      expected.insert(expected.end(), {signed_bits(bits), signed_bits(bits + (bits & 1)),
                                       signed_bits(bits), signed_bits(bits + 1)});
    }
  }
  inputs.insert(inputs.end(), {INFINITY, -INFINITY, 1e30f, 1e-30f});
  expected.insert(expected.end(), {0x7c00, 0xfc00, 0x7c00, 0});
  inputs.insert(inputs.end(), 64 - inputs.size() % 64, NAN);
  void* x = device_copy(inputs);
  void* narrow = allocate(inputs.size() * 2);
  launch(kernel(program, "narrow"), {buffer(x), buffer(narrow)},
         static_cast<uint32_t>(inputs.size() / 64), 64);
  auto halves = values<uint16_t>(narrow, inputs.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(halves[i], expected[i]) << inputs[i];
  for (size_t i = expected.size(); i < inputs.size(); ++i) EXPECT_GT(halves[i] & 0x7fff, 0x7c00);
}

TEST_F(OpenclPrelude, DefinesEveryMathFunction) {
  std::string functions;
  for (const char* unary :
       {"exp",   "exp2", "expm1", "log",    "log2",  "log10", "log1p", "sqrt",  "rsqrt", "cbrt",
        "sin",   "cos",  "tan",   "asin",   "acos",  "atan",  "sinh",  "cosh",  "tanh",  "asinh",
        "atanh", "erf",  "erfc",  "lgamma", "floor", "ceil",  "rint",  "round", "trunc", "fabs"})
    functions += std::string("  sum += ") + unary + "(x);\n";
  functions += "  sum += acosh(x + (TYPE)1);\n";
  for (const char* binary :
       {"pow", "atan2", "fmod", "hypot", "copysign", "nextafter", "fmin", "fmax"})
    functions += std::string("  sum += ") + binary + "(x, x);\n";
  functions += "  sum += fma(x, x, x);\n  if (isnan(x) || isinf(x) || !isfinite(x)) sum = 0;\n";
  std::string types[] = {"tk_f32", "tk_f64"};
  for (size_t i = 0; i < (has_float64() ? 2 : 1); ++i) {
    tenon_program program =
        build("#define TYPE " + types[i] +
              "\nTK_FUNCTION TYPE sum_all(TYPE x) {\n  TYPE sum = 0;\n" + functions +
              "  return sum;\n}\nTK_KERNEL void run(TK_BUFFER(TYPE, out), TYPE x) {\n"
              "  TK_BIND(TYPE, out);\n  out[0] = sum_all(x);\n}\n");
    double x = 0.5;
    float single = 0.5f;
    double expected = exp(x) + exp2(x) + expm1(x) + log(x) + log2(x) + log10(x) + log1p(x) +
                      sqrt(x) + 1 / sqrt(x) + cbrt(x) + sin(x) + cos(x) + tan(x) + asin(x) +
                      acos(x) + atan(x) + sinh(x) + cosh(x) + tanh(x) + asinh(x) + atanh(x) +
                      erf(x) + erfc(x) + lgamma(x) + 0 + 1 + 0 + 1 + 0 + 0.5 + acosh(x + 1) +
                      pow(x, x) + atan2(x, x) + 0 + hypot(x, x) + x + x + x + x + fma(x, x, x);
    void* out = allocate(8);
    launch(kernel(program, "run"), {buffer(out), i ? value(x) : value(single)}, 1, 1);
    double seen = i ? values<double>(out, 1)[0] : static_cast<double>(values<float>(out, 1)[0]);
    EXPECT_NEAR(seen, expected, i ? 1e-13 : 1e-4) << types[i];
  }
}

TEST_F(OpenclPrelude, InfinityAndNanBehave) {
  tenon_program program = build(R"(
    TK_KERNEL void special(TK_BUFFER(tk_f32, x), TK_BUFFER(tk_i32, out)) {
      TK_BIND(tk_f32, x);
      TK_BIND(tk_i32, out);
      tk_f32 inf = x[0], nan = x[1], tiny = x[2], zero = x[3];
      out[0] = isinf(inf) && !isnan(inf) && isnan(nan) && !isfinite(nan) && nan != nan;
      out[1] = isnan(inf - inf) && isinf(1.0f / zero) && isnan(zero / zero) && 1.0f / -inf == 0.0f;
      out[2] = tiny > 0.0f && tiny * 0.5f > 0.0f;
      out[3] = x[4] / 3.0f == x[5];
    })");
  // Subnormal numbers survive where the device has them; the quotient is the correctly rounded one.
  void* x = device_copy(std::vector<float>{INFINITY, NAN, 1e-40f, 0, 10.0f, 10.0f / 3.0f});
  void* out = device_copy(std::vector<int32_t>(4, 0));
  launch(kernel(program, "special"), {buffer(x), buffer(out)}, 1, 1);
  auto seen = values<int32_t>(out, 4);
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(seen[1], 1);
  EXPECT_EQ(seen[3], 1);
}

}  // namespace
}  // namespace opencl_test
