/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the device. Until your driver's calls stand here it is the host's, but the host does not
 * know and keeps its hands off. */
#include <stdlib.h>
#include <string.h>

#include "acme.h"

/* Raw memory only: caching, reuse and a second try after TENON_OUT_OF_MEMORY are the host's. */
tenon_status acme_alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                        tenon_err* err) {
  (void)device;
  TENON_CHECK_UNDERSTOOD(acme_host, request, 0, err);
  if (request->kind != TENON_ALLOC_DEVICE)
    return acme_fail(err, TENON_UNSUPPORTED,
                     "acme: expected TENON_ALLOC_DEVICE; there is no other memory");
  uint64_t rounded = (request->bytes + request->align - 1) / request->align * request->align;
  void* memory = rounded < request->bytes ? NULL : aligned_alloc(request->align, rounded);
  if (!memory)
    return acme_fail(err, TENON_OUT_OF_MEMORY, "acme: the device has not enough memory left");
  *out = memory;
  return TENON_OK;
}

void acme_free(tenon_device device, void* memory, uint64_t bytes, tenon_stream stream) {
  (void)device, (void)bytes, (void)stream;
  free(memory);
}

tenon_status acme_copy(tenon_device device, const tenon_copy_request* request, tenon_err* err) {
  (void)device;
  TENON_CHECK_UNDERSTOOD(acme_host, request, 0, err);
  if (request->bytes == 0) return TENON_OK; /* with any pointers */
  switch (request->direction) {
    case TENON_COPY_HOST_TO_DEVICE: /* consumed when this returns */
    case TENON_COPY_DEVICE_TO_HOST: /* filled when this returns */
      memcpy(request->dst, request->src, request->bytes);
      return TENON_OK;
    case TENON_COPY_DEVICE_TO_DEVICE: /* ranges may overlap */
      memmove(request->dst, request->src, request->bytes);
      return TENON_OK;
  }
  return acme_fail(err, TENON_INVALID_ARGUMENT, "acme: copy: unknown direction");
}

tenon_status acme_fill(tenon_device device, void* dst, uint64_t offset, uint64_t bytes,
                       const void* pattern, uint32_t pattern_bytes, tenon_stream stream,
                       tenon_err* err) {
  (void)device, (void)stream;
  if (pattern_bytes == 0 || bytes % pattern_bytes != 0)
    return acme_fail(err, TENON_INVALID_ARGUMENT,
                     "acme: fill: expected a whole number of patterns");
  for (uint64_t done = 0; done < bytes; done += pattern_bytes)
    memcpy((char*)dst + offset + done, pattern, pattern_bytes);
  return TENON_OK;
}
