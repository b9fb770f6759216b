/* SPDX-License-Identifier: Apache-2.0
 *
 * tenon/predictor.h - runs programs that Python exported (`.tenon` files) and models of ONNX (`.onnx` files), from C and
 * from every language that calls C. Link libtenon_predictor.so.1 (CMake: Tenon::predictor).
 *
 *   tenon_config* config;
 *   tenon_predictor* predictor;
 *   tenon_config_create("model.tenon", &config);
 *   tenon_config_set(config, "warmup", "recorded");
 *   if (tenon_predictor_create(config, &predictor)) puts(tenon_predictor_error());
 *   tenon_predictor_bind_input(predictor, "x", TENON_DTYPE_F32, 2, shape, data, bytes);
 *   tenon_predictor_run(predictor);
 *   tenon_predictor_output(predictor, "scores", &view);
 *
 * Ground rules:
 *
 *   - Every function that can fail returns a tenon_status (tenon/abi.h; 0: success), leaves a text that
 *     tenon_predictor_error() returns, and leaves its out parameters as they were. Nothing aborts or throws.
 *   - Handles are checked: NULL, a handle that was freed, one of another kind and any other pointer are
 *     TENON_INVALID_ARGUMENT. A handle is no address and cannot be dereferenced.
 *   - A predictor serves one thread at a time: a second one gets TENON_FAILED_PRECONDITION. Threads that run at once
 *     have a clone each. Clones share weights and what was prepared for them.
 *   - Memory that is bound belongs to the caller, who keeps it until it is bound anew, unbound, or the predictor freed.
 *   - Texts are NUL-terminated UTF-8. Shapes count elements, `bytes` are bytes.
 *   - Within TENON_PREDICTOR_EPOCH, functions are added and none changes; structures grow at their end. */
#ifndef TENON_PREDICTOR_H_
#define TENON_PREDICTOR_H_

#include <tenon/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_PREDICTOR_EPOCH 1u
#define TENON_PREDICTOR_REVISION 1u

#ifdef TENON_PREDICTOR_BUILD
#define TENON_PREDICTOR_API TENON_EXPORT
#else
#define TENON_PREDICTOR_API
#endif

typedef struct tenon_config tenon_config;
typedef struct tenon_predictor tenon_predictor;

/* A size that each call chooses. */
typedef struct tenon_predictor_dimension {
  uint32_t struct_size; /* set by the caller, as in all structures of this header */
  uint32_t reserved;
  const char* name; /* the predictor's; lives as long as it or a clone of it */
  int64_t min, max; /* both belong to it */
  int64_t multiple; /* sizes are multiples of it */
  int64_t recorded; /* one of the sizes: that of the export */
} tenon_predictor_dimension;

enum {
  TENON_PREDICTOR_FIXED = -1,
  TENON_PREDICTOR_FOLLOWS = -2 /* from dimensions, in a way that is no single one */
};

typedef struct tenon_predictor_type {
  uint32_t struct_size;
  int32_t dtype; /* TENON_DTYPE_* */
  int32_t ndim;
  uint32_t reserved;
  int64_t shape[TENON_MAX_NDIM]; /* -1: open */
  int32_t dimensions
      [TENON_MAX_NDIM]; /* for each axis the index of its dimension, or TENON_PREDICTOR_* */
} tenon_predictor_type;

/* Elements in the host's memory, dense, in row-major order. */
typedef struct tenon_predictor_view {
  uint32_t struct_size;
  int32_t dtype;
  int32_t ndim;
  uint32_t reserved;
  const void* data;
  uint64_t bytes;
  int64_t shape[TENON_MAX_NDIM];
} tenon_predictor_view;

typedef struct tenon_predictor_step {
  uint32_t struct_size;
  uint32_t index;   /* in the order in which steps run */
  const char* name; /* "tenon::linear", "cond" */
  const char* file; /* of the exported function's source, "": unknown */
  int32_t line;
  int32_t reserved;
} tenon_predictor_step;

typedef struct tenon_predictor_memory_use {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t
      weights; /* bytes that all clones share; mapped from the file where they lie on the host */
  uint64_t results; /* bytes of steps' results that live at once, at the recorded sizes */
} tenon_predictor_memory_use;

/* A key of the configuration. Texts are static. */
typedef struct tenon_config_key_info {
  uint32_t struct_size;
  int32_t is_available; /* 0: the key has a meaning, and this version does not do it yet */
  const char* name;
  const char* default_value;
  const char* text; /* what it does; for a key that is not available, what to do instead */
} tenon_config_key_info;

/* Called after each step of a run with its results, valid during the call. Another status than TENON_OK ends the run
 * with it. It cannot call functions of the same predictor. */
typedef tenon_status (*tenon_predictor_hook_fn)(void* user, const tenon_predictor_step*,
                                                const tenon_predictor_view* results,
                                                uint32_t nresults);

/* -- this library ---------------------------------------------------------------------------------- */

/* TENON_PREDICTOR_EPOCH << 16 | TENON_PREDICTOR_REVISION of the library that runs. */
TENON_PREDICTOR_API uint32_t tenon_predictor_version(void);
/* The text of the last failure on this thread, "" before the first; valid until the next one. */
TENON_PREDICTOR_API const char* tenon_predictor_error(void);
/* "INVALID_ARGUMENT"; NULL for what is no status. */
TENON_PREDICTOR_API const char* tenon_predictor_status_name(tenon_status);
/* "float32"; NULL for what is no dtype. */
TENON_PREDICTOR_API const char* tenon_predictor_dtype_name(int32_t dtype);
/* Bytes of an element (two numbers of 4 bits are one element); 0 for what is no dtype. */
TENON_PREDICTOR_API uint32_t tenon_predictor_dtype_size(int32_t dtype);
/* TENON_DTYPE_* of "float32"; -1: unknown. */
TENON_PREDICTOR_API int32_t tenon_predictor_dtype_find(const char* name);
/* Threads of the process's one pool, which runs the kernels of all predictors; the caller is one of them. */
TENON_PREDICTOR_API int32_t tenon_predictor_process_threads(void);
/* From 1 on. For the whole process, from the next kernel on. */
TENON_PREDICTOR_API tenon_status tenon_predictor_set_process_threads(int32_t count);

/* -- configuration --------------------------------------------------------------------------------- */

/* For the program in this file, which is opened by tenon_predictor_create: a model of ONNX where the path ends in
 * ".onnx" (what it leaves open are the keys "sizes" and "shapes"), else a program that Python exported. */
TENON_PREDICTOR_API tenon_status tenon_config_create(const char* path, tenon_config** out);
/* TENON_NOT_FOUND: there is no such key, and the text names the nearest. TENON_UNSUPPORTED: the key is known and not
 * available yet. TENON_INVALID_ARGUMENT: the value is none that the key takes. */
TENON_PREDICTOR_API tenon_status tenon_config_set(tenon_config*, const char* key,
                                                  const char* value);
/* Borrowed until the key is set anew or the configuration freed. */
TENON_PREDICTOR_API tenon_status tenon_config_get(tenon_config*, const char* key,
                                                  const char** value);
TENON_PREDICTOR_API uint32_t tenon_config_key_count(void);
TENON_PREDICTOR_API tenon_status tenon_config_key(uint32_t index, tenon_config_key_info* out);
TENON_PREDICTOR_API tenon_status tenon_config_free(tenon_config*);

/* -- predictors ------------------------------------------------------------------------------------ */

/* Loads the program and prepares it as configured. The configuration may be changed or freed afterwards. */
TENON_PREDICTOR_API tenon_status tenon_predictor_create(tenon_config*, tenon_predictor** out);
/* With nothing bound, no hook and an empty profile. The original may be freed first. */
TENON_PREDICTOR_API tenon_status tenon_predictor_clone(tenon_predictor*, tenon_predictor** out);
/* TENON_FAILED_PRECONDITION while it runs. */
TENON_PREDICTOR_API tenon_status tenon_predictor_free(tenon_predictor*);
/* The value of a configuration key that it was made with; for "device" the device that it runs on. Lives as long as
 * the predictor or a clone of it. */
TENON_PREDICTOR_API tenon_status tenon_predictor_setting(tenon_predictor*, const char* key,
                                                         const char** value);

/* Inputs are named as the parameters of the exported function, outputs as the keys of the dictionary that it returns;
 * else "input_0", "output_0". Names live as long as the predictor or a clone of it. */
TENON_PREDICTOR_API tenon_status tenon_predictor_input_count(tenon_predictor*, uint32_t* count);
TENON_PREDICTOR_API tenon_status tenon_predictor_input_name(tenon_predictor*, uint32_t index,
                                                            const char** name);
TENON_PREDICTOR_API tenon_status tenon_predictor_input_find(tenon_predictor*, const char* name,
                                                            uint32_t* index);
TENON_PREDICTOR_API tenon_status tenon_predictor_input_type(tenon_predictor*, uint32_t index,
                                                            tenon_predictor_type* out);
TENON_PREDICTOR_API tenon_status tenon_predictor_output_count(tenon_predictor*, uint32_t* count);
TENON_PREDICTOR_API tenon_status tenon_predictor_output_name(tenon_predictor*, uint32_t index,
                                                             const char** name);
TENON_PREDICTOR_API tenon_status tenon_predictor_output_find(tenon_predictor*, const char* name,
                                                             uint32_t* index);
TENON_PREDICTOR_API tenon_status tenon_predictor_output_type(tenon_predictor*, uint32_t index,
                                                             tenon_predictor_type* out);
TENON_PREDICTOR_API tenon_status tenon_predictor_dimension_count(tenon_predictor*, uint32_t* count);
TENON_PREDICTOR_API tenon_status tenon_predictor_dimension_at(tenon_predictor*, uint32_t index,
                                                              tenon_predictor_dimension* out);

/* -- running --------------------------------------------------------------------------------------- */

/* Elements in the host's memory, dense, in row-major order and aligned to an element; `bytes` of them may be read.
 * Nothing is copied here: each run reads them anew. A device with memory of its own copies them in each run. */
TENON_PREDICTOR_API tenon_status tenon_predictor_bind_input(tenon_predictor*, const char* name,
                                                            int32_t dtype, int32_t ndim,
                                                            const int64_t* shape, const void* data,
                                                            uint64_t bytes);
/* Where runs put this output; likewise, and apart from all memory that is bound. Where one step makes the output and
 * nothing else reads it, it writes there; else it is copied. After a failed run the memory holds anything. */
TENON_PREDICTOR_API tenon_status tenon_predictor_bind_output(tenon_predictor*, const char* name,
                                                             int32_t dtype, int32_t ndim,
                                                             const int64_t* shape, void* data,
                                                             uint64_t bytes);
/* A tensor of the host table (tenon/abi.h), on any device and of any layout; the predictor keeps a reference. */
TENON_PREDICTOR_API tenon_status tenon_predictor_bind_input_tensor(tenon_predictor*,
                                                                   const char* name, tenon_tensor*);
/* All inputs, or all outputs, are as after tenon_predictor_create. */
TENON_PREDICTOR_API tenon_status tenon_predictor_unbind_inputs(tenon_predictor*);
TENON_PREDICTOR_API tenon_status tenon_predictor_unbind_outputs(tenon_predictor*);
TENON_PREDICTOR_API tenon_status tenon_predictor_run(tenon_predictor*);
/* An output of the last run, in memory that is bound to it or the predictor's own: one that is an input or a weight is
 * copied. Valid until the next run, binding, unbinding, shrink_memory or free. */
TENON_PREDICTOR_API tenon_status tenon_predictor_output(tenon_predictor*, const char* name,
                                                        tenon_predictor_view* out);
/* The same as an owned tensor of the host table, on the predictor's device. It shares memory with nothing that is bound
 * and with no weight, as it is copied where the output is bound; two calls after one run give the same memory. */
TENON_PREDICTOR_API tenon_status tenon_predictor_output_tensor(tenon_predictor*, const char* name,
                                                               tenon_tensor** out);
/* From any thread: the run that is under way ends with TENON_CANCELLED before its next step, or as it would have where
 * no step is left. A run is under way from when other calls get TENON_FAILED_PRECONDITION until it returns. Runs that
 * begin later are not concerned, and without one nothing happens; warm-ups are no runs that can be cancelled. */
TENON_PREDICTOR_API tenon_status tenon_predictor_cancel(tenon_predictor*);
/* Runs it with zeros as inputs, so that what is prepared at a first run is there: at the sizes of `shapes`, as the key
 * "warmup" takes them. */
TENON_PREDICTOR_API tenon_status tenon_predictor_warmup(tenon_predictor*, const char* shapes);

/* -- looking inside -------------------------------------------------------------------------------- */

/* Steps run one by one while there is a hook; NULL: none. */
TENON_PREDICTOR_API tenon_status tenon_predictor_set_hook(tenon_predictor*, tenon_predictor_hook_fn,
                                                          void* user);
/* Texts are borrowed until the same function is called again, or the predictor freed.
 *   explain: for each step its device, dtype, kernel's plugin and bytes, then what runs together
 *   profile: for each step, or steps that run together, how often and how long they ran (key "profile")
 *   program: the text form */
TENON_PREDICTOR_API tenon_status tenon_predictor_explain(tenon_predictor*, const char** text);
TENON_PREDICTOR_API tenon_status tenon_predictor_profile(tenon_predictor*, const char** text);
TENON_PREDICTOR_API tenon_status tenon_predictor_program(tenon_predictor*, const char** text);
TENON_PREDICTOR_API tenon_status tenon_predictor_memory(tenon_predictor*,
                                                        tenon_predictor_memory_use* out);
/* Drops the last run's outputs, and returns memory of the device that is kept for later calls: of the whole process,
 * as predictors share it. `released` (optional): bytes. */
TENON_PREDICTOR_API tenon_status tenon_predictor_shrink_memory(tenon_predictor*,
                                                               uint64_t* released);

/* -- files (revision 1) ------------------------------------------------------------------------------ */

/* Writes the program as it was prepared, with its weights and with what executables of this machine's processor have packed of
 * them: a .tenon file, of which a predictor maps the packed weights instead of packing them, and shares their pages with
 * other processes. Other processors, and other versions of Tenon, pack the weights as they do for other files. The
 * predictor runs on zeros for it. The file appears whole or not at all. TENON_UNSUPPORTED: a model of ONNX that is one
 * program for each size. */
TENON_PREDICTOR_API tenon_status tenon_predictor_save_optimized(tenon_predictor*, const char* path);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_PREDICTOR_H_ */
