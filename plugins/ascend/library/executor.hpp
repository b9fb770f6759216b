// SPDX-License-Identifier: Apache-2.0
// The first phase of a call of aclnn makes an aclOpExecutor, which the second phase runs and ends. One that was made
// repeatable runs again, with other addresses: later calls that differ in nothing else need no first phase.
//
// Note [Executors that run again]
// What CANN says (hicann/opbase aa3cd74b, docs/en/api/nnopbase/aclnn): an executor is made repeatable directly
// after its first phase. Functions that copy between host and device or from device to device inside cannot be, and
// neither those that copy a tensor onto its own address. Addresses are set tensor by tensor, by the tensor's number
// among the parameters (the tensors of lists count, absent ones too), and have to be multiples of 32. The caller ends
// the executor. Until then the parameters that it was made of have to live. Nothing is said about threads, so that
// an executor runs on its own alone; nor about recordings of streams, where none is used again. Nothing is said, either,
// about how soon one may be ended: here its work has passed.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "objects.hpp"

namespace ascend {

// Everything that an executor depends on but the addresses of tensors, as bytes.
class ExecutorKey {
 public:
  explicit ExecutorKey(const void* function);

  void add(const Tensor& tensor);
  void add(const TensorList& list);
  void add(const Scalar& scalar);
  void add(const IntArray& array);
  void add(const BoolArray& array);
  void add(const char* text);
  void add(std::nullptr_t) { add(false); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(T value) { append(&value, sizeof value); }

  const std::string& bytes() const { return bytes_; }
  std::span<void* const> addresses() const { return addresses_; }  // those of Objects::tensors()
  bool has_fitting_addresses() const;

 private:
  void append(const void* data, size_t bytes) {
    bytes_.append(static_cast<const char*>(data), bytes);
  }
  void add(const std::vector<int64_t>& numbers);

  std::string bytes_;
  std::vector<void*> addresses_;
};

struct Executor {
  Objects objects;  // live longer than `owner`
  aclOpExecutor* handle = nullptr;
  uint64_t workspace_bytes = 0;
  struct End {
    void operator()(aclOpExecutor* executor) const { acl.aclDestroyAclOpExecutor(executor); }
  };
  std::unique_ptr<aclOpExecutor, End> owner;  // of one that is repeatable; CANN ends the others
};

// The executors of one stream that run again, at most as many as TENON_ASCEND_EXECUTORS says.
class Executors {
 public:
  struct Entry {
    std::string key;
    Executor executor;
    bool is_taken = true;
  };

  ~Executors() { clear(); }

  // The entry is the caller's until it is given back; nullptr: there is none, or another call has it.
  Entry* take(const std::string& key);
  // Whether one more may be kept. The oldest make room, and end when `stream` has passed them.
  bool has_room(Stream stream);
  Entry* keep(const std::string& key, Executor executor);  // taken
  void give_back(Entry* entry);
  void discard(Entry* entry);  // its last run failed
  void clear();                // with nothing under way

 private:
  void end_retired();

  std::mutex mutex_;
  std::list<Entry> entries_;  // the one that was taken last comes first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  std::list<Entry> retired_;  // under way until retired_after_ has passed
  Event retired_after_ = nullptr;
  std::list<Entry> discarded_;
};

// TENON_ASCEND_EXECUTORS; 0 where it is not set, or this version of CANN lacks what it needs.
size_t executor_capacity();

}  // namespace ascend
