// SPDX-License-Identifier: Apache-2.0
// What a device does not compute in one dtype, it may compute in another one; and primitives that move or combine rows,
// of those for elements.
#include "lowering/elements.hpp"

namespace tenon::standard_ops {
namespace {

bool is_whole(int32_t dtype) { return lowering::is_integer(dtype); }

// Integers that hold all of the dtype's, and that the ways above know; the dtype itself if there are none.
int32_t wider(int32_t dtype) {
  switch (dtype) {
    case TENON_DTYPE_U8:
    case TENON_DTYPE_I8:
    case TENON_DTYPE_U16:
    case TENON_DTYPE_I16:
      return TENON_DTYPE_I32;
    case TENON_DTYPE_U32:
      return TENON_DTYPE_I64;
    default:
      return dtype;
  }
}

// Bits of which no sign matters: the results of both 64-bit integers are the same.
bool has_no_sign(int64_t opcode) {
  switch (opcode) {
    case TENON_BINARY_ADD:
    case TENON_BINARY_SUBTRACT:
    case TENON_BINARY_MULTIPLY:
    case TENON_BINARY_AND:
    case TENON_BINARY_OR:
    case TENON_BINARY_XOR:
    case TENON_BINARY_SHIFT_LEFT:
      return true;
    default:
      return false;
  }
}

// How elements of the dtype are moved where the device moves none of their dtype. The dtype itself: there is no other.
struct Carrier {
  int32_t bits;   // seen as these
  int32_t moved;  // and converted to these
};
Carrier carrier_of(int32_t dtype) {
  switch (host->dtype_size(dtype)) {
    case 8:
      return {TENON_DTYPE_I64, TENON_DTYPE_I64};
    case 4:
      return {TENON_DTYPE_I32, TENON_DTYPE_I32};
    case 2:
      return {TENON_DTYPE_I16, TENON_DTYPE_I32};
    case 1:
      return {dtype == TENON_DTYPE_BOOL ? int32_t{TENON_DTYPE_BOOL} : int32_t{TENON_DTYPE_U8},
              TENON_DTYPE_I32};
    default:
      return {dtype, dtype};
  }
}

// Calls move(carried arguments...) with the tensors in their carrier's dtype.
template <class Move, class... More>
Derived carried(const Move& move, const Elements& x, const More&... more) {
  const int32_t dtype = x.dtype();
  const Carrier carrier = carrier_of(dtype);
  if (carrier.moved == dtype) return {};
  const auto there = [&](const Elements& y) { return y.bits_as(carrier.bits).to(carrier.moved); };
  return move(there(x), there(more)...).to(carrier.bits).bits_as(dtype);
}

Shape elements_shape(const Elements& x) {
  return x.scope().ok() ? sizes_of(x.tensor()) : Shape(3, 0);
}

Elements zeros(const Elements& like, const Shape& shape) {
  if (!like.scope().ok()) return like;
  return like.made(primitive::full(like.scope(), shape, int64_t{0}, like.dtype(),
                                   static_cast<int32_t>(like.tensor()->device)));
}

// A result without elements needs no kernel.
Derived nothing(const Elements& like, const Shape& shape, int32_t dtype) {
  if (!like.scope().ok() || primitive::count_of(shape) > 0) return {};
  return like.made(empty(like.scope(), shape, dtype, like.tensor()->device));
}

}  // namespace

Derived derived_unary(int64_t opcode, const Elements& x) {
  const int32_t dtype = x.dtype();
  if (const Derived none = nothing(x, elements_shape(x), dtype)) return none;
  if (is_floating(dtype)) return derived_real_unary(opcode, x);
  if (!is_whole(dtype)) return {};
  if (dtype == TENON_DTYPE_U64) {
    if (opcode != TENON_UNARY_INVERT && opcode != TENON_UNARY_NEGATIVE) return {};
    return x.made(primitive::unary(x.scope(), opcode, x.bits_as(TENON_DTYPE_I64))).bits_as(dtype);
  }
  if (wider(dtype) != dtype)
    return x.made(primitive::unary(x.scope(), opcode, x.to(wider(dtype)))).to(dtype);
  return derived_whole_unary(opcode, x);
}

Derived derived_binary(int64_t opcode, const Elements& x, const Elements& y) {
  const int32_t dtype = x.dtype();
  if (y.dtype() != dtype) return {};
  if (const Derived none = nothing(x, elements_shape(x), dtype)) return none;
  if (is_floating(dtype)) return derived_real_binary(opcode, x, y);
  if (!is_whole(dtype)) return {};
  if (dtype == TENON_DTYPE_U64) {
    if (!has_no_sign(opcode)) return {};
    return x.binary(opcode, x.bits_as(TENON_DTYPE_I64), y.bits_as(TENON_DTYPE_I64)).bits_as(dtype);
  }
  if (wider(dtype) != dtype)
    return x.binary(opcode, x.to(wider(dtype)), y.to(wider(dtype))).to(dtype);
  return derived_whole_binary(opcode, x, y);
}

Derived derived_compare(int64_t opcode, const Elements& x, const Elements& y) {
  const int32_t dtype = x.dtype(), wide = wider(dtype);
  if (y.dtype() != dtype) return {};
  if (const Derived none = nothing(x, elements_shape(x), TENON_DTYPE_BOOL)) return none;
  if (wide == dtype) return {};
  return x.compare(opcode, x.to(wide), y.to(wide));
}

Derived derived_select(const Elements& condition, const Elements& x, const Elements& y) {
  if (const Derived none = nothing(x, elements_shape(x), x.dtype())) return none;
  return carried([&](const Elements& a, const Elements& b) { return select(condition, a, b); }, x,
                 y);
}

// Halves against each other, until one row is left; the middle one of an odd number waits.
Derived derived_reduce(int64_t opcode, const Elements& x) {
  constexpr int64_t kOpcodes[] = {TENON_BINARY_ADD, TENON_BINARY_MULTIPLY, TENON_BINARY_MAXIMUM,
                                  TENON_BINARY_MINIMUM};
  if (opcode < 0 || opcode >= static_cast<int64_t>(std::size(kOpcodes))) return {};
  Scope& scope = x.scope();
  const int64_t combine = kOpcodes[opcode];
  const Shape shape = elements_shape(x);
  if (const Derived none = nothing(x, {shape[0], shape[2]}, x.dtype())) return none;
  Tensor rows = x.tensor(), waiting;
  for (int64_t n = shape[1]; n > 1 && scope.ok(); n /= 2) {
    if (n % 2 != 0) {
      const Tensor last = part(scope, rows, 1, n - 1, 1);
      waiting = waiting ? primitive::binary(scope, combine, waiting, last) : last;
    }
    rows = primitive::binary(scope, combine, part(scope, rows, 1, 0, n / 2),
                             part(scope, rows, 1, n / 2, n / 2));
  }
  if (waiting) rows = primitive::binary(scope, combine, rows, waiting);
  return x.made(primitive::copy(scope, rows, x.dtype())).in_shape({shape[0], shape[2]});
}

// Products of all pairs, summed: in as many pieces along k as keep the memory for them small.
Derived derived_contract(const Elements& x, const Elements& y) {
  constexpr int64_t kMaxProducts = 1 << 24;
  const int32_t dtype = x.dtype();
  if (is_floating(dtype) ? primitive::is_narrow_float(dtype) : !is_whole(dtype)) return {};
  Scope& scope = x.scope();
  const Shape a = elements_shape(x), b = elements_shape(y);
  const int64_t batch = a[0], m = a[1], k = a[2], n = b[2];
  if (const Derived none = nothing(x, {batch, m, n}, dtype)) return none;
  Elements sum = zeros(x, {batch, m, n});
  const int64_t step = std::max<int64_t>(1, kMaxProducts / std::max<int64_t>(1, batch * m * n));
  for (int64_t begin = 0; begin < k && scope.ok(); begin += step) {
    const int64_t count = std::min(step, k - begin);
    const Shape all = {batch, m, count, n};
    const Tensor rows = part(scope, x.tensor(), 2, begin, count),
                 columns = part(scope, y.tensor(), 1, begin, count);
    if (!scope.ok()) break;
    const Tensor left = primitive::view(scope, rows, all,
                                        {rows->strides[0], rows->strides[1], rows->strides[2], 0});
    const Tensor right = primitive::view(
        scope, columns, all, {columns->strides[0], 0, columns->strides[1], columns->strides[2]});
    const Elements products = x.made(multiply(scope, left, right)).in_shape({batch * m, count, n});
    sum = sum +
          x.made(primitive::reduce(scope, TENON_REDUCTION_SUM, products)).in_shape({batch, m, n});
  }
  return sum;
}

Derived derived_gather(const Elements& x, const Elements& index) {
  const int64_t inner = elements_shape(x)[1], count = elements_shape(index)[0];
  if (const Derived none = nothing(x, {count, inner}, x.dtype())) return none;
  return carried(
      [&](const Elements& rows) { return x.made(primitive::gather(x.scope(), rows, index)); }, x);
}

namespace {

// Rows whose index comes more than once are brought together by sorting; then the sum up to the last of them, less the
// sum before the first, is theirs alone. Sums of integers wrap, so that the difference is right.
Elements added_by_sorting(const Elements& x, const Elements& index, const Elements& source) {
  Scope& scope = x.scope();
  const Shape shape = elements_shape(x);
  const int64_t n = shape[0], inner = shape[1], m = elements_shape(source)[0];
  const auto sorted = ops::sort_with_indices(scope, index);
  const Elements rows = x.made(sorted.values);
  const Elements values = x.made(primitive::gather(scope, source, sorted.indices));
  const Elements until =
      x.made(scan(scope, TENON_BINARY_ADD, values.in_shape({1, m, inner}).tensor(), false))
          .in_shape({m, inner});
  // Neighbours in the order; none has the row n.
  const auto beside = [&](int64_t from, int64_t to) {
    const Elements shifted = rows * int64_t{0} + n;
    write(scope, part(scope, rows.tensor(), 0, from, m - 1),
          part(scope, shifted.tensor(), 0, to, m - 1));
    return shifted;
  };
  const auto placed = [&](const Elements& is_wanted, const Elements& sums) {
    const Elements to = select(is_wanted, rows, n);  // all others meet in a row that is cut off
    const Elements all =
        x.made(primitive::scatter(scope, TENON_SCATTER_ASSIGN, zeros(x, {n + 1, inner}), to, sums));
    return x.made(part(scope, all.tensor(), 0, 0, n));
  };
  const Elements is_first = not_equal(rows, beside(0, 1)), is_last = not_equal(rows, beside(1, 0));
  return x + (placed(is_last, until) - placed(is_first, until - values));
}

}  // namespace

Derived derived_scatter(int64_t opcode, const Elements& x, const Elements& index,
                        const Elements& source) {
  if (const Derived none = nothing(x, elements_shape(x), x.dtype())) return none;
  const Shape shape = elements_shape(source);
  if (shape[0] == 0 || shape[1] == 0) return x.made(primitive::copy(x.scope(), x, x.dtype()));
  if (opcode == TENON_SCATTER_ASSIGN)
    return carried(
        [&](const Elements& rows, const Elements& changed) {
          return x.made(primitive::scatter(x.scope(), opcode, rows, index, changed));
        },
        x, source);
  const int32_t dtype = x.dtype();
  const bool is_bool = dtype == TENON_DTYPE_BOOL;  // whose sum is true if any of them is
  if (opcode != TENON_SCATTER_ADD || !(is_whole(dtype) || is_bool)) return {};
  const int32_t wide = is_bool ? int32_t{TENON_DTYPE_I32} : wider(dtype);
  if (wide != dtype)
    return x.made(primitive::scatter(x.scope(), opcode, x.to(wide), index, source.to(wide)))
        .to(dtype);
  if (dtype == TENON_DTYPE_U64)
    return x
        .made(primitive::scatter(x.scope(), opcode, x.bits_as(TENON_DTYPE_I64), index,
                                 source.bits_as(TENON_DTYPE_I64)))
        .bits_as(dtype);
  return added_by_sorting(x, index, source);
}

}  // namespace tenon::standard_ops
