/* SPDX-License-Identifier: Apache-2.0
 *
 * A device in C, as a vendor shipped it: the required functions over the C library, the groups pool and
 * quiesce, and one native kernel with typed and boxed form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/abi.h>

TENON_PLUGIN_NOTE("kept_device", "1.0.0", "{\"kind\":\"device\",\"devices\":[\"keptc\"]}");

static const tenon_host* host;
struct tenon_device_s {
  int64_t live;   /* allocations */
  int64_t pooled; /* bytes */
};
static struct tenon_device_s board;

static tenon_status failed(tenon_err* err, tenon_status code, const char* text) {
  host->fail(err, code, 0, text, strlen(text));
  return code;
}

static tenon_status kept_enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count, tenon_err* err) {
  (void)err;
  if (capacity > 0) {
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->dl_device_type = 12;
    snprintf(out->name, sizeof out->name, "Kept C device");
  }
  *count = 1;
  return TENON_OK;
}

static tenon_status kept_open(uint32_t index, tenon_device* out, tenon_err* err) {
  if (index != 0) return failed(err, TENON_NOT_FOUND, "keptc: there is only device 0");
  *out = &board;
  return TENON_OK;
}

/* The host has freed everything by now. */
static void kept_close(tenon_device device) {
  if (device->live != 0 || device->pooled != 0) abort();
}

static tenon_status kept_alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                               tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  const uint64_t bytes = (request->bytes + request->align - 1) / request->align * request->align;
  void* memory = bytes < request->bytes ? NULL : aligned_alloc(request->align, bytes);
  if (!memory) return failed(err, TENON_OUT_OF_MEMORY, "keptc: out of memory");
  ++device->live;
  *out = memory;
  return TENON_OK;
}

static void kept_free(tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
  (void)bytes, (void)stream;
  --device->live;
  free(memory);
}

static tenon_status kept_copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  (void)device;
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->bytes > 0) memmove(request->dst, request->src, request->bytes);
  return TENON_OK;
}

static tenon_status kept_fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes, const void* pattern,
                              uint32_t pattern_bytes, tenon_stream stream, tenon_err* err) {
  (void)device, (void)stream, (void)err;
  for (uint64_t done = 0; done < bytes; done += pattern_bytes)
    memcpy((char*)dst + offset + done, pattern, pattern_bytes);
  return TENON_OK;
}

static tenon_status kept_sync(tenon_device device, tenon_stream stream, tenon_err* err) {
  (void)device, (void)stream, (void)err;
  return TENON_OK;
}

/* ---- The pool: everything goes back at once. */

static tenon_status kept_pool_alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                                    tenon_err* err) {
  const tenon_status status = kept_alloc(device, request, out, err);
  if (status == TENON_OK) device->pooled += (int64_t)request->bytes;
  return status;
}

static void kept_pool_free(tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
  device->pooled -= (int64_t)bytes;
  kept_free(device, memory, bytes, stream);
}

static tenon_status kept_pool_trim(tenon_device device, uint64_t keep, uint64_t* released, tenon_err* err) {
  (void)device, (void)keep, (void)err;
  *released = 0;
  return TENON_OK;
}

static tenon_status kept_pool_usage(tenon_device device, uint64_t* reserved, uint64_t* used, tenon_err* err) {
  (void)err;
  *reserved = *used = (uint64_t)device->pooled;
  return TENON_OK;
}

static const tenon_pool_api pool = {.struct_size = sizeof pool,
                                    .pool_alloc = kept_pool_alloc,
                                    .pool_free = kept_pool_free,
                                    .pool_trim = kept_pool_trim,
                                    .pool_usage = kept_pool_usage};

static int quiesced;
static tenon_status kept_quiesce(uint64_t timeout_ns, tenon_err* err) {
  (void)timeout_ns, (void)err;
  quiesced = 1;
  return TENON_OK;
}

static const tenon_quiesce_api quiesce = {.struct_size = sizeof quiesce, .quiesce = kept_quiesce};

static const tenon_device_api device_api = {.struct_size = sizeof device_api,
                                            .revision = TENON_ABI_REVISION,
                                            .kind = "keptc",
                                            .enumerate = kept_enumerate,
                                            .open = kept_open,
                                            .close = kept_close,
                                            .alloc = kept_alloc,
                                            .free = kept_free,
                                            .copy = kept_copy,
                                            .fill = kept_fill,
                                            .sync = kept_sync,
                                            .pool = &pool,
                                            .quiesce = &quiesce};

/* tenon::add(Tensor x, Tensor y) -> Tensor, for float32. The hash guards the typed form: if the operator has
 * changed since, the host calls the boxed one. */
static tenon_status kept_add(tenon_ctx* ctx, const tenon_tensor* x, const tenon_tensor* y, tenon_tensor* out,
                             tenon_err* err) {
  (void)ctx, (void)err;
  const float *a = x->data, *b = y->data;
  float* o = out->data;
  for (int64_t i = 0; i < out->numel; ++i) o[i] = a[i] + b[i];
  return TENON_OK;
}
static tenon_status kept_add_boxed(tenon_ctx* ctx, const tenon_value* args, uint32_t nargs, tenon_value* outs,
                                   uint32_t nouts, tenon_err* err) {
  (void)nargs, (void)nouts;
  return kept_add(ctx, args[0].v.p, args[1].v.p, outs[0].v.p, err);
}
static const tenon_kernel_def kernels[] = {{.struct_size = sizeof(tenon_kernel_def),
                                            .op = "tenon::add",
                                            .schema_hash = UINT64_C(0x9ba4537f602d6732),
                                            .dtype_mask = UINT64_C(1) << TENON_DTYPE_F32,
                                            .boxed = kept_add_boxed,
                                            .typed = (tenon_typed_fn)kept_add}};

static tenon_status kept_stop(tenon_err* err) {
  (void)err;
  quiesced = 0;
  return TENON_OK;
}

static const tenon_plugin plugin = {.struct_size = sizeof plugin,
                                    .revision = TENON_ABI_REVISION,
                                    .name = "kept_device",
                                    .version = "1.0.0",
                                    .vendor = "Yesterday Ltd.",
                                    .device = &device_api,
                                    .kernels = kernels,
                                    .nkernels = 1,
                                    .kernel_size = sizeof(tenon_kernel_def),
                                    .stop = kept_stop};

TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t host_min, uint32_t host_max, const tenon_host* table,
                                                    tenon_err* err) {
  host = table;
  if (host_min > TENON_ABI_EPOCH || host_max < TENON_ABI_EPOCH) {
    failed(err, TENON_UNSUPPORTED, "keptc: this plugin speaks ABI epoch 1");
    return NULL;
  }
  return &plugin;
}
