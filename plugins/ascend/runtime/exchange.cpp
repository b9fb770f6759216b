// SPDX-License-Identifier: Apache-2.0
// The group `exchange`, over the same communicators.
#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "collective.hpp"

namespace ascend {
namespace {

using hccl::Item;
using hccl::library;
using hccl::Result;

tenon_status check_transfers(tenon_comm comm, const tenon_transfer* transfers, uint32_t count,
                             int32_t dtype, tenon_err* err) {
  if (host->dtype_size(dtype) == 0)
    return tenon::fail_format(err, TENON_INVALID_ARGUMENT,
                              "ascend: transfer: expected a dtype, got %d", dtype);
  for (uint32_t i = 0; i < count; ++i) {
    const tenon_transfer& each = transfers[i];
    if (each.kind > TENON_TRANSFER_RECV || each.peer < 0 || each.peer >= comm->size)
      return tenon::fail_format(
          err, TENON_INVALID_ARGUMENT,
          "ascend: transfer %u: expected kind 0 or 1 and a rank below %d, got kind %u and rank %d",
          i, comm->size, each.kind, each.peer);
  }
  return TENON_OK;
}

// HcclBatchSendRecv promises no order of several messages between the same two ranks. So the n-th message from
// one rank to another is in the n-th batch of both, and batches follow one another on the stream.
struct Batches {
  std::vector<std::vector<Item>> items;
  std::vector<const tenon_transfer*> sent_to_self, received_from_self;

  Batches(tenon_comm comm, const tenon_transfer* transfers, uint32_t count, uint64_t size) {
    std::map<std::pair<uint32_t, int32_t>, size_t> messages;  // of a kind with a peer
    for (const tenon_transfer* each = transfers; each != transfers + count; ++each) {
      if (each->count == 0) continue;
      const bool is_send = each->kind == TENON_TRANSFER_SEND;
      if (each->peer == comm->rank) {
        (is_send ? sent_to_self : received_from_self).push_back(each);
        continue;
      }
      const size_t number = messages[{each->kind, each->peer}]++;
      if (number >= items.size()) items.resize(number + 1);
      items[number].push_back({is_send ? 0 : 1, each->memory, each->count * size, hccl::kUint8,
                               static_cast<uint32_t>(each->peer)});
    }
  }
};

tenon_status copy_to_self(const Batches& batches, uint64_t size, Stream stream, tenon_err* err) {
  for (size_t i = 0; i < batches.sent_to_self.size(); ++i) {
    const uint64_t bytes = batches.sent_to_self[i]->count * size;
    if (const int error =
            acl.aclrtMemcpyAsync(batches.received_from_self[i]->memory, bytes,
                                 batches.sent_to_self[i]->memory, bytes, kDeviceToDevice, stream))
      return fail_acl(err, "aclrtMemcpyAsync", error);
  }
  return TENON_OK;
}

bool match(const Batches& batches) {
  return std::equal(batches.sent_to_self.begin(), batches.sent_to_self.end(),
                    batches.received_from_self.begin(), batches.received_from_self.end(),
                    [](const tenon_transfer* sent, const tenon_transfer* received) {
                      return sent->count == received->count;
                    });
}

tenon_status transfer(tenon_device device, tenon_comm comm, const tenon_transfer* transfers,
                      uint32_t count, int32_t dtype, tenon_stream stream, tenon_err* err) try {
  if (const tenon_status status = check_transfers(comm, transfers, count, dtype, err))
    return status;
  const uint64_t size = host->dtype_size(dtype);
  Batches batches(comm, transfers, count, size);
  if (!match(batches))
    return tenon::fail_format(
        err, TENON_INVALID_ARGUMENT,
        "ascend: transfer: rank %d does not receive from itself what it sends", comm->rank);
  tenon_status copied = TENON_OK;
  const tenon_status status = queue(device, comm, "transfer", stream, err, [&](Stream on) {
    copied = copy_to_self(batches, size, on, err);
    Result result = 0;
    for (std::vector<Item>& batch : batches.items)
      if (!result && !batch.empty())
        result = library.batch(batch.data(), static_cast<uint32_t>(batch.size()), comm->handle, on);
    return result;
  });
  return status ? status : copied;
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

// Other ranks than the root hand over their source in place of a result, which they may not have.
tenon_status reduce_to_root(tenon_device device, tenon_comm comm, const void* src, void* dst,
                            uint64_t count, int32_t dtype, int32_t reduction, int32_t root,
                            tenon_stream stream, tenon_err* err) {
  if (const tenon_status status = check_rank(comm, "reduce", root, err)) return status;
  void* const result = comm->rank == root ? dst : nullptr;
  return reduce(device, comm, "reduce", result, count, dtype, reduction, stream, err,
                [&](const Reducible& how, uint64_t parts, Stream on) {
                  void* const from = const_cast<void*>(src);
                  return library.reduce(from, result ? result : from, parts, how.type,
                                        how.reduction, static_cast<uint32_t>(root), comm->handle,
                                        on);
                });
}

// All ranks' `mine`, in the order of ranks, on the host.
tenon_status gather(tenon_device device, tenon_comm comm, const void* mine, uint64_t bytes,
                    std::vector<char>* all, tenon_err* err) {
  all->resize(bytes * static_cast<uint64_t>(comm->size));
  if (const tenon_status status = make_current(device, err)) return status;
  void* memory = nullptr;
  if (const int error = acl.aclrtMalloc(&memory, bytes + all->size(), kHugeFirst))
    return fail_acl(err, "aclrtMalloc", error);
  char* const gathered = static_cast<char*>(memory) + bytes;
  tenon_status status = TENON_OK;
  int error = acl.aclrtMemcpy(memory, bytes, mine, bytes, kHostToDevice);
  if (error) status = fail_acl(err, "aclrtMemcpy", error);
  if (!status)
    status = queue(device, comm, "comm_split", nullptr, err, [&](Stream on) {
      return library.all_gather(memory, gathered, bytes, hccl::kUint8, comm->handle, on);
    });
  if (!status) {
    error = acl.aclrtMemcpy(all->data(), all->size(), gathered, all->size(), kDeviceToHost);
    if (error) status = fail_acl(err, "aclrtMemcpy", error);
  }
  acl.aclrtFree(memory);
  return status;
}

struct Wish {
  int32_t color, key;
};
struct Offer {
  hccl::RootInfo info;
  uint32_t is_made;
};

// HcclCreateSubCommConfig makes no parts of parts. So the ranks tell one another what they want, and the first of
// each part makes the root info for the others, which travels through the communicator itself.
tenon_status comm_split(tenon_device device, tenon_comm comm, int32_t color, int32_t key,
                        tenon_comm* out, tenon_err* err) try {
  const Wish wish = {color, key};
  std::vector<char> told;
  if (const tenon_status status = gather(device, comm, &wish, sizeof wish, &told, err))
    return status;
  std::vector<std::pair<int32_t, int32_t>> members;  // key, rank
  for (int32_t rank = 0; rank < comm->size; ++rank) {
    Wish other;
    std::memcpy(&other, told.data() + static_cast<size_t>(rank) * sizeof other, sizeof other);
    if (color >= 0 && other.color == color) members.emplace_back(other.key, rank);
  }
  std::sort(members.begin(), members.end());
  Offer offer = {};
  tenon_status made = TENON_OK;
  if (!members.empty() && members[0].second == comm->rank) {
    made = make_root_info(device, &offer.info, "comm_split", err);
    offer.is_made = made == TENON_OK;
  }
  // After a failure as well, as the others wait.
  const tenon_status status = gather(device, comm, &offer, sizeof offer, &told, err);
  if (made || status) return made ? made : status;
  if (members.empty()) {
    *out = nullptr;
    return TENON_OK;
  }
  std::memcpy(&offer, told.data() + static_cast<size_t>(members[0].second) * sizeof offer,
              sizeof offer);
  if (!offer.is_made)
    return tenon::fail_format(err, TENON_INTERNAL,
                              "ascend: comm_split: rank %d could not make the part's root info",
                              members[0].second);
  const auto place = std::find(members.begin(), members.end(), std::pair(key, comm->rank));
  return join(device, offer.info, static_cast<int32_t>(place - members.begin()),
              static_cast<int32_t>(members.size()), "comm_split", out, err);
} catch (const std::bad_alloc&) {
  return tenon::fail_host_memory(err);
}

tenon_status comm_error(tenon_device device, tenon_comm comm, tenon_err* err) {
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, "comm_error");
  if (!library.async_error) return TENON_OK;
  if (const tenon_status status = make_current(device, err)) return status;
  const std::unique_lock lock(comm->mutex, std::try_to_lock);
  if (!lock) return TENON_OK;  // a call is under way, which will say what is wrong
  if (comm->aborted.load(std::memory_order_acquire)) return fail_aborted(err, "comm_error");
  Result failure = 0;
  const Result result = library.async_error(comm->handle, &failure);
  return !result && failure ? fail_hccl(err, failure, "comm_error") : TENON_OK;
}

}  // namespace

const tenon_exchange_api kExchange = {
    .struct_size = sizeof(tenon_exchange_api),
    .reserved = 0,
    .transfer = transfer,
    .reduce = reduce_to_root,
    .comm_split = comm_split,
    .comm_error = comm_error,
};

}  // namespace ascend
