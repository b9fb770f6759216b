// SPDX-License-Identifier: Apache-2.0
// Attention whose scores stay in registers: FlashAttention-2 (Dao, 2023, arXiv:2307.08691), forward.
//
// A block has 128 rows of the query; it goes through the keys KEYS at a time, with the next ones under way in
// shared memory. CAUSAL: row i sees keys up to i. A mask is read where scores are, an element at a time: MASKS hides
// keys where a truth value is false, ADDS adds numbers to the scaled scores. Comes after attention_rows.cu.
#define BLOCKS (FEATURES == 64 ? 2 : 1)  // of a multiprocessor, which share its registers
#if defined(MASKS)
typedef unsigned char MaskElement;
#elif defined(ADDS)
typedef Half MaskElement;
#undef BLOCKS
#define BLOCKS 1
#endif

struct MaskStrides {  // in elements; 0 where the mask is the same
  tk_i64 outer, middle, inner, row, key;
};

// The weight of a score beside that of `base`.
static __device__ inline float weight_of(float score, float base, float scale2) {
#ifdef ADDS
  return exp2_approximate((score - base) * scale2);  // numbers near the largest cancel before they overflow
#else
  return exp2_approximate(score * scale2 - base * scale2);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) tenon_attention(
    const Half *query, const Half *key, const Half *value, Half *out, float *logsumexp, Rows q, Rows k, Rows v,
    Counts counts, int rows, int keys, float scale
#if defined(MASKS) || defined(ADDS)
    ,
    const MaskElement *mask, MaskStrides m
#endif
) {
  __shared__ __align__(16) Half shared[4][KEYS][PITCH];  // two stages of keys and values; first the query
  static_assert(4 * KEYS >= ROWS, "the query fits where the keys come later");
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first_row = blockIdx.x * ROWS;
  query += matrix_of_block(q, counts);
  key += matrix_of_block(k, counts);
  value += matrix_of_block(v, counts);
#if defined(MASKS) || defined(ADDS)
  mask += matrix_of_block(m, counts);
#endif

  Half(*staged)[PITCH] = shared[0];
  fetch<ROWS>(staged, query, q.row, first_row, rows);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  tk_u32 q_part[FEATURES / 16][4];
#pragma unroll
  for (int f = 0; f < FEATURES / 16; ++f)
    load_matrices(q_part[f], &staged[16 * warp + lane % 16][16 * f + lane / 16 * 8]);
  __syncthreads();

  float accumulators[FEATURES / 8][4] = {}, top[2] = {MINUS_INFINITY, MINUS_INFINITY}, total[2] = {0, 0};
#ifdef ADDS
  const float unit = 1;  // of the scores when the mask is added
#else
  const float unit = scale;
#endif
  const float scale2 = unit * 1.4426950408889634f;  // exponentials are powers of 2
  const int row0 = first_row + 16 * warp + lane / 4, pair = lane % 4 * 2;
#ifdef CAUSAL
  const int visible = min(keys, first_row + ROWS);
#else
  const int visible = keys;
#endif
  const int steps = (visible + KEYS - 1) / KEYS;
  fetch<KEYS>(shared[0], key, k.row, 0, keys);
  fetch<KEYS>(shared[1], value, v.row, 0, keys);
  commit_copies();
  for (int step = 0; step < steps; ++step) {
    const int first_key = step * KEYS, stage = step % 2 * 2;
    if (step + 1 < steps) {
      fetch<KEYS>(shared[2 - stage], key, k.row, first_key + KEYS, keys);
      fetch<KEYS>(shared[3 - stage], value, v.row, first_key + KEYS, keys);
      commit_copies();
      wait_for_copies<1>();
    } else {
      wait_for_copies<0>();
    }
    __syncthreads();

    float scores[KEYS / 8][4] = {};
#pragma unroll
    for (int f = 0; f < FEATURES / 16; ++f)
#pragma unroll
      for (int j = 0; j < KEYS / 8; j += 2) {
        tk_u32 b[4];
        load_matrices(b, &shared[stage][8 * (j + lane / 16) + lane % 8][16 * f + lane / 8 % 2 * 8]);
        mma_16x8x16(scores[j], q_part[f], b[0], b[1]);
        mma_16x8x16(scores[j + 1], q_part[f], b[2], b[3]);
      }

#if defined(MASKS) || defined(ADDS)
    const bool masks = true;
#elif defined(CAUSAL)
    const bool masks = first_key + KEYS > min(keys, first_row + 16 * warp);
#else
    const bool masks = first_key + KEYS > keys;
#endif
    if (masks) {
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = first_key + 8 * j + pair + i % 2;
          bool hides = column >= keys;
#ifdef CAUSAL
          hides = hides || column > row0 + i / 2 * 8;
#endif
#if defined(MASKS) || defined(ADDS)
          const tk_i64 at = min(row0 + i / 2 * 8, rows - 1) * m.row + column * m.key;
#endif
#if defined(MASKS)
          hides = hides || !mask[at];
#elif defined(ADDS)
          if (!hides) scores[j][i] = scores[j][i] * scale + widen(mask[at]);
#endif
          if (hides) scores[j][i] = MINUS_INFINITY;
        }
    }

    // The softmax so far: results are scaled down when a larger score appears.
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = top[half];
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j)
        highest = fmaxf(highest, fmaxf(scores[j][2 * half], scores[j][2 * half + 1]));
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 1));
      highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, 2));
      const float base = highest == MINUS_INFINITY ? 0 : highest;
      const float shrink = weight_of(top[half], base, scale2);
      top[half] = highest;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[j][i] = weight_of(scores[j][i], base, scale2);
          sum += scores[j][i];
        }
      total[half] = total[half] * shrink + sum;
#pragma unroll
      for (int j = 0; j < FEATURES / 8; ++j) {
        accumulators[j][2 * half] *= shrink;
        accumulators[j][2 * half + 1] *= shrink;
      }
    }

#pragma unroll
    for (int s = 0; s < KEYS / 16; ++s) {
      const tk_u32 weights[4] = {
          pack(scores[2 * s][0], scores[2 * s][1]), pack(scores[2 * s][2], scores[2 * s][3]),
          pack(scores[2 * s + 1][0], scores[2 * s + 1][1]), pack(scores[2 * s + 1][2], scores[2 * s + 1][3])};
#pragma unroll
      for (int j = 0; j < FEATURES / 8; j += 2) {
        tk_u32 b[4];
        load_matrices_transposed(b, &shared[stage + 1][16 * s + lane % 16][8 * (j + lane / 16)]);
        mma_16x8x16(accumulators[j], weights, b[0], b[1]);
        mma_16x8x16(accumulators[j + 1], weights, b[2], b[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = total[half];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int row = row0 + 8 * half;
    if (row >= rows) continue;
    const tk_i64 at = (tk_i64)blockIdx.y * rows + row;
    if (pair == 0) logsumexp[at] = top[half] * unit + logf(sum);
    const float inverse = sum == 0 ? 0 : 1 / sum;  // a row that sees nothing gives zeros
#pragma unroll
    for (int j = 0; j < FEATURES / 8; ++j)
      *(tk_u32 *)&out[at * FEATURES + 8 * j + pair] =
          pack(accumulators[j][2 * half] * inverse, accumulators[j][2 * half + 1] * inverse);
  }
}
