/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices themselves: which there are, opening and closing one, waiting for one. */
#include "acme.h"

enum { DEVICE_COUNT = 1 };
static struct tenon_device_s devices[DEVICE_COUNT];

/* Called before anything else. Driver absent: fail with a text that says what to install, and the
 * plugin is refused with it. Driver present and no hardware: report zero devices. */
static tenon_status enumerate(tenon_device_info* out, uint32_t capacity, uint32_t* count,
                              tenon_err* err) {
  (void)err;
  for (uint32_t i = 0; i < DEVICE_COUNT && i < capacity; ++i) {
    out[i] = (tenon_device_info){
        .struct_size = sizeof(tenon_device_info),
        .flags = 0, /* memory that the host cannot touch; see abi.h for the other kinds */
        .name = "Acme accelerator",
        .arch = "acme1",
        .memory_bytes = 0,    /* unknown */
        .dl_device_type = 12, /* kDLExtDev: DLPack has no number for it */
    };
  }
  *count = DEVICE_COUNT;
  return TENON_OK;
}

static tenon_status open_device(uint32_t index, tenon_device* out, tenon_err* err) {
  if (index >= DEVICE_COUNT) return acme_fail(err, TENON_NOT_FOUND, "acme: there is only device 0");
  devices[index].index = index;
  *out = &devices[index];
  return TENON_OK;
}

/* The host has given back everything that it made on the device. */
static void close_device(tenon_device device) { (void)device; }

/* Every call here finishes before it returns, so there is nothing to wait for. */
static tenon_status sync_device(tenon_device device, tenon_stream stream, tenon_err* err) {
  (void)device, (void)stream, (void)err;
  return TENON_OK;
}

/* The whole device at a glance. Groups that are not named here are absent: level L2 adds .async. */
const tenon_device_api acme_device_api = {
    .struct_size = sizeof(tenon_device_api),
    .revision = TENON_ABI_REVISION,
    .kind = "acme",
    .enumerate = enumerate,
    .open = open_device,
    .close = close_device,
    .alloc = acme_alloc,
    .free = acme_free,
    .copy = acme_copy,
    .fill = acme_fill,
    .sync = sync_device,
};
