// SPDX-License-Identifier: Apache-2.0
// The plugin: one service.
#include <string.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <tenon/error.hpp>
#include <tenon/plugin.hpp>

#include "control/store_server.hpp"
#include "control/time.hpp"
#include "group/rank_group.hpp"
#include "host/backend.hpp"
#include "mpi/library.hpp"

struct tenon_store_server_s {
  tenon::collectives::StoreServer server;
  pid_t process = getpid();
};
struct tenon_store_s {
  std::unique_ptr<tenon::collectives::Store> store;
};
struct tenon_rank_group_s {
  std::unique_ptr<tenon::collectives::RankGroup> group;
};
struct tenon_work_s {
  std::shared_ptr<tenon::collectives::Work> work;
};

namespace tenon::collectives {
namespace {

Secret secret_of(const uint8_t* bytes) {
  Secret secret;
  memcpy(secret.data(), bytes, secret.size());
  return secret;
}

std::string bytes_of(const void* bytes, uint64_t size) {
  return std::string(static_cast<const char*>(bytes), size);
}

// -- stores

tenon_status store_serve(const char* address, uint32_t* port, const uint8_t secret[16],
                         tenon_store_server* out, tenon_err* err) {
  return guarded(err, [&] {
    auto made = std::unique_ptr<tenon_store_server_s>(
        new tenon_store_server_s{StoreServer(address, *port, secret_of(secret))});
    *port = made->server.port();
    *out = made.release();
  });
}
void store_stop(tenon_store_server server) {
  // In a process made by fork it stays: its threads, and the connections that it would shut down, are the parent's.
  if (server->process == getpid()) delete server;
}

std::unique_ptr<Store> make_store(const tenon_store_options& options) {
  if (options.kind == TENON_STORE_LOCAL) return std::make_unique<LocalStore>();
  if (options.kind == TENON_STORE_FILE) return std::make_unique<FileStore>(options.where);
  if (options.kind == TENON_STORE_TCP)
    return std::make_unique<TcpStore>(options.where, options.port, secret_of(options.secret),
                                      options.timeout_ns);
  throw Error(TENON_UNSUPPORTED, "collectives: this kind of store is not known");
}

tenon_status store_open(const tenon_store_options* options, tenon_store* out, tenon_err* err) {
  return guarded(err, [&] {
    if (!options || options->struct_size < sizeof *options ||
        (options->kind != TENON_STORE_LOCAL && !options->where))
      throw Error(TENON_INVALID_ARGUMENT,
                  "collectives: expected options with struct_size and a place");
    *out = new tenon_store_s{make_store(*options)};
  });
}
void store_close(tenon_store store) { delete store; }

tenon_status store_set(tenon_store store, const char* key, const void* value, uint64_t size,
                       tenon_err* err) {
  return guarded(err, [&] { store->store->set(key, bytes_of(value, size)); });
}
tenon_status store_get(tenon_store store, const char* key, uint64_t timeout_ns, tenon_bytes_fn take,
                       void* user, tenon_err* err) {
  return guarded(err, [&] {
    const std::string value = store->store->get(key, deadline_after(timeout_ns));
    take(user, value.data(), value.size());
  });
}
tenon_status store_add(tenon_store store, const char* key, int64_t delta, int64_t* out,
                       tenon_err* err) {
  return guarded(err, [&] { *out = store->store->add(key, delta); });
}
tenon_status store_compare_set(tenon_store store, const char* key, const void* expected,
                               uint64_t expected_size, const void* value, uint64_t size,
                               tenon_bytes_fn take, void* user, tenon_err* err) {
  return guarded(err, [&] {
    const std::string result =
        store->store->compare_set(key, bytes_of(expected, expected_size), bytes_of(value, size));
    take(user, result.data(), result.size());
  });
}
tenon_status store_delete(tenon_store store, const char* key, int32_t* was_there, tenon_err* err) {
  return guarded(err, [&] { *was_there = store->store->erase(key); });
}

// -- groups

// The library of MPI that moves the group's data, or NULL.
Mpi* mpi_of(const tenon_group_options& options) {
  if (options.transport == TENON_TRANSPORT_HOST) return nullptr;
  if (options.transport != TENON_TRANSPORT_MPI)
    throw Error(TENON_UNSUPPORTED, "collectives: this transport is not known");
  return &mpi(options.size);
}

// Once it is known that all ranks do: the library waits for them without a time limit.
void start_mpi(Mpi& library, const tenon_group_options& options) {
  library.start();
  if (library.rank() != options.rank || library.size() != options.size)
    throw Error(TENON_INVALID_ARGUMENT,
                "backend \"mpi\": expected the ranks of " + library.version() + ", where this is " +
                    std::to_string(library.rank()) + " of " + std::to_string(library.size()) +
                    ", got " + std::to_string(options.rank) + " of " +
                    std::to_string(options.size) +
                    "; start the ranks with mpirun or srun, and give none of your own");
}

tenon_status group_create(tenon_store store, const tenon_group_options* options,
                          tenon_rank_group* out, tenon_err* err) {
  return guarded(err, [&] {
    if (!options || options->struct_size < sizeof *options || !options->name || options->size < 1 ||
        options->rank < 0 || options->rank >= options->size)
      throw Error(
          TENON_INVALID_ARGUMENT,
          "collectives: expected options with struct_size, a name, and a rank below the size");
    MeetingOptions meeting_options;
    meeting_options.name = options->name;
    meeting_options.rank = options->rank;
    meeting_options.size = options->size;
    meeting_options.timeout_ns = options->timeout_ns;
    meeting_options.is_interrupted = options->is_interrupted;
    meeting_options.user = options->user;
    std::vector<int32_t> ranks;
    for (int32_t rank = 0; rank < options->size; ++rank) ranks.push_back(rank);
    const std::string name = options->name;
    try {
      Mpi* library = mpi_of(*options);
      if (library) meeting_options.mpi = library->version();
      auto meeting = std::make_shared<Meeting>(*store->store, meeting_options);
      meeting->check_same_transport();
      if (library) start_mpi(*library, *options);
      *out = new tenon_rank_group_s{std::make_unique<RankGroup>(
          meeting, name.substr(0, name.find('/')), "0", ranks, options->rank)};
    } catch (...) {
      if (options->transport == TENON_TRANSPORT_MPI) abandon_mpi();
      throw;
    }
  });
}

tenon_status group_part(tenon_rank_group group, const char* name, const int32_t* ranks,
                        uint32_t count, tenon_rank_group* out, tenon_err* err) {
  return guarded(err, [&] {
    std::unique_ptr<RankGroup> part = group->group->part(name, {ranks, ranks + count});
    *out = part ? new tenon_rank_group_s{std::move(part)} : nullptr;
  });
}
void group_close(tenon_rank_group group) { delete group; }

void require_call(const tenon_group_call* call) {
  if (!call || call->struct_size < sizeof *call)
    throw Error(TENON_INVALID_ARGUMENT, "collectives: expected a call with struct_size");
}
tenon_status run(tenon_rank_group group, const tenon_group_call* call, tenon_err* err) {
  return guarded(err, [&] {
    require_call(call);
    group->group->run(*call);
  });
}
tenon_status start(tenon_rank_group group, const tenon_group_call* call, tenon_work* out,
                   tenon_err* err) {
  return guarded(err, [&] {
    require_call(call);
    *out = new tenon_work_s{group->group->start(*call)};
  });
}

tenon_status work_wait(tenon_work work, uint64_t timeout_ns, tenon_err* err) {
  return guarded(err, [&] {
    if (!work->work->wait(timeout_ns))
      throw Error(TENON_DEADLINE_EXCEEDED,
                  "the call is not done after " + seconds_text(timeout_ns) + "; it goes on");
    if (work->work->status() != TENON_OK) throw Error(work->work->status(), work->work->text());
  });
}
int32_t work_is_completed(tenon_work work) { return work->work->is_completed(); }
void work_release(tenon_work work) {
  if (!work->work->is_forked()) delete work;
}

void abort(tenon_rank_group group, const char* text) {
  group->group->meeting().fail(TENON_COLLECTIVE_ABORTED,
                               text ? text : "the communicator was aborted");
}
int32_t failure(tenon_rank_group group, tenon_bytes_fn take, void* user) {
  const Failure failure = group->group->meeting().failure();
  if (take) take(user, failure.text.data(), failure.text.size());
  return failure.kind;
}
uint32_t records(tenon_rank_group group, tenon_group_record* out, uint32_t capacity) {
  return group->group->meeting().records().copy(out, capacity);
}
void counters(tenon_rank_group group, tenon_group_counters* out) {
  *out = group->group->counters();
}
uint32_t peers(tenon_rank_group group, tenon_group_peer* out, uint32_t capacity) {
  return group->group->meeting().copy_peers(out, capacity);
}

constexpr tenon_collectives_api kService = {
    .struct_size = sizeof(tenon_collectives_api),
    .version = TENON_COLLECTIVES_VERSION,
    .store_serve = store_serve,
    .store_stop = store_stop,
    .store_open = store_open,
    .store_close = store_close,
    .store_set = store_set,
    .store_get = store_get,
    .store_add = store_add,
    .store_compare_set = store_compare_set,
    .store_delete = store_delete,
    .group_create = group_create,
    .group_part = group_part,
    .group_close = group_close,
    .run = run,
    .start = start,
    .work_wait = work_wait,
    .work_is_completed = work_is_completed,
    .work_release = work_release,
    .abort = abort,
    .failure = failure,
    .records = records,
    .counters = counters,
    .peers = peers,
    .collective = &kHostCollective,
    .exchange = &kHostExchange,
};

tenon_status start_plugin(const tenon_host*, tenon_err* err) {
  return host->service_register(TENON_COLLECTIVES_SERVICE, TENON_COLLECTIVES_VERSION, &kService,
                                err);
}

// `stop` is absent: threads of groups may run until the process ends.
constexpr tenon_plugin kPlugin = {
    .struct_size = sizeof(tenon_plugin),
    .revision = TENON_ABI_REVISION,
    .name = "collectives",
    .version = TENON_PLUGIN_VERSION,
    .vendor = "Tenon",
    .start = start_plugin,
};

}  // namespace
}  // namespace tenon::collectives

TENON_PLUGIN(tenon::collectives::kPlugin)
