// SPDX-License-Identifier: Apache-2.0
#include "sharded.hpp"

#include <algorithm>
#include <mutex>

#include "operators.hpp"

namespace tenon::sharding {
namespace {

constexpr int64_t kMaxMeshes = 1 << 16;
std::mutex meshes_mutex;
int64_t mesh_count = 0;
// Ids begin at 1. Meshes are never freed: tensors name them by their id.
std::atomic<Mesh*> meshes[kMaxMeshes + 1];

constexpr const char* kPartNames[] = {"local"};

tenon_status check_sharded(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts,
                           const int64_t* words, tenon_err* err) {
  const Mesh* mesh = find_mesh(words[TENON_SHARDED_MESH]);
  if (!mesh)
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "sharded: expected the id of a mesh of this process, got %lld",
                       static_cast<long long>(words[TENON_SHARDED_MESH]));
  Placements at;
  for (uint32_t a = 0; a < kMaxAxes; ++a) {
    at[a] = Placement::of(words[TENON_SHARDED_PLACEMENTS + a]);
    const bool is_right = a >= mesh->ndim ? at[a].is_replicate()
                          : at[a].is_shard()
                              ? at[a].value >= 0 && at[a].value < ndim
                              : at[a].kind <= TENON_PLACEMENT_PARTIAL && at[a].value >= 0 &&
                                    at[a].value <= TENON_REDUCE_MEAN &&
                                    at[a].value != TENON_REDUCE_PROD;
    if (!is_right)
      return fail(err, TENON_INVALID_ARGUMENT,
                  "sharded: expected Replicate, Partial or Shard of an axis below " +
                      std::to_string(ndim) + " for each of the " + std::to_string(mesh->ndim) +
                      " axes of the mesh, got " + text_of(at, kMaxAxes));
  }
  bool is_right = parts[0]->ndim == ndim;
  for (int32_t i = 0; i < ndim && is_right; ++i)
    is_right = parts[0]->shape[i] == extent_before(*mesh, at, i, shape[i], mesh->ndim);
  if (const Shape expected = is_right ? Shape() : local_shape(*mesh, at, ndim, shape); !is_right)
    return fail(err, TENON_INVALID_ARGUMENT,
                "sharded: expected a part of shape " + list_text(expected) +
                    " on this rank, of a whole of shape " + shape_text(ndim, shape) + " in " +
                    text_of(at, mesh->ndim) + ", got " + shape_text(*parts[0]));
  return TENON_OK;
}

// Below mixed precision (50) and autograd (100), which see wholes, and above recording (900).
constexpr tenon_layer_def kLayer = {
    .struct_size = sizeof(tenon_layer_def),
    .flags = TENON_LAYER_ENABLED | TENON_LAYER_COMPOSITES,
    .name = "sharding",
    .order = 200,
    .call = layer_call,
};

// Not before the first mesh is made: where a layer is registered below autograd, a call that is recorded looks at its
// arguments once more.
tenon_status register_layer(tenon_err* err) {
  std::lock_guard lock(meshes_mutex);
  if (layer < 0) layer = host->layer_register(&kLayer, err);
  return layer < 0 ? host->err_code(err) : TENON_OK;
}

}  // namespace

const tenon_parts_kind& kind() {
  static const tenon_parts_kind made = {
      .struct_size = sizeof(tenon_parts_kind),
      .layer = layer,
      .name = TENON_SHARDING_KIND,
      .nparts = 1,
      .nwords = TENON_SHARDED_WORDS,
      .values = 0,
      .reserved = 0,
      .part_names = kPartNames,
      .check = check_sharded,
      .call = nullptr,
  };
  return made;
}

const Mesh* find_mesh(int64_t id) {
  return id > 0 && id <= kMaxMeshes ? meshes[id].load(std::memory_order_acquire) : nullptr;
}

tenon_status mesh_create(const tenon_mesh_def* def, int64_t* id, tenon_err* err) {
  if (!def || def->struct_size < sizeof *def || def->ndim < 1 || def->ndim > kMaxAxes ||
      !def->move || !def->sizes || !def->coordinates)
    return fail(err, TENON_INVALID_ARGUMENT,
                "a mesh: expected struct_size, 1 to 8 axes with sizes and coordinates, and move");
  for (uint32_t a = 0; a < def->ndim; ++a)
    if (def->sizes[a] < 1 || def->coordinates[a] < 0 || def->coordinates[a] >= def->sizes[a])
      return fail(err, TENON_INVALID_ARGUMENT,
                  "a mesh: expected coordinates below the sizes of its axes");
  TENON_TRY(register_layer(err));
  return guarded(err, [&] {
    std::lock_guard lock(meshes_mutex);
    if (mesh_count == kMaxMeshes)
      throw Error(TENON_OUT_OF_RANGE, "a mesh: all 65536 of a process have been made");
    auto* mesh = new Mesh{.id = mesh_count + 1,
                          .ndim = def->ndim,
                          .sizes = {},
                          .coordinates = {},
                          .is_open = true,
                          .move = def->move,
                          .drop = def->drop,
                          .user = def->user};
    mesh->sizes.fill(1);
    std::copy_n(def->sizes, def->ndim, mesh->sizes.begin());
    std::copy_n(def->coordinates, def->ndim, mesh->coordinates.begin());
    meshes[mesh->id].store(mesh, std::memory_order_release);
    *id = ++mesh_count;
  });
}

void mesh_release(int64_t id) {
  auto* mesh = const_cast<Mesh*>(find_mesh(id));
  if (mesh && mesh->is_open.exchange(false) && mesh->drop) mesh->drop(mesh->user);
}

const tenon_parts_api& parts() {
  static std::atomic<const tenon_parts_api*> found{nullptr};
  const tenon_parts_api* api = found.load(std::memory_order_acquire);
  if (api) return *api;
  api = static_cast<const tenon_parts_api*>(
      host->service_find(TENON_PARTS_SERVICE, TENON_PARTS_VERSION));
  if (!api)
    throw Error(TENON_NOT_FOUND,
                "sharded tensors need the parts plugin, which is not loaded; "
                "tenon.plugins.doctor() says why");
  if (!api->kind_find(TENON_SHARDING_KIND)) {
    ErrorSink err;
    const tenon_status status = api->kind_register(&kind(), err);
    if (status != TENON_ALREADY_EXISTS) err.check(status);
  }
  found.store(api, std::memory_order_release);
  return *api;
}

View view_of(const tenon_tensor* tensor) {
  View view;
  if (!(tensor->flags & TENON_TENSOR_COMPOSED)) return view;
  const tenon_parts_api& api = parts();
  if (api.kind(tensor) != &kind()) return view;
  view.mesh = find_mesh(api.word(tensor, TENON_SHARDED_MESH));
  for (uint32_t a = 0; a < view.mesh->ndim; ++a)
    view.at[a] = Placement::of(api.word(tensor, TENON_SHARDED_PLACEMENTS + a));
  view.local = api.part(tensor, 0);
  view.is_copy = api.word(tensor, TENON_SHARDED_FLAGS) & TENON_SHARDED_IS_COPY;
  return view;
}

int64_t extent_before(const Mesh& mesh, const Placements& at, int64_t axis, int64_t size,
                      uint32_t before) {
  for (uint32_t a = 0; a < before; ++a)
    if (at[a].cuts(axis))
      size = cut(size, mesh.sizes[a], mesh.coordinates[a] + 1) -
             cut(size, mesh.sizes[a], mesh.coordinates[a]);
  return size;
}

Shape local_shape(const Mesh& mesh, const Placements& at, int64_t ndim, const int64_t* shape) {
  Shape local(shape, shape + ndim);
  for (int64_t i = 0; i < ndim; ++i)
    local[static_cast<size_t>(i)] = extent_before(mesh, at, i, shape[i], mesh.ndim);
  return local;
}

std::string text_of(const Placements& at, uint32_t ndim) {
  static constexpr const char* kReductions[] = {"sum", "prod", "min", "max", "avg"};
  std::string text = "[";
  for (uint32_t a = 0; a < ndim; ++a) {
    if (a) text += ", ";
    if (at[a].is_replicate()) text += "Replicate()";
    if (at[a].is_shard()) text += "Shard(" + std::to_string(at[a].value) + ")";
    if (at[a].is_partial())
      text += "Partial('" +
              std::string(at[a].value >= 0 && at[a].value < 5 ? kReductions[at[a].value] : "?") +
              "')";
  }
  return text + "]";
}

tenon_status create_at(const Mesh& mesh, int32_t ndim, const int64_t* shape, tenon_tensor* local,
                       const Placements& at, bool is_copy, tenon_tensor** out, tenon_err* err) {
  int64_t words[TENON_SHARDED_WORDS] = {mesh.id};
  for (uint32_t a = 0; a < mesh.ndim; ++a) words[TENON_SHARDED_PLACEMENTS + a] = at[a].word();
  words[TENON_SHARDED_FLAGS] = is_copy ? TENON_SHARDED_IS_COPY : 0;
  return parts().create(&kind(), ndim, shape, &local, words, out, err);
}

Tensor create(Scope& scope, const Mesh& mesh, const Shape& shape, const Tensor& local,
              const Placements& at, bool is_copy) {
  tenon_tensor* made;
  if (!scope.ok() || !scope.check(create_at(mesh, static_cast<int32_t>(shape.size()), shape.data(),
                                            local.get(), at, is_copy, &made, scope.err())))
    return {};
  return Tensor::adopt(made);
}

}  // namespace tenon::sharding
