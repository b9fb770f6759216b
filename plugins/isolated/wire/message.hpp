// SPDX-License-Identifier: Apache-2.0
// Messages in shared memory: values one after the other, each at a multiple of its own alignment. A
// reader checks everything: a faulty plugin may have overwritten the memory.
#pragma once

#include <tenon/abi.h>

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace tenon::isolated {

class Writer {
 public:
  Writer(unsigned char* memory, uint64_t capacity) : memory_(memory), capacity_(capacity) {}

  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (void* place = reserve(sizeof value, alignof(T))) std::memcpy(place, &value, sizeof value);
  }
  template <class T>
  void put_array(const T* values, uint64_t count) {
    void* place = count <= capacity_ ? reserve(count * sizeof(T), alignof(T)) : fail();
    if (place && count > 0) std::memcpy(place, values, count * sizeof(T));
  }
  void put_text(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    put_array(text.data(), text.size());
  }

  // False: something did not fit; what was written is of no use.
  bool fits() const { return fits_; }
  uint32_t bytes() const { return static_cast<uint32_t>(used_); }

 private:
  void* fail() {
    fits_ = false;
    return nullptr;
  }
  void* reserve(uint64_t bytes, uint64_t align) {
    const uint64_t begin = (used_ + align - 1) & ~(align - 1);
    if (!fits_ || begin > capacity_ || bytes > capacity_ - begin) return fail();
    used_ = begin + bytes;
    return memory_ + begin;
  }

  unsigned char* memory_;
  uint64_t capacity_;
  uint64_t used_ = 0;
  bool fits_ = true;
};

class Reader {
 public:
  Reader(const unsigned char* memory, uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  // A value of zeros once the message has ended.
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (const void* place = take(sizeof value, alignof(T)))
      std::memcpy(&value, place, sizeof value);
    return value;
  }
  // In place; NULL if there are not so many.
  template <class T>
  const T* get_array(uint64_t count) {
    return static_cast<const T*>(count <= bytes_ ? take(count * sizeof(T), alignof(T)) : fail());
  }
  std::string_view get_text() {
    const auto size = get<uint64_t>();
    const char* text = get_array<char>(size);
    return text ? std::string_view(text, size) : std::string_view();
  }

  bool ok() const { return ok_; }

 private:
  const void* fail() {
    ok_ = false;
    return nullptr;
  }
  const void* take(uint64_t bytes, uint64_t align) {
    const uint64_t begin = (at_ + align - 1) & ~(align - 1);
    if (!ok_ || begin > bytes_ || bytes > bytes_ - begin) return fail();
    at_ = begin + bytes;
    return memory_ + begin;
  }

  const unsigned char* memory_;
  uint64_t bytes_;
  uint64_t at_ = 0;
  bool ok_ = true;
};

// A tensor argument: this, then shape and, unless it is contiguous, strides; of a host scalar, its
// value.
struct TensorHead {
  uint64_t data;  // an address of the isolated process
  uint64_t byte_offset;
  uint16_t flags;  // TENON_TENSOR_*
  uint8_t dtype;
  uint8_t ndim;
  uint32_t reserved;
};
static_assert(sizeof(TensorHead) == 24);
struct alignas(16) ScalarBytes {
  unsigned char bytes[16];
};

// One kernel of the plugin's device.
struct KernelRow {
  uint64_t schema_hash;
  uint64_t dtype_mask;
  uint32_t op;      // the operator's id in the isolated process
  uint32_t traits;  // TENON_KERNEL_*
  int32_t score;
  uint32_t flags;  // ROW_*
};
enum : uint32_t {
  kRowMayDecline = 1,  // it has a can_run
  kRowCompiled = 2     // for every device that compiles source: tried after all others
};

// Random numbers continue where the program's generator stands.
struct RandomState {
  uint64_t seed;
  uint64_t offset;
};

}  // namespace tenon::isolated
