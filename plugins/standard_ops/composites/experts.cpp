// SPDX-License-Identifier: Apache-2.0
// Which tokens go to which experts of a mixture.
#include "composites/domain.hpp"

namespace tenon::standard_ops {

// Sorted by expert, with equal ones in the order of the tokens, a token's turn is how far it is behind its expert's first one.
TENON_DECOMPOSE(prune_gate_by_capacity) {
  const char* op = "prune_gate_by_capacity";
  Scope scope(err);
  Tensor experts = operand(scope, args[0]), counts = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_integers(op, "experts", experts, err));
  TENON_TRY(expect_integers(op, "counts", counts, err));
  if (counts->ndim != 1)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op, "expected a vector counts, got shape %s",
                        shape_text(*counts.get()).c_str());
  const int64_t limit = counts->shape[0];
  Tensor flat = ops::reshape(scope, as_int64(scope, experts), {-1});
  Tensor known =
      ops::logical_and(scope, ops::greater_equal(scope, flat, 0), ops::less(scope, flat, limit));
  Tensor bin = ops::where(scope, known, flat, limit);  // others share one that has no room
  Tensor order = ops::argsort(scope, bin, 0), sorted = ops::index_select(scope, bin, order, 0);
  if (!scope.ok()) return scope.status();
  Tensor turn = ops::subtract(scope, numbers_to(scope, flat->numel, flat),
                              ops::searchsorted(scope, sorted, sorted));
  turn = ops::scatter(scope, ops::zeros_like(scope, bin), order, turn, 0);
  Tensor room =
      ops::concat(scope, {as_int64(scope, counts), full_with(scope, flat, Shape{1}, 0)}, 0);
  Tensor fits = ops::less(scope, turn, ops::index_select(scope, room, bin, 0));
  Tensor kept = ops::cast(scope, ops::where(scope, fits, flat, -1), experts->dtype);
  return finish(scope, outs, ops::reshape(scope, kept, sizes_of(experts)));
}

// Of the tokens up to a worker an expert takes what it has room for; the worker's are those that its predecessors leave.
TENON_DECOMPOSE(limit_by_capacity) {
  const char* op = "limit_by_capacity";
  Scope scope(err);
  Tensor counts = operand(scope, args[0]), capacity = operand(scope, args[1]);
  if (!scope.ok()) return scope.status();
  TENON_TRY(expect_integers(op, "counts", counts, err));
  TENON_TRY(expect_integers(op, "capacity", capacity, err));
  const int64_t workers = int_of(args[2]);
  const int64_t experts = capacity->ndim == 1 ? capacity->shape[0] : -1;
  if (workers < 1 || experts < 0 || counts->ndim != 1 || counts->shape[0] % workers != 0 ||
      counts->shape[0] / workers != experts)
    return shapes::fail(err, TENON_INVALID_ARGUMENT, op,
                        "expected counts [workers * experts] and capacity [experts] of %lld "
                        "workers, got shapes %s and %s",
                        ll(workers), shape_text(*counts.get()).c_str(),
                        shape_text(*capacity.get()).c_str());
  Tensor wanted = ops::reshape(scope, as_int64(scope, counts), {workers, experts});
  Tensor room = as_int64(scope, capacity), sums = ops::cumsum(scope, wanted, 0);
  Tensor taken = ops::subtract(scope, ops::minimum(scope, sums, room),
                               ops::minimum(scope, ops::subtract(scope, sums, wanted), room));
  return finish(scope, outs, ops::reshape(scope, ops::cast(scope, taken, counts->dtype), {-1}));
}

}  // namespace tenon::standard_ops
