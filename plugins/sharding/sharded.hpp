// SPDX-License-Identifier: Apache-2.0
// Meshes, placements, and what a sharded tensor consists of.
#pragma once

#include <tenon/services/parts.h>
#include <tenon/services/sharding.h>
#include <tenon/error.hpp>

#include <array>
#include <atomic>
#include <string>
#include <vector>

namespace tenon::sharding {

inline constexpr uint32_t kMaxAxes = TENON_SHARDED_MAX_AXES;
inline int32_t layer = -1;

struct Placement {
  uint8_t kind = TENON_PLACEMENT_REPLICATE;
  int16_t value = 0;
  bool operator==(const Placement&) const = default;
  bool is_replicate() const { return kind == TENON_PLACEMENT_REPLICATE; }
  bool is_shard() const { return kind == TENON_PLACEMENT_SHARD; }
  bool is_partial() const { return kind == TENON_PLACEMENT_PARTIAL; }
  bool cuts(int64_t axis) const { return is_shard() && value == axis; }
  int64_t word() const { return TENON_PLACEMENT(kind, value); }
  static Placement of(int64_t word) {
    return {static_cast<uint8_t>(TENON_PLACEMENT_KIND(word)),
            static_cast<int16_t>(TENON_PLACEMENT_VALUE(word))};
  }
  static Placement shard(int64_t axis) {
    return {TENON_PLACEMENT_SHARD, static_cast<int16_t>(axis)};
  }
  static Placement partial(int32_t reduce) {
    return {TENON_PLACEMENT_PARTIAL, static_cast<int16_t>(reduce)};
  }
};
using Placements = std::array<Placement, kMaxAxes>;
using Shape = std::vector<int64_t>;

struct Mesh {
  int64_t id;
  uint32_t ndim;
  std::array<int64_t, kMaxAxes> sizes, coordinates;
  std::atomic<bool> is_open{true};
  decltype(tenon_mesh_def::move) move;
  decltype(tenon_mesh_def::drop) drop;
  void* user;
};
const Mesh* find_mesh(int64_t id);  // nullptr: there is none
tenon_status mesh_create(const tenon_mesh_def* def, int64_t* id, tenon_err* err);
void mesh_release(int64_t id);

// The service of composed tensors; throws where its plugin is not loaded.
const tenon_parts_api& parts();

// What one rank knows of a sharded tensor.
struct View {
  const Mesh* mesh = nullptr;  // nullptr: the tensor is plain, and counts as Replicate
  Placements at{};
  tenon_tensor* local = nullptr;  // borrowed
  bool is_copy = false;
};
View view_of(const tenon_tensor* tensor);

// -- geometry
inline int64_t cut(int64_t size, int64_t ranks, int64_t rank) { return size * rank / ranks; }
// `size` of an axis of a tensor, as it is before axis `before` of the mesh cuts it.
int64_t extent_before(const Mesh& mesh, const Placements& at, int64_t axis, int64_t size,
                      uint32_t before);
Shape local_shape(const Mesh& mesh, const Placements& at, int64_t ndim, const int64_t* shape);

// Why elements are moved, for reports.
struct Reason {
  const char* op = nullptr;
  bool has_rule = true;
};
// `local` of a tensor of `shape` in other placements. May share memory with `local`.
Tensor redistributed(Scope& scope, const Mesh& mesh, const Shape& shape, const Placements& from,
                     const Placements& to, Tensor local, Reason reason);
// The largest and smallest of each rank's numbers agree, or the scope fails with `text`.
void check_agreement(Scope& scope, const Mesh& mesh, const std::vector<int64_t>& numbers,
                     const std::string& text);

// A sharded tensor on `mesh` of this rank's part, which is retained. `*out` owned.
tenon_status create_at(const Mesh& mesh, int32_t ndim, const int64_t* shape, tenon_tensor* local,
                       const Placements& at, bool is_copy, tenon_tensor** out, tenon_err* err);
Tensor create(Scope& scope, const Mesh& mesh, const Shape& shape, const Tensor& local,
              const Placements& at, bool is_copy = false);
tenon_status redistribute(tenon_tensor* tensor, const int64_t* placements, tenon_tensor** out,
                          tenon_err* err);
const tenon_parts_kind& kind();

std::string text_of(const Placements& at, uint32_t ndim);
inline Shape shape_of(const tenon_tensor* tensor) {
  return {tensor->shape, tensor->shape + tensor->ndim};
}
tenon_status layer_call(void*, const tenon_op* op, tenon_value* args, uint32_t nargs,
                        tenon_value* outs, uint32_t nouts, tenon_err* err);

}  // namespace tenon::sharding
