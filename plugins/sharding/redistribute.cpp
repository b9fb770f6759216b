// SPDX-License-Identifier: Apache-2.0
// From placements to others: along one axis of the mesh after the other.
#include "operators.hpp"
#include "sharded.hpp"

namespace tenon::sharding {
namespace {

class Redistribution {
 public:
  Redistribution(Scope& scope, const Mesh& mesh, const Shape& shape, const Placements& from,
                 Tensor local, Reason reason)
      : scope_(scope),
        mesh_(mesh),
        shape_(shape),
        at_(from),
        local_(std::move(local)),
        reason_(reason) {}

  Tensor run(const Placements& to) {
    // An axis that several axes of the mesh cut, before or after, comes together from the last cut to the first, and is
    // cut again from the first to the last.
    for (uint32_t a = mesh_.ndim; a-- > 0;)
      if (at_[a].is_shard() && !keeps(a, to) && is_nested(at_[a].value, to)) step(a, {});
    for (uint32_t a = 0; a < mesh_.ndim; ++a) {
      if (at_[a] == to[a]) continue;
      const bool waits = to[a].is_shard() && is_nested(to[a].value, to);
      step(a, waits ? Placement{} : to[a]);
    }
    for (uint32_t a = 0; a < mesh_.ndim; ++a)
      if (at_[a] != to[a]) step(a, to[a]);
    return std::move(local_);
  }

 private:
  // Whether all that cuts this axis of the tensor stays as it is.
  bool keeps(uint32_t a, const Placements& to) const {
    for (uint32_t b = 0; b < mesh_.ndim; ++b)
      if ((at_[b].cuts(at_[a].value) || to[b].cuts(at_[a].value)) && at_[b] != to[b]) return false;
    return true;
  }
  // Whether several axes of the mesh cut this axis of the tensor, before or after, and some of that changes.
  bool is_nested(int64_t axis, const Placements& to) const {
    uint32_t count = 0;
    bool changes = false;
    for (uint32_t a = 0; a < mesh_.ndim; ++a) {
      if (!at_[a].cuts(axis) && !to[a].cuts(axis)) continue;
      ++count;
      changes |= at_[a] != to[a];
    }
    return changes && count > 1;
  }

  void step(uint32_t a, Placement to) {
    const Placement from = at_[a];
    at_[a] = to;
    if (!scope_.ok() || from == to || mesh_.sizes[a] == 1) return;
    if (from.is_replicate()) {
      if (to.is_shard())
        slice(a, to.value);
      else if (to.value == TENON_REDUCE_SUM && mesh_.coordinates[a] != 0)
        local_ = sharding::run(scope_, op::zeros_like, {box(local_)});
      return;
    }
    if (to.is_partial()) {  // another reduction, or of a cut tensor
      at_[a] = from;
      step(a, {});
      step(a, to);
      return;
    }
    move(a, from, to);
  }

  void slice(uint32_t a, int64_t axis) {
    const int64_t size = local_->shape[axis], n = mesh_.sizes[a], r = mesh_.coordinates[a];
    const int64_t begin = cut(size, n, r), end = cut(size, n, r + 1);
    local_ = sharding::run(scope_, op::narrow,
                           {box(local_), boxed(axis), boxed(begin), boxed(end - begin)});
  }

  void move(uint32_t a, Placement from, Placement to) {
    if (!mesh_.is_open.load())
      return scope_.fail(TENON_FAILED_PRECONDITION,
                         "redistribute: expected a mesh that is in use, got one that was closed");
    tenon_sharding_move wanted = {};
    wanted.struct_size = sizeof wanted;
    wanted.axis = static_cast<int32_t>(a);
    wanted.from = from.word();
    wanted.to = to.word();
    if (from.is_shard())
      wanted.extent =
          extent_before(mesh_, at_, from.value, shape_[static_cast<size_t>(from.value)], a);
    wanted.local = local_.get();
    wanted.op = reason_.op;
    wanted.has_rule = reason_.has_rule;
    tenon_tensor* moved;
    if (scope_.check(mesh_.move(mesh_.user, &wanted, &moved, scope_.err())))
      local_ = Tensor::adopt(moved);
    else
      local_ = {};
  }

  Scope& scope_;
  const Mesh& mesh_;
  const Shape& shape_;
  Placements at_;
  Tensor local_;
  Reason reason_;
};

}  // namespace

Tensor redistributed(Scope& scope, const Mesh& mesh, const Shape& shape, const Placements& from,
                     const Placements& to, Tensor local, Reason reason) {
  if (!scope.ok() || from == to) return local;
  return Redistribution(scope, mesh, shape, from, std::move(local), reason).run(to);
}

void check_agreement(Scope& scope, const Mesh& mesh, const std::vector<int64_t>& numbers,
                     const std::string& text) {
  tenon_tensor* made;
  const auto count = static_cast<int64_t>(numbers.size());
  if (!scope.ok() || !scope.check(host->tensor_create(host->device_host(), TENON_DTYPE_I64, 1,
                                                      &count, &made, scope.err())))
    return;
  const Tensor own = Tensor::adopt(made);
  std::copy(numbers.begin(), numbers.end(), static_cast<int64_t*>(made->data));
  bool agrees = true;
  for (const int32_t reduce : {TENON_REDUCE_MIN, TENON_REDUCE_MAX}) {
    Placements at{};
    for (uint32_t a = 0; a < mesh.ndim; ++a) at[a] = Placement::partial(reduce);
    const Tensor all = redistributed(scope, mesh, {count}, at, {}, own, {"random numbers", true});
    if (!scope.ok()) return;
    agrees &= std::equal(numbers.begin(), numbers.end(), static_cast<const int64_t*>(all->data));
  }
  // Here, so that all ranks have made the same calls.
  if (!agrees) scope.fail(TENON_FAILED_PRECONDITION, text);
}

tenon_status redistribute(tenon_tensor* tensor, const int64_t* placements, tenon_tensor** out,
                          tenon_err* err) {
  return guarded(err, [&] {
    const View from = view_of(tensor);
    if (!from.mesh)
      throw Error(TENON_TYPE_MISMATCH, "redistribute: expected a sharded tensor, got a plain one");
    Placements to{};
    for (uint32_t a = 0; a < from.mesh->ndim; ++a) to[a] = Placement::of(placements[a]);
    for (uint32_t a = 0; a < from.mesh->ndim; ++a)
      if (to[a].is_shard() && (to[a].value < 0 || to[a].value >= tensor->ndim))
        throw Error(TENON_INVALID_ARGUMENT,
                    "redistribute: expected Shard of an axis of a tensor of shape " +
                        shape_text(*tensor) + ", got " + text_of(to, from.mesh->ndim));
    Scope scope(err);
    const Shape shape = shape_of(tensor);
    Tensor local =
        redistributed(scope, *from.mesh, shape, from.at, to, Tensor::borrow(from.local), {});
    if (scope.ok() && from.at != to &&
        host->tensor_storage(local.get()) == host->tensor_storage(from.local))
      local = run(scope, op::clone, {box(local)});
    Tensor made = create(scope, *from.mesh, shape, local, to);
    if (!scope.ok()) throw Error(scope.status(), "");
    *out = made.release();
  });
}

}  // namespace tenon::sharding
