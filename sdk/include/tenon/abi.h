/* SPDX-License-Identifier: Apache-2.0
 *
 * tenon/abi.h - the contract between Tenon and everything that plugs into it.
 *
 * Valid C11 and C++20. Depends on <stdint.h> and nothing else. A plugin includes this header,
 * exports one function (section 7) and links to no library of ours: every service it may call
 * arrives in `tenon_host` (section 8).
 *
 * Three numbers protect three different things:
 *
 *   platform tag    What the machine code assumes: architecture, CPU features, sanitizer. Written in
 *                   the pre-load note by the SDK's build rule. Checked before any plugin code runs.
 *   ABI epoch       What this header promises. Within an epoch, tables only grow at their end, nothing
 *                   optional becomes required and no meaning changes; TENON_ABI_REVISION counts the
 *                   growth. A host accepts its own epoch and the one before. Bumped by Tenon's
 *                   maintainers; tests/abi/layout_test.c fails until it is when a layout changes.
 *   schema hash     What one operator's signature says: names, types, order, defaults. Computed by
 *                   tenon-codegen from the operator's YAML entry. A typed kernel is called only where
 *                   plugin and host agree on it; elsewhere the boxed form is called.
 *
 * Ground rules, true of every declaration below unless its comment says otherwise:
 *
 *   - Layouts hold fixed-width integers, doubles and pointers. No bool, enum, size_t or long.
 *   - A table begins with `struct_size`, written by the side that fills the table. A reader treats
 *     a member past that size, or a NULL one, as absent.
 *   - No C++ exception crosses this boundary in either direction.
 *   - Strings in tables are static, NUL-terminated UTF-8. Strings in arguments carry a length.
 *   - Functions may be called from any thread at any time. Tags narrow that:
 *       [stream-serial]  at most one call at a time for one stream
 *       [init]           only from inside tenon_plugin_query or tenon_plugin.start
 *   - A function that returns tenon_status reports text through the `tenon_err*` it was given, by
 *     host->fail. On failure, out parameters are untouched.
 *   - A call into a plugin leaves the process as it was. On return these are what they were before:
 *     the floating-point environment (rounding mode, flush-to-zero, denormals-are-zero), signal
 *     handlers and blocked signals, the locale, the working directory, the umask and the environment
 *     variables. A call prints nothing to the standard output; messages go to host->log. Threads and
 *     file descriptors that `open` or `stream_create` made end with `close` and `stream_destroy`;
 *     what a plugin sets up once, at its first call, it may keep until it is unloaded. The
 *     conformance kit checks each of these (`process.*`).
 */
#ifndef TENON_ABI_H_
#define TENON_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Section 1: version ======================================================================= */

#define TENON_ABI_EPOCH 1u
#define TENON_ABI_REVISION 10u

/* ==== Section 2: status ======================================================================== */

/* 0 is success; 1-16 follow the canonical codes of absl; above 16 are Tenon's own. */
typedef int32_t tenon_status;
enum {
  TENON_OK = 0,
  TENON_CANCELLED = 1,
  TENON_UNKNOWN = 2,
  TENON_INVALID_ARGUMENT = 3,    /* the caller's values are wrong: Python's ValueError        */
  TENON_DEADLINE_EXCEEDED = 4,
  TENON_NOT_FOUND = 5,           /* no such operator, device, plugin or service               */
  TENON_ALREADY_EXISTS = 6,
  TENON_PERMISSION_DENIED = 7,   /* a policy forbids it: fallback=deny, an untrusted plugin   */
  TENON_OUT_OF_MEMORY = 8,       /* device or host memory: Python's MemoryError               */
  TENON_FAILED_PRECONDITION = 9, /* right call, wrong moment: backward through a freed graph  */
  TENON_ABORTED = 10,
  TENON_OUT_OF_RANGE = 11,       /* an index or axis outside its bounds: Python's IndexError  */
  TENON_UNSUPPORTED = 12,        /* a feature that is missing: Python's NotImplementedError   */
  TENON_INTERNAL = 13,           /* a bug in Tenon or in a plugin, never the caller's fault   */
  TENON_UNAVAILABLE = 14,        /* the device is lost or a driver library is absent          */
  TENON_DATA_LOSS = 15,
  TENON_UNAUTHENTICATED = 16,
  TENON_TYPE_MISMATCH = 17       /* an argument of the wrong kind or dtype: Python's TypeError */
};

/* Host-owned error sink. Valid during the call that passed it; a plugin never creates or frees one
 * except with err_create and err_destroy (section 8). The first failure written wins; text added
 * later with err_context is put in front: "device 0 > copy D2H 4096 B > driver error 719". */
typedef struct tenon_err tenon_err;

/* ==== Section 3: types ========================================================================= */

/* Element types. The id is dense: tables are indexed by it and masks hold bit 1<<id. */
enum {
  TENON_DTYPE_BOOL = 0, /* one byte, 0 or 1 */
  TENON_DTYPE_U8 = 1,
  TENON_DTYPE_I8 = 2,
  TENON_DTYPE_U16 = 3,
  TENON_DTYPE_I16 = 4,
  TENON_DTYPE_U32 = 5,
  TENON_DTYPE_I32 = 6,
  TENON_DTYPE_U64 = 7,
  TENON_DTYPE_I64 = 8,
  TENON_DTYPE_F8E4M3 = 9,  /* OCP FP8 E4M3FN: no infinity, NaN = S.1111.111 */
  TENON_DTYPE_F8E5M2 = 10, /* OCP FP8 E5M2 */
  TENON_DTYPE_F16 = 11,
  TENON_DTYPE_BF16 = 12,
  TENON_DTYPE_F32 = 13,
  TENON_DTYPE_F64 = 14,
  TENON_DTYPE_C64 = 15,  /* two float32: real, imaginary */
  TENON_DTYPE_C128 = 16, /* two float64 */
  /* (revision 8) What is stored and moved, and computed with in no operator: cast, pack and unpack lead to
   * dtypes that have arithmetic. Of two numbers in a byte, the first one is in the low half. */
  TENON_DTYPE_F8E4M3FNUZ = 17, /* bias 8; no infinity and no -0, whose pattern is NaN */
  TENON_DTYPE_F8E5M2FNUZ = 18, /* bias 16; likewise */
  TENON_DTYPE_F8E8M0 = 19,     /* OCP MX scales: 2^(bits - 127), 255 is NaN; no sign, no 0 */
  TENON_DTYPE_F4E2M1X2 = 20,   /* two OCP FP4 E2M1: no infinity, no NaN */
  TENON_DTYPE_I4X2 = 21,       /* two int4 */
  TENON_DTYPE_U4X2 = 22,       /* two uint4 */
  TENON_DTYPE_COUNT = 23
};
#define TENON_DTYPE_SLOTS 32 /* tables reserve this many columns, so that a new dtype moves nothing */

/* DLPack's DLDataType: {type code, bits, lanes}. */
typedef struct tenon_dl_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} tenon_dl_dtype;

/* A device, dense: kind in the high byte, index in the low one. Kinds are numbered at run time in
 * the order in which plugins register them; names ("cpu", "acme") are what persists.
 * Kind 0 is "meta", built into the host: shapes and dtypes without data. */
typedef uint16_t tenon_device_id;
#define TENON_DEVICE_ID(kind, index) ((tenon_device_id)(((kind) << 8) | (index)))
#define TENON_DEVICE_KIND(id) ((uint32_t)(id) >> 8)
#define TENON_DEVICE_INDEX(id) ((uint32_t)(id) & 255u)
#define TENON_DEVICE_META TENON_DEVICE_ID(0, 0)
#define TENON_DEVICE_NONE ((tenon_device_id)0xffff) /* "not given" where a device is optional */

#define TENON_MAX_NDIM 32

/* One argument or result of a boxed call: 16 bytes, the shape of TVM-FFI's Any. Lists and strings
 * are borrowed: pointer in `v.p`, length in `aux`. */
typedef struct tenon_value {
  int32_t tag;
  uint32_t aux;
  union {
    int64_t i;
    double f;
    void* p;
  } v;
} tenon_value;
enum {
  TENON_VALUE_NONE = 0,
  TENON_VALUE_INT = 1,     /* v.i */
  TENON_VALUE_BOOL = 2,    /* v.i, 0 or 1 */
  TENON_VALUE_FLOAT = 3,   /* v.f */
  TENON_VALUE_OPAQUE = 4,  /* v.p */
  TENON_VALUE_DTYPE = 5,   /* v.i, a TENON_DTYPE_ id */
  TENON_VALUE_DEVICE = 6,  /* v.i, a tenon_device_id */
  TENON_VALUE_TENSOR = 7,  /* v.p, a tenon_tensor* */
  TENON_VALUE_INTS = 100,  /* v.p, const int64_t*;       aux elements */
  TENON_VALUE_STRING = 101,  /* v.p, const char* UTF-8;  aux bytes, no NUL needed */
  TENON_VALUE_TENSORS = 102, /* v.p, tenon_tensor* const*; aux elements. Gradients of a list may have NULL
                              * elements; op_call refuses them in arguments */
  TENON_VALUE_FLOATS = 103,  /* v.p, const double*;      aux elements */
  TENON_VALUE_COMPLEX = 104  /* v.p, const double[2] */
};

/* ==== Section 4: tensor ======================================================================== */

/* The view of a tensor that kernels see: 64 bytes, a DLPack DLTensor at offset 0, so that
 * `(DLTensor*)t` is valid. Every tensor handle in this header points at one; the host keeps its own
 * bookkeeping behind it. Plugins read it freely and write none of it, only the memory it names.
 *
 * Host invariants: `shape` and `strides` are never NULL when ndim > 0; strides count elements and
 * may be 0 or negative; `data` already includes `byte_offset` (which is then 0) unless the device
 * declares TENON_DEVICE_OPAQUE_MEMORY; a tensor with numel == 0 may have data == NULL. */
typedef struct tenon_tensor {
  void* data;
  int32_t dl_device_type; /* DLPack numbering, see tenon_device_info */
  int32_t dl_device_id;
  int32_t ndim;
  tenon_dl_dtype dl_dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
  /* -- end of DLTensor -- */
  uint16_t flags;         /* TENON_TENSOR_* */
  uint8_t dtype;          /* TENON_DTYPE_* */
  uint8_t layers;         /* bit i set: calls that take this tensor go through layer i < 8 (section 6) */
  tenon_device_id device;
  uint16_t reserved;
  int64_t numel;
} tenon_tensor;
enum {
  TENON_TENSOR_READONLY = 1,
  TENON_TENSOR_CONTIGUOUS = 2, /* row-major and dense: strides need not be read */
  TENON_TENSOR_HOST_SCALAR = 4, /* 0-d; `data` is host memory whatever `device` says. Passed only to
                                 * kernels with TENON_KERNEL_HOST_SCALARS; for others the host writes
                                 * the value to the device first. */
  TENON_TENSOR_FOLLOWS_BASE = 8, /* a view: layers that want to see its tensor_base see it, too. Not set
                                  * if one of them was off when the view was taken, nor by NO_GRAD
                                  * operators. */
  TENON_TENSOR_COMPOSED = 16 /* (revision 10) it has a shape, a dtype and a device, and no memory: a layer composes
                              * it of other tensors (tensor_create_composed). `data` is NULL and CONTIGUOUS is
                              * never set. The host refuses a call that would bring it to a shape rule, a kernel
                              * or a copy; what reads memory past the host has to refuse it by itself. */
};

/* What a shape rule says about one output. */
typedef struct tenon_meta {
  int32_t ndim;
  uint8_t dtype;
  uint8_t kind;         /* TENON_META_NEW or TENON_META_VIEW */
  uint16_t view_of;     /* VIEW: index of the argument whose storage is shared */
  int64_t offset;       /* VIEW: elements from that argument's first element to this one's */
  int64_t shape[TENON_MAX_NDIM];
  int64_t strides[TENON_MAX_NDIM]; /* VIEW only; the host lays NEW ones out */
} tenon_meta;
enum { TENON_META_NEW = 0, TENON_META_VIEW = 1 };

/* ==== Section 5: device ======================================================================== */

/* Plugin-owned handles. The plugin defines these structs; the host only passes them back. */
typedef struct tenon_device_s* tenon_device;
typedef struct tenon_stream_s* tenon_stream; /* NULL: the device's synchronous stream */
typedef struct tenon_event_s* tenon_event;

typedef struct tenon_device_info {
  uint32_t struct_size;
  uint32_t flags;         /* TENON_DEVICE_* */
  char name[64];          /* "Acme X1" */
  char arch[32];
  char bus_id[32];        /* empty if it has none */
  uint64_t memory_bytes;  /* 0: unknown */
  int32_t dl_device_type; /* DLPack's number for this kind; 12 (kDLExtDev) if it has none */
  int32_t reserved;
  uint64_t reserved_words[8]; /* 0: plugins fill an array of these, so its stride can never change */
} tenon_device_info;
enum {
  TENON_DEVICE_HOST_MEMORY = 1,  /* pointers are plain host pointers; kernels finish before returning */
  TENON_DEVICE_OPAQUE_MEMORY = 2 /* `data` is a handle: no arithmetic, honour byte_offset */
};

/* Requests carry `must_understand`: a bit set there that the plugin does not know means that the
 * request cannot be served correctly. TENON_CHECK_UNDERSTOOD returns TENON_UNSUPPORTED then. */
typedef struct tenon_alloc_request {
  uint32_t struct_size;
  uint32_t kind; /* TENON_ALLOC_* */
  uint64_t must_understand;
  uint64_t bytes; /* > 0 */
  uint64_t align; /* a power of two */
  tenon_stream stream;
} tenon_alloc_request;
enum { TENON_ALLOC_DEVICE = 0, TENON_ALLOC_PINNED = 1, TENON_ALLOC_MANAGED = 2 };

typedef struct tenon_copy_request {
  uint32_t struct_size;
  int32_t direction; /* TENON_COPY_* */
  uint64_t must_understand;
  void* dst;
  const void* src;
  uint64_t bytes;
  uint64_t dst_offset; /* bytes; non-zero only with TENON_DEVICE_OPAQUE_MEMORY */
  uint64_t src_offset;
  tenon_stream stream;
  tenon_device src_device; /* with TENON_COPY_PEER. Since revision 7 */
} tenon_copy_request;
enum { TENON_COPY_HOST_TO_DEVICE = 0, TENON_COPY_DEVICE_TO_HOST = 1, TENON_COPY_DEVICE_TO_DEVICE = 2 };
enum { /* must_understand of a copy */
  /* DEVICE_TO_DEVICE, where `src` is memory of `src_device`, another open device of this table, whose work on it
   * has ended. The copy comes after what `stream` was given, and has ended on return. TENON_UNSUPPORTED: these two
   * devices cannot; the host copies through its own memory then. */
  TENON_COPY_PEER = 1
};

/* -- optional groups ---------------------------------------------------------------------------
 * A group is a table of functions behind a head of two words. It is provided whole or not at all:
 * the host refuses a plugin that leaves a function of a group NULL. What a group does not offer, the
 * host does in another way, or says TENON_UNSUPPORTED. Functions of a group on one stream are
 * [stream-serial]; all others may be called from any thread. */

/* Streams and events. */
typedef struct tenon_async_api {
  uint32_t struct_size;
  uint32_t reserved;
  tenon_status (*stream_create)(tenon_device, int32_t priority, tenon_stream* out, tenon_err*);
  void (*stream_destroy)(tenon_device, tenon_stream); /* waits for work already queued */
  tenon_status (*event_create)(tenon_device, uint32_t flags, tenon_event* out, tenon_err*);
  void (*event_destroy)(tenon_device, tenon_event);
  /* The event passes once everything queued on the stream so far is done. Re-recording is legal. */
  tenon_status (*event_record)(tenon_device, tenon_event, tenon_stream, tenon_err*);
  /* Later work on the stream waits for the event. Never recorded: no-op. */
  tenon_status (*stream_wait)(tenon_device, tenon_stream, tenon_event, tenon_err*);
  tenon_status (*event_query)(tenon_device, tenon_event, int32_t* done, tenon_err*);
  tenon_status (*event_sync)(tenon_device, tenon_event, tenon_err*);
} tenon_async_api;

/* The vendor's own stream-ordered pool. With it the host keeps no cache of device memory: each
 * tensor's memory comes from here and returns here. `alloc` and `free` of the device table serve
 * pinned and managed memory only. */
typedef struct tenon_pool_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Usable by work queued on request->stream from now on; on others after an event. */
  tenon_status (*pool_alloc)(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
  /* The memory may be reused by work queued later on `stream`. */
  void (*pool_free)(tenon_device, void* memory, uint64_t bytes, tenon_stream stream);
  /* Give all but `keep` bytes of unused memory back to the system; `*released` receives how many. */
  tenon_status (*pool_trim)(tenon_device, uint64_t keep, uint64_t* released, tenon_err*);
  /* Bytes held from the system, and bytes of those in use. */
  tenon_status (*pool_usage)(tenon_device, uint64_t* reserved, uint64_t* used, tenon_err*);
} tenon_pool_api;

/* Record what is queued on a stream once, and queue it again as one piece. Needs `async`. */
typedef struct tenon_graph_s* tenon_graph;
typedef struct tenon_graph_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* From here to capture_end, work queued on the stream is recorded and not run. Synchronising with a
   * stream that is being captured is an error (TENON_FAILED_PRECONDITION), not a wait. */
  tenon_status (*capture_begin)(tenon_device, tenon_stream, tenon_err*);
  /* On failure, and with out == NULL, what was recorded is dropped and the stream is usable again. */
  tenon_status (*capture_end)(tenon_device, tenon_stream, tenon_graph* out, tenon_err*);
  /* Queue everything recorded. The memory that it names must still be the caller's. */
  tenon_status (*graph_launch)(tenon_device, tenon_graph, tenon_stream, tenon_err*);
  void (*graph_destroy)(tenon_device, tenon_graph); /* after its last launch has finished */
} tenon_graph_api;

/* What ran when, on the device's own clock. */
typedef struct tenon_profile_record {
  uint32_t struct_size;
  uint32_t kind;          /* TENON_PROFILE_* */
  uint64_t begin_ns;      /* device clock */
  uint64_t end_ns;
  uint64_t bytes;         /* moved by copies and fills; 0 for kernels */
  tenon_stream stream;
  char name[88];          /* of the kernel; NUL-terminated, cut if too long */
} tenon_profile_record;
enum { TENON_PROFILE_KERNEL = 0, TENON_PROFILE_COPY = 1, TENON_PROFILE_FILL = 2 };
typedef struct tenon_profile_api {
  uint32_t struct_size;
  uint32_t reserved;
  tenon_status (*profile_start)(tenon_device, tenon_err*);
  /* Stop recording; what was recorded stays until it is drained. */
  tenon_status (*profile_stop)(tenon_device, tenon_err*);
  /* Move up to `capacity` records of finished work out, oldest first. `record_size` is the caller's
   * sizeof(tenon_profile_record). `*count` receives how many; 0: none left. */
  tenon_status (*profile_drain)(tenon_device, tenon_profile_record* out, uint32_t record_size,
                                uint32_t capacity, uint32_t* count, tenon_err*);
  /* The same moment on both clocks: CLOCK_MONOTONIC of the host, and the device's. */
  tenon_status (*clock_pair)(tenon_device, uint64_t* host_ns, uint64_t* device_ns, tenon_err*);
} tenon_profile_api;

/* Communication between devices of several ranks, stream-ordered. One thread at a time per
 * communicator. Element counts, not bytes; `dtype` is a TENON_DTYPE_ id. */
typedef struct tenon_comm_s* tenon_comm;
typedef struct tenon_comm_id {
  uint8_t bytes[128];
} tenon_comm_id;
enum {
  TENON_REDUCE_SUM = 0,
  TENON_REDUCE_PROD = 1,
  TENON_REDUCE_MIN = 2,
  TENON_REDUCE_MAX = 3,
  TENON_REDUCE_MEAN = 4
};
typedef struct tenon_collective_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Made by one rank, carried to the others by the caller. */
  tenon_status (*comm_id_create)(tenon_device, tenon_comm_id* out, tenon_err*);
  /* Returns when all `size` ranks have called it. */
  tenon_status (*comm_create)(tenon_device, const tenon_comm_id*, int32_t rank, int32_t size,
                              tenon_comm* out, tenon_err*);
  void (*comm_destroy)(tenon_device, tenon_comm);
  /* From any thread: make every call that waits on this communicator fail with TENON_ABORTED. */
  void (*comm_abort)(tenon_device, tenon_comm);
  tenon_status (*all_reduce)(tenon_device, tenon_comm, const void* src, void* dst, uint64_t count,
                             int32_t dtype, int32_t reduce, tenon_stream, tenon_err*);
  /* dst holds size * count elements, rank by rank. */
  tenon_status (*all_gather)(tenon_device, tenon_comm, const void* src, void* dst, uint64_t count,
                             int32_t dtype, tenon_stream, tenon_err*);
  /* src holds size * count elements; rank r receives the r-th part, reduced. */
  tenon_status (*reduce_scatter)(tenon_device, tenon_comm, const void* src, void* dst, uint64_t count,
                                 int32_t dtype, int32_t reduce, tenon_stream, tenon_err*);
  tenon_status (*broadcast)(tenon_device, tenon_comm, void* buffer, uint64_t count, int32_t dtype,
                            int32_t root, tenon_stream, tenon_err*);
  tenon_status (*send)(tenon_device, tenon_comm, const void* src, uint64_t count, int32_t dtype,
                       int32_t to, tenon_stream, tenon_err*);
  tenon_status (*recv)(tenon_device, tenon_comm, void* dst, uint64_t count, int32_t dtype,
                       int32_t from, tenon_stream, tenon_err*);
} tenon_collective_api;

/* Beyond collective: what ranks send to one another without all sending the same. Needs `collective`,
 * whose communicators these take, and its rules hold here. Since revision 4. */
typedef struct tenon_transfer {
  uint32_t kind;   /* TENON_TRANSFER_* */
  int32_t peer;    /* a rank, this one included */
  void* memory;    /* SEND: read; RECV: written. NULL if count is 0 */
  uint64_t count;  /* elements; what one rank sends is as much as the other receives */
} tenon_transfer;
enum { TENON_TRANSFER_SEND = 0, TENON_TRANSFER_RECV = 1 };
typedef struct tenon_exchange_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* All transfers of one call make progress together, so that ranks which send to each other do not wait
   * for each other. Between two ranks messages keep their order. No memory that is written overlaps other
   * memory of the call. all_to_all, gather and scatter are lists of transfers. */
  tenon_status (*transfer)(tenon_device, tenon_comm, const tenon_transfer* transfers, uint32_t ntransfers,
                           int32_t dtype, tenon_stream, tenon_err*);
  /* As all_reduce, for rank `root` alone. Other ranks' dst is not touched and may be NULL. */
  tenon_status (*reduce)(tenon_device, tenon_comm, const void* src, void* dst, uint64_t count,
                         int32_t dtype, int32_t reduce, int32_t root, tenon_stream, tenon_err*);
  /* Every rank calls this. Ranks with the same color become a communicator of their own, in the order of
   * `key` and, among equals, of their ranks here. color < 0: this rank takes part in none, and `*out` receives
   * NULL. Waits for the other ranks; both communicators are used and destroyed apart. */
  tenon_status (*comm_split)(tenon_device, tenon_comm, int32_t color, int32_t key, tenon_comm* out,
                             tenon_err*);
  /* Without waiting: TENON_OK while the communicator works, else what ended it, such as TENON_ABORTED or
   * a rank that was lost. From any thread. */
  tenon_status (*comm_error)(tenon_device, tenon_comm, tenon_err*);
} tenon_exchange_api;

/* Device memory of one process, used by another on the same machine. */
typedef struct tenon_ipc_handle {
  uint8_t bytes[64];
} tenon_ipc_handle;
typedef struct tenon_ipc_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* `memory` is what alloc or pool_alloc returned, `bytes` its size, or with JOINED_MEMORY that of
   * several from there on. Valid while they live. */
  tenon_status (*ipc_export)(tenon_device, void* memory, uint64_t bytes, tenon_ipc_handle* out, tenon_err*);
  tenon_status (*ipc_open)(tenon_device, const tenon_ipc_handle*, void** out, uint64_t* bytes, tenon_err*);
  void (*ipc_close)(tenon_device, void* memory); /* what ipc_open returned */
} tenon_ipc_api;

/* Before unload: stop the plugin's threads and callbacks and finish all work, on every device. Called
 * when no device is open. */
typedef struct tenon_quiesce_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* TENON_DEADLINE_EXCEEDED if it cannot be done in time: the plugin then stays loaded. */
  tenon_status (*quiesce)(uint64_t timeout_ns, tenon_err*);
} tenon_quiesce_api;

/* Kernels from source. The language is Kernel C (docs/kernel_c.md): C99 with the words of
 * tenon/kernel_c.h, which a plugin maps to its compiler's by a prelude of its own. A device with this
 * group gets Tenon's own kernels for every operator; its plugin need not bring any. */
typedef struct tenon_program_s* tenon_program; /* compiled source, owned by the caller */
typedef struct tenon_kernel_s* tenon_kernel;   /* one of its kernels, borrowed from the program */
typedef struct tenon_program_request {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t must_understand;
  const char* name;      /* for messages and caches: "tenon/add_f32" */
  const char* source;    /* Kernel C, without the prelude; source_bytes long, no NUL needed */
  uint64_t source_bytes;
} tenon_program_request;
typedef struct tenon_launch_arg {
  uint32_t kind;  /* TENON_LAUNCH_* */
  uint32_t bytes; /* VALUE: size, at most 64 */
  const void* p;  /* BUFFER: device memory, any address inside an allocation, or NULL;
                   * VALUE: host address, read before the call returns */
  uint64_t offset; /* BUFFER: bytes; non-zero only with TENON_DEVICE_OPAQUE_MEMORY */
} tenon_launch_arg;
enum { TENON_LAUNCH_BUFFER = 0, TENON_LAUNCH_VALUE = 1 };
typedef struct tenon_launch_request {
  uint32_t struct_size;
  uint32_t nargs;
  uint64_t must_understand;
  tenon_kernel kernel;
  const tenon_launch_arg* args;
  uint32_t groups[3];     /* work groups in each direction; none is 0 */
  uint32_t group_size[3]; /* work items of a group; their product is at most max_group_size */
  tenon_stream stream;
} tenon_launch_request;
/* What compiled code may use, asked once. */
typedef struct tenon_compile_limits {
  uint32_t struct_size;
  uint32_t flags;          /* TENON_COMPILE_* */
  uint32_t max_group_size; /* work items; at least 64 */
  uint32_t local_bytes;    /* shared by one group; at least 16384 */
  uint32_t subgroup_size;  /* items that run in step; 1: none promised */
  uint32_t compute_units;
  uint64_t dtype_mask;     /* element types that kernels may read and write */
} tenon_compile_limits;
enum {
  TENON_COMPILE_ATOMIC_F32 = 1, /* tk_atomic_add_f32 is one instruction, not a loop */
  TENON_COMPILE_HOST_LIKE = 2   /* a processor: few fat work items are better than many thin ones */
};
typedef struct tenon_compile_api {
  uint32_t struct_size;
  uint32_t reserved;
  tenon_status (*limits)(tenon_device, tenon_compile_limits* out, tenon_err*);
  /* A compiler's message goes to err, with `name` in front. Plugins should cache on disk. */
  tenon_status (*program_create)(tenon_device, const tenon_program_request*, tenon_program* out, tenon_err*);
  void (*program_destroy)(tenon_device, tenon_program); /* legal while launches are queued */
  /* TENON_NOT_FOUND: the source has no kernel of that name. */
  tenon_status (*program_kernel)(tenon_device, tenon_program, const char* name, tenon_kernel* out, tenon_err*);
  /* Queue one launch; `request` is read before the call returns. */
  tenon_status (*kernel_launch)(tenon_device, const tenon_launch_request* request, tenon_err*);
} tenon_compile_api;

typedef struct tenon_op tenon_op; /* host-owned, one per operator, valid while the host lives */

/* (revision 8) Steps of a program that a device runs as one: its own compiler sees them together. The host offers runs of
 * steps, the plugin claims parts of them, and each part becomes an executable. */
typedef struct tenon_executable_s* tenon_executable; /* owned by the host until executable_destroy */
typedef struct tenon_subgraph_step {
  const tenon_op* op;      /* never RANDOM, DATA_DEPENDENT, LIST_OUTPUT */
  const tenon_value* args; /* all that the schema has; tensors are values of the sub-graph, told apart by
                            * address. Scalars given for tensors are 0-d host scalars, with their data. */
  tenon_tensor* const* outs; /* values that this step makes */
  uint32_t nargs;
  uint32_t nouts;
} tenon_subgraph_step;
typedef struct tenon_subgraph {
  uint32_t struct_size;
  uint32_t step_size; /* sizeof(tenon_subgraph_step) as the host knows it: how far the next one is */
  uint64_t must_understand;
  const char* name; /* for messages, caches and profiles: "attention.py:31" */
  const tenon_subgraph_step* steps; /* each uses inputs, and what earlier ones made */
  /* Values: contiguous tensors of the device "meta", which have dtype and shape and no data. Read them while
   * the call lasts. */
  tenon_tensor* const* inputs;
  tenon_tensor* const* outputs; /* made by the steps, no two the same; all others end with the run */
  /* constants[i]: the tensor on the device that is input i of every run, with elements that do not change while
   * the executable lives; NULL: input i differs from run to run. */
  tenon_tensor* const* constants;
  uint32_t nsteps;
  uint32_t ninputs;
  uint32_t noutputs;
  uint32_t reserved;
} tenon_subgraph;
typedef struct tenon_executable_info {
  uint32_t struct_size;
  uint32_t flags;           /* TENON_EXECUTABLE_* */
  uint64_t workspace_bytes; /* device memory that a run needs besides its inputs and outputs */
} tenon_executable_info;
enum {
  /* Results have the bits that the device's kernels for single steps give. Without it, the executable is used
   * only where the user has allowed other numerics. */
  TENON_EXECUTABLE_EXACT = 1
};
typedef struct tenon_executable_request {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t must_understand;
  tenon_executable executable;
  tenon_tensor* const* inputs;  /* as many as the sub-graph has, of its dtypes and shapes, contiguous */
  tenon_tensor* const* outputs; /* likewise; uninitialised, and none shares memory with another tensor here */
  void* workspace;              /* workspace_bytes, or NULL if that is 0 */
  tenon_stream stream;
} tenon_executable_request;
typedef struct tenon_subgraph_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Which steps to run as one: `parts[i]` for step i. 0, as the host has set them: by its kernel. Steps side by side with the
   * same number become one executable. Reads dtypes, shapes and attributes; be quick: a program waits for it. */
  tenon_status (*claim)(tenon_device, const tenon_subgraph* offered, uint32_t* parts, tenon_err*);
  /* Compile one part. The host may call it on a thread of its own while steps run one by one. TENON_UNSUPPORTED: run
   * the steps one by one after all. Plugins should cache on disk. */
  tenon_status (*executable_create)(tenon_device, const tenon_subgraph*, tenon_executable* out,
                                    tenon_executable_info* info, tenon_err*);
  void (*executable_destroy)(tenon_device, tenon_executable); /* legal while runs are queued */
  /* Queue one run; `request` is read before the call returns. Runs of one executable may overlap on several streams. If
   * it fails, nothing was queued. [stream-serial] */
  tenon_status (*executable_run)(tenon_device, const tenon_executable_request* request, tenon_err*);
} tenon_subgraph_api;

/* Every optional group, once: X(number, NAME, member, type). */
#define TENON_DEVICE_GROUPS(X)                       \
  X(0, ASYNC, async, tenon_async_api)                \
  X(1, POOL, pool, tenon_pool_api)                   \
  X(2, GRAPH, graph, tenon_graph_api)                \
  X(3, PROFILE, profile, tenon_profile_api)          \
  X(4, COLLECTIVE, collective, tenon_collective_api) \
  X(5, IPC, ipc, tenon_ipc_api)                      \
  X(6, QUIESCE, quiesce, tenon_quiesce_api)          \
  X(7, COMPILE, compile, tenon_compile_api)          \
  X(8, EXCHANGE, exchange, tenon_exchange_api)       \
  X(9, SUBGRAPH, subgraph, tenon_subgraph_api)
enum {
#define TENON_GROUP_NUMBER(number, NAME, member, type) TENON_GROUP_##NAME = number,
  TENON_DEVICE_GROUPS(TENON_GROUP_NUMBER)
#undef TENON_GROUP_NUMBER
  TENON_GROUP_COUNT = 10
};

/* A device kind. Eight functions are required; groups are optional, each all or nothing.
 *
 * Order: work on one stream runs in order; different streams are unordered unless an event links
 * them; a call with stream == NULL has finished when it returns, as seen from every thread and stream. "Current
 * device" does not exist: every call names its device. */
typedef struct tenon_device_api {
  uint32_t struct_size;
  uint32_t revision;
  uint64_t features; /* TENON_DEVICE_FEATURE_* */
  const char* kind;  /* "acme": [a-z][a-z0-9_]{0,15}; how users name the device: "acme:0" */

  /* Describe up to `capacity` devices; `*count` receives how many there are. Zero is not an error. */
  tenon_status (*enumerate)(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err*);
  tenon_status (*open)(uint32_t index, tenon_device* out, tenon_err*);
  /* The host guarantees that nothing made on the device is alive: no memory, stream, event, program. */
  void (*close)(tenon_device);
  /* Raw memory, aligned to request->align; the host caches on top. TENON_OUT_OF_MEMORY makes the
   * host trim its cache and try once more. */
  tenon_status (*alloc)(tenon_device, const tenon_alloc_request*, void** out, tenon_err*);
  /* Legal while earlier work on `stream` still uses `memory`. */
  void (*free)(tenon_device, void* memory, uint64_t bytes, tenon_stream stream);
  /* Pageable host memory is consumed (to device) or filled (to host) on return. Overlapping
   * device-to-device ranges behave as memmove. Zero bytes: OK with any pointers. */
  tenon_status (*copy)(tenon_device, const tenon_copy_request*, tenon_err*);
  /* Repeat a pattern of 1, 2, 4, 8 or 16 bytes; `bytes` is a multiple of it. */
  tenon_status (*fill)(tenon_device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                       uint32_t pattern_bytes, tenon_stream, tenon_err*);
  /* Wait for one stream; NULL: for every stream of the device. Errors of queued work surface here. */
  tenon_status (*sync)(tenon_device, tenon_stream, tenon_err*);

  /* (optional) One pointer for each group; NULL: absent. */
#define TENON_GROUP_MEMBER(number, NAME, member, type) const type* member;
  TENON_DEVICE_GROUPS(TENON_GROUP_MEMBER)
#undef TENON_GROUP_MEMBER
} tenon_device_api;
enum {
  /* Its memory means nothing to other code in this process, as when it belongs to another one: kernels
   * that other plugins bring for this kind are not called. */
  TENON_DEVICE_FEATURE_OWN_KERNELS_ONLY = 1,
  /* Allocations that lie end to end may be used as one: tensors may reach over where they meet, in
   * kernels, copy, fill, ipc_export and all else; each is freed alone. The host then grows its memory in
   * place, so place what is larger than 2 MiB behind the last such allocation if you can. Only for
   * memory with addresses, and not for that of `pool`. Since revision 3. */
  TENON_DEVICE_FEATURE_JOINED_MEMORY = 2
};

/* ==== Section 6: operators and kernels ========================================================= */

typedef struct tenon_ctx tenon_ctx; /* host-owned, one per kernel call, valid during it */

/* Run with all arguments boxed, in the order of the schema. For a kernel, every `outs[i]` is a
 * tensor allocated by the host from the shape rule, except for TENON_OP_DATA_DEPENDENT operators,
 * whose kernels call host->output_alloc. */
typedef tenon_status (*tenon_boxed_fn)(tenon_ctx*, const tenon_value* args, uint32_t nargs,
                                       tenon_value* outs, uint32_t nouts, tenon_err*);

/* Say what the outputs look like. Reads shapes, dtypes and attributes, never tensor data. Tensor
 * arguments given as scalars arrive as 0-d host scalars. `outs` is uninitialised: fill it all. */
typedef tenon_status (*tenon_infer_fn)(const tenon_value* args, uint32_t nargs, tenon_meta* outs,
                                       uint32_t nouts, tenon_err*);

/* The two that an operator has beside kernels, for definitions made at run time (an interpreter's, a language
 * binding's): as tenon_infer_fn and the decomposing tenon_boxed_fn, with tenon_op_def.self last. */
typedef tenon_status (*tenon_infer_self_fn)(const tenon_value* args, uint32_t nargs, tenon_meta* outs,
                                            uint32_t nouts, tenon_err*, void* self);
typedef tenon_status (*tenon_decompose_self_fn)(const tenon_value* args, uint32_t nargs, tenon_value* outs,
                                                uint32_t nouts, tenon_err*, void* self);

/* A kernel with its schema's own C signature, cast to this type for storage. */
typedef void (*tenon_typed_fn)(void);

/* Unbox `args` and call a typed kernel. Generated next to the schema, one per operator. */
typedef tenon_status (*tenon_invoke_fn)(tenon_typed_fn, tenon_ctx*, const tenon_value* args,
                                        uint32_t nargs, tenon_value* outs, uint32_t nouts, tenon_err*);

typedef struct tenon_param_def {
  const char* name;
  int32_t kind;   /* TENON_PARAM_* */
  uint32_t flags; /* TENON_PARAM_FLAG_* */
  tenon_value default_value; /* with HAS_DEFAULT */
} tenon_param_def;
enum {
  TENON_PARAM_TENSOR = 1,
  TENON_PARAM_TENSORS = 2, /* Tensor[] */
  TENON_PARAM_INT = 3,
  TENON_PARAM_FLOAT = 4,   /* accepts INT */
  TENON_PARAM_BOOL = 5,
  TENON_PARAM_SCALAR = 6,  /* INT, FLOAT or BOOL, kept as it came */
  TENON_PARAM_STRING = 7,
  TENON_PARAM_DTYPE = 8,
  TENON_PARAM_DEVICE = 9,
  TENON_PARAM_INTS = 10,   /* int[]; a lone INT is accepted as a list of one */
  TENON_PARAM_FLOATS = 11
};
enum {
  TENON_PARAM_FLAG_OPTIONAL = 1,     /* NONE is accepted */
  TENON_PARAM_FLAG_HAS_DEFAULT = 2,
  TENON_PARAM_FLAG_KEYWORD_ONLY = 4,
  TENON_PARAM_FLAG_PROMOTE = 8,      /* tensor: converted to the call's compute dtype */
  TENON_PARAM_FLAG_BROADCAST = 16    /* tensor: takes part in broadcasting (TENON_SHAPE_BROADCAST) */
};

/* How the compute dtype of a call is found from its PROMOTE parameters. */
enum {
  TENON_COMPUTE_FIRST = 0,         /* dtype of the first tensor argument; nothing is converted */
  TENON_COMPUTE_PROMOTE = 1,       /* the promotion of all PROMOTE arguments; scalars are weak */
  TENON_COMPUTE_PROMOTE_FLOAT = 2, /* likewise, then bool and integers become float32 */
  TENON_COMPUTE_OUTPUT = 3         /* dtype of the first output (creation operators) */
};
/* How output shapes are found. */
enum {
  TENON_SHAPE_INFER = 0,    /* tenon_op_def.infer */
  TENON_SHAPE_BROADCAST = 1 /* broadcast of all BROADCAST arguments; one output; `infer` unused */
};
/* Output dtype with TENON_SHAPE_BROADCAST. */
enum { TENON_OUT_COMPUTE = 0, TENON_OUT_BOOL = 1, TENON_OUT_REAL = 2 /* c64 -> f32, c128 -> f64 */ };

enum {
  TENON_OP_VIEW = 1,             /* outputs share storage with an argument; no kernel is needed */
  TENON_OP_DATA_DEPENDENT = 2,   /* output shapes depend on data; kernels call output_alloc */
  TENON_OP_ELEMENTWISE = 4,      /* out[i] depends on element i of the inputs alone: out may alias one */
  TENON_OP_COMPOSITE = 8,        /* `decompose` runs above all layers, so gradients come from its parts;
                                  * a device kernel is used only when no layer wants the call */
  TENON_OP_RANDOM = 16,          /* draws from the device's generator */
  TENON_OP_CONVERT = 32,         /* THE dtype conversion, (Tensor x, dtype dtype) -> Tensor; one per host */
  TENON_OP_MATERIALIZE = 64,     /* THE strided copy, (Tensor x) -> Tensor, output contiguous; one per host.
                                  * With an output given it also serves as copy into a strided tensor. */
  TENON_OP_LIST_OUTPUT = 128,    /* the only output is a Tensor[]; COMPOSITE only */
  TENON_OP_NO_GRAD = 256,        /* outputs never carry gradients (argmax, comparison, ...) */
  TENON_OP_INTERNAL = 512,       /* no function in language bindings */
  TENON_OP_NO_METHOD = 1024,     /* a function but not a method of Tensor */
  TENON_OP_PRIMITIVE = 2048,     /* one of the kernels that everything else can be made of
                                  * (tenon/primitives.h); it decomposes on the host device alone */
  TENON_OP_TO_PRIMITIVES = 4096, /* `decompose` calls primitives, on devices that have them for the
                                  * call's dtype; elsewhere it is as if there were none */
  TENON_OP_STRIDED = 8192,       /* as with MATERIALIZE, kernels must read and write any strides, and
                                  * `decompose` gets the caller's output to write into */
  /* Mixed precision (tenon/services/amp.h), at most one. What carries none takes floats as they are.
   * Since revision 4. */
  TENON_OP_AMP_LOW = 16384,      /* worth float16 or bfloat16: products of matrices, convolutions */
  TENON_OP_AMP_HIGH = 32768,     /* needs float32: sums, exponentials, losses. On a COMPOSITE: its
                                  * results stay float32 */
  TENON_OP_AMP_WIDEST = 65536    /* the widest float among its tensors */
};

typedef struct tenon_op_def {
  uint32_t struct_size;
  uint32_t flags;           /* TENON_OP_* */
  const char* name;         /* "tenon::add", "acme::swiglu" */
  const char* schema;       /* canonical text */
  uint64_t schema_hash;     /* FNV-1a 64 of `schema` */
  const char* doc;          /* markdown; first line is a summary */
  const char* origin;       /* "elementwise.yaml:12": where errors point */
  const tenon_param_def* params;
  uint32_t nparams;
  uint32_t param_size;      /* sizeof(tenon_param_def) */
  uint32_t nouts;
  uint8_t compute;          /* TENON_COMPUTE_* */
  uint8_t shape;            /* TENON_SHAPE_* */
  uint8_t out_dtype;        /* TENON_OUT_* */
  uint8_t reserved;
  uint64_t dtype_mask;      /* compute dtypes that make sense; others raise TENON_TYPE_MISMATCH */
  const char* const* out_names;
  tenon_infer_fn infer;     /* (optional) NULL with TENON_SHAPE_BROADCAST or DATA_DEPENDENT */
  tenon_boxed_fn decompose; /* (optional) the operator in terms of others; outs start as NONE or as
                             * given by the caller; the function sets them to owned tensors. Called
                             * with ctx == NULL above layers (COMPOSITE). */
  tenon_invoke_fn invoke;   /* (optional) NULL: typed kernels of this operator are never used */
  /* -- revision 2 -- */
  void* self;               /* (optional) the definer's own; kernels find it with host->op_def(ctx_op(ctx)) */
  tenon_infer_self_fn infer_self;         /* (optional) used if `infer` is NULL */
  tenon_decompose_self_fn decompose_self; /* (optional) used if `decompose` is NULL */
  /* -- revision 5 -- */
  /* (optional) What the operator says of itself to tools: lines of "key: value". Keys that a reader does not
   * know are skipped, so that new ones need no revision.
   *   flops: the arithmetic of one call, where that is not one for each element of its largest tensor: whole
   *          numbers, + - * //, numel(tensor), size(tensor, axis), given(tensor) of parameters and results;
   *          0: it moves elements; "unknown": it depends on their values, or on an algorithm.
   *   rows:  the axes of the first tensor along which it works, together a row: the parameter that names them (none: all),
   *          or last(count), a parameter or a number that counts them from the end. What lies along the other axes is independent: an
   *          element of the results depends on those rows of tensors alone that have its index there. Other tensors
   *          have the first one's shape, or that of a row.
   *   in_place: (revision 9) the Tensor parameter that the only result may be written over (TENON_KERNEL_IN_PLACE). If it
   *          is the output, `decompose` gets that too: it writes there, or sets another tensor, which is copied.
   *          by_copy: the result may be requested in the first argument, and is copied there. */
  const char* traits;
} tenon_op_def;

typedef struct tenon_kernel_def {
  uint32_t struct_size;
  uint32_t traits;        /* TENON_KERNEL_* */
  const char* op;         /* "tenon::add" */
  const char* device;     /* (optional) device kind; NULL: this plugin's own; TENON_DEVICE_COMPILED: every
                           * kind with a `compile` group, tried after kernels for the kind itself */
  uint64_t schema_hash;   /* guards `typed`; 0 if there is none */
  uint64_t dtype_mask;    /* compute dtypes served: bit 1 << TENON_DTYPE_* */
  int32_t score;          /* higher is tried first; 0 is the plain kernel */
  int32_t reserved;
  tenon_boxed_fn boxed;   /* required */
  tenon_typed_fn typed;   /* (optional) */
  /* (optional) Return 0 to decline these arguments; the next kernel or lowering is tried. A kernel
   * with can_run is asked at every call; without one the choice is cached. */
  int32_t (*can_run)(const tenon_value* args, uint32_t nargs);
} tenon_kernel_def;
#define TENON_DEVICE_COMPILED "*compile"
enum {
  TENON_KERNEL_STRIDED = 1,       /* reads any strides; otherwise inputs are made contiguous first */
  /* The kernel writes outputs of any strides, also newly allocated ones. Without this trait outputs are contiguous, and
   * the host copies them. */
  TENON_KERNEL_STRIDED_OUT = 2,
  TENON_KERNEL_HOST_SCALARS = 4,  /* takes TENON_TENSOR_HOST_SCALAR inputs */
  TENON_KERNEL_BROADCAST = 8,     /* broadcasts by itself; otherwise inputs arrive expanded */
  TENON_KERNEL_MIXED_DTYPES = 16, /* takes PROMOTE inputs as they are; otherwise they are converted */
  TENON_KERNEL_NONDETERMINISTIC = 32,
  TENON_KERNEL_ROWS = 64, /* (revision 6) of operators whose traits say `rows`, for dense rows of 32 elements and more: a
                          * row of the results has the same bits in a call of fewer rows; retains no tensor */
  TENON_KERNEL_IEEE = 128, /* (revision 7) of elementwise operators: a result is the operator's expression with each
                          * operation rounded once to the dtype (IEEE 754), but for the payload of NaN. A compiler
                          * that knows the expression may compute it in the kernel's place */
  /* (revision 9) of operators whose traits say `in_place`: the result may be that argument itself, of any strides
   * whatever other traits say. No other argument shares memory with it then. The kernel writes those elements alone
   * that change, and nothing before it has checked all indices. */
  TENON_KERNEL_IN_PLACE = 256
};

/* A layer sees calls before kernels do: gradients, autocast, capture, profiling. It runs for a call
 * if it is enabled on the thread and either wants every call or some argument, element of a list
 * argument or given output has its layer bit. `args` are complete: as many as the schema has, defaults
 * filled in. It continues with host->op_call_below, which leaves `args` alone and has counted up the
 * version of every given output when it returns. Layers run in ascending `order`. */
typedef struct tenon_layer_def {
  uint32_t struct_size;
  uint32_t flags; /* TENON_LAYER_* */
  const char* name;
  int32_t order;
  int32_t reserved;
  void* self;
  tenon_status (*call)(void* self, const tenon_op* op, tenon_value* args, uint32_t nargs,
                       tenon_value* outs, uint32_t nouts, tenon_err*);
} tenon_layer_def;
enum {
  TENON_LAYER_EVERY_CALL = 1,   /* not only calls whose arguments carry the layer's bit */
  TENON_LAYER_ENABLED = 2,      /* enabled on every thread from the start */
  TENON_LAYER_KERNELS = 4,      /* (revision 2) watches kernels: sees also the calls by which the host lowers
                                 * an operator or runs it on the host, and composites whole where one kernel
                                 * serves the whole. Takes the last place in `order`. */
  TENON_LAYER_WHOLE = 8,        /* (revision 5) sees composites whole where one kernel serves the whole, as they run
                                 * without the layer. Other layers that want the call take them apart. */
  TENON_LAYER_COMPOSITES = 32,  /* (revision 10) is asked first about every composite that takes a COMPOSED tensor with
                                 * its bit, before that is taken apart. It serves the whole, or returns
                                 * TENON_LAYER_DECLINED and has done nothing: the layer then sees the parts. For a
                                 * composite it does not call op_call_below. */
  TENON_LAYER_NO_BIT = 16       /* (revision 8) marks no tensors (tensor_set_layer): it wants every call or none. Its
                                 * id is in [8, 32), so that it takes no bit of tenon_tensor.layers from others */
};
/* (revision 10) What a layer with TENON_LAYER_COMPOSITES returns for a composite that it leaves to the parts. No error. */
#define TENON_LAYER_DECLINED 18

/* ==== Section 7: plugin ======================================================================== */

typedef struct tenon_host tenon_host;

typedef struct tenon_plugin {
  uint32_t struct_size;
  uint32_t revision;  /* TENON_ABI_REVISION the plugin was built with */
  uint64_t features;  /* reserved bits, 0 */
  const char* name;   /* equals the name in the note */
  const char* version;
  const char* vendor;
  const tenon_device_api* device;  /* (optional) */
  const tenon_op_def* ops;         /* (optional) */
  const tenon_kernel_def* kernels; /* (optional) */
  uint32_t nops, op_size;          /* op_size = sizeof(tenon_op_def) as the plugin knows it */
  uint32_t nkernels, kernel_size;
  /* (optional) Called once, after everything above was checked and published: register layers,
   * services, extension slots. Failure takes the whole plugin back out. [init] */
  tenon_status (*start)(const tenon_host*, tenon_err*);
  /* (optional) Stop threads and drop host handles before unload; NULL: the plugin stays resident. */
  tenon_status (*stop)(tenon_err*);
} tenon_plugin;

/* The one symbol that a plugin exports; this signature is frozen for ever. Return the table for
 * TENON_ABI_EPOCH if host_min <= TENON_ABI_EPOCH <= host_max; otherwise host->fail and NULL. The
 * table, all it points to and `host` stay valid until the plugin is unloaded. [init] */
typedef const tenon_plugin* (*tenon_plugin_query_fn)(uint32_t host_min_epoch, uint32_t host_max_epoch,
                                                     const tenon_host* host, tenon_err*);

/* Pre-load note: section `.note.tenon`, type 1, owner "TENON". Read from the file before any code of
 * the plugin runs. tenon_add_plugin() writes it; by hand: TENON_PLUGIN_NOTE. */
typedef struct tenon_note {
  uint32_t name_size; /* 6 */
  uint32_t desc_size; /* sizeof(tenon_note) - 20 */
  uint32_t type;      /* 1 */
  char owner[8];      /* "TENON" */
  uint32_t epoch_min, epoch_max;
  uint32_t sanitizer; /* TENON_SANITIZER_* the plugin was built with */
  uint32_t reserved;
  char name[32];
  char version[32];
  char json[432];     /* {"kind":"device","devices":["acme"],"namespaces":[],"cpu":["avx2"]} */
} tenon_note;
enum { TENON_SANITIZER_NONE = 0, TENON_SANITIZER_ADDRESS = 1, TENON_SANITIZER_THREAD = 2 };

#if defined(__SANITIZE_ADDRESS__)
#define TENON_SANITIZER_HERE TENON_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define TENON_SANITIZER_HERE TENON_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_SANITIZER_HERE TENON_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define TENON_SANITIZER_HERE TENON_SANITIZER_THREAD
#endif
#endif
#ifndef TENON_SANITIZER_HERE
#define TENON_SANITIZER_HERE TENON_SANITIZER_NONE
#endif

#define TENON_PLUGIN_NOTE(NAME, VERSION, JSON)                                                     \
  __attribute__((section(".note.tenon"), used, aligned(4))) static const tenon_note               \
      tenon_plugin_note_ = {6,    sizeof(tenon_note) - 20,     1, "TENON", TENON_ABI_EPOCH,        \
                            TENON_ABI_EPOCH, TENON_SANITIZER_HERE, 0, NAME, VERSION, JSON}

#define TENON_EXPORT __attribute__((visibility("default")))

/* ==== Section 8: host ========================================================================== */

/* Receives text in pieces; used where the host answers with JSON. */
typedef void (*tenon_sink_fn)(void* user, const char* text, uint64_t bytes);
typedef void (*tenon_range_fn)(void* user, int64_t begin, int64_t end);
typedef void (*tenon_drop_fn)(void* user);

/* Every host service, once: struct, export table, slot count and documentation expand this list.
 * Slots are append-only within an epoch. X(return type, name, (parameters)) */
#define TENON_HOST_SLOTS(X)                                                                        \
  /* -- errors ---------------------------------------------------------------------------------- */ \
  /* Record a failure: code, the vendor's own number (0 if none), text. No allocation by the caller. */ \
  X(void, fail, (tenon_err*, tenon_status code, int64_t vendor_code, const char* text, uint64_t bytes)) \
  /* Put "text > " in front of the message recorded. */                                            \
  X(void, err_context, (tenon_err*, const char* text, uint64_t bytes))                             \
  /* For code that starts calls rather than being called: Python, tests, a plugin's own threads. */ \
  X(tenon_err*, err_create, (void))                                                                \
  X(void, err_destroy, (tenon_err*))                                                               \
  X(tenon_status, err_code, (const tenon_err*))                                                    \
  /* NUL-terminated; valid until the next call with this err. */                                   \
  X(const char*, err_text, (const tenon_err*))                                                     \
  X(void, err_clear, (tenon_err*))                                                                 \
  /* level: 0 debug, 1 info, 2 warning, 3 error. */                                                \
  X(void, log, (int32_t level, const char* text, uint64_t bytes))                                  \
  /* -- tensors: handles are reference-counted; "owned" means the receiver must release it --------- */ \
  /* New contiguous tensor, uninitialised. `*out` owned. */                                        \
  X(tenon_status, tensor_create, (tenon_device_id, int32_t dtype, int32_t ndim, const int64_t* shape, \
                                  tenon_tensor** out, tenon_err*))                                 \
  /* Tensor over foreign memory on `device`; strides NULL: contiguous. `drop(user)` runs when the last \
   * view dies, on whatever thread that happens. flags: TENON_TENSOR_READONLY or 0. `*out` owned. */ \
  X(tenon_status, tensor_wrap, (tenon_device_id, int32_t dtype, int32_t ndim, const int64_t* shape, \
                                const int64_t* strides, void* data, uint32_t flags, tenon_drop_fn drop, \
                                void* user, tenon_tensor** out, tenon_err*))                       \
  /* View of `base`: shares storage and version counter. `offset` in elements of `dtype` from base's \
   * first element. Bounds are checked against the storage. `*out` owned. */                       \
  X(tenon_status, tensor_view, (tenon_tensor* base, int32_t dtype, int32_t ndim, const int64_t* shape, \
                                const int64_t* strides, int64_t offset, tenon_tensor** out, tenon_err*)) \
  X(void, tensor_retain, (tenon_tensor*))                                                          \
  X(void, tensor_release, (tenon_tensor*)) /* NULL is ignored */                                   \
  /* The tensor that a VIEW operator's result was taken from, or what tensor_view_of was given, views of \
   * views collapsed to the root; borrowed, kept alive by the view. NULL for all others, also for results \
   * of tensor_view, and once view or root was assigned other memory (tensor_assign).              */ \
  X(tenon_tensor*, tensor_base, (const tenon_tensor*))                                             \
  /* Handles alive on this tensor; 1 means the caller holds the only one. */                       \
  X(uint32_t, tensor_use_count, (const tenon_tensor*))                                             \
  /* Address that is equal for two tensors exactly if they share storage. */                       \
  X(const void*, tensor_storage, (const tenon_tensor*))                                            \
  X(uint64_t, tensor_storage_bytes, (const tenon_tensor*))                                         \
  /* Tensors alive on the storage, this one included. */                                           \
  X(uint32_t, tensor_storage_use_count, (const tenon_tensor*))                                     \
  /* Writes so far to the storage, shared by all its views. */                                     \
  X(uint32_t, tensor_version, (const tenon_tensor*))                                               \
  X(void, tensor_bump_version, (tenon_tensor*))                                                    \
  /* Make `t` describe what `source` describes (shape, dtype, storage); views of either are unaffected. */ \
  X(tenon_status, tensor_assign, (tenon_tensor* t, tenon_tensor* source, tenon_err*))              \
  /* Copy all elements between tensors of equal shape and dtype on any two devices. */             \
  X(tenon_status, tensor_copy, (tenon_tensor* dst, tenon_tensor* src, tenon_err*))                 \
  /* Give/take the layer bit of `layer` (an id from layer_register). */                            \
  X(void, tensor_set_layer, (tenon_tensor*, int32_t layer, int32_t on))                            \
  /* -- extension slots: one pointer per tensor for each registered service ------------------------ */ \
  /* `drop` runs on the stored pointer when its tensor dies. Returns a slot, or -1: all 15 taken. The first two \
   * cost nothing, a tensor with others has an array of them. [init] */                            \
  X(int32_t, ext_register, (const char* name, tenon_drop_fn drop))                                 \
  X(void*, ext_get, (const tenon_tensor*, int32_t slot))                                           \
  /* Does not drop the previous value. Not synchronised: the owner of the tensor's history calls it. */ \
  X(void, ext_set, (tenon_tensor*, int32_t slot, void* value))                                     \
  /* -- operators ---------------------------------------------------------------------------------- */ \
  /* "add" is short for "tenon::add". NULL: unknown. */                                            \
  X(const tenon_op*, op_find, (const char* name))                                                  \
  X(const tenon_op_def*, op_def, (const tenon_op*))                                                \
  /* Dense id in [0, op_count). */                                                                 \
  X(uint32_t, op_id, (const tenon_op*))                                                            \
  X(uint32_t, op_count, (void))                                                                    \
  X(const tenon_op*, op_at, (uint32_t id))                                                         \
  /* Call an operator. `nargs` may be less than the schema's: the rest take their defaults. `outs[i]` is \
   * NONE (the host allocates; owned by the caller afterwards) or a tensor to write into (out= and     \
   * in-place forms; ownership unchanged). `args` may be rewritten during the call. */             \
  X(tenon_status, op_call, (const tenon_op*, tenon_value* args, uint32_t nargs, tenon_value* outs, \
                            uint32_t nouts, tenon_err*))                                           \
  /* Continue a call under the layer that was entered last. */                                     \
  X(tenon_status, op_call_below, (int32_t layer, const tenon_op*, tenon_value* args, uint32_t nargs, \
                                  tenon_value* outs, uint32_t nouts, tenon_err*))                  \
  /* Array for a LIST_OUTPUT result: `outs[0] = {TENSORS, n, array}`. Freed by list_release with its \
   * tensors. */                                                                                   \
  X(tenon_tensor**, list_create, (uint32_t count))                                                 \
  X(void, list_release, (tenon_tensor** list, uint32_t count))                                     \
  /* What would run `op` on `device` for `dtype`: JSON to `sink`. */                               \
  X(tenon_status, op_explain, (const tenon_op*, tenon_device_id, int32_t dtype, tenon_sink_fn sink, \
                               void* user, tenon_err*))                                            \
  /* -- layers ------------------------------------------------------------------------------------- */ \
  /* Returns an id, or -1: in [0, 8), or with TENON_LAYER_NO_BIT in [8, 32). [init] */                                                     \
  X(int32_t, layer_register, (const tenon_layer_def*, tenon_err*))                                 \
  /* Enable or disable on the calling thread; returns the previous state. */                       \
  X(int32_t, layer_enable, (int32_t layer, int32_t on))                                            \
  X(int32_t, layer_enabled, (int32_t layer))                                                       \
  /* Bits of the EVERY_CALL layers enabled on this thread: not zero means that even a view must be made \
   * by op_call. */                                                                                \
  X(uint32_t, layers_every_call, (void))                                                           \
  /* -- inside a kernel call ------------------------------------------------------------------------ */ \
  X(tenon_stream, ctx_stream, (tenon_ctx*))                                                        \
  X(tenon_device, ctx_device, (tenon_ctx*))                                                        \
  X(const tenon_op*, ctx_op, (tenon_ctx*))                                                         \
  /* Device memory until the call ends, stream-ordered. */                                         \
  X(tenon_status, scratch, (tenon_ctx*, uint64_t bytes, void** out, tenon_err*))                   \
  /* Allocate output `index` of a data-dependent operator; `*out` borrowed. */                     \
  X(tenon_status, output_alloc, (tenon_ctx*, uint32_t index, int32_t dtype, int32_t ndim,          \
                                 const int64_t* shape, tenon_tensor** out, tenon_err*))            \
  /* Reserve `count` 128-bit counters of the device's Philox4x32-10 stream. */                     \
  X(void, random_reserve, (tenon_ctx*, uint64_t count, uint64_t* seed, uint64_t* offset))          \
  /* -- threads: the process's one pool --------------------------------------------------------------- */ \
  /* Run fn over [begin, end) in chunks of at least `grain`; returns when all are done. The caller   \
   * works too; nested calls run serially. `fn` must not throw. */                                 \
  X(void, parallel_for, (int64_t begin, int64_t end, int64_t grain, tenon_range_fn fn, void* user)) \
  X(int32_t, thread_count, (void))                                                                 \
  X(void, set_thread_count, (int32_t))                                                             \
  /* -- devices ---------------------------------------------------------------------------------------- */ \
  /* "acme:1", "acme" (index 0), "meta". Loads a known plugin that provides it. */                 \
  X(tenon_status, device_find, (const char* name, tenon_device_id* out, tenon_err*))               \
  X(tenon_status, device_info, (tenon_device_id, tenon_device_info* out, tenon_err*))              \
  X(uint32_t, device_kind_count, (void))                                                           \
  X(const char*, device_kind_name, (uint32_t kind)) /* NULL: no such kind */                       \
  X(uint32_t, device_count, (uint32_t kind))                                                       \
  /* First device with TENON_DEVICE_HOST_MEMORY; TENON_DEVICE_NONE before one is loaded. */        \
  X(tenon_device_id, device_host, (void))                                                          \
  X(tenon_status, device_sync, (tenon_device_id, tenon_err*))                                      \
  /* JSON: current, peak, reserved, allocations, cache hits, fragmentation; with_blocks: every block. */ \
  X(tenon_status, memory_stats, (tenon_device_id, int32_t with_blocks, tenon_sink_fn, void* user, tenon_err*)) \
  X(tenon_status, memory_trim, (tenon_device_id, uint64_t* released, tenon_err*))                  \
  X(void, memory_reset_peak, (tenon_device_id))                                                    \
  /* Streams and events of the host: wrap the plugin's, remember the device. */                    \
  X(tenon_status, stream_create, (tenon_device_id, int32_t priority, tenon_stream* out, tenon_err*)) \
  X(void, stream_destroy, (tenon_device_id, tenon_stream))                                         \
  X(tenon_status, stream_sync, (tenon_device_id, tenon_stream, tenon_err*))                        \
  /* The calling thread's stream for kernels on this device; returns the previous one. */          \
  X(tenon_stream, stream_set_current, (tenon_device_id, tenon_stream))                             \
  X(tenon_status, event_create, (tenon_device_id, tenon_event* out, tenon_err*))                   \
  X(void, event_destroy, (tenon_device_id, tenon_event))                                           \
  X(tenon_status, event_record, (tenon_device_id, tenon_event, tenon_stream, tenon_err*))          \
  X(tenon_status, event_wait, (tenon_device_id, tenon_event, tenon_stream, tenon_err*))            \
  X(tenon_status, event_query, (tenon_device_id, tenon_event, int32_t* done, tenon_err*))          \
  X(tenon_status, event_sync, (tenon_device_id, tenon_event, tenon_err*))                          \
  /* -- random numbers ------------------------------------------------------------------------------------ */ \
  X(void, random_seed, (uint64_t seed)) /* every device; offset becomes 0 */                       \
  X(void, random_get, (tenon_device_id, uint64_t* seed, uint64_t* offset))                         \
  X(void, random_set, (tenon_device_id, uint64_t seed, uint64_t offset))                           \
  /* -- lowering and fallback -------------------------------------------------------------------------------- */ \
  /* "deny,acme:sort=allow": deny | warn_once | allow, then exceptions device[:op]=policy. */      \
  X(tenon_status, fallback_set_policy, (const char* text, tenon_err*))                             \
  X(void, fallback_get_policy, (tenon_sink_fn, void* user))                                        \
  /* JSON: per device and operator, calls run native, lowered, on the host, bytes copied. */       \
  X(void, fallback_report, (int32_t reset, tenon_sink_fn, void* user))                             \
  /* -- plugins and services ------------------------------------------------------------------------------------ */ \
  X(tenon_status, plugin_load, (const char* path, tenon_err*))                                     \
  /* Do not call this while another thread is inside op_call or uses a handle of this plugin: op_call takes no \
   * lock, so the caller has to synchronise.                                                         */ \
  X(tenon_status, plugin_unload, (const char* name, tenon_err*))                                   \
  /* A folder of plugins that load at first use, or one library; they are read, not run. */        \
  X(tenon_status, plugin_add_folder, (const char* path, tenon_err*))                               \
  /* Load what is known and wanted before the first operator call; idempotent. */                  \
  X(tenon_status, plugin_load_default, (tenon_err*))                                               \
  /* JSON: every attempt with stage, reason, text, fix. */                                         \
  X(void, plugin_describe, (tenon_sink_fn, void* user))                                            \
  /* Publish a versioned table under a name, e.g. "autograd/1". [init] */                          \
  X(tenon_status, service_register, (const char* name, uint32_t version, const void* table, tenon_err*)) \
  /* NULL: absent or older than `min_version`. */                                                  \
  X(const void*, service_find, (const char* name, uint32_t min_version))                           \
  /* -- types ------------------------------------------------------------------------------------------------------ */ \
  /* THE promotion rule for two tensor dtypes. */                                                  \
  X(int32_t, dtype_promote, (int32_t a, int32_t b))                                                \
  X(const char*, dtype_name, (int32_t)) /* "float32" */                                            \
  X(uint32_t, dtype_size, (int32_t))    /* bytes */                                                \
  X(int32_t, dtype_find, (const char* name)) /* -1: unknown */                                     \
  /* -- revision 1: groups, attached plugins ------------------------------------------------------------ */ \
  /* Borrow an optional group of an open device, for services that use it directly. `group` is a        \
   * TENON_GROUP_ number; the table is complete and in this header's layout. TENON_UNSUPPORTED: the device \
   * has none. What is made through the table counts as alive until device_group_return, which the caller \
   * owes once for each success: the device is not closed and its plugin not unloaded before.       */ \
  X(tenon_status, device_group_borrow, (tenon_device_id, int32_t group, const void** table,        \
                                        tenon_device* handle, tenon_err*))                         \
  X(void, device_group_return, (tenon_device_id, int32_t group))                                   \
  /* The calling thread's stream for this device; NULL: the synchronous one. */                    \
  X(tenon_stream, stream_current, (tenon_device_id))                                               \
  /* Accept a table that came from no file: a plugin linked into the program, or one made at run time.  \
   * Checked, published and started as one that was loaded. `origin` says in messages where it is from. \
   * The table and all it points to stay valid until plugin_unload(table->name) has succeeded. */  \
  X(tenon_status, plugin_attach, (const tenon_plugin* table, const char* origin, tenon_err*))      \
  /* -- revision 1: memory of work that was queued past op_call ----------------------------------------- */ \
  /* Work on `stream` uses the tensor: its memory, once released, waits for that work. For kernels and   \
   * out= of op_call the host does this itself. */                                                 \
  X(void, tensor_record_use, (tenon_tensor*, tenon_stream))                                        \
  /* The plugin's own allocation that holds the tensor's memory (several, end to end, if it reaches over \
   * where they meet): what alloc or pool_alloc returned, its size, and where the tensor's first element \
   * lies in it. TENON_INVALID_ARGUMENT: it is foreign memory. */                                  \
  X(tenon_status, memory_origin, (const tenon_tensor*, void** memory, uint64_t* bytes, uint64_t* offset, \
                                  tenon_err*))                                                     \
  /* Hold the memory of recorded work, which runs again and again (group `graph`). From begin to end,   \
   * whatever is allocated for or used by work on `stream` is noted; once released it is not used again \
   * until memory_hold_release. `end` fails if not everything could be noted: drop the recording then. */ \
  X(tenon_status, memory_hold_begin, (tenon_device_id, tenon_stream, uint64_t* hold, tenon_err*))  \
  X(tenon_status, memory_hold_end, (tenon_device_id, uint64_t hold, tenon_err*))                   \
  X(void, memory_hold_release, (tenon_device_id, uint64_t hold))                                   \
  /* -- revision 2: consent to overrides ---------------------------------------------------------------- */ \
  /* A kernel for another plugin's operator on another plugin's device is an override: it is held back   \
   * unless the user has agreed. Use (allowed != 0) or hold back those of a plugin, loaded or not: its  \
   * name, a path to its library, or "*", every plugin that was not named. Calls under way go on as they \
   * began.                                                                                           */ \
  X(tenon_status, plugin_allow_overrides, (const char* plugin, int32_t allowed, tenon_err*))         \
  /* As tensor_view, and tensor_base(*out) finds `base`, or the root that `base` was taken from: what a \
   * VIEW operator's result is, for callers that know the shape. Layers do not see it: where one wants  \
   * to (`base`'s layer bits, or always-on layers), call the operator. */                              \
  X(tenon_status, tensor_view_of, (tenon_tensor* base, int32_t dtype, int32_t ndim, const int64_t* shape, \
                                   const int64_t* strides, int64_t offset, tenon_tensor** out, tenon_err*)) \
  /* -- revision 5: pinned memory ---------------------------------------------------------------------- */ \
  /* A contiguous tensor of the host device in memory that `device` copies from and to without a detour     \
   * (TENON_ALLOC_PINNED), uninitialised. Such copies may run after the call that queued them; the release of  \
   * the memory waits for all streams of the device. A recording of them (group `graph`) does not hold it. On a \
   * device with TENON_DEVICE_HOST_MEMORY it is an ordinary tensor. `*out` owned. Fails with what the plugin's  \
   * `alloc` says if it has no such memory. */                                                           \
  X(tenon_status, tensor_create_pinned, (tenon_device_id device, int32_t dtype, int32_t ndim,           \
                                         const int64_t* shape, tenon_tensor** out, tenon_err*))           \
  /* -- revision 10: composed tensors ------------------------------------------------------------------- */ \
  /* A tensor with TENON_TENSOR_COMPOSED and the bit of `layer`, in [0, 8), which finds in an extension slot of  \
   * its own what the tensor is made of, and serves calls that take it. It has a version counter. No view can  \
   * be taken of it, unless it has no elements. `*out` owned. */                                          \
  X(tenon_status, tensor_create_composed, (tenon_device_id device, int32_t dtype, int32_t ndim,         \
                                           const int64_t* shape, int32_t layer, tenon_tensor** out,     \
                                           tenon_err*))

struct tenon_host {
  uint32_t struct_size;
  uint32_t revision;
  uint64_t features;
#define TENON_HOST_MEMBER(result, name, parameters) result(*name) parameters;
  TENON_HOST_SLOTS(TENON_HOST_MEMBER)
#undef TENON_HOST_MEMBER
};

/* The one symbol that libtenon exports, for programs that embed it (Python, tests, tools). Returns
 * NULL if `epoch` is not spoken. The table lives as long as the process. */
const tenon_host* tenon_host_get(uint32_t epoch);

/* In every function that takes a request struct: refuse what you do not understand. */
#define TENON_CHECK_UNDERSTOOD(host, request, known, err)                                          \
  do {                                                                                             \
    if ((request)->must_understand & ~(uint64_t)(known)) {                                         \
      static const char tenon_text_[] = "the request needs a feature that this plugin does not know"; \
      (host)->fail((err), TENON_UNSUPPORTED, 0, tenon_text_, sizeof tenon_text_ - 1);              \
      return TENON_UNSUPPORTED;                                                                    \
    }                                                                                              \
  } while (0)

#ifdef __cplusplus
} /* extern "C" */
static_assert(sizeof(void*) == 8, "Tenon's ABI is defined for 64-bit platforms");
static_assert(sizeof(tenon_tensor) == 64, "one cache line");
static_assert(sizeof(tenon_value) == 16, "TVM-FFI Any");
#endif
#endif /* TENON_ABI_H_ */
