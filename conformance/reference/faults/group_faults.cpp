// SPDX-License-Identifier: Apache-2.0
// Faults of the groups pool, graph, profile, collective, ipc, compile and exchange.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <vector>

#include "../runtime/collective.hpp"
#include "tables.hpp"

namespace reference {

// ---- pool

FAULT(pool_reuses_early) {
  tables.pool.pool_free = [](tenon_device device, void* memory, uint64_t bytes, tenon_stream) {
    kPool.pool_free(device, memory, bytes, nullptr);
  };
}

FAULT(usage_forgets) {
  tables.pool.pool_usage = [](tenon_device device, uint64_t* reserved, uint64_t* used,
                              tenon_err* err) {
    const tenon_status status = kPool.pool_usage(device, reserved, used, err);
    *used = 0;
    return status;
  };
}

FAULT(trim_overstates) {
  tables.pool.pool_trim = [](tenon_device device, uint64_t keep, uint64_t* released,
                             tenon_err* err) {
    const tenon_status status = kPool.pool_trim(device, keep, released, err);
    *released += 4096;
    return status;
  };
}

// ---- graph

FAULT(graph_replays_once) {
  tables.graph.graph_launch = [](tenon_device device, tenon_graph graph, tenon_stream stream,
                                 tenon_err* err) {
    const tenon_status status = kGraph.graph_launch(device, graph, stream, err);
    graph->tasks.clear();
    return status;
  };
}

FAULT(capture_runs) {
  tables.graph.capture_end = [](tenon_device device, tenon_stream stream, tenon_graph* out,
                                tenon_err* err) {
    const tenon_status status = kGraph.capture_end(device, stream, out, err);
    if (status == TENON_OK && out) kGraph.graph_launch(device, *out, stream, nullptr);
    return status;
  };
}

FAULT(drop_keeps_capturing) {
  tables.graph.capture_end = [](tenon_device device, tenon_stream stream, tenon_graph* out,
                                tenon_err* err) {
    return out ? kGraph.capture_end(device, stream, out, err) : tenon_status{TENON_OK};
  };
}

FAULT(sync_in_capture) {
  tables.device.sync = [](tenon_device device, tenon_stream stream, tenon_err* err) {
    return stream && stream->recording ? tenon_status{TENON_OK} : kDevice.sync(device, stream, err);
  };
}

// ---- profile

FAULT(clock_backwards) {
  tables.profile.clock_pair = [](tenon_device device, uint64_t* host_ns, uint64_t* device_ns,
                                 tenon_err* err) {
    const tenon_status status = kProfile.clock_pair(device, host_ns, device_ns, err);
    *device_ns = (uint64_t{1} << 62) - *device_ns;
    return status;
  };
}

// ---- collective

FAULT(reduce_mean_is_sum) {
  tables.collective.all_reduce = [](tenon_device device, tenon_comm comm, const void* src,
                                    void* dst, uint64_t count, int32_t dtype, int32_t reduce,
                                    tenon_stream stream, tenon_err* err) {
    if (reduce == TENON_REDUCE_MEAN) reduce = TENON_REDUCE_SUM;
    return kCollective.all_reduce(device, comm, src, dst, count, dtype, reduce, stream, err);
  };
}

FAULT(abort_ignored) {
  tables.collective.comm_abort = [](tenon_device, tenon_comm) {};
}

// Both sides agree about how much is said; the last element is just not it.
FAULT(send_loses_tail) {
  tables.collective.recv = [](tenon_device device, tenon_comm comm, void* dst, uint64_t count,
                              int32_t dtype, int32_t from, tenon_stream stream, tenon_err* err) {
    tenon_status status = kCollective.recv(device, comm, dst, count, dtype, from, stream, err);
    const uint64_t size = tenon::host->dtype_size(dtype);
    const uint8_t zero = 0;
    if (status == TENON_OK && count > 0)
      status = kDevice.fill(device, dst, (count - 1) * size, size, &zero, 1, stream, err);
    return status;
  };
}

FAULT(broadcast_from_first) {
  tables.collective.broadcast = [](tenon_device device, tenon_comm comm, void* buffer,
                                   uint64_t count, int32_t dtype, int32_t, tenon_stream stream,
                                   tenon_err* err) {
    return kCollective.broadcast(device, comm, buffer, count, dtype, 0, stream, err);
  };
}

FAULT(gather_shifts) {
  tables.collective.all_gather = [](tenon_device device, tenon_comm comm, const void* src,
                                    void* dst, uint64_t count, int32_t dtype, tenon_stream stream,
                                    tenon_err* err) {
    const uint64_t part = count * tenon::host->dtype_size(dtype);
    const tenon_status status =
        kCollective.all_gather(device, comm, src, dst, count, dtype, stream, err);
    if (status != TENON_OK || part == 0) return status;
    // What rank 0 gave stands where rank 1's should.
    const tenon_copy_request shift = {.struct_size = sizeof shift,
                                      .direction = TENON_COPY_DEVICE_TO_DEVICE,
                                      .dst = static_cast<char*>(dst) + part,
                                      .src = dst,
                                      .bytes = part,
                                      .stream = stream};
    return kDevice.copy(device, &shift, err);
  };
}

// ---- ipc

namespace {
std::mutex opened_mutex;
std::map<void*, uint64_t> opened;
}  // namespace

FAULT(ipc_close_frees) {
  tables.ipc.ipc_open = [](tenon_device device, const tenon_ipc_handle* handle, void** out,
                           uint64_t* bytes, tenon_err* err) {
    const tenon_status status = kIpc.ipc_open(device, handle, out, bytes, err);
    std::lock_guard lock(opened_mutex);
    if (status == TENON_OK) opened[*out] = *bytes;
    return status;
  };
  tables.ipc.ipc_close = [](tenon_device device, void* memory) {
    {
      std::lock_guard lock(opened_mutex);
      std::memset(memory, 0, opened[memory]);
    }
    kIpc.ipc_close(device, memory);
  };
}

// ---- compile

FAULT(compile_swaps_args) {
  tables.compile.kernel_launch = [](tenon_device device, const tenon_launch_request* request,
                                    tenon_err* err) {
    std::vector<tenon_launch_arg> args(request->args, request->args + request->nargs);
    for (size_t i = 1; i < args.size(); ++i) {
      if (args[i].kind != TENON_LAUNCH_VALUE || args[i - 1].kind != TENON_LAUNCH_VALUE ||
          args[i].bytes != args[i - 1].bytes)
        continue;
      std::swap(args[i], args[i - 1]);
      break;
    }
    tenon_launch_request swapped = *request;
    swapped.args = args.data();
    return kCompile.kernel_launch(device, &swapped, err);
  };
}

FAULT(compile_hides_message) {
  tables.compile.program_create = [](tenon_device device, const tenon_program_request* request,
                                     tenon_program* out, tenon_err* err) {
    if (kCompile.program_create(device, request, out, nullptr) == TENON_OK)
      return tenon_status{TENON_OK};
    return tenon::fail(err, TENON_INVALID_ARGUMENT, "it does not compile");
  };
}

FAULT(missing_kernel_internal) {
  tables.compile.program_kernel = [](tenon_device device, tenon_program program, const char* name,
                                     tenon_kernel* out, tenon_err* err) {
    if (kCompile.program_kernel(device, program, name, out, nullptr) == TENON_OK)
      return tenon_status{TENON_OK};
    return tenon::fail(err, TENON_INTERNAL, "driver error 500");
  };
}

// ---- exchange

FAULT(transfer_skips_self) {
  tables.exchange.transfer = [](tenon_device device, tenon_comm comm, const tenon_transfer* all,
                                uint32_t count, int32_t dtype, tenon_stream stream,
                                tenon_err* err) {
    const int32_t self = comm->meeting->rank();
    std::vector<tenon_transfer> others;
    std::copy_if(all, all + count, std::back_inserter(others),
                 [&](const tenon_transfer& each) { return each.peer != self; });
    return kExchange.transfer(device, comm, others.data(), static_cast<uint32_t>(others.size()),
                              dtype, stream, err);
  };
}

FAULT(reduce_everywhere) {
  tables.exchange.reduce = [](tenon_device device, tenon_comm comm, const void* src, void* dst,
                              uint64_t count, int32_t dtype, int32_t reduce, int32_t,
                              tenon_stream stream, tenon_err* err) {
    return kCollective.all_reduce(device, comm, src, dst, count, dtype, reduce, stream, err);
  };
}

FAULT(split_ignores_key) {
  tables.exchange.comm_split = [](tenon_device device, tenon_comm comm, int32_t color, int32_t,
                                  tenon_comm* out, tenon_err* err) {
    return kExchange.comm_split(device, comm, color, 0, out, err);
  };
}

FAULT(comm_error_silent) {
  tables.exchange.comm_error = [](tenon_device, tenon_comm, tenon_err*) {
    return tenon_status{TENON_OK};
  };
}

// ---- what grows

FAULT(pool_leaks) {
  tables.pool.pool_free = [](tenon_device device, void* memory, uint64_t bytes,
                             tenon_stream stream) {
    lose_a_page();
    kPool.pool_free(device, memory, bytes, stream);
  };
}

FAULT(profile_leaks) {
  tables.profile.profile_stop = [](tenon_device device, tenon_err* err) {
    lose_a_page();
    return kProfile.profile_stop(device, err);
  };
}

FAULT(collective_leaks) {
  tables.collective.broadcast = [](tenon_device device, tenon_comm comm, void* buffer,
                                   uint64_t count, int32_t dtype, int32_t root, tenon_stream stream,
                                   tenon_err* err) {
    lose_a_page();
    return kCollective.broadcast(device, comm, buffer, count, dtype, root, stream, err);
  };
}

FAULT(compile_leaks) {
  tables.compile.kernel_launch = [](tenon_device device, const tenon_launch_request* request,
                                    tenon_err* err) {
    lose_a_page();
    return kCompile.kernel_launch(device, request, err);
  };
}

// ---- what few callers do

FAULT(in_place_half) {
  tables.collective.all_reduce = [](tenon_device device, tenon_comm comm, const void* src,
                                    void* dst, uint64_t count, int32_t dtype, int32_t reduce,
                                    tenon_stream stream, tenon_err* err) {
    if (src == dst && count > 1) count /= 2;
    return kCollective.all_reduce(device, comm, src, dst, count, dtype, reduce, stream, err);
  };
}

FAULT(first_export_only) {
  tables.ipc.ipc_export = [](tenon_device device, void* memory, uint64_t bytes,
                             tenon_ipc_handle* out, tenon_err* err) {
    static tenon_ipc_handle first = {};
    const tenon_status status = kIpc.ipc_export(device, memory, bytes, out, err);
    if (status != TENON_OK) return status;
    if (first.bytes[0] == 0) first = *out;
    *out = first;
    return status;
  };
}

}  // namespace reference
