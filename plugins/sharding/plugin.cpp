// SPDX-License-Identifier: Apache-2.0
// The plugin: the service and its layer.
#include <tenon/plugin.hpp>

#include "candidates.hpp"

namespace tenon::sharding {
namespace {

tenon_status create_whole(int64_t id, int32_t ndim, const int64_t* shape, tenon_tensor* local,
                          const int64_t* placements, tenon_tensor** out, tenon_err* err) {
  return guarded(err, [&] {
    const Mesh* mesh = find_mesh(id);
    if (!mesh) throw Error(TENON_INVALID_ARGUMENT, "a sharded tensor: expected the id of a mesh");
    Placements at{};
    for (uint32_t a = 0; a < mesh->ndim; ++a) at[a] = Placement::of(placements[a]);
    Scope scope(err);
    Tensor made = create(scope, *mesh, {shape, shape + ndim}, Tensor::borrow(local), at);
    if (!scope.ok()) throw Error(scope.status(), "");
    *out = made.release();
  });
}

constexpr tenon_sharding_api kService = {.struct_size = sizeof(tenon_sharding_api),
                                         .version = TENON_SHARDING_VERSION,
                                         .mesh_create = mesh_create,
                                         .mesh_release = mesh_release,
                                         .create = create_whole,
                                         .redistribute = redistribute,
                                         .set_rules = set_rules};

tenon_status start(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_SHARDING_SERVICE, TENON_SHARDING_VERSION, &kService, err);
}

// `stop` is absent: a layer stays until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "sharding",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start,
};

}  // namespace
}  // namespace tenon::sharding

TENON_PLUGIN(tenon::sharding::kPlugin)
