// SPDX-License-Identifier: Apache-2.0
// GEMM whose tiles run on the thread pool.
#pragma once

#include "gemm/partition.hpp"
#include "gemm/serial.hpp"
#include "parallel_scratch.hpp"
#include "trace.hpp"

namespace tenon::cpu::TENON_CPU_ISA {

// `bias` is what a product of several columns is added to if it accumulates, instead of C. NULL: C.
template <class Format>
tenon_status multiply_parallel(tenon_ctx* ctx, int64_t m, int64_t n, int64_t k,
                               Matrix<typename Format::Left> a, Matrix<typename Format::Right> b,
                               typename Format::Accumulator* c, int64_t c_row, bool accumulate,
                               const typename Format::Accumulator* bias, const BatchOffsets& batch,
                               tenon_err* err) {
  if (m == 0 || n == 0) return TENON_OK;
  if (is_column(m, n, c_row))
    return multiply_parallel<typename Format::Swapped>(ctx, 1, m, k, b.transposed(), a.transposed(),
                                                       c, m, accumulate, nullptr,
                                                       batch.transposed(), err);
  const Tiles tiles(Type<Format>{}, m, n, k, m, n, batch);
  const Algorithm algorithm = choose_algorithm<Format>(m, n, k, a, b);
  trace("matmul", Format::kName, name_of(algorithm));
  const bool in_place = algorithm == Algorithm::kDirect && tiles.columns() == n && reads_rows(n, b);
  const int64_t bytes =
      in_place ? 0 : scratch_bytes<Format>(algorithm, tiles.rows(), tiles.columns(), k);
  return parallel_for_with_scratch(
      ctx, tiles.count(), tiles.work(), bytes, err, [&](int64_t t, void* memory) {
        const OutputTile tile = tiles.at(t);
        multiply<Format>(algorithm, tile.rows, tile.columns, k,
                         {a.data + tile.a + tile.i * a.row, a.row, a.column},
                         {b.data + tile.b + tile.j * b.column, b.row, b.column},
                         c + tile.c + tile.i * c_row + tile.j, c_row, accumulate,
                         {bias ? bias + tile.j : nullptr, 0}, memory);
      });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
