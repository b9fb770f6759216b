// SPDX-License-Identifier: Apache-2.0
// Executors: what runs a planned call once, or again where it was made repeatable. By the pages aclSetAclOpExecutorRepeatable,
// aclSetTensorAddr and aclDestroyAclOpExecutor of hicann/opbase. Stricter than those: an executor that runs again stays on
// its thread, and in the mode of determinism in which it was planned; it is not run on a stream that is captured; it is
// not ended while its work is under way.
#include "executor.hpp"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "../failures.hpp"
#include "device_memory.hpp"

using simulated::aclnn::View;

struct aclOpExecutor {
  const char* function;
  std::vector<const aclTensor*> tensors;
  std::vector<View> views;
  std::function<void(std::vector<View>&)> work;
  const std::thread::id thread = std::this_thread::get_id();
  const int64_t determinism = simulated_ascend_determinism();
  bool is_repeatable = false;
  std::map<size_t, const aclTensor*> numbered;  // by aclSetTensorAddr
  std::atomic<int> under_way{0};
};

namespace simulated::aclnn {
namespace {

constexpr int kInner = 561000, kInnerNullPointer = 561103, kFaultyAddress = 507015;

std::mutex mutex;
std::set<const aclOpExecutor*> executors;
thread_local const aclOpExecutor* planned_last = nullptr;

bool is_executor(const aclOpExecutor* executor) {
  const std::lock_guard lock(mutex);
  return executors.count(executor) != 0;
}

void forget(const aclOpExecutor* executor) {
  const std::lock_guard lock(mutex);
  executors.erase(executor);
}

// One run, with the addresses that the tensors had when it was queued.
struct Run {
  std::shared_ptr<aclOpExecutor> executor;
  std::vector<View> views;

  int operator()() {
    for (View& view : views)
      if (!view.open())
        return refuse(executor->function, kFaultyAddress, "an address is not of the chip");
    executor->work(views);
    return 0;
  }
  ~Run() { --executor->under_way; }
};

// These copy numbers of the host to the chip inside.
bool copies_inside(const aclOpExecutor& executor) {
  if (!std::strncmp(executor.function, "aclnnAvgPool2d", 14)) return true;
  return !std::strcmp(executor.function, "aclnnInplaceCopy") &&
         executor.tensors[0]->address == executor.tensors[1]->address;
}

// The numbers of the tensors that are parameters have to be in the order of the parameters.
bool has_numbers_in_order(const aclOpExecutor& executor) {
  std::map<const aclTensor*, size_t> numbers;
  for (const auto& [number, tensor] : executor.numbered)
    if (!numbers.emplace(tensor, number).second) return false;
  size_t next = 0;
  for (const aclTensor* tensor : executor.tensors) {
    const auto found = numbers.find(tensor);
    if (found == numbers.end()) continue;
    if (found->second < next) return false;
    next = found->second + 1;
  }
  return true;
}

int check_repeated(const aclOpExecutor& executor, void* stream) {
  const char* const function = executor.function;
  if (executor.thread != std::this_thread::get_id())
    return refuse(function, kInvalid, "the executor was planned on another thread");
  if (executor.determinism != simulated_ascend_determinism())
    return refuse(function, kInvalid, "the executor was planned in another mode of determinism");
  if (simulated_ascend_is_captured(stream))
    return refuse(function, kInvalid, "a repeatable executor on a stream that is captured");
  if (!has_numbers_in_order(executor))
    return refuse(function, kInvalid, "addresses were set by other numbers than the parameters'");
  for (const aclTensor* tensor : executor.tensors)
    if (!is_alive(tensor))
      return refuse(function, kInvalid, "a tensor of the executor was destroyed");
  return 0;
}

}  // namespace

aclOpExecutor* make_executor(const char* function, std::vector<const aclTensor*> tensors,
                             std::vector<View> views,
                             std::function<void(std::vector<View>&)> work) {
  auto* const made =
      new aclOpExecutor{function, std::move(tensors), std::move(views), std::move(work)};
  const std::lock_guard lock(mutex);
  executors.insert(made);
  planned_last = made;
  return made;
}

int execute(const char* function, void* workspace, uint64_t bytes, aclOpExecutor* executor,
            void* stream) {
  if (const int error = count_call((std::string("run ") + function).c_str())) return error;
  if (!is_executor(executor))
    return refuse(function, kInvalid, "the executor was used before, or is none");
  if (std::strcmp(executor->function, function) != 0)
    return refuse(function, kInvalid, "the executor is that of another function");
  if (bytes < kWorkspace || !simulated_ascend_translate(workspace, bytes))
    return refuse(function, kInvalid, "the workspace is not memory of the chip, or too small");
  if (executor->is_repeatable)
    if (const int error = check_repeated(*executor, stream)) return error;
  auto* run = new Run{nullptr, executor->views};
  if (!executor->is_repeatable) {
    forget(executor);
    run->executor = std::shared_ptr<aclOpExecutor>(executor);
  } else {
    run->executor = std::shared_ptr<aclOpExecutor>(executor, [](aclOpExecutor*) {});
    for (size_t i = 0; i < run->views.size(); ++i)
      run->views[i].of.address = executor->tensors[i]->address;
  }
  ++executor->under_way;
  return simulated_ascend_queue(
             stream, [](void* user) { return (*static_cast<Run*>(user))(); },
             [](void* user) { delete static_cast<Run*>(user); }, run)
             ? kRuntime
             : 0;
}

}  // namespace simulated::aclnn

using namespace simulated::aclnn;

ACLNN_EXPORT int aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  if (const int error = simulated::count_call(__func__)) return error;
  if (!executor) return refuse(__func__, kInnerNullPointer, "the executor is nullptr");
  if (!is_executor(executor) || executor != planned_last)
    return refuse(__func__, kInner, "expected the executor that this thread planned last");
  planned_last = nullptr;
  if (copies_inside(*executor)) return kInner;
  executor->is_repeatable = true;
  return 0;
}

ACLNN_EXPORT int aclSetTensorAddr(aclOpExecutor* executor, size_t index, aclTensor* tensor,
                                  void* address) {
  if (const int error = simulated::count_call(__func__)) return error;
  if (!executor || !tensor) return refuse(__func__, kInnerNullPointer, "a parameter is nullptr");
  if (!is_executor(executor) || !executor->is_repeatable)
    return refuse(__func__, kInvalid, "expected an executor that was made repeatable");
  if (!is_alive(tensor)) return refuse(__func__, kInvalid, "the tensor was destroyed");
  if (reinterpret_cast<uintptr_t>(address) % 32 != 0)
    return refuse(__func__, kInvalid, "expected an address that is a multiple of 32");
  if (executor->numbered.emplace(index, tensor).first->second != tensor)
    return refuse(__func__, kInvalid, "the index was that of another tensor");
  tensor->address = address;
  return 0;
}

ACLNN_EXPORT int aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  if (const int error = simulated::count_call(__func__)) return error;
  if (!executor) return refuse(__func__, kInnerNullPointer, "the executor is nullptr");
  if (!is_executor(executor) || !executor->is_repeatable)
    return refuse(__func__, kInvalid, "expected an executor that was made repeatable");
  if (executor->under_way) return refuse(__func__, kInvalid, "the executor's work is under way");
  forget(executor);
  delete executor;
  return 0;
}
