// SPDX-License-Identifier: Apache-2.0
// A stand-in for libhccl.so. Prototypes, numbers and rules are those of hicann/hccl (include/hccl.h and its pages) and
// hicann/hcomm (hccl_comm.h, hccl_types.h and their pages), for Atlas A2. Ranks meet as those of the simulated NCCL do.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../collective/communicator.hpp"
#include "../collective/reduce.hpp"
#include "../failures.hpp"
#include "device_memory.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace simulated;

// What collective/communicator.cpp asks for.
extern "C" void* simulated_access(const void* memory, size_t bytes) {
  return simulated_ascend_translate(memory, bytes);
}

namespace {

enum Result {
  kSuccess = 0,
  kParameter = 1,
  kPointer = 2,
  kMemory = 3,
  kInternal = 4,
  kNotSupported = 5,
  kTimeout = 9,
  kRuntime = 15,
  kAgain = 20
};
// AscendCL's errors of work that failed.
constexpr int kTaskTimeout = 107020, kFaultyAddress = 507015, kFailedTask = 507011;

struct RootInfo {
  char name[sizeof(MeetingName)];
  unsigned char rest[4108 - sizeof(MeetingName)];  // filled, so that lost bytes are found out
};
static_assert(sizeof(RootInfo) == 4108);
unsigned char filler(size_t i) { return static_cast<unsigned char>(i * 7 + 3); }

struct Item {  // HcclSendRecvItem
  int kind;
  void* memory;
  uint64_t count;
  int type;
  uint32_t peer;
};

struct Comm {
  Communicator of;
  std::atomic<int> queued{0};           // and not done
  std::atomic<bool> connecting{false};  // a call waits for the other ranks
  bool is_connected = false;            // guarded by `calls`
  std::mutex calls;
};

std::mutex mutex;
std::map<void*, std::shared_ptr<Comm>> communicators;

// As the real library, it says the details in its log.
int refuse(const char* function, int result, const std::string& text) {
  std::fprintf(stderr, "simulated hccl: %s: %s\n", function, text.c_str());
  return result;
}

std::shared_ptr<Comm> find(void* handle) {
  const std::lock_guard lock(mutex);
  const auto found = communicators.find(handle);
  return found == communicators.end() ? nullptr : found->second;
}

// HcclDataType
constexpr uint32_t kTypesOfHccl[] = {kInt8,   kInt16, kInt32,  kFloat16, kFloat32, kInt64,
                                     kUint64, kUint8, kUint16, kUint32,  kFloat64, kBfloat16};

bool reduces(const Operation& operation) {
  return operation.kind == Kind::kAllReduce || operation.kind == Kind::kReduceScatter ||
         operation.kind == Kind::kReduce;
}

// What the pages of the reductions say of Atlas A2.
bool can_reduce_on_a2(uint32_t type, uint32_t reduction) {
  switch (type) {
    case kInt8:
    case kInt32:
    case kInt64:
    case kFloat16:
    case kFloat32:
      return true;
    case kInt16:
    case kBfloat16:
      return reduction != kProduct;
    default:
      return false;
  }
}

std::string check_memory(const Operation& operation, const Meeting& meeting, int device) {
  const Counts elements = counts(operation, meeting);
  const uint64_t size = type_bytes(operation.type);
  const auto check = [&](const void* memory, uint64_t count) -> std::string {
    if (count == 0) return "";
    if (!simulated_ascend_translate(memory, count * size)) return "expected memory of the chip";
    if (simulated_ascend_device_of(memory) != device) return "the memory is of another chip";
    if (reinterpret_cast<uintptr_t>(memory) % size) return "an address is not aligned";
    return "";
  };
  const std::string problem = check(operation.src, elements.src);
  return problem.empty() ? check(operation.dst, elements.dst) : problem;
}

struct Work {
  std::shared_ptr<Comm> comm;
  std::vector<Operation> operations;

  ~Work() { --comm->queued; }
  Meeting& meeting() const { return *comm->of.meeting; }

  // A message has been sent when it was received, whatever fits into a mailbox.
  bool wait_for_receivers() const {
    return meeting().wait_until([&] {
      return std::all_of(operations.begin(), operations.end(), [&](const Operation& each) {
        return each.kind != Kind::kSend || meeting().is_taken(each.root);
      });
    });
  }
  int run() const {
    for (const Operation& each : operations)  // the memory has to live until now
      if (!check_memory(each, meeting(), comm->of.device).empty()) return kFaultyAddress;
    if (simulated::run(operations, meeting()) && wait_for_receivers()) return 0;
    const bool is_late = meeting().trouble() == Meeting::kTimeout;
    meeting().abort();  // the ranks are not together any more
    return is_late ? kTaskTimeout : kFailedTask;
  }
};

// The ranks connect at their first collective, for which the host waits.
int connect(const char* function, Comm& comm) {
  Meeting& meeting = *comm.of.meeting;
  const std::lock_guard lock(comm.calls);
  if (comm.is_connected) return kSuccess;
  comm.connecting = true;
  meeting.limit_waits(environment("HCCL_CONNECT_TIMEOUT", 120));
  const bool done = meeting.barrier();
  comm.connecting = false;
  if (!done) {
    const bool is_late = meeting.trouble() == Meeting::kTimeout;
    meeting.abort();
    return refuse(function, is_late ? kTimeout : kInternal, "the ranks did not connect");
  }
  meeting.limit_waits(environment("HCCL_EXEC_TIMEOUT", 1836));
  comm.is_connected = true;
  return kSuccess;
}

int submit(const char* function, void* handle, std::vector<Operation> operations, void* stream) {
  if (const int error = count_call(function)) return error;
  if (!handle) return refuse(function, kPointer, "the communicator is nullptr");
  const std::shared_ptr<Comm> comm = find(handle);
  if (!comm) return refuse(function, kParameter, "the communicator was destroyed, or is none");
  const Meeting& meeting = *comm->of.meeting;
  if (simulated_ascend_current_device() != comm->of.device)
    return refuse(function, kRuntime, "the chip of the communicator is not current");
  if (meeting.aborted()) return refuse(function, kInternal, "the communicator has failed");
  for (Operation& each : operations) {
    if (each.type >= std::size(kTypesOfHccl))
      return refuse(function, kNotSupported, "the data type is not known");
    each.type = kTypesOfHccl[each.type];
    if (reduces(each) && each.reduction > kMin)
      return refuse(function, kParameter, "the reduction is not known");
    if (reduces(each) && !can_reduce_on_a2(each.type, each.reduction))
      return refuse(function, kNotSupported, "Atlas A2 does not reduce this data type so");
    if (each.root < 0 || each.root >= meeting.size())
      return refuse(function, kParameter, "the root or peer is no rank of the communicator");
    if (each.is_point_to_point() && each.root == meeting.rank())
      return refuse(function, kParameter, "a rank does not send to itself");
    if (each.count == 0) return refuse(function, kParameter, "there is nothing to do");
    if (const std::string problem = check_memory(each, meeting, comm->of.device); !problem.empty())
      return refuse(function, kParameter, problem);
  }
  if (!operations.front().is_point_to_point())
    if (const int result = connect(function, *comm)) return result;
  ++comm->queued;
  const int error = simulated_ascend_queue_abortable(
      stream, [](void* user) { return static_cast<const Work*>(user)->run(); },
      [](void* user) { static_cast<const Work*>(user)->meeting().abort(); },
      [](void* user) { delete static_cast<Work*>(user); }, new Work{comm, std::move(operations)});
  return error ? refuse(function, kRuntime, "the stream is not one of the current chip") : kSuccess;
}

int submit(const char* function, void* handle, const Operation& operation, void* stream) {
  return submit(function, handle, std::vector<Operation>{operation}, stream);
}

// Every rank needs a chip of its own.
bool differ(Meeting& meeting, int device) {
  std::memcpy(meeting.slot(meeting.rank()), &device, sizeof device);
  if (!meeting.barrier()) return false;
  std::vector<int> devices;
  for (int rank = 0; rank < meeting.size(); ++rank) {
    std::memcpy(&device, meeting.slot(rank), sizeof device);
    devices.push_back(device);
  }
  std::sort(devices.begin(), devices.end());
  const bool all_differ = std::adjacent_find(devices.begin(), devices.end()) == devices.end();
  return meeting.barrier() && all_differ;
}

}  // namespace

EXPORT const char* HcclGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kParameter:
      return "parameter error";
    case kPointer:
      return "empty pointer";
    case kMemory:
      return "memory error";
    case kInternal:
      return "internal error";
    case kNotSupported:
      return "not support feature";
    case kTimeout:
      return "timeout";
    case kRuntime:
      return "call runtime api fail";
    case kAgain:
      return "try again";
    default:
      return "unknown error";
  }
}

EXPORT int HcclGetRootInfo(RootInfo* out) {
  if (const int error = count_call(__func__)) return error;
  if (!out) return refuse(__func__, kPointer, "the root info is nullptr");
  if (simulated_ascend_current_device() < 0)
    return refuse(__func__, kRuntime, "no chip is current");
  MeetingName name;
  if (!Meeting::create(&name)) return refuse(__func__, kInternal, "no shared memory");
  std::memcpy(out->name, &name, sizeof name);
  for (size_t i = 0; i < sizeof out->rest; ++i) out->rest[i] = filler(i);
  return kSuccess;
}

EXPORT int HcclCommInitRootInfo(uint32_t size, const RootInfo* info, uint32_t rank, void** out) {
  if (const int error = count_call(__func__)) return error;
  if (!info || !out) return refuse(__func__, kPointer, "a parameter is nullptr");
  const int device = simulated_ascend_current_device();
  if (device < 0) return refuse(__func__, kRuntime, "no chip is current");
  for (size_t i = 0; i < sizeof info->rest; ++i)
    if (info->rest[i] != filler(i)) return refuse(__func__, kParameter, "not a root info");
  MeetingName name;
  std::memcpy(&name, info->name, sizeof name);
  const std::shared_ptr<Meeting> meeting =
      Meeting::join(name, static_cast<int>(rank), static_cast<int>(size),
                    environment("HCCL_CONNECT_TIMEOUT", 120));
  if (!meeting) return refuse(__func__, kTimeout, "not every rank came, or one of them came twice");
  if (!differ(*meeting, device))
    return refuse(__func__, kParameter, "expected every rank on a chip of its own");
  meeting->limit_waits(environment("HCCL_EXEC_TIMEOUT", 1836));
  const auto comm = std::make_shared<Comm>();
  comm->of = {meeting, device};
  const std::lock_guard lock(mutex);
  *out = comm.get();
  communicators[comm.get()] = comm;
  return kSuccess;
}

// What waits for the other ranks to connect ends; a communicator that has other work is refused.
EXPORT int HcclCommDestroy(void* handle) {
  if (const int error = count_call(__func__)) return error;
  const std::lock_guard lock(mutex);
  const auto found = communicators.find(handle);
  if (found == communicators.end())
    return refuse(__func__, kParameter, "the communicator was destroyed, or is none");
  Comm& comm = *found->second;
  if (comm.queued > 0) return kAgain;
  if (comm.connecting) comm.of.meeting->abort();
  communicators.erase(found);
  return kSuccess;
}

// Of what the real library tells here, errors of the network, a test may want one: "HcclAsyncError:1:21".
EXPORT int HcclGetCommAsyncError(void* handle, int* out) {
  if (const int error = count_call(__func__)) return error;
  if (!out) return refuse(__func__, kPointer, "the result is nullptr");
  if (!find(handle))
    return refuse(__func__, kParameter, "the communicator was destroyed, or is none");
  *out = count_call("HcclAsyncError");
  return kSuccess;
}

EXPORT int HcclGetRankSize(void* handle, uint32_t* out) {
  const std::shared_ptr<Comm> comm = find(handle);
  if (!comm || !out) return kParameter;
  *out = static_cast<uint32_t>(comm->of.meeting->size());
  return kSuccess;
}

EXPORT int HcclGetRankId(void* handle, uint32_t* out) {
  const std::shared_ptr<Comm> comm = find(handle);
  if (!comm || !out) return kParameter;
  *out = static_cast<uint32_t>(comm->of.meeting->rank());
  return kSuccess;
}

EXPORT int HcclAllReduce(void* src, void* dst, uint64_t count, uint32_t type, uint32_t reduction,
                         void* comm, void* stream) {
  return submit(__func__, comm, {Kind::kAllReduce, src, dst, count, type, reduction, 0}, stream);
}

EXPORT int HcclAllGather(void* src, void* dst, uint64_t count, uint32_t type, void* comm,
                         void* stream) {
  return submit(__func__, comm, {Kind::kAllGather, src, dst, count, type, 0, 0}, stream);
}

EXPORT int HcclReduceScatter(void* src, void* dst, uint64_t count, uint32_t type,
                             uint32_t reduction, void* comm, void* stream) {
  return submit(__func__, comm, {Kind::kReduceScatter, src, dst, count, type, reduction, 0},
                stream);
}

EXPORT int HcclBroadcast(void* memory, uint64_t count, uint32_t type, uint32_t root, void* comm,
                         void* stream) {
  const auto from = static_cast<int>(root);
  return submit(__func__, comm, {Kind::kBroadcast, memory, memory, count, type, 0, from}, stream);
}

EXPORT int HcclReduce(void* src, void* dst, uint64_t count, uint32_t type, uint32_t reduction,
                      uint32_t root, void* comm, void* stream) {
  const auto to = static_cast<int>(root);
  return submit(__func__, comm, {Kind::kReduce, src, dst, count, type, reduction, to}, stream);
}

EXPORT int HcclSend(void* src, uint64_t count, uint32_t type, uint32_t to, void* comm,
                    void* stream) {
  const auto peer = static_cast<int>(to);
  return submit(__func__, comm, {Kind::kSend, src, nullptr, count, type, 0, peer}, stream);
}

EXPORT int HcclRecv(void* dst, uint64_t count, uint32_t type, uint32_t from, void* comm,
                    void* stream) {
  const auto peer = static_cast<int>(from);
  return submit(__func__, comm, {Kind::kReceive, nullptr, dst, count, type, 0, peer}, stream);
}

// The page does not say in which order two messages to the same rank arrive, so that two are refused.
EXPORT int HcclBatchSendRecv(const Item* items, uint32_t count, void* comm, void* stream) {
  if (!items || count == 0) return refuse(__func__, kPointer, "there are no items");
  std::vector<Operation> operations;
  for (const Item* each = items; each != items + count; ++each) {
    if (each->kind != 0 && each->kind != 1)
      return refuse(__func__, kParameter, "the kind of an item is not known");
    const Kind kind = each->kind == 0 ? Kind::kSend : Kind::kReceive;
    const auto peer = static_cast<int>(each->peer);
    for (const Operation& other : operations)
      if (other.kind == kind && other.root == peer)
        return refuse(__func__, kParameter, "two items of one kind are for the same rank");
    operations.push_back({kind, each->memory, each->memory, each->count,
                          static_cast<uint32_t>(each->type), 0, peer});
  }
  return submit(__func__, comm, std::move(operations), stream);
}
