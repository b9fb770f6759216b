// SPDX-License-Identifier: Apache-2.0
// What the vendors' libraries of transforms and factorizations leave to their callers: copies between layouts, and small
// fills. An element is a Real (float or double), or with COMPLEX a pair of them.
#if COMPLEX
struct alignas(2 * sizeof(Real)) Element {
  Real re, im;
};
static __device__ inline Element zero() { return {0, 0}; }
static __device__ inline Element one() { return {1, 0}; }
static __device__ inline Element conjugated(Element x) { return {x.re, -x.im}; }
static __device__ inline Element scaled(Element x, Real factor) { return {x.re * factor, x.im * factor}; }
static __device__ inline Element sum(Element x, Element y) { return {x.re + y.re, x.im + y.im}; }
static __device__ inline Element product(Element x, Element y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
static __device__ inline double magnitude(Element x) {
  const double a = x.re < 0 ? -x.re : x.re, b = x.im < 0 ? -x.im : x.im, larger = a > b ? a : b;
  if (!(larger > 0) || a != a || b != b || larger - larger != 0) return a + b;
  return larger * sqrt((a / larger) * (a / larger) + (b / larger) * (b / larger));
}
// Infinity less itself is NaN, and NaN is not equal to anything.
static __device__ inline bool is_finite(Element x) { return x.re - x.re == 0 && x.im - x.im == 0; }
#else
typedef Real Element;
static __device__ inline Element zero() { return 0; }
static __device__ inline Element one() { return 1; }
static __device__ inline Element conjugated(Element x) { return x; }
static __device__ inline Element scaled(Element x, Real factor) { return x * factor; }
static __device__ inline Element sum(Element x, Element y) { return x + y; }
static __device__ inline Element product(Element x, Element y) { return x * y; }
static __device__ inline double magnitude(Element x) { return x < 0 ? -x : x; }
static __device__ inline bool is_finite(Element x) { return x - x == 0; }
#endif

struct Extents {  // of axes, the outermost first; or strides in elements
  tk_i64 of[8];
};

// From one layout to another. `triangle`: of the matrices in the last two axes, 1: the upper triangle, -1: the lower one,
// the rest becomes zeros; 0: all. `faults` (may be NULL): becomes 1 for a matrix that has an element which is not finite there.
TK_KERNEL void tenon_copy(const Element *from, Element *to, Extents extents, Extents from_strides, Extents to_strides,
                          int axes, tk_i64 count, int triangle, int conjugates, double factor, int *faults) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) {
    tk_i64 source = 0, target = 0, rest = index, row = 0, column = 0;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const tk_i64 at = rest % extents.of[axis];
      rest /= extents.of[axis];
      source += at * from_strides.of[axis];
      target += at * to_strides.of[axis];
      if (axis == axes - 1) column = at;
      if (axis == axes - 2) row = at;
    }
    const bool outside = triangle > 0 ? row > column : triangle < 0 && row < column;
    Element x = outside ? zero() : from[source];
    if (faults && !is_finite(x)) faults[index / (extents.of[axes - 1] * extents.of[axes - 2])] = 1;
    if (conjugates) x = conjugated(x);
    if (factor != 1) x = scaled(x, (Real)factor);
    to[target] = x;
  }
}

// Packed matrices with ones on the diagonal and zeros elsewhere.
TK_KERNEL void tenon_identity(Element *to, tk_i64 rows, tk_i64 columns, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0))
    to[index] = index / columns % rows == index % columns ? one() : zero();
}

// The first columns of products of Householder reflections I - tau * v @ v.mH. The vectors of a matrix are columns of `rows`
// elements, `pitch` from matrix to matrix: those of reflection i have a one at i, and zeros before it. A thread makes one
// column of a packed matrix by rows.
TK_KERNEL void tenon_reflect(const Element *vectors, const Element *tau, Element *to, tk_i64 rows, tk_i64 columns,
                             tk_i64 reflections, tk_i64 pitch, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) {
    const tk_i64 matrix = index / columns, column = index % columns;
    Element *own = to + matrix * rows * columns + column;
    for (tk_i64 row = 0; row < rows; ++row) own[row * columns] = row == column ? one() : zero();
    for (tk_i64 i = reflections - 1; i >= 0; --i) {
      const Element *v = vectors + matrix * pitch + i * rows;
      Element along = own[i * columns];
      for (tk_i64 row = i + 1; row < rows; ++row) along = sum(along, product(conjugated(v[row]), own[row * columns]));
      along = scaled(product(tau[matrix * reflections + i], along), -1);
      own[i * columns] = sum(own[i * columns], along);
      for (tk_i64 row = i + 1; row < rows; ++row) own[row * columns] = sum(own[row * columns], product(v[row], along));
    }
  }
}

// The largest sum of magnitudes in a column of each of the packed square matrices, NaN if there is one. A group takes a matrix.
TK_KERNEL void tenon_norms(const Element *matrices, double *to, tk_i64 n, tk_i64 count) {
  TK_LOCAL double largest[256];
  const int thread = (int)tk_local_id(0), threads = (int)tk_local_size(0);
  for (tk_i64 matrix = tk_group_id(0); matrix < count; matrix += tk_group_count(0)) {
    double own = 0;
    for (tk_i64 column = thread; column < n; column += threads) {
      double sum = 0;
      for (tk_i64 row = 0; row < n; ++row) sum += magnitude(matrices[(matrix * n + row) * n + column]);
      if (own == own && !(sum <= own)) own = sum;
    }
    largest[thread] = own;
    tk_barrier();
    if (thread == 0) {
      for (int other = 1; other < threads; ++other)
        if (own == own && !(largest[other] <= own)) own = largest[other];
      to[matrix] = own;
    }
    tk_barrier();
  }
}

// Multiplies each of the packed matrices of `size` elements by its factor.
TK_KERNEL void tenon_scale(Element *matrices, const double *factors, tk_i64 size, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0))
    matrices[index] = scaled(matrices[index], (Real)factors[index / size]);
}

TK_KERNEL void tenon_add_scaled(Element *to, const Element *from, double factor, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0))
    to[index] = sum(to[index], scaled(from[index], (Real)factor));
}

// `count`: the rows of all the packed square matrices.
TK_KERNEL void tenon_add_diagonal(Element *to, double number, tk_i64 n, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) {
    Element *element = to + index * n + index % n;
    *element = sum(*element, scaled(one(), (Real)number));
  }
}

// The addresses of matrices in a batch, to which `strides` (in bytes) may broadcast them.
TK_KERNEL void tenon_addresses(char *memory, char **to, Extents extents, Extents strides, int axes, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) {
    tk_i64 offset = 0, rest = index;
    for (int axis = axes - 1; axis >= 0; --axis) {
      offset += rest % extents.of[axis] * strides.of[axis];
      rest /= extents.of[axis];
    }
    to[index] = memory + offset;
  }
}

// Rows or columns as the libraries number them, from 1 and in 32 bits.
TK_KERNEL void tenon_widen(const int *from, tk_i64 *to, tk_i64 count, int added) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) to[index] = (tk_i64)from[index] + added;
}

// The permutations that exchanging row i with row pivots[i] makes, step by step. `fault` becomes a pivot that names no
// row, plus 1 if that is not 0, so that 0 says that there is none.
TK_KERNEL void tenon_permutation(const tk_i64 *pivots, tk_i64 *to, tk_i64 steps, tk_i64 rows, tk_i64 count, tk_i64 *fault) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) {
    tk_i64 *row = to + index * rows;
    for (tk_i64 i = 0; i < rows; ++i) row[i] = i;
    for (tk_i64 i = 0; i < steps; ++i) {
      const tk_i64 other = pivots[index * steps + i];
      if (other < 0 || other >= rows) {
        *fault = other < 0 ? other : other + 1;
        break;
      }
      const tk_i64 kept = row[i];
      row[i] = row[other];
      row[other] = kept;
    }
  }
}

#if COMPLEX
TK_KERNEL void tenon_complex_of_real(const Real *from, Element *to, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) to[index] = {from[index], 0};
}

// A transform of real numbers from the half of axis `halved` that is known: the element at -k is the conjugate of that at
// k, along all axes in `transformed` at once.
TK_KERNEL void tenon_mirror(const Element *half, Element *to, Extents extents, Extents half_strides, int axes, tk_i64 count,
                            int halved, int transformed) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) {
    tk_i64 rest = index, there = 0, opposite = 0;
    bool is_known = true;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const tk_i64 n = extents.of[axis], at = rest % n;
      rest /= n;
      const tk_i64 other = transformed >> axis & 1 && at ? n - at : at;
      there += at * half_strides.of[axis];
      opposite += other * half_strides.of[axis];
      if (axis == halved) is_known = at <= n / 2;
    }
    to[index] = is_known ? half[there] : conjugated(half[opposite]);
  }
}

// In rows of `length` elements, of a transform whose result is real: the first one, and with `is_even` the last one, are
// real as well.
TK_KERNEL void tenon_real_ends(Element *rows, tk_i64 length, int is_even, tk_i64 count) {
  for (tk_i64 index = tk_global_id(0); index < count; index += tk_global_size(0)) {
    rows[index * length].im = 0;
    if (is_even) rows[index * length + length - 1].im = 0;
  }
}
#endif
