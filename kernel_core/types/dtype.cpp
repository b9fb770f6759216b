// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/types/dtype.hpp"

#include <algorithm>
#include <array>

#include "kernel_core/abi/slots.hpp"

namespace tenon::core {
namespace {

constexpr int32_t signed_of_size(uint32_t bytes) {
  switch (bytes) {
    case 1:
      return TENON_DTYPE_I8;
    case 2:
      return TENON_DTYPE_I16;
    case 4:
      return TENON_DTYPE_I32;
    case 8:
      return TENON_DTYPE_I64;
    default:
      return TENON_DTYPE_F64;
  }
}

constexpr int32_t promote_integers(int32_t a, int32_t b) {
  if (dtype_class(a) == dtype_class(b)) return dtype_size(a) >= dtype_size(b) ? a : b;
  int32_t signed_one = dtype_class(a) == DtypeClass::kSigned ? a : b;
  int32_t unsigned_one = signed_one == a ? b : a;
  return dtype_size(signed_one) > dtype_size(unsigned_one)
             ? signed_one
             : signed_of_size(dtype_size(unsigned_one) * 2);
}

constexpr int32_t promote_floats(int32_t a, int32_t b) {
  if (dtype_size(a) != dtype_size(b)) return dtype_size(a) > dtype_size(b) ? a : b;
  return dtype_size(a) == 1 ? TENON_DTYPE_F16 : TENON_DTYPE_F32;
}

constexpr int32_t promote_one(int32_t a, int32_t b) {
  if (a == b) return a;
  DtypeClass class_a = dtype_class(a), class_b = dtype_class(b);
  if (class_a == DtypeClass::kStorage) return a;
  if (class_b == DtypeClass::kStorage) return b;
  if (class_a == DtypeClass::kBool) return b;
  if (class_b == DtypeClass::kBool) return a;
  if (class_a < DtypeClass::kFloating && class_b < DtypeClass::kFloating)
    return promote_integers(a, b);
  if (class_a < DtypeClass::kFloating) return b;
  if (class_b < DtypeClass::kFloating) return a;
  if (class_a == DtypeClass::kFloating && class_b == DtypeClass::kFloating)
    return promote_floats(a, b);
  bool wide = a == TENON_DTYPE_C128 || b == TENON_DTYPE_C128 || a == TENON_DTYPE_F64 ||
              b == TENON_DTYPE_F64;
  return wide ? TENON_DTYPE_C128 : TENON_DTYPE_C64;
}

constexpr auto kPromotion = [] {
  std::array<std::array<uint8_t, TENON_DTYPE_COUNT>, TENON_DTYPE_COUNT> table{};
  for (int32_t a = 0; a < TENON_DTYPE_COUNT; ++a)
    for (int32_t b = 0; b < TENON_DTYPE_COUNT; ++b)
      table[a][b] = static_cast<uint8_t>(promote_one(a, b));
  return table;
}();

}  // namespace

int32_t promote(int32_t a, int32_t b) { return kPromotion[a][b]; }

int32_t promote_weak(int32_t tensor_dtype, DtypeClass scalar) {
  DtypeClass tensor_class = dtype_class(tensor_dtype);
  if (tensor_class == DtypeClass::kStorage) return tensor_dtype;
  bool tensor_is_integer =
      tensor_class == DtypeClass::kUnsigned || tensor_class == DtypeClass::kSigned;
  switch (scalar) {
    case DtypeClass::kBool:
      return tensor_dtype;
    case DtypeClass::kUnsigned:
    case DtypeClass::kSigned:
      return tensor_class == DtypeClass::kBool ? TENON_DTYPE_I64 : tensor_dtype;
    case DtypeClass::kFloating:
      return tensor_class == DtypeClass::kBool || tensor_is_integer ? TENON_DTYPE_F32
                                                                    : tensor_dtype;
    case DtypeClass::kStorage:
      return tensor_dtype;
    case DtypeClass::kComplex:
      if (tensor_class == DtypeClass::kComplex) return tensor_dtype;
      return tensor_dtype == TENON_DTYPE_F64 ? TENON_DTYPE_C128 : TENON_DTYPE_C64;
  }
  return tensor_dtype;
}

int32_t find_dtype(std::string_view name) {
  for (int32_t dtype = 0; dtype < TENON_DTYPE_COUNT; ++dtype)
    if (name == kDtypes[dtype].name) return dtype;
  return -1;
}

namespace slots {

int32_t dtype_promote(int32_t a, int32_t b) {
  return is_dtype(a) && is_dtype(b) ? promote(a, b) : -1;
}
const char* dtype_name(int32_t dtype) { return core::dtype_name(dtype); }
uint32_t dtype_size(int32_t dtype) { return is_dtype(dtype) ? core::dtype_size(dtype) : 0; }
int32_t dtype_find(const char* name) { return name ? find_dtype(name) : -1; }

}  // namespace slots
}  // namespace tenon::core
