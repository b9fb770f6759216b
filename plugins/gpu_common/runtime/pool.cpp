// SPDX-License-Identifier: Apache-2.0
// The driver's stream-ordered pool: memory that the whole process shares with other libraries which
// use it.
#include "runtime/device.hpp"

namespace gpu {
namespace {

using ull = unsigned long long;

tenon_status pool_of(tenon_device device, Pool* out, tenon_err* err) {
  Error error = driver.pool_of_device(out, device->ordinal);
  return error ? fail_device(device, nullptr, error, err, "pool") : TENON_OK;
}

tenon_status pool_alloc(tenon_device device, const tenon_alloc_request* request, void** out,
                        tenon_err* err) {
  TENON_CHECK_UNDERSTOOD(host, request, 0, err);
  if (request->kind != TENON_ALLOC_DEVICE)
    return fail(err, TENON_UNSUPPORTED, "pool_alloc: expected device memory (0), got kind %u",
                request->kind);
  if (request->align > 256)
    return fail(err, TENON_UNSUPPORTED,
                "pool_alloc: expected an alignment of at most 256, got %llu",
                static_cast<ull>(request->align));
  Current current(device);
  tenon_stream_s& stream = stream_of(device, request->stream);
  Error error = follow_synchronous(stream);
  if (!error) error = driver.pool_alloc(out, request->bytes, stream.stream);
  submitted(stream);
  return error ? fail_device(device, &stream, error, err, "alloc %llu B from the pool",
                             static_cast<ull>(request->bytes))
               : TENON_OK;
}

void pool_free(tenon_device device, void* memory, uint64_t, tenon_stream on) {
  Current current(device);
  tenon_stream_s& stream = stream_of(device, on);
  follow_synchronous(stream);
  driver.pool_free(memory, stream.stream);
  submitted(stream);
}

tenon_status pool_usage(tenon_device device, uint64_t* reserved, uint64_t* used, tenon_err* err) {
  Current current(device);
  Pool pool = nullptr;
  GPU_TRY(pool_of(device, &pool, err));
  Error error = driver.pool_get(pool, kPoolReserved, reserved);
  if (!error) error = driver.pool_get(pool, kPoolUsed, used);
  return error ? fail_device(device, nullptr, error, err, "pool_usage") : TENON_OK;
}

tenon_status pool_trim(tenon_device device, uint64_t keep, uint64_t* released, tenon_err* err) {
  Current current(device);
  Pool pool = nullptr;
  GPU_TRY(pool_of(device, &pool, err));
  uint64_t before = 0, after = 0;
  Error error = driver.pool_get(pool, kPoolReserved, &before);
  // Memory is given back once the work that used it has run.
  if (!error) error = driver.stream_sync(device->synchronous.stream);
  if (!error) error = driver.pool_trim(pool, keep);
  if (!error) error = driver.pool_get(pool, kPoolReserved, &after);
  if (error) return fail_device(device, nullptr, error, err, "pool_trim");
  *released = before > after ? before - after : 0;
  return TENON_OK;
}

}  // namespace

const tenon_pool_api kPool = {
    .struct_size = sizeof(tenon_pool_api),
    .reserved = 0,
    .pool_alloc = pool_alloc,
    .pool_free = pool_free,
    .pool_trim = pool_trim,
    .pool_usage = pool_usage,
};

}  // namespace gpu
