/* SPDX-License-Identifier: Apache-2.0
 *
 * A complete device plugin: eight functions, a table of them, a table of kernels and the one
 * exported function. Read it from the bottom up; README.md is the tour. */
#include "toy_plugin.h"

#include <stdio.h>
#include <string.h>

#include "toy_hardware.h"

const tenon_host* toy_host;

tenon_status toy_fail(tenon_err* err, tenon_status code, int driver_error, const char* text) {
  toy_host->fail(err, code, driver_error, text, strlen(text));
  return code;
}

/* The driver's numbers in the host's words; the number itself travels along. */
static tenon_status check(int error, const char* action, tenon_err* err) {
  if (error == TOY_SUCCESS) return TENON_OK;
  const char* reason = "unknown driver error";
  tenon_status code = TENON_INTERNAL;
  switch (error) {
    case TOY_ERROR_MEMORY:
      reason = "out of board memory; a board has 1 GiB";
      code = TENON_OUT_OF_MEMORY;
      break;
    case TOY_ERROR_ADDRESS:
      reason = "an address does not belong to the side that it was given for";
      break;
    case TOY_ERROR_POWER:
      reason = "the board did not start; is there address space for its 1 GiB?";
      code = TENON_UNAVAILABLE;
      break;
  }
  char text[160];
  snprintf(text, sizeof text, "toy: %s: %s (driver error %d)", action, reason, error);
  return toy_fail(err, code, error, text);
}

/* What the host passes back to us for an open device. */
struct tenon_device_s {
  uint32_t board;
};
static struct tenon_device_s devices[TOY_BOARDS] = {{0}, {1}};

/* ==== The eight functions ===================================================================== */

static tenon_status toy_enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                                  tenon_err* err) {
  (void)err; /* a real driver may be absent: report it here, and the plugin is refused with that
                text */
  for (uint32_t i = 0; i < capacity && i < TOY_BOARDS; ++i) {
    out[i] = (tenon_device_info){
        .struct_size = sizeof out[i],
        .name = "Toy accelerator",
        .arch = "toy1",
        .memory_bytes = TOY_BOARD_BYTES,
        .dl_device_type = 12, /* kDLExtDev: DLPack has no number for us */
    };
    snprintf(out[i].bus_id, sizeof out[i].bus_id, "board%u", i);
  }
  *count = TOY_BOARDS;
  return TENON_OK;
}

static tenon_status toy_open(uint32_t index, tenon_device* out, tenon_err* err) {
  if (index >= TOY_BOARDS)
    return toy_fail(err, TENON_NOT_FOUND, 0, "toy: expected device 0 or 1; there are two boards");
  const tenon_status status = check(toy_power_on(index), "open", err);
  if (status == TENON_OK) *out = &devices[index];
  return status;
}

/* The host has freed all memory of the device by now. */
static void toy_close(tenon_device device) { toy_power_off(device->board); }

static tenon_status toy_alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                              tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(toy_host, request, 0, err);
  if (request->kind != TENON_ALLOC_DEVICE)
    return toy_fail(err, TENON_UNSUPPORTED, 0, "toy: only device memory can be allocated");
  return check(toy_memory_alloc(device->board, request->bytes, request->align, out), "alloc", err);
}

static void toy_free(tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
  (void)bytes, (void)stream;
  toy_memory_free(device->board, memory);
}

static tenon_status toy_copy(tenon_device device, const tenon_copy_request* request,
                             tenon_err* err) {
  (void)device;
  TENON_CHECK_UNDERSTOOD(toy_host, request, 0, err);
  if (request->bytes == 0) return TENON_OK;
  switch (request->direction) {
    case TENON_COPY_HOST_TO_DEVICE:
      return check(toy_copy_in(request->dst, request->src, request->bytes), "copy to device", err);
    case TENON_COPY_DEVICE_TO_HOST:
      return check(toy_copy_out(request->dst, request->src, request->bytes), "copy to host", err);
    case TENON_COPY_DEVICE_TO_DEVICE:
      return check(toy_copy_board(request->dst, request->src, request->bytes), "copy", err);
  }
  return toy_fail(err, TENON_UNSUPPORTED, 0, "toy: unknown copy direction");
}

static tenon_status toy_fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                             const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                             tenon_err* err) {
  (void)device, (void)stream;
  if (pattern_bytes == 0 || bytes % pattern_bytes != 0)
    return toy_fail(err, TENON_INVALID_ARGUMENT, 0, "toy: fill: expected whole patterns");
  if (bytes == 0) return TENON_OK;
  return check(toy_set((char*)dst + offset, bytes, pattern, pattern_bytes), "fill", err);
}

/* Every call above finishes before it returns, so there is nothing to wait for. */
static tenon_status toy_sync(tenon_device device, tenon_stream stream, tenon_err* err) {
  (void)device, (void)stream, (void)err;
  return TENON_OK;
}

/* ==== The tables ============================================================================== */

static const tenon_device_api device_api = {
    .struct_size = sizeof device_api,
    .kind = "toy",
    .enumerate = toy_enumerate,
    .open = toy_open,
    .close = toy_close,
    .alloc = toy_alloc,
    .free = toy_free,
    .copy = toy_copy,
    .fill = toy_fill,
    .sync = toy_sync,
    /* .async is absent: the host uses the synchronous stream. */
};

/* Called before unload. We keep no threads and no host handles. */
static tenon_status toy_stop(tenon_err* err) {
  (void)err;
  return TENON_OK;
}

static tenon_plugin plugin = {
    .struct_size = sizeof plugin,
    .revision = TENON_ABI_REVISION,
    .name = "toy",
    .version = "1.0.0",
    .vendor = "Toy Hardware Ltd.",
    .device = &device_api,
    .kernel_size = sizeof(tenon_kernel_def),
    .stop = toy_stop,
};

TENON_EXPORT const tenon_plugin* tenon_plugin_query(uint32_t host_min, uint32_t host_max,
                                                    const tenon_host* host, tenon_err* err) {
  toy_host = host;
  if (host_min > TENON_ABI_EPOCH || host_max < TENON_ABI_EPOCH) {
    toy_fail(err, TENON_UNSUPPORTED, 0, "toy: this plugin speaks ABI epoch 1; update it or Tenon");
    return NULL;
  }
  plugin.kernels = toy_kernels(&plugin.nkernels);
  return &plugin;
}
