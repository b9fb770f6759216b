/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of 16 bytes, which are only moved. */
typedef struct {
  tk_u64 low, high;
} tk_bits128;
/* 16 bytes of several elements, at an address that is a multiple of 16. */
typedef struct TK_ALIGNED(16) {
  tk_u64 low, high;
} tk_vector128;
