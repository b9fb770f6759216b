// SPDX-License-Identifier: Apache-2.0
// Gradients of attention: FlashAttention-2 (Dao, 2023, arXiv:2307.08691), backward. Scores are computed again, and
// their weights from the logarithms of the sums.
//
// With P = softmax(scale * Q K^T) and D = rowsum(dO * O): dS = P * (dO V^T - D), dV = P^T dO, dK = scale * dS^T Q
// and dQ = scale * dS K. One kernel has blocks that own rows of the query, and goes through the keys for dQ. Another
// one has blocks that own keys and goes through the queries for dK and dV, with all of the above transposed. So each
// result is added up by one warp in one order.
//
// Comes after attention_rows.cu. A block goes through the other side's rows TILE at a time. CAUSAL: row i sees keys
// up to i.
#define LOG2_E 1.4426950408889634f

// delta[row] = sum(grad[row] * out[row]), by as many lanes as a row has pieces of 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS) tenon_attention_grad_delta(
    const Half *grad, const Half *out, float *delta, Rows g, Rows o, Counts counts, int rows) {
  constexpr int kPieces = FEATURES / 8;
  const int row = (blockIdx.x * THREADS + threadIdx.x) / kPieces, piece = threadIdx.x % kPieces * 8;
  float sum = 0;
  if (row < rows) {
    const Half *a = grad + matrix_of_block(g, counts) + row * g.row + piece;
    const Half *b = out + matrix_of_block(o, counts) + row * o.row + piece;
    const uint4 x = *(const uint4 *)a, y = *(const uint4 *)b;
    const tk_u32 xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum += widen(xs[i] & 0xffff) * widen(ys[i] & 0xffff) + widen(xs[i] >> 16) * widen(ys[i] >> 16);
  }
#pragma unroll
  for (int lanes = kPieces / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  if (row < rows && piece == 0) delta[(tk_i64)blockIdx.y * rows + row] = sum;
}

// A matrix of one head: rows [length, FEATURES].
struct Matrix {
  const Half *data;
  tk_i64 row;
};

typedef tk_u32 Part[FEATURES / 16][4];       // 16 rows of a factor on the left
typedef float Accumulators[FEATURES / 8][4];  // 16 rows of a result

static __device__ inline void load_own(Part &part, Half (*shared)[PITCH], const Matrix &from, int first, int length) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  fetch<ROWS>(shared, from.data, from.row, first, length);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
#pragma unroll
  for (int f = 0; f < FEATURES / 16; ++f)
    load_matrices(part[f], &shared[16 * warp + lane % 16][16 * f + lane / 16 * 8]);
  __syncthreads();
}

// own [16, FEATURES] tile[TILE, FEATURES]^T
static __device__ inline void multiply_features(float (&c)[TILE / 8][4], const Part &own, Half (*tile)[PITCH]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int f = 0; f < FEATURES / 16; ++f)
#pragma unroll
    for (int j = 0; j < TILE / 8; j += 2) {
      tk_u32 b[4];
      load_matrices(b, &tile[8 * (j + lane / 16) + lane % 8][16 * f + lane / 8 % 2 * 8]);
      mma_16x8x16(c[j], own[f], b[0], b[1]);
      mma_16x8x16(c[j + 1], own[f], b[2], b[3]);
    }
}

// c += factors [16, TILE] tile [TILE, FEATURES]
static __device__ inline void add_product(Accumulators &c, const float (&factors)[TILE / 8][4], Half (*tile)[PITCH]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int s = 0; s < TILE / 16; ++s) {
    const float(&left)[4] = factors[2 * s], (&right)[4] = factors[2 * s + 1];
    const tk_u32 a[4] = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]),
                         pack(right[2], right[3])};
#pragma unroll
    for (int j = 0; j < FEATURES / 8; j += 2) {
      tk_u32 b[4];
      load_matrices_transposed(b, &tile[16 * s + lane % 16][8 * (j + lane / 16)]);
      mma_16x8x16(c[j], a, b[0], b[1]);
      mma_16x8x16(c[j + 1], a, b[2], b[3]);
    }
  }
}

static __device__ inline void store(Half *to, const Accumulators &from, float scale, int first, int length) {
  const int lane = threadIdx.x % 32, pair = lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + lane / 4 + 8 * half;
    if (row >= length) continue;
#pragma unroll
    for (int j = 0; j < FEATURES / 8; ++j)
      *(tk_u32 *)&to[(tk_i64)row * FEATURES + 8 * j + pair] =
          pack(from[j][2 * half] * scale, from[j][2 * half + 1] * scale);
  }
}

// The logarithm, to base 2, of a row's sum, and its delta. Behind the end: +inf, so that weights are 0.
struct Sums {
  float log, delta;
};
static __device__ inline Sums sums_of(const float *logsumexp, const float *delta, int row, int rows) {
  if (row >= rows) return {-MINUS_INFINITY, 0};
  return {logsumexp[row] * LOG2_E, delta[row]};
}

// The block's own rows of `mine` (query and gradient, or key and value) meet the rows [begin, end) of `theirs` (key and
// value, or query and gradient): first += dS theirs[0], and with OwnKeys second += P theirs[1]. Where the block owns
// keys, `passing` has the sums of the queries that pass by.
template <bool OwnKeys>
static __device__ inline void traverse(Half (*shared)[PITCH], Sums (*passing)[TILE], const Matrix (&mine)[2],
                                   const Matrix (&theirs)[2], int rows, int keys, int begin, int end,
                                   const float *logsumexp, const float *delta, float scale, Accumulators &first,
                                   Accumulators &second) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, pair = lane % 4 * 2;
  const int first_own = blockIdx.x * ROWS, warp_own = first_own + 16 * warp, own0 = warp_own + lane / 4;
  const int own_length = OwnKeys ? keys : rows, length = OwnKeys ? rows : keys;
  if (begin >= end) return;
  Part own[2];
  load_own(own[0], shared, mine[0], first_own, own_length);
  load_own(own[1], shared, mine[1], first_own, own_length);

  Sums sums[2];
  if constexpr (OwnKeys) {
    if (threadIdx.x < TILE) passing[0][threadIdx.x] = sums_of(logsumexp, delta, begin + threadIdx.x, rows);
  } else {
    sums[0] = sums_of(logsumexp, delta, own0, rows);
    sums[1] = sums_of(logsumexp, delta, own0 + 8, rows);
  }
  const float scale2 = scale * LOG2_E;  // exponentials are powers of 2
  fetch<TILE>(shared, theirs[0].data, theirs[0].row, begin, length);
  fetch<TILE>(shared + TILE, theirs[1].data, theirs[1].row, begin, length);
  commit_copies();
  for (int at = begin, stage = 0; at < end; at += TILE, stage ^= 1) {
    Half(*const tile)[PITCH] = shared + 2 * TILE * stage;
    const bool goes_on = at + TILE < end;
    Sums next = {0, 0};
    if (goes_on) {
      Half(*const free)[PITCH] = shared + 2 * TILE * (stage ^ 1);
      fetch<TILE>(free, theirs[0].data, theirs[0].row, at + TILE, length);
      fetch<TILE>(free + TILE, theirs[1].data, theirs[1].row, at + TILE, length);
      commit_copies();
      if (OwnKeys && threadIdx.x < TILE) next = sums_of(logsumexp, delta, at + TILE + threadIdx.x, rows);
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();

    float weights[TILE / 8][4] = {};
    multiply_features(weights, own[0], tile);
    bool masks = !OwnKeys && at + TILE > keys;  // keys behind the end; those of a block that owns them are not stored
#ifdef CAUSAL
    masks = masks || (OwnKeys ? at < warp_own + 15 : at + TILE - 1 > warp_own);
#endif
    if (masks) {
#pragma unroll
      for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = at + 8 * j + pair + i % 2;
          bool hides = !OwnKeys && column >= keys;
#ifdef CAUSAL
          const int row = own0 + i / 2 * 8;
          hides = hides || (OwnKeys ? row > column : column > row);
#endif
          if (hides) weights[j][i] = MINUS_INFINITY;
        }
    }
#pragma unroll
    for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float log = OwnKeys ? passing[stage][8 * j + pair + i % 2].log : sums[i / 2].log;
        weights[j][i] = exp2_approximate(weights[j][i] * scale2 - log);
      }
    if constexpr (OwnKeys) add_product(second, weights, tile + TILE);

    float grads[TILE / 8][4] = {};  // of the weights, then of the scores
    multiply_features(grads, own[1], tile + TILE);
#pragma unroll
    for (int j = 0; j < TILE / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float sum = OwnKeys ? passing[stage][8 * j + pair + i % 2].delta : sums[i / 2].delta;
        grads[j][i] = weights[j][i] * (grads[j][i] - sum);
      }
    add_product(first, grads, tile);
    if (OwnKeys && goes_on && threadIdx.x < TILE) passing[stage ^ 1][threadIdx.x] = next;
    __syncthreads();
  }
}

#define SHARED_ROWS (4 * TILE > ROWS ? 4 * TILE : ROWS)  // two stages of two tiles; first the block's own rows

extern "C" __global__ void __launch_bounds__(THREADS, FEATURES == 64 ? 2 : 1) tenon_attention_grad_query(
    const Half *query, const Half *key, const Half *value, const Half *grad, const float *logsumexp, const float *delta,
    Half *dquery, Rows q, Rows k, Rows v, Rows g, Counts counts, int rows, int keys, float scale) {
  __shared__ __align__(16) Half shared[SHARED_ROWS][PITCH];
  const Matrix mine[2] = {{query + matrix_of_block(q, counts), q.row}, {grad + matrix_of_block(g, counts), g.row}};
  const Matrix theirs[2] = {{key + matrix_of_block(k, counts), k.row}, {value + matrix_of_block(v, counts), v.row}};
  const tk_i64 sums = (tk_i64)blockIdx.y * rows;
#ifdef CAUSAL
  const int end = min(keys, (int)(blockIdx.x + 1) * ROWS);
#else
  const int end = keys;
#endif
  Accumulators result = {}, none;
  traverse<false>(shared, nullptr, mine, theirs, rows, keys, 0, end, logsumexp + sums, delta + sums, scale, result, none);
  store(dquery + sums * FEATURES, result, scale, blockIdx.x * ROWS + threadIdx.x / 32 * 16, rows);
}

extern "C" __global__ void __launch_bounds__(THREADS) tenon_attention_grad_keys(
    const Half *query, const Half *key, const Half *value, const Half *grad, const float *logsumexp, const float *delta,
    Half *dkey, Half *dvalue, Rows q, Rows k, Rows v, Rows g, Counts counts, int rows, int keys, float scale) {
  __shared__ __align__(16) Half shared[SHARED_ROWS][PITCH];
  __shared__ Sums passing[2][TILE];
  const Matrix mine[2] = {{key + matrix_of_block(k, counts), k.row}, {value + matrix_of_block(v, counts), v.row}};
  const Matrix theirs[2] = {{query + matrix_of_block(q, counts), q.row}, {grad + matrix_of_block(g, counts), g.row}};
  const tk_i64 sums = (tk_i64)blockIdx.y * rows, results = (tk_i64)blockIdx.y * keys * FEATURES;
#ifdef CAUSAL
  const int begin = blockIdx.x * ROWS;  // rows before see none of these keys
#else
  const int begin = 0;
#endif
  Accumulators key_result = {}, value_result = {};
  traverse<true>(shared, passing, mine, theirs, rows, keys, begin, rows, logsumexp + sums, delta + sums, scale, key_result,
             value_result);
  const int first = blockIdx.x * ROWS + threadIdx.x / 32 * 16;
  store(dkey + results, key_result, scale, first, keys);
  store(dvalue + results, value_result, 1, first, keys);
}
