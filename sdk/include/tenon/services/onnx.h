/* SPDX-License-Identifier: Apache-2.0
 *
 * Service "onnx", version 1: models of ONNX (opsets 1 to 28, IR versions 3 to 14) as programs.
 *
 *   const tenon_onnx_api* onnx = host->service_find("onnx", 1);
 *   tenon_onnx_model* model;
 *   onnx->model_open("resnet50.onnx", &model, err);
 *   onnx->model_program(model, NULL, &program, NULL, NULL, err);
 *   onnx->model_release(model);
 *
 * A file is taken for hostile: sizes, counts and nesting have limits, and what is wrong is an error that says where. plugins/onnx
 * implements it. */
#ifndef TENON_SERVICES_ONNX_H_
#define TENON_SERVICES_ONNX_H_

#include <tenon/services/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_ONNX_SERVICE "onnx"
#define TENON_ONNX_VERSION 1u

/* A model that was read: unchanging, for any thread. */
typedef struct tenon_onnx_model tenon_onnx_model;

/* A size that a model leaves open, by its name (dim_param). */
typedef struct tenon_onnx_size {
  const char* name;
  int64_t size;
} tenon_onnx_size;

/* The shape of an input of the model. Several of one name: of the tensors of a sequence, in order. */
typedef struct tenon_onnx_shape {
  const char* name;
  const int64_t* shape;
  uint32_t ndim;
  uint32_t reserved;
} tenon_onnx_shape;

/* An input that is no input of the program: what it is then is known while the model is imported. */
typedef struct tenon_onnx_constant {
  const char* name;
  tenon_tensor* value; /* on the host device */
} tenon_onnx_constant;

/* A tensor of text for such an input. */
typedef struct tenon_onnx_texts {
  const char* name;
  const char* const* elements; /* UTF-8, row-major; as many as the shape has */
  const int64_t* shape;
  uint32_t ndim;
  uint32_t reserved;
} tenon_onnx_texts;

enum {
  /* Results that are text may be int64 numbers into a list of texts, which `structure` has; without it they are refused. */
  TENON_ONNX_TEXT_RESULTS = 1 << 0,
  /* (appended) The sizes are those of a sample of several: tensors that follow from them are made by steps, so that programs of other
   * samples are the same (`program_unify`), and not computed once for all. */
  TENON_ONNX_SAMPLE = 1 << 1
};

typedef struct tenon_onnx_options {
  uint32_t struct_size;
  uint32_t nsizes;
  const tenon_onnx_size* sizes;
  const tenon_onnx_shape* shapes; /* they go before sizes */
  const tenon_onnx_constant* constants;
  uint32_t nshapes;
  uint32_t nconstants;
  /* (appended) Inputs that are text have to be given. */
  const tenon_onnx_texts* texts;
  uint32_t ntexts;
  uint32_t flags; /* TENON_ONNX_* */
} tenon_onnx_options;

/* An input of a model. */
typedef struct tenon_onnx_input {
  uint32_t struct_size;          /* set by the caller */
  int32_t is_sequence;           /* of tensors; what follows is said of each of them */
  const char* name;              /* the model's, as are the names of sizes */
  int32_t dtype;                 /* TENON_DTYPE_*; -1: an element type that no tensor has */
  int32_t ndim;                  /* -1: open */
  int64_t shape[TENON_MAX_NDIM]; /* -1: open */
  const char* size_names[TENON_MAX_NDIM]; /* of open sizes (dim_param); NULL: it has none */
} tenon_onnx_input;

typedef struct tenon_onnx_api {
  uint32_t struct_size;
  uint32_t version;

  /* Reads a file, which is mapped: it must not be changed while the model or a program of it lives. Files of external data lie
   * beneath its folder. */
  tenon_status (*model_open)(const char* path, tenon_onnx_model** out, tenon_err*);
  /* Reads bytes, which are copied. Models with external data are refused. */
  tenon_status (*model_read)(const void* bytes, uint64_t size, tenon_onnx_model** out, tenon_err*);
  void (*model_release)(tenon_onnx_model*); /* NULL is ignored */
  /* JSON: ir_version, producer, opsets, inputs ({name, dtype, shape: sizes, names and null}, without those that have an
   * initializer) and outputs (names). Names of other characters than those of ASCII are changed in it. */
  void (*model_describe)(const tenon_onnx_model*, tenon_sink_fn, void* user);
  /* A program of the inputs that the model has, in their order; those of a sequence follow each other. Inputs and results have the model's
   * names, with ".0", ".1" in a sequence, and none where two would have the same. Weights are its leaves, under their names. `options`: NULL for a model that leaves no size open. `structure` (optional) receives JSON: for each result of the
   * model 1 for a tensor, [n] for a sequence of n. Steps that only move known numbers are done: TENON_UNSUPPORTED says what
   * cannot be, all operators without an import at once. */
  tenon_status (*model_program)(const tenon_onnx_model*, const tenon_onnx_options*,
                                tenon_graph_program** out, tenon_sink_fn structure, void* user,
                                tenon_err*);
  /* JSON: a list of {op, since, by, native, deprecated} and {op, since, refused} for each version of each operator; other domains than ai.onnx are
   * part of the name. */
  void (*table)(tenon_sink_fn, void* user);
  /* (appended) The inputs that have no initializer. TENON_OUT_OF_RANGE: there is none of this index; TENON_UNSUPPORTED: it has
   * more axes than tensors. */
  uint32_t (*model_inputs)(const tenon_onnx_model*);
  tenon_status (*model_input)(const tenon_onnx_model*, uint32_t index, tenon_onnx_input* out,
                              tenon_err*);
} tenon_onnx_api;

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_SERVICES_ONNX_H_ */
