// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL; RCCL's have the same names.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../failures.hpp"
#include "communicator.hpp"
#include "reduce.hpp"

#define EXPORT extern "C" [[gnu::visibility("default")]]

#if SIMULATED_HIP
extern "C" int hipGetDevice(int*);
extern "C" int hipSetDevice(int);
#else
extern "C" int cuCtxGetDevice(int*);
#endif
// Of the driver's stand-in: where memory of a device is, and work of a stream.
extern "C" void* simulated_access(const void* memory, size_t bytes);
extern "C" int simulated_enqueue(void* stream, void (*call)(void*), void* user,
                                 void (*destroy)(void*));

using namespace simulated;

enum Result {
  kSuccess,
  kDriverError,
  kSystemError,
  kInternalError,
  kInvalidArgument,
  kInvalidUsage,
  kRemoteError,
  kInProgress
};

struct UniqueId {
  char bytes[128];
};
using Comm = void*;

namespace {

std::mutex mutex;
std::map<void*, std::shared_ptr<Communicator>> communicators;
thread_local std::string last_error;

int fail(int result, const char* text) {
  last_error = text;
  return result;
}

std::shared_ptr<Communicator> find(Comm handle) {
  std::lock_guard lock(mutex);
  auto found = communicators.find(handle);
  return found == communicators.end() ? nullptr : found->second;
}

std::shared_ptr<Communicator> take(Comm handle) {
  std::lock_guard lock(mutex);
  auto found = communicators.find(handle);
  if (found == communicators.end()) return nullptr;
  std::shared_ptr<Communicator> communicator = std::move(found->second);
  communicators.erase(found);
  return communicator;
}

int current_device() {
  int device = -1;
#if SIMULATED_HIP
  hipGetDevice(&device);
#else
  cuCtxGetDevice(&device);
#endif
  return device;
}

// Calls between ncclGroupStart and ncclGroupEnd.
struct Pending {
  std::shared_ptr<Communicator> communicator;
  void* stream;
  std::vector<Operation> operations;
};
thread_local int depth = 0;
thread_local std::vector<Pending> pending;
thread_local std::vector<std::function<int()>> joining;

// Queues them on the stream, as one piece of work. Returns an error of the driver.
int enqueue(std::shared_ptr<Communicator> communicator, std::vector<Operation> operations,
            void* stream) {
  struct Group {
    std::shared_ptr<Communicator> communicator;
    std::vector<Operation> operations;
  };
  return simulated_enqueue(
      stream,
      [](void* user) {  // after an abort, the stream goes on without the result
        const auto& group = *static_cast<const Group*>(user);
        run(group.operations, *group.communicator->meeting);
      },
      new Group{std::move(communicator), std::move(operations)},
      [](void* user) { delete static_cast<Group*>(user); });
}

int submit(Comm handle, const Operation& operation, void* stream) {
  std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return fail(kInvalidArgument, "the communicator is not valid");
  const Meeting& meeting = *communicator->meeting;
  const uint64_t bytes = operation.count * type_bytes(operation.type);
  const bool reduces = operation.kind == Kind::kAllReduce ||
                       operation.kind == Kind::kReduceScatter || operation.kind == Kind::kReduce;
  if (operation.type >= kTypes || (reduces && !can_reduce(operation.type)))
    return fail(kInvalidArgument, "the data type is not supported");
  if (operation.reduction >= kReductions) return fail(kInvalidArgument, "unknown reduction");
  if (operation.root < 0 || operation.root >= meeting.size())
    return fail(kInvalidArgument, "the root or peer is no rank of the communicator");
  const bool sends = operation.kind == Kind::kSend, receives = operation.kind == Kind::kReceive;
  if (bytes && ((!receives && operation.src && !simulated_access(operation.src, bytes)) ||
                (!sends && operation.dst && !simulated_access(operation.dst, bytes))))
    return fail(kInvalidArgument, "expected memory of a device");
  if (!depth) return enqueue(communicator, {operation}, stream) ? kDriverError : kSuccess;
  for (Pending& each : pending) {
    if (each.communicator != communicator || each.stream != stream) continue;
    each.operations.push_back(operation);
    return kSuccess;
  }
  pending.push_back({communicator, stream, {operation}});
  return kSuccess;
}

int join(Comm* out, const MeetingName& name, int rank, int size, int device) {
  std::shared_ptr<Meeting> meeting = Meeting::join(name, rank, size);
  if (!meeting)
    return fail(kInvalidArgument, "expected an id of ncclGetUniqueId, and every rank once");
  auto communicator = std::make_shared<Communicator>();
  communicator->meeting = std::move(meeting);
  communicator->device = device;
  std::lock_guard lock(mutex);
  *out = communicator.get();
  communicators[*out] = std::move(communicator);
  return kSuccess;
}

}  // namespace

#define COUNT(name) \
  if (int error = count_call(#name)) return error

EXPORT int ncclGetVersion(int* version) {
  *version = 22703;
  return kSuccess;
}

EXPORT const char* ncclGetErrorString(int result) {
  static const char* const kTexts[] = {"no error",
                                       "unhandled cuda error",
                                       "unhandled system error",
                                       "internal error",
                                       "invalid argument",
                                       "invalid usage",
                                       "remote process exited or there was a network error",
                                       "NCCL operation in progress"};
  return result >= 0 && result <= kInProgress ? kTexts[result] : "unknown result code";
}

EXPORT const char* ncclGetLastError(Comm) { return last_error.c_str(); }

EXPORT int ncclGetUniqueId(UniqueId* out) {
  COUNT(ncclGetUniqueId);
  MeetingName name;
  if (!Meeting::create(&name)) return fail(kSystemError, "no shared memory");
  *out = {};
  std::memcpy(out->bytes, &name, sizeof name);
  return kSuccess;
}

// In a group, ranks of one thread join together when it ends.
EXPORT int ncclCommInitRank(Comm* out, int size, UniqueId id, int rank) {
  COUNT(ncclCommInitRank);
  MeetingName name;
  std::memcpy(&name, id.bytes, sizeof name);
  const int device = current_device();
  if (device < 0) return fail(kDriverError, "no device is current");
  if (!depth) return join(out, name, rank, size, device);
  joining.push_back([=] { return join(out, name, rank, size, device); });
  return kSuccess;
}

EXPORT int ncclCommInitRankConfig(Comm* out, int size, UniqueId id, int rank, void*) {
  return ncclCommInitRank(out, size, id, rank);
}

EXPORT int ncclCommFinalize(Comm) { return kSuccess; }

// Work that is queued still runs.
EXPORT int ncclCommDestroy(Comm handle) {
  COUNT(ncclCommDestroy);
  return take(handle) ? kSuccess : fail(kInvalidArgument, "the communicator is not valid");
}

EXPORT int ncclCommAbort(Comm handle) {
  COUNT(ncclCommAbort);
  std::shared_ptr<Communicator> communicator = take(handle);
  if (!communicator) return fail(kInvalidArgument, "the communicator is not valid");
  communicator->meeting->abort();
  return kSuccess;
}

EXPORT int ncclCommGetAsyncError(Comm handle, int* out) {
  COUNT(ncclCommGetAsyncError);
  std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return fail(kInvalidArgument, "the communicator is not valid");
  switch (communicator->meeting->trouble()) {
    case Meeting::kRemote:
      *out = kRemoteError;
      break;
    case Meeting::kDisagreement:
      *out = kInvalidUsage;
      break;
    default:
      *out = kSuccess;
  }
  return kSuccess;
}

EXPORT int ncclCommCount(Comm handle, int* out) {
  std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return kInvalidArgument;
  *out = communicator->meeting->size();
  return kSuccess;
}

EXPORT int ncclCommUserRank(Comm handle, int* out) {
  std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return kInvalidArgument;
  *out = communicator->meeting->rank();
  return kSuccess;
}

EXPORT int ncclCommCuDevice(Comm handle, int* out) {
  std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return kInvalidArgument;
  *out = communicator->device;
  return kSuccess;
}

// Ranks of one color form a communicator, ordered by key. A negative color takes part in none.
EXPORT int ncclCommSplit(Comm handle, int color, int key, Comm* out, void*) {
  COUNT(ncclCommSplit);
  std::shared_ptr<Communicator> communicator = find(handle);
  if (!communicator) return fail(kInvalidArgument, "the communicator is not valid");
  Meeting& meeting = *communicator->meeting;
  struct Wish {
    int color, key;
    MeetingName name;
  };
  Wish mine = {color, key, {}};
  if (!Meeting::create(&mine.name)) return fail(kSystemError, "no shared memory");
  std::memcpy(meeting.slot(meeting.rank()), &mine, sizeof mine);
  if (!meeting.barrier()) return fail(kRemoteError, "aborted");
  std::vector<std::pair<int, int>> members;  // key, rank
  std::vector<Wish> wishes(static_cast<size_t>(meeting.size()));
  for (int rank = 0; rank < meeting.size(); ++rank) {
    Wish& wish = wishes[static_cast<size_t>(rank)];
    std::memcpy(&wish, meeting.slot(rank), sizeof wish);
    if (wish.color == color) members.emplace_back(wish.key, rank);
  }
  if (!meeting.barrier()) return fail(kRemoteError, "aborted");
  *out = nullptr;
  if (color < 0) return kSuccess;
  std::sort(members.begin(), members.end());
  const auto position = std::find(members.begin(), members.end(), std::pair(key, meeting.rank()));
  const Wish& first = wishes[static_cast<size_t>(members[0].second)];
  return join(out, first.name, static_cast<int>(position - members.begin()),
              static_cast<int>(members.size()), communicator->device);
}

EXPORT int ncclGroupStart() {
  COUNT(ncclGroupStart);
  ++depth;
  return kSuccess;
}

EXPORT int ncclGroupEnd() {
  COUNT(ncclGroupEnd);
  if (depth == 0) return fail(kInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--depth) return kSuccess;
  int result = kSuccess;
  std::vector<std::thread> threads;
  std::mutex results;
  for (const auto& each : joining)
    threads.emplace_back([&] {
      const int one = each();
      std::lock_guard lock(results);
      if (one) result = one;
    });
  for (std::thread& thread : threads) thread.join();
  joining.clear();
  for (Pending& each : pending)
    if (enqueue(each.communicator, std::move(each.operations), each.stream)) result = kDriverError;
  pending.clear();
  return result;
}

EXPORT int ncclAllReduce(const void* src, void* dst, size_t count, int type, int reduction,
                         Comm comm, void* stream) {
  COUNT(ncclAllReduce);
  return submit(comm,
                {Kind::kAllReduce, src, dst, count, static_cast<uint32_t>(type),
                 static_cast<uint32_t>(reduction), 0},
                stream);
}

EXPORT int ncclAllGather(const void* src, void* dst, size_t count, int type, Comm comm,
                         void* stream) {
  COUNT(ncclAllGather);
  return submit(comm, {Kind::kAllGather, src, dst, count, static_cast<uint32_t>(type), 0, 0},
                stream);
}

EXPORT int ncclReduceScatter(const void* src, void* dst, size_t count, int type, int reduction,
                             Comm comm, void* stream) {
  COUNT(ncclReduceScatter);
  return submit(comm,
                {Kind::kReduceScatter, src, dst, count, static_cast<uint32_t>(type),
                 static_cast<uint32_t>(reduction), 0},
                stream);
}

EXPORT int ncclBroadcast(const void* src, void* dst, size_t count, int type, int root, Comm comm,
                         void* stream) {
  COUNT(ncclBroadcast);
  return submit(comm, {Kind::kBroadcast, src, dst, count, static_cast<uint32_t>(type), 0, root},
                stream);
}

EXPORT int ncclBcast(void* memory, size_t count, int type, int root, Comm comm, void* stream) {
  return ncclBroadcast(memory, memory, count, type, root, comm, stream);
}

EXPORT int ncclReduce(const void* src, void* dst, size_t count, int type, int reduction, int root,
                      Comm comm, void* stream) {
  COUNT(ncclReduce);
  return submit(comm,
                {Kind::kReduce, src, dst, count, static_cast<uint32_t>(type),
                 static_cast<uint32_t>(reduction), root},
                stream);
}

EXPORT int ncclSend(const void* src, size_t count, int type, int peer, Comm comm, void* stream) {
  COUNT(ncclSend);
  return submit(comm, {Kind::kSend, src, nullptr, count, static_cast<uint32_t>(type), 0, peer},
                stream);
}

EXPORT int ncclRecv(void* dst, size_t count, int type, int peer, Comm comm, void* stream) {
  COUNT(ncclRecv);
  return submit(comm, {Kind::kReceive, nullptr, dst, count, static_cast<uint32_t>(type), 0, peer},
                stream);
}
