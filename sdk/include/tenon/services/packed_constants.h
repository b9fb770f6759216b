/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "packed_constants", version 1: constants as the host's executables read them.
 *
 * The plugin cpu offers it. Its executables (tenon_subgraph_api) pack the weights that they compute with, once. Who
 * writes programs into files asks for the packed bytes, and who reads such a file gives them back, so that nothing is
 * packed anew and all processes that map the file share its pages. */
#ifndef TENON_SERVICES_PACKED_CONSTANTS_H_
#define TENON_SERVICES_PACKED_CONSTANTS_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_PACKED_CONSTANTS_SERVICE "packed_constants"
#define TENON_PACKED_CONSTANTS_VERSION 1u

/* What packed bytes are aligned to. */
#define TENON_PACKED_CONSTANTS_ALIGNMENT 64u

/* Elements of one constant, or of two, as an executable reads them. */
typedef struct tenon_packed_constant {
  uint32_t struct_size;
  uint32_t source_version; /* tensor_version when it was packed */
  const void* source;      /* data of a dense float32 tensor on the host, such as filters */
  const void*
      second; /* (optional) of another one, whose elements are among the packed ones, such as a bias */
  uint32_t second_version;
  uint32_t flags; /* TENON_PACKED_CONSTANT_*, told by `each`; 0 for `give` */
  /* All that the bytes depend on but the elements: "avx512 Winograd 3f2a6c81d0e45b97, 64x64x3x3, ...". It begins with the
   * instruction set, and has a sum of what this process packs of given elements: other layouts have other texts. */
  const char* form;
  const void* data;
  uint64_t bytes;
} tenon_packed_constant;

enum {
  TENON_PACKED_CONSTANT_GIVEN = 1 /* the bytes are those that someone gave, and no copy of them */
};

typedef struct tenon_packed_constants_api {
  uint32_t struct_size;
  uint32_t version;
  /* Executables that are made from now on read `data` instead of packing `source` in that form. The texts are copied.
   * The memory of the source, and what is given, stay and do not change until `withdraw`; nothing tells whether the bytes
   * are those of the source. Bytes of a form that nothing here asks for are never read. */
  tenon_status (*give)(const tenon_packed_constant*, tenon_err*);
  /* Forgets all that was given with a source in these bytes. The caller has ended every program with these constants. */
  void (*withdraw)(const void* begin, uint64_t bytes);
  /* `visit` for all that executables read now, given or packed here; borrowed while it lasts, and it calls no function of
   * this table. */
  void (*each)(void (*visit)(void* user, const tenon_packed_constant*), void* user);
} tenon_packed_constants_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_PACKED_CONSTANTS_H_ */
