// SPDX-License-Identifier: Apache-2.0
#include "packed_constants.hpp"

#include "conv/packed_constants.hpp"

#include <tenon/services/packed_constants.h>
#include <tenon/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>

namespace tenon::cpu {
namespace {

constexpr uint64_t kAlignment = TENON_PACKED_CONSTANTS_ALIGNMENT;

// Zeroed memory, as packed elements may have gaps, and files hold what they have.
class OwnConstant final : public PackedConstant {
 public:
  static std::shared_ptr<OwnConstant> make(uint64_t bytes) {
    std::unique_ptr<void, Free> memory(std::calloc(1, bytes + kAlignment));
    if (!memory) throw std::bad_alloc();
    return std::make_shared<OwnConstant>(std::move(memory));
  }
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  explicit OwnConstant(std::unique_ptr<void, Free> memory)
      : PackedConstant(aligned(memory.get())), memory_(std::move(memory)) {}
  float* elements() const { return aligned(memory_.get()); }

 private:
  static float* aligned(void* memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    return reinterpret_cast<float*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }
  const std::unique_ptr<void, Free> memory_;
};

// In memory of the giver, who keeps it longer than any program with its source.
class GivenConstant final : public PackedConstant {
 public:
  explicit GivenConstant(const void* data) : PackedConstant(static_cast<const float*>(data)) {}
};

using Key = std::tuple<const void*, uint32_t, const void*, uint32_t, std::string>;

struct Entry {
  uint64_t bytes = 0;
  // Held by executables. An entry that was not given ends with them.
  std::weak_ptr<const PackedConstant> used;
  std::shared_ptr<const PackedConstant> given;  // Until it is withdrawn.
};

struct Store {
  std::mutex mutex;
  std::map<Key, Entry> entries;
};

// Never destroyed: executables may end later than static variables.
Store& store() {
  static auto& all = *new Store;
  return all;
}

tenon_status give(const tenon_packed_constant* given, tenon_err* err) {
  return guarded(err, [&] {
    if (given->struct_size < offsetof(tenon_packed_constant, bytes) + sizeof(uint64_t) ||
        !given->source || !given->form)
      throw Error(TENON_INVALID_ARGUMENT,
                  "packed_constants: expected a source, a form and bytes, got a part of them");
    if (reinterpret_cast<uintptr_t>(given->data) % TENON_PACKED_CONSTANTS_ALIGNMENT != 0)
      throw Error(TENON_INVALID_ARGUMENT,
                  "packed_constants: expected bytes aligned to 64, got others; copy them");
    const std::lock_guard lock(store().mutex);
    Entry& entry = store().entries[{given->source, given->source_version, given->second,
                                    given->second_version, given->form}];
    entry = {given->bytes, {}, std::make_shared<GivenConstant>(given->data)};
  });
}

void withdraw(const void* begin, uint64_t bytes) {
  const auto* first = static_cast<const char*>(begin);
  const std::lock_guard lock(store().mutex);
  auto& entries = store().entries;
  // Keys are ordered by the address of the source.
  const auto from = entries.lower_bound({first, 0, nullptr, 0, ""});
  const auto to = entries.lower_bound({first + bytes, 0, nullptr, 0, ""});
  entries.erase(from, to);
}

void each(void (*visit)(void* user, const tenon_packed_constant*), void* user) {
  constexpr uint32_t kGiven = TENON_PACKED_CONSTANT_GIVEN;
  const std::lock_guard lock(store().mutex);
  for (const auto& [key, entry] : store().entries) {
    const std::shared_ptr<const PackedConstant> used = entry.used.lock();
    if (!used) continue;
    const auto& [source, source_version, second, second_version, form] = key;
    const tenon_packed_constant told = {.struct_size = sizeof told,
                                        .source_version = source_version,
                                        .source = source,
                                        .second = second,
                                        .second_version = second_version,
                                        .flags = used == entry.given ? kGiven : 0u,
                                        .form = form.c_str(),
                                        .data = used->data(),
                                        .bytes = entry.bytes};
    visit(user, &told);
  }
}

constexpr tenon_packed_constants_api kApi = {.struct_size = sizeof(tenon_packed_constants_api),
                                             .version = TENON_PACKED_CONSTANTS_VERSION,
                                             .give = give,
                                             .withdraw = withdraw,
                                             .each = each};

}  // namespace

std::shared_ptr<const PackedConstant> packed_constant(const PackedSource& source,
                                                      const std::string& form, int64_t elements,
                                                      const std::function<void(float*)>& pack) {
  const uint64_t bytes = static_cast<uint64_t>(elements) * sizeof(float);
  const std::lock_guard lock(store().mutex);
  std::erase_if(store().entries, [](const auto& known) {
    return !known.second.given && known.second.used.expired();
  });
  Entry& entry =
      store()
          .entries[{source.weight, source.weight_version, source.bias, source.bias_version, form}];
  if (entry.given && entry.bytes == bytes) {
    entry.used = entry.given;
    return entry.given;
  }
  if (auto known = entry.used.lock(); known && entry.bytes == bytes) return known;
  auto made = OwnConstant::make(bytes);
  pack(made->elements());
  entry = {bytes, made, nullptr};
  return made;
}

std::string sum_of(const float* elements, int64_t count) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < count; i += 2) {
    uint64_t bits = 0;
    std::memcpy(&bits, elements + i, static_cast<size_t>(std::min<int64_t>(2, count - i)) * 4);
    sum = (sum ^ bits) * 0x100000001b3u;
    sum ^= sum >> 29;
  }
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[sum >> shift & 15];
  return text;
}

tenon_status offer_packed_constants(const tenon_host* host, tenon_err* err) {
  return host->service_register(TENON_PACKED_CONSTANTS_SERVICE, TENON_PACKED_CONSTANTS_VERSION,
                                &kApi, err);
}

}  // namespace tenon::cpu
