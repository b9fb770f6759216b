/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "graph", version 1: programs. What a thread asks of operators is recorded while it really
 * runs, and can then be run again without the code that asked for it, printed, changed by passes,
 * saved, and loaded where that code does not exist.
 *
 *   const tenon_graph_service_api* graph = host->service_find("graph", 1);
 *
 * Recording is a layer below that of gradients: the operators of a backward pass and of an optimizer
 * are recorded like all others. Nothing is recorded of what happens inside a kernel.
 *
 * plugins/graph implements it. Device graphs (TENON_GROUP_GRAPH) are another thing: they replay the
 * launches of one device on the same memory. */
#ifndef TENON_SERVICES_GRAPH_H_
#define TENON_SERVICES_GRAPH_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_GRAPH_SERVICE "graph"
#define TENON_GRAPH_VERSION 1u

/* A program: unchanging, counted references, for any thread. */
typedef struct tenon_graph_program tenon_graph_program;
/* What one thread is recording; it belongs to that thread. */
typedef struct tenon_graph_recording tenon_graph_recording;
/* A part that was recorded for a structural step. It belongs to its recording. */
typedef struct tenon_graph_region tenon_graph_region;

/* Where the caller's program is: writes a NUL-terminated name of at most `room` bytes and returns the
 * line, or 0 if that is unknown. */
typedef int32_t (*tenon_graph_locate_fn)(void* user, char* file, uint32_t room);

typedef struct tenon_graph_recording_options {
  uint32_t struct_size;
  uint32_t flags;               /* TENON_GRAPH_RECORDING_* */
  tenon_graph_locate_fn locate; /* (optional) called for each operator that is recorded */
  void* user;
} tenon_graph_recording_options;

enum {
  /* What no program can hold ends the recording and not the call: the caller goes on as if nobody recorded,
   * and record_end fails with the reason. Inside of regions calls fail as without the flag. A function that
   * adds to a .grad that it has not assigned is refused, because recording it would put the .grad back. */
  TENON_GRAPH_RECORDING_GIVES_UP = 1
};

/* What the caller of a recording does beside calling operators; said before it does it. */
enum {
  TENON_GRAPH_NOTE_ACCUMULATE = 1,  /* a backward pass adds to .grad of leaves */
  TENON_GRAPH_NOTE_FREE_HISTORY = 2 /* a backward pass frees what results were made from */
};

/* Bytes that the results of a program's steps take at most at once, while no gradients are replayed. Inputs,
 * leaves, and what kernels need besides are not counted. */
typedef struct tenon_graph_memory {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t kept;     /* if nothing were freed before the end */
  uint64_t stepwise; /* if each is freed after its last use, and steps run one by one */
  uint64_t planned;  /* as the program runs: steps of a group make no tensors for each other */
} tenon_graph_memory;

typedef struct tenon_graph_service_api {
  uint32_t struct_size;
  uint32_t version;

  /* -- recording ------------------------------------------------------------------------------------
   * From begin to end, operator calls of this thread are recorded while they run. `inputs` become the
   * program's inputs; other tensors that are read become leaves. All tensors that are seen stay alive
   * until the end. */
  tenon_status (*record_begin)(tenon_tensor* const* inputs, uint32_t ninputs,
                               const tenon_graph_recording_options*, tenon_graph_recording** out,
                               tenon_err*);
  /* Ends and frees the recording, also on failure. */
  tenon_status (*record_end)(tenon_graph_recording*, tenon_tensor* const* results,
                             uint32_t nresults, tenon_graph_program** out, tenon_err*);
  void (*record_abandon)(tenon_graph_recording*);
  /* Does this thread record, outside of any kernel and not suspended? */
  int32_t (*is_recording)(void);
  /* The caller is about to read a tensor's data (`what`: "item()"). While this thread records, that
   * fails, and so does record_end: a program cannot hold what came of the data. */
  tenon_status (*record_read)(const char* what, tenon_err*);
  /* The caller is about to assign .grad of the tensor (autograd's set_grad). */
  tenon_status (*record_grad)(tenon_tensor*, tenon_err*);
  void (*record_note)(uint32_t notes);

  /* -- structural steps -----------------------------------------------------------------------------
   * What is called between region_begin and region_end is recorded as a region: its inputs are
   * `inputs`, then what it uses from outside. */
  tenon_status (*region_begin)(tenon_tensor* const* inputs, uint32_t ninputs, tenon_err*);
  tenon_status (*region_end)(tenon_tensor* const* results, uint32_t nresults,
                             tenon_graph_region** out, tenon_err*);
  /* Drop a region that was begun and not ended. */
  void (*region_abandon)(void);
  /* What is called from here to resume runs and is not recorded; data may be read. */
  tenon_status (*record_suspend)(tenon_err*);
  void (*record_resume)(void);
  /* `results`, which the caller computed, become those of the step. */
  tenon_status (*record_cond)(tenon_tensor* predicate, tenon_tensor* const* operands,
                              uint32_t noperands, tenon_graph_region* then_region,
                              tenon_graph_region* else_region, tenon_tensor* const* results,
                              uint32_t nresults, tenon_err*);
  tenon_status (*record_while)(tenon_tensor* const* carried, uint32_t ncarried,
                               tenon_graph_region* condition, tenon_graph_region* body,
                               tenon_tensor* const* results, tenon_err*);
  /* `xs` are scanned along their first axis. Results: the carried values, then those that the body
   * makes at each index, stacked along a new first axis. */
  tenon_status (*record_scan)(tenon_tensor* const* carried, uint32_t ncarried,
                              tenon_tensor* const* xs, uint32_t nxs, tenon_graph_region* body,
                              tenon_tensor* const* results, uint32_t nresults, tenon_err*);

  /* -- programs -------------------------------------------------------------------------------------- */
  void (*program_retain)(tenon_graph_program*);
  void (*program_release)(tenon_graph_program*); /* NULL is ignored */
  /* Of two recordings of the same function: `*out` is `second`, with those leaves as constants of the
   * program that the function made itself. TENON_FAILED_PRECONDITION: they differ, and the text says
   * where: something that is no tensor changes from call to call. */
  tenon_status (*program_settle)(const tenon_graph_program* first,
                                 const tenon_graph_program* second, tenon_graph_program** out,
                                 tenon_err*);
  uint32_t (*program_inputs)(const tenon_graph_program*);
  uint32_t (*program_results)(const tenon_graph_program*);
  uint32_t (*program_steps)(const tenon_graph_program*);
  uint32_t (*program_leaves)(const tenon_graph_program*);
  /* Borrowed. `*tensor` is NULL for a leaf that was not bound, `*is_constant` says whether it is the
   * program's own data. TENON_OUT_OF_RANGE: there is no such leaf. */
  tenon_status (*program_leaf)(const tenon_graph_program*, uint32_t index, const char** name,
                               tenon_tensor** tensor, int32_t* is_constant, tenon_err*);
  /* The same program with tensors for its leaves, NULL: as before; names NULL: as before. */
  tenon_status (*program_bind)(const tenon_graph_program*, tenon_tensor* const* leaves,
                               const char* const* names, tenon_graph_program** out, tenon_err*);
  /* Run it: `results` receives owned tensors. Inputs have the shapes, dtypes and devices that they had
   * when the program was recorded. */
  tenon_status (*program_run)(const tenon_graph_program*, tenon_tensor* const* inputs,
                              uint32_t ninputs, tenon_tensor** results, uint32_t nresults,
                              tenon_err*);
  /* "dce,cse,copies,views": names of passes, run in this order. */
  tenon_status (*program_optimize)(const tenon_graph_program*, const char* passes,
                                   tenon_graph_program** out, tenon_err*);
  void (*program_print)(const tenon_graph_program*, tenon_sink_fn, void* user);
  /* Leaves have no tensors; give them by program_bind. */
  tenon_status (*program_parse)(const char* text, uint64_t bytes, tenon_graph_program** out,
                                tenon_err*);
  /* A file that tenon.jit wrote, with its leaves. The file is mapped: it
   * must not be changed while the program lives. */
  tenon_status (*program_load)(const char* path, tenon_graph_program** out, tenon_err*);
  /* (appended) What is run together, a line for each group of steps; no text: every step runs alone. */
  void (*program_plan)(const tenon_graph_program*, tenon_sink_fn, void* user);
  /* (appended) How much memory the results of its steps take; the caller sets struct_size. */
  void (*program_memory)(const tenon_graph_program*, tenon_graph_memory*);
} tenon_graph_service_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_GRAPH_H_ */
