/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "sharding", version 1: tensors of which every rank of a mesh has a part (docs/distributed.md). They are composed
 * tensors of the kind "sharded" (tenon/services/parts.h), whose one part, `local`, is what this rank has. The service's
 * layer stands below autograd, so that the whole has the history, and its gradient is sharded, too.
 *
 * What a call of an operator does follows from the lines `shard` of its definition (tenon/sharding_rule.hpp). */
#ifndef TENON_SERVICES_SHARDING_H_
#define TENON_SERVICES_SHARDING_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_SHARDING_SERVICE "sharding"
#define TENON_SHARDING_VERSION 1u
#define TENON_SHARDING_KIND "sharded"

/* Where a tensor is along one axis of a mesh. Of an axis of `size` elements, rank r of n has [size * r / n, size * (r + 1) / n).
 * Several axes of the mesh that cut the same axis of the tensor do so one after the other, in order. */
enum {
  TENON_PLACEMENT_REPLICATE = 0, /* whole, and equal on all ranks */
  TENON_PLACEMENT_SHARD = 1,     /* value: the axis that is cut */
  TENON_PLACEMENT_PARTIAL = 2 /* value: TENON_REDUCE_, by which the ranks' tensors make the whole */
};
#define TENON_PLACEMENT(kind, value) ((int64_t)(kind) | (int64_t)(value) << 8)
#define TENON_PLACEMENT_KIND(word) ((int32_t)((word)&255))
#define TENON_PLACEMENT_VALUE(word) ((int32_t)((word) >> 8))

/* Words of the kind: the mesh, a placement for each of its axes, flags. */
enum {
  TENON_SHARDED_MESH = 0,
  TENON_SHARDED_PLACEMENTS = 1,
  TENON_SHARDED_MAX_AXES = 8,
  TENON_SHARDED_FLAGS = 9,
  TENON_SHARDED_WORDS = 10
};
enum { TENON_SHARDED_IS_COPY = 1 /* of what a view would show: nothing is written into it */ };

/* One step of a redistribution that needs other ranks: along one axis of the mesh. */
typedef struct tenon_sharding_move {
  uint32_t struct_size;
  int32_t axis; /* of the mesh */
  int64_t from; /* placements: SHARD to REPLICATE or SHARD, PARTIAL to REPLICATE or SHARD */
  int64_t to;
  int64_t
      extent; /* from SHARD: of that axis, with the parts of all ranks of this axis of the mesh */
  tenon_tensor* local;
  const char* op;   /* the operator that needs it; NULL: the program called redistribute */
  int32_t has_rule; /* 0: the operator has no rule for tensors that are cut */
  int32_t reserved;
} tenon_sharding_move;

typedef struct tenon_mesh_def {
  uint32_t struct_size;
  uint32_t ndim; /* in [1, TENON_SHARDED_MAX_AXES] */
  const int64_t* sizes;
  const int64_t* coordinates; /* of this rank */
  /* `*out` owned. Ranks of one axis make the same moves in the same order. */
  tenon_status (*move)(void* user, const tenon_sharding_move*, tenon_tensor** out, tenon_err*);
  void (*drop)(void* user); /* (optional) at mesh_release */
  void* user;
} tenon_mesh_def;

typedef struct tenon_sharding_api {
  uint32_t struct_size;
  uint32_t version;
  /* A mesh as one rank sees it; ids are never used again. What it points to is copied. */
  tenon_status (*mesh_create)(const tenon_mesh_def*, int64_t* id, tenon_err*);
  /* Tensors on it stay, and can be redistributed no longer. */
  void (*mesh_release)(int64_t id);
  /* `local` is retained, not copied. `*out` owned. */
  tenon_status (*create)(int64_t mesh, int32_t ndim, const int64_t* shape, tenon_tensor* local,
                         const int64_t* placements, tenon_tensor** out, tenon_err*);
  /* Without a gradient. `*out` owned; what is written into it does not show in `tensor`. */
  tenon_status (*redistribute)(tenon_tensor* tensor, const int64_t* placements, tenon_tensor** out,
                               tenon_err*);
  /* Rules for an operator whose definition has none, or others in their place: lines as those of `shard`. NULL: those of the
   * definition again. Not while calls of the operator are under way. */
  tenon_status (*set_rules)(const tenon_op*, const char* lines, tenon_err*);
} tenon_sharding_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_SHARDING_H_ */
