/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "graph", version 1: programs. What a thread asks of operators is recorded while it really
 * runs, and can then be run again without the code that called them, printed, changed by passes,
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
/* A program that is put together call by call. One thread at a time. */
typedef struct tenon_graph_builder tenon_graph_builder;

/* Where the caller's program is: writes a NUL-terminated name of at most `room` bytes and returns the
 * line, or 0 if that is unknown. */
typedef int32_t (*tenon_graph_locate_fn)(void* user, char* file, uint32_t room);

/* A number for where the caller's program is, the same for the same place; 0: unknown. What it means is asked once, and not for
 * each operator. */
typedef uint64_t (*tenon_graph_mark_fn)(void* user);
/* As tenon_graph_locate_fn, of a number that the recording was given. */
typedef int32_t (*tenon_graph_locate_mark_fn)(void* user, uint64_t mark, char* file, uint32_t room);

typedef struct tenon_graph_recording_options {
  uint32_t struct_size;
  uint32_t flags;               /* TENON_GRAPH_RECORDING_* */
  tenon_graph_locate_fn locate; /* (optional) called for each operator that is recorded */
  void* user;
  /* (optional, both or none) In the place of `locate`. */
  tenon_graph_mark_fn mark;
  tenon_graph_locate_mark_fn locate_mark; /* called until record_end returns */
} tenon_graph_recording_options;

enum {
  /* What no program can hold ends the recording and not the call: the caller goes on as if nothing were recorded,
   * and record_end fails with the reason. Inside of regions calls fail as without the flag. A function that
   * adds to a .grad that it has not assigned is refused, because recording it would put the .grad back. */
  TENON_GRAPH_RECORDING_GIVES_UP = 1
};

/* What the caller of a recording does beside calling operators; said before it does it. */
enum {
  TENON_GRAPH_NOTE_ACCUMULATE = 1,   /* a backward pass adds to .grad of leaves */
  TENON_GRAPH_NOTE_FREE_HISTORY = 2, /* a backward pass frees what results were made from */
  TENON_GRAPH_NOTE_HOOK = 4 /* (appended) it hangs a hook on a gradient or on saved tensors */
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

/* What a program does beside returning results, steps inside of cond, while and scan included. */
typedef struct tenon_graph_effects {
  uint32_t struct_size;     /* set by the caller */
  int32_t writes_outside;   /* a step writes into memory of an input or of a leaf from outside */
  int32_t sets_grad;        /* it assigns .grad of an input or a leaf */
  int32_t has_control_flow; /* cond, while or scan: how long a run takes depends on data */
} tenon_graph_effects;

/* -- rewrites ------------------------------------------------------------------------------------------
 * Data: an expression of operators, and one that may stand for it. */

/* How far results may be from those of the program as it was recorded. */
enum {
  TENON_GRAPH_EXACT = 0, /* not at all: the same bits, but for the payload of NaN */
  TENON_GRAPH_ULP = 1,   /* `units` in the last place of each element, for all numbers and NaN */
  TENON_GRAPH_FAST =
      2 /* `units` in the last place of max(1, |element|), for arguments of ordinary size;
                          * elements that were infinite or NaN may become others */
};

typedef struct tenon_graph_rewrite {
  uint32_t struct_size;
  int32_t numerics; /* TENON_GRAPH_EXACT, ... */
  double units;     /* 0 where exact */
  uint64_t dtypes;  /* of the tensors that variables stand for: bit 1 << TENON_DTYPE_*; 0: all */
  const char* name; /* without , ! and = */
  const char*
      from; /* "x * sigmoid(x)", in the grammar of gradients; lines `name = expression`, the */
  const char* to; /* result last. `to` uses the variables of `from` */
} tenon_graph_rewrite;

/* -- passes of plugins ----------------------------------------------------------------------------------
 * A pass changes a program through its editor, while it runs. It sees the steps of the program, and those
 * inside of cond, while and scan not. Steps are numbered from 0, in the order in which they run; values
 * have ids, which stay. What is borrowed is good until the next change. */
typedef struct tenon_graph_editor tenon_graph_editor;

enum {
  TENON_GRAPH_STEP_CALL = 0,
  TENON_GRAPH_STEP_VIEW = 1, /* a window on the memory of its operand */
  TENON_GRAPH_STEP_DETACH = 2,
  TENON_GRAPH_STEP_COND = 3,
  TENON_GRAPH_STEP_WHILE = 4,
  TENON_GRAPH_STEP_SCAN = 5
};

typedef struct tenon_graph_step {
  uint32_t struct_size; /* set by the caller */
  int32_t kind;         /* TENON_GRAPH_STEP_* */
  const tenon_op* op;   /* of a CALL; else NULL */
  const char* name;     /* "tenon::add", "view" */
  const char* file;     /* where the recorded program called it; "" if that is unknown */
  int32_t line;
  uint32_t noperands;
  uint32_t nresults;
  uint32_t given;      /* bit i: result i existed, and the step writes into it */
  int32_t is_recorded; /* gradients were on */
  /* (appended) */
  int32_t depth; /* 0: a step of the program; more: of a region of the step before with less */
  tenon_device_id device; /* that it runs on */
  int32_t dtype;          /* that it computes in */
  uint64_t bytes;         /* of the results that it makes */
} tenon_graph_step;

enum { TENON_GRAPH_VALUES = 0, TENON_GRAPH_ATTRIBUTE = 1 };

/* Whose ids an editor tells. */
enum { TENON_GRAPH_INPUTS = 0, TENON_GRAPH_LEAVES = 1, TENON_GRAPH_RESULTS = 2 };

/* What a step is given for one parameter. */
typedef struct tenon_graph_operand {
  int32_t kind;   /* TENON_GRAPH_VALUES: `ids`; TENON_GRAPH_ATTRIBUTE: `attribute` */
  uint32_t count; /* of ids: 1 for a tensor, more or less for a list of tensors */
  const uint32_t* ids;
  tenon_value attribute; /* no tensor; NONE: the argument is absent */
} tenon_graph_operand;

typedef struct tenon_graph_value {
  uint32_t struct_size; /* set by the caller */
  int32_t dtype;
  tenon_device_id device;
  int32_t ndim;
  const int64_t* shape;
  uint32_t uses;      /* how often steps read it, and the program returns or assigns it */
  int32_t is_written; /* a step writes into memory that it shares */
  int32_t is_outside; /* callers see its memory: an input, a leaf, a result, or a view of these */
  tenon_tensor* constant; /* the program's own data; NULL: no such */
} tenon_graph_value;

typedef struct tenon_graph_editor_api {
  uint32_t struct_size;
  uint32_t reserved;
  uint32_t (*steps)(const tenon_graph_editor*);
  tenon_status (*step)(const tenon_graph_editor*, uint32_t step, tenon_graph_step*, tenon_err*);
  tenon_status (*operand)(const tenon_graph_editor*, uint32_t step, uint32_t index,
                          tenon_graph_operand*, tenon_err*);
  tenon_status (*result)(const tenon_graph_editor*, uint32_t step, uint32_t index, uint32_t* id,
                         tenon_err*);
  tenon_status (*value)(const tenon_graph_editor*, uint32_t id, tenon_graph_value*, tenon_err*);
  /* A call in front of step `before`; `before` == steps: at the end. Operands that are left out take their defaults;
   * `ids` receives one id for each result. The operator's own rule gives the results' shapes. */
  tenon_status (*insert_call)(tenon_graph_editor*, uint32_t before, const tenon_op*,
                              const tenon_graph_operand* operands, uint32_t noperands,
                              uint32_t* ids, tenon_err*);
  /* A copy of the tensor becomes data of the program. */
  tenon_status (*insert_constant)(tenon_graph_editor*, tenon_tensor*, uint32_t* id, tenon_err*);
  /* All that read value `id` read `by`, which has its type. TENON_FAILED_PRECONDITION: it is written into, or
   * a caller would get memory that is not the result's own. */
  tenon_status (*replace)(tenon_graph_editor*, uint32_t id, uint32_t by, tenon_err*);
  /* TENON_FAILED_PRECONDITION: a result is read, or the step writes into what is read. */
  tenon_status (*remove)(tenon_graph_editor*, uint32_t step, tenon_err*);
  /* (appended) How many inputs, leaves or results (TENON_GRAPH_INPUTS, ...) the program has; `ids` receives those of the first
   * `room`, in the program's order. 0 of what is none of these. */
  uint32_t (*ids)(const tenon_graph_editor*, int32_t whose, uint32_t* ids, uint32_t room);
} tenon_graph_editor_api;

typedef struct tenon_graph_pass {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name; /* of letters, digits and _ */
  /* Called once for each program that the pass is named for, on any thread. What it leaves is verified. On failure
   * the program stays as it was. */
  tenon_status (*run)(void* user, tenon_graph_editor*, const tenon_graph_editor_api*, tenon_err*);
  void* user;
} tenon_graph_pass;

/* -- programs of many sizes ----------------------------------------------------------------------------
 * A dimension is a size of axes of inputs that each call chooses. */
typedef struct tenon_graph_dimension {
  uint32_t struct_size; /* set by the caller */
  uint32_t reserved;
  const char* name; /* of letters, digits and _ */
  int64_t min, max; /* both belong to it; min is at least 1 */
  int64_t multiple; /* sizes are multiples of it */
  int64_t recorded; /* one of the sizes */
} tenon_graph_dimension;

/* An axis of an input whose size is a dimension. */
typedef struct tenon_graph_site {
  uint32_t input, axis, dimension;
} tenon_graph_site;

/* -- what a program takes and gives, and how it is run ----------------------------------------------------
 * An input or a result as callers see it. Texts and lists are the program's. */
typedef struct tenon_graph_value_info {
  uint32_t struct_size; /* set by the caller */
  int32_t dtype;
  const char* name; /* "input_0", "output_0" where the program has none */
  tenon_device_id device;
  int32_t ndim;
  const int64_t* shape; /* at the recorded sizes */
  /* For each axis the index of the dimension that is its size, or TENON_GRAPH_SIZE_*. */
  const int32_t* dimensions;
} tenon_graph_value_info;

enum {
  TENON_GRAPH_SIZE_FIXED = -1,
  TENON_GRAPH_SIZE_FOLLOWS = -2 /* from the dimensions, in another way */
};

enum {
  TENON_GRAPH_RUN_ONE_BY_ONE = 1, /* steps do not run together, so that all results are there */
  /* No result shares memory with an input or a leaf: those that may are copied, and no gradients pass. */
  TENON_GRAPH_RUN_OWN_RESULTS = 2
};

/* What a caller may ask for beside the results. Functions are called on the thread that runs; a status other
 * than TENON_OK ends the run with it. */
typedef struct tenon_graph_run_options {
  uint32_t struct_size; /* set by the caller */
  uint32_t flags;       /* TENON_GRAPH_RUN_* */
  /* (optional) For each result NULL, or a dense tensor of its type, which receives its elements and is what
   * `results` gets. It shares no memory with inputs, leaves and other results. Where a single step makes the result
   * and nothing reads it, that step writes there; else it is copied. After a failure it holds anything. */
  tenon_tensor* const* into;
  void* user;
  /* (optional) Before each step, or steps that run together; also of those inside of cond, while and scan. */
  tenon_status (*before)(void* user, tenon_err*);
  /* (optional) Steps [begin, end) of the program have run. `results`, borrowed: those of the step, or none where
   * steps ran together. */
  tenon_status (*after)(void* user, uint32_t begin, uint32_t end, tenon_tensor* const* results,
                        uint32_t nresults, tenon_err*);
} tenon_graph_run_options;

/* -- claimers ------------------------------------------------------------------------------------------
 * A claimer is a compiler of sub-graphs that users choose by name, where the group `subgraph` of a device is the
 * device's own. It is offered steps that run on the host device, before that device is.
 *
 * Service "<name>.claimer", version 1; a plugin that is found by it stays loaded, as those of all services do. */
#define TENON_GRAPH_CLAIMER_SUFFIX ".claimer"
#define TENON_GRAPH_CLAIMER_VERSION 1u
typedef struct tenon_graph_claimer_api {
  uint32_t struct_size;
  uint32_t version;
  /* TENON_EXECUTABLE_EXACT: all its executables are. Without it, it serves programs alone whose results may be others
   * (TENON_GRAPH_FAST). */
  uint32_t flags;
  uint32_t reserved;
  /* Reads `options`, a text in a grammar of the claimer's own ("": none), and opens what it needs. Fails for options that
   * there are not, and where a library is missing. `*out` is passed to the functions of `subgraphs` in the
   * place of a device, on any thread. */
  tenon_status (*open)(const char* options, tenon_device* out, tenon_err*);
  void (*close)(tenon_device); /* after its last executable was destroyed */
  const tenon_subgraph_api* subgraphs;
} tenon_graph_claimer_api;

/* Steps that a claimer or a device has claimed. Texts are borrowed while the visit lasts. */
typedef struct tenon_graph_claim {
  uint32_t struct_size;
  uint32_t begin, end; /* steps [begin, end), in the order of program_each_step */
  uint32_t reserved;
  const char* claimer; /* "onnxruntime", "cpu:0" */
  const char*
      problem; /* why kernels run the steps; "": nothing is known that keeps the executable from running */
} tenon_graph_claim;

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
  /* "dce,cse,rewrites,copies,views": names of passes, run in this order. "rewrites" applies exact rewrites;
   * "rewrites=ulp" and "rewrites=fast" those too that promise less; "rewrites=fast!silu" all but one.
   * "recompute=BYTES" makes results again where those that live at once take more. "freeze" makes leaves constants,
   * copies of what they are now; "fold" does now what follows from constants alone; "batch_norms" makes
   * normalisations by constants part of the layer before, with results rounded in another order. */
  tenon_status (*program_optimize)(const tenon_graph_program*, const char* passes,
                                   tenon_graph_program** out, tenon_err*);
  void (*program_print)(const tenon_graph_program*, tenon_sink_fn, void* user);
  /* Leaves have no tensors; give them by program_bind. */
  tenon_status (*program_parse)(const char* text, uint64_t bytes, tenon_graph_program** out,
                                tenon_err*);
  /* A file that tenon.jit wrote, with its leaves. The file is mapped: it
   * must not be changed while the program lives. */
  tenon_status (*program_load)(const char* path, tenon_graph_program** out, tenon_err*);
  /* (appended) What is run together, a line for each group of steps; no text: every step runs alone, or program_prepare
   * fails. It may wait for a device. */
  void (*program_plan)(const tenon_graph_program*, tenon_sink_fn, void* user);
  /* (appended) How much memory the results of its steps take; the caller sets struct_size. Zeros where program_prepare
   * fails. It may wait for a device. */
  void (*program_memory)(const tenon_graph_program*, tenon_graph_memory*);

  /* -- rewrites and passes (appended) ---------------------------------------------------------------
   * Tries the rewrite on arguments that it draws, and keeps it. TENON_FAILED_PRECONDITION: the sides differ
   * by more than it says, and the text is a counterexample. Names are copied. */
  tenon_status (*rewrite_add)(const tenon_graph_rewrite*, tenon_err*);
  tenon_status (*rewrite_remove)(const char* name, tenon_err*);
  /* Tries one that is known, with other arguments for each seed. */
  tenon_status (*rewrite_check)(const char* name, uint64_t seed, tenon_err*);
  /* `visit` for each, in the order in which they are tried. */
  void (*rewrite_list)(void (*visit)(void* user, const tenon_graph_rewrite*), void* user);
  /* The pass can be named in program_optimize. The caller removes it before its code goes. */
  tenon_status (*pass_add)(const tenon_graph_pass*, tenon_err*);
  tenon_status (*pass_remove)(const char* name, tenon_err*);
  /* What passes did, a line for each change: "silu: 2 steps became tenon::silu at train.py:12". */
  void (*program_changes)(const tenon_graph_program*, tenon_sink_fn, void* user);

  /* -- programs of many sizes (appended) ------------------------------------------------------------
   * Sizes at which to record a function: `*count` rows of one size for each dimension, of which `sizes`
   * receives up to `room`. */
  tenon_status (*program_samples)(const tenon_graph_dimension*, uint32_t ndimensions,
                                  int64_t* sizes, uint32_t room, uint32_t* count, tenon_err*);
  /* One program of what was recorded at each of these sizes, in their order. `requirements` (optional): for each,
   * lines of what the function found to hold, as "16 % 8 == 0"; a program takes sizes for which that holds.
   * TENON_FAILED_PRECONDITION: the function does something else at another size, or a number in it is no
   * expression of the sizes. program_run makes the program of a call's sizes and keeps it; plan, memory and changes
   * are those of the recorded sizes. */
  tenon_status (*program_unify)(const tenon_graph_dimension*, uint32_t ndimensions,
                                const tenon_graph_program* const* programs,
                                const char* const* requirements, uint32_t count,
                                tenon_graph_program** out, tenon_err*);
  uint32_t (*program_dimensions)(const tenon_graph_program*); /* 0: a program of one size */
  tenon_status (*program_dimension)(const tenon_graph_program*, uint32_t index,
                                    tenon_graph_dimension* out, tenon_err*);
  /* (appended) In the region that was begun last, `clones` stand for these tensors and may be written into. The memory
   * of the tensors themselves, which does not change, cannot be read in it. */
  tenon_status (*region_hide)(tenon_tensor* const* tensors, tenon_tensor* const* clones,
                              uint32_t count, tenon_err*);
  /* (appended) After record_cond, record_while or record_scan, and whatever the caller copies from their results:
   * where a result is memory that a region was given, a write to one of both makes reading the other an error. */
  tenon_status (*record_join)(tenon_err*);

  /* -- what no program repeats (appended) -----------------------------------------------------------
   * The caller is about to do what no program would do again, such as talking to other processes: `what` says it
   * ("Communicator.all_reduce()"), and `rest` goes behind the line of the caller's program (" talks to other ranks, ...").
   * While this thread records, that fails, also between record_suspend and record_resume, and so does record_end. */
  tenon_status (*record_effect)(const char* what, const char* rest, tenon_err*);
  /* An operator's own code is about to read a tensor's data on the host, to check them or to choose by them what it
   * calls; `what` and `rest` as for record_effect. While this thread records, that fails, unless the data follow from
   * the function's own constants: tensors that it makes anew from Python's data in each call. What is no such constant after
   * all, program_settle refuses. */
  tenon_status (*record_look)(tenon_tensor*, const char* what, const char* rest, tenon_err*);

  /* (appended) What running the program changes; the caller sets struct_size. A program of many sizes does the same
   * at all of them. */
  void (*program_effects)(const tenon_graph_program*, tenon_graph_effects*);

  /* -- what a program is made of (appended) ---------------------------------------------------------
   * Calls `read` once, with an editor for reading: what would change the program fails with
   * TENON_FAILED_PRECONDITION. What is borrowed from it is good until `read` returns, whose status this is. A program of
   * many sizes is read at the recorded ones. Any thread. */
  tenon_status (*program_read)(const tenon_graph_program*,
                               tenon_status (*read)(void* user, const tenon_graph_editor*,
                                                    const tenon_graph_editor_api*, tenon_err*),
                               void* user, tenon_err*);
  /* How many axes of inputs are dimensions; `sites` receives the first `room`. */
  uint32_t (*program_sites)(const tenon_graph_program*, tenon_graph_site* sites, uint32_t room);
  /* Makes the program ready to run, as its first run does otherwise: it is verified, and groups of its steps are
   * found. Fails as that run would. Any thread. */
  tenon_status (*program_prepare)(const tenon_graph_program*, tenon_err*);

  /* -- programs that are built (appended) -----------------------------------------------------------
   * For those who know the calls and have no function to record: readers of files, other frameworks' graphs. Nothing
   * runs. A value is a tensor of the device "meta", which has a dtype and a shape and no data; it is told apart by its
   * address, and belongs to one builder.
   *
   * `device`: where the program runs, of inputs and of calls without operands; TENON_DEVICE_NONE: the host device. */
  tenon_status (*builder_begin)(tenon_device_id device, tenon_graph_builder** out, tenon_err*);
  /* The next input of the program. `device`: TENON_DEVICE_NONE for the builder's. `*value` owned. */
  tenon_status (*builder_input)(tenon_graph_builder*, int32_t dtype, int32_t ndim,
                                const int64_t* shape, tenon_device_id device, tenon_tensor** value,
                                tenon_err*);
  /* A tensor that the program uses as it is at each run, by reference; the same tensor again is the same value. `name`: NULL
   * for none. `is_constant`: its elements never change, and passes may compute with them. `*value` owned. */
  tenon_status (*builder_leaf)(tenon_graph_builder*, tenon_tensor* tensor, const char* name,
                               int32_t is_constant, tenon_tensor** value, tenon_err*);
  /* op_call, of values: the operator's own rules say what the results are, and errors are the operator's own. Results are owned
   * by the caller; given ones are written into when the program runs. Tensors with data among `args` become leaves without a name.
   * A composite becomes its parts, unless the device has a kernel for the whole of it. The steps are recorded with gradients on if they
   * are on for the calling thread. */
  tenon_status (*builder_call)(tenon_graph_builder*, const tenon_op*, const tenon_value* args,
                               uint32_t nargs, tenon_value* outs, uint32_t nouts, tenon_err*);
  /* Where a run has the value, and the tensor behind it if it is a constant, else NULL; borrowed. A caller whose operands are all
   * constants may call the operator at once and add the result as a constant. */
  tenon_status (*builder_value)(const tenon_graph_builder*, const tenon_tensor* value,
                                tenon_device_id* device, tenon_tensor** constant, tenon_err*);
  /* The steps that follow are at this place of the caller's program: line from 1 on. NULL: nowhere. The text is copied. */
  void (*builder_locate)(tenon_graph_builder*, const char* file, int32_t line);
  /* Ends and frees the builder, also on failure. The program is as one that was recorded: program_optimize has done nothing
   * to it yet. */
  tenon_status (*builder_end)(tenon_graph_builder*, tenon_tensor* const* results, uint32_t nresults,
                              tenon_graph_program** out, tenon_err*);
  void (*builder_abandon)(tenon_graph_builder*); /* NULL is ignored */
  /* A branch or loop: `kind` is TENON_GRAPH_STEP_COND, _WHILE or _SCAN. Operands of COND are the predicate, then what
   * both regions get; of WHILE `ncarried` values, then others; of SCAN `ncarried` values, `nscanned` that are taken apart along
   * their first axis, then others. `regions` are programs of one size whose inputs the operands are, without the predicate: for COND then and
   * else, for WHILE condition and body, for SCAN the body; tensors that they hold become operands. They are borrowed. Results, owned: those of
   * a branch; the carried values; those, and what the body makes besides, stacked along a new first axis. */
  tenon_status (*builder_control)(tenon_graph_builder*, int32_t kind, tenon_tensor* const* operands,
                                  uint32_t noperands, uint32_t ncarried, uint32_t nscanned,
                                  tenon_graph_program* const* regions, uint32_t nregions,
                                  tenon_tensor** results, uint32_t nresults, tenon_err*);

  /* -- names, types and ways to run (appended) ------------------------------------------------------
   * The same program with names for its inputs and results: texts without NUL, each at most once among the inputs and
   * among the results; NULL or "" in a list: no name; NULL for a list: as before. Files keep them. */
  tenon_status (*program_name)(const tenon_graph_program*, const char* const* inputs,
                               const char* const* results, tenon_graph_program** out, tenon_err*);
  /* TENON_OUT_OF_RANGE: there is no such input or result. */
  tenon_status (*program_input)(const tenon_graph_program*, uint32_t index,
                                tenon_graph_value_info* out, tenon_err*);
  tenon_status (*program_result)(const tenon_graph_program*, uint32_t index,
                                 tenon_graph_value_info* out, tenon_err*);
  /* `visit` for each step in order, those inside of cond, while and scan behind their step. */
  void (*program_each_step)(const tenon_graph_program*,
                            void (*visit)(void* user, const tenon_graph_step*), void* user);
  /* As program_run; `options` may be NULL. */
  tenon_status (*program_run_with)(const tenon_graph_program*, tenon_tensor* const* inputs,
                                   uint32_t ninputs, tenon_tensor** results, uint32_t nresults,
                                   const tenon_graph_run_options*, tenon_err*);
  /* The same program on another device: its inputs, results and all between; leaves are copied there. */
  tenon_status (*program_move)(const tenon_graph_program*, tenon_device_id,
                               tenon_graph_program** out, tenon_err*);

  /* -- claimers (appended) ----------------------------------------------------------------------------
   * The same program, whose steps are offered to the claimer of this name behind those that it has. Files do not keep
   * it. TENON_NOT_FOUND: no plugin has it. TENON_FAILED_PRECONDITION: its results are not exact, and the program's
   * have to be. Other errors are the claimer's own. */
  tenon_status (*program_claim)(const tenon_graph_program*, const char* claimer,
                                const char* options, tenon_graph_program** out, tenon_err*);
  /* `visit` for what is claimed of the program, which is made ready to run; of one of many sizes, at the recorded ones. */
  tenon_status (*program_claims)(const tenon_graph_program*,
                                 void (*visit)(void* user, const tenon_graph_claim*), void* user,
                                 tenon_err*);

  /* -- gradients in programs that are built (appended) --------------------------------------------------
   * The gradient of the sum of `result`, a value, with respect to each of `values`: the steps between them, from the last
   * one to the first, by their operators' rules, become further steps. `result` is real, and all are of floating dtypes.
   * `gradients`, owned, have the types of `values`; zeros where the result does not depend on one. They are values like others, which
   * have gradients, too. TENON_UNSUPPORTED: such a step is a branch or a loop, writes in place, or is of an operator without a rule. */
  tenon_status (*builder_gradients)(tenon_graph_builder*, tenon_tensor* result,
                                    tenon_tensor* const* values, uint32_t nvalues,
                                    tenon_tensor** gradients, tenon_err*);

  /* -- files (appended) ----------------------------------------------------------------------------------
   * Writes the program with its leaves to a file that program_load reads, and with what executables of the host have packed
   * of its constants by now (services/packed_constants.h): who wants all of it runs the program first. Claimers are not
   * kept. The file appears whole or not at all. */
  tenon_status (*program_save)(const tenon_graph_program*, const char* path, tenon_err*);
} tenon_graph_service_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_GRAPH_H_ */
