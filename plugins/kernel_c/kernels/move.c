/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of 16 bytes, which are only moved. */
typedef struct {
  tk_u64 low, high;
} tk_bits128;
