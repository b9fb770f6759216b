/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "parts", version 1: tensors that are composed of others. A kind says what its tensors consist of: parts, which
 * are plain tensors, and words, which are integers. The whole has a shape, a dtype and a device and no memory
 * (TENON_TENSOR_COMPOSED). The kinds "coo" and "csr" are the service's own (docs/sparse.md); other plugins register more.
 *
 * A kind belongs to a layer, which serves the calls that take its tensors. That of the service is above autograd and
 * mixed precision, so that the parts have histories and gradients, and a gradient has its tensor's structure. A plugin
 * whose tensors have a history as a whole registers a layer of its own, below autograd, with TENON_LAYER_COMPOSITES.
 *
 * What is the same for all kinds is here once: copies, conversions of dtype, moves to other devices, and refusals. */
#ifndef TENON_SERVICES_PARTS_H_
#define TENON_SERVICES_PARTS_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_PARTS_SERVICE "parts"
#define TENON_PARTS_VERSION 1u

/* What tensors of one kind consist of. Everything it points to is static. */
typedef struct tenon_parts_kind {
  uint32_t struct_size;
  int32_t layer;    /* that serves its calls; -1: the service's own */
  const char* name; /* "csr": [a-z][a-z0-9_]{0,15}, which Tensor.layout says in Python */
  uint32_t nparts;  /* in [1, 8] */
  uint32_t nwords;  /* in [0, 64] */
  /* The part that holds the elements: it gives the whole its dtype and device, and with the service's layer it carries
   * the history. */
  uint32_t values;
  uint32_t reserved;
  const char* const* part_names;
  /* Do these make a tensor of this shape? Reads shapes, dtypes, devices and words, never elements. */
  tenon_status (*check)(int32_t ndim, const int64_t* shape, tenon_tensor* const* parts,
                        const int64_t* words, tenon_err*);
  /* (optional) Serve a call of an operator that takes tensors of this kind, as tenon_layer_def.call does.
   * TENON_LAYER_DECLINED: by what is common to all kinds. Used with the service's layer. */
  tenon_status (*call)(const tenon_op*, tenon_value* args, uint32_t nargs, tenon_value* outs,
                       uint32_t nouts, tenon_err*);
} tenon_parts_kind;

typedef struct tenon_parts_api {
  uint32_t struct_size;
  uint32_t version;
  /* [init] TENON_ALREADY_EXISTS: another kind has this name. */
  tenon_status (*kind_register)(const tenon_parts_kind*, tenon_err*);
  const tenon_parts_kind* (*kind_find)(const char* name); /* NULL: unknown */
  const tenon_parts_kind* (*kind)(
      const tenon_tensor*); /* NULL: it is not composed, or by no kind */
  tenon_tensor* (*part)(const tenon_tensor*, uint32_t index); /* borrowed from the tensor */
  int64_t (*word)(const tenon_tensor*, uint32_t index);
  /* A tensor of `nparts` parts, which it retains. `*out` owned. */
  tenon_status (*create)(const tenon_parts_kind*, int32_t ndim, const int64_t* shape,
                         tenon_tensor* const* parts, const int64_t* words, tenon_tensor** out,
                         tenon_err*);
  /* Other parts and words for a tensor of the same kind, shape, dtype and device: what in-place forms do. Counts up its
   * version. Not synchronised. */
  tenon_status (*replace)(tenon_tensor*, tenon_tensor* const* parts, const int64_t* words,
                          tenon_err*);
  /* A tensor of the same structure with another part of elements, whose dtype may be another one. `*out` owned. */
  tenon_status (*with_values)(const tenon_tensor*, tenon_tensor* values, tenon_tensor** out,
                              tenon_err*);
  /* What is common to all kinds, for layers of other plugins: serves copies, conversions and moves, returns
   * TENON_LAYER_DECLINED for other composites, and refuses the rest by name. */
  tenon_status (*call_common)(const tenon_op*, tenon_value* args, uint32_t nargs, tenon_value* outs,
                              uint32_t nouts, tenon_err*);
  /* The tensor in another layout: "strided", "coo" (of all axes, sorted and without duplicates) or "csr". Gradients
   * pass. `*out` owned; the tensor itself if it is in that layout already. */
  tenon_status (*convert)(tenon_tensor*, const char* layout, tenon_tensor** out, tenon_err*);
  /* Of kind "coo": sorted, with the elements of equal indices added up. Gradients pass. `*out` owned. */
  tenon_status (*coalesce)(tenon_tensor*, tenon_tensor** out, tenon_err*);
} tenon_parts_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_PARTS_H_ */
