// SPDX-License-Identifier: Apache-2.0
// text_take, text_equal, text_find, text_split, text_hash and text_lookup.
#include "text/strings.hpp"

#include <tenon/signatures/text.h>

#include <bit>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

int64_t mean_bytes(const Strings& strings) {
  return strings.total() / std::max<int64_t>(strings.count, 1) + 4;
}

// -- take, equal -------------------------------------------------------------------------------------------

tenon_status text_take(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                       const tenon_tensor* indices, tenon_err* err) {
  Strings strings;
  const int64_t* taken;
  tenon_status status = read_strings(ctx, "text_take", text, offsets, &strings, err);
  if (status == TENON_OK)
    status = read_indices(ctx, "text_take", indices, strings.count, &taken, err);
  if (status != TENON_OK) return status;
  return make_strings(
      ctx, indices->numel, mean_bytes(strings),
      [&](int64_t i) { return static_cast<int64_t>(strings[taken[i]].size()); },
      [&](int64_t i, uint8_t* to) {
        const std::string_view each = strings[taken[i]];
        std::copy(each.begin(), each.end(), to);
      },
      err);
}
TENON_BOX_text_take(text_take_boxed, text_take);

tenon_status text_equal(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                        const tenon_tensor* other, const tenon_tensor* other_offsets,
                        tenon_tensor* out, tenon_err* err) {
  Strings x, y;
  tenon_status status = read_strings(ctx, "text_equal", text, offsets, &x, err);
  if (status == TENON_OK) status = read_strings(ctx, "text_equal", other, other_offsets, &y, err);
  if (status != TENON_OK) return status;
  parallel(out->numel, mean_bytes(x), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      data_of<bool>(out)[i] = x[x.count == 1 ? 0 : i] == y[y.count == 1 ? 0 : i];
  });
  return TENON_OK;
}
TENON_BOX_text_equal(text_equal_boxed, text_equal);

// -- find --------------------------------------------------------------------------------------------------

// The byte at which `pattern` is; npos if it is not there.
size_t byte_of(std::string_view text, std::string_view pattern, std::string_view where) {
  if (where == "anywhere") return text.find(pattern);
  if (where == "start") return text.starts_with(pattern) ? 0 : text.npos;
  return text.ends_with(pattern) ? text.size() - pattern.size() : text.npos;
}

tenon_status text_find(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                       const char* pattern, uint64_t pattern_bytes, const char* where,
                       uint64_t where_bytes, tenon_tensor* out, tenon_err* err) {
  const std::string_view wanted(pattern, pattern_bytes), place(where, where_bytes);
  if (place != "anywhere" && place != "start" && place != "end")
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[text_find] expected where 'anywhere', 'start' or 'end', got '%.*s'",
                       static_cast<int>(place.size()), place.data());
  Strings strings;
  tenon_status status = read_strings(ctx, "text_find", text, offsets, &strings, err);
  if (status == TENON_OK) status = expect_utf8("text_find", strings, err);
  if (status != TENON_OK) return status;
  parallel(strings.count, mean_bytes(strings), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::string_view each = strings[i];
      const size_t at = byte_of(each, wanted, place);
      int64_t characters = at == each.npos ? -1 : 0;
      for (size_t k = 0; at != each.npos && k < at; ++k)
        characters += !continues(static_cast<uint8_t>(each[k]));
      data_of<int64_t>(out)[i] = characters;
    }
  });
  return TENON_OK;
}
TENON_BOX_text_find(text_find_boxed, text_find);

// -- split -------------------------------------------------------------------------------------------------

// What Python's str.isspace() is true of.
bool is_space(uint32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
  if (code >= 0x2000 && code <= 0x200a) return true;
  constexpr uint32_t kOthers[] = {0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  return std::ranges::find(kOthers, code) != std::end(kOthers);
}

// f(part) for the parts of a text between runs of white space; after `limit` of them one with all the rest.
template <class F>
void split_at_spaces(std::string_view text, int64_t limit, F&& f) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const auto count = static_cast<int64_t>(text.size());
  int64_t begin = -1, at = 0;  // of the part
  for (int64_t parts = 0; at < count;) {
    const Character each = decode(bytes + at, count - at);
    if (is_space(each.code)) {
      if (begin >= 0) {
        f(text.substr(static_cast<size_t>(begin), static_cast<size_t>(at - begin)));
        begin = -1;
        ++parts;
      }
    } else if (begin < 0) {
      begin = at;
      if (parts == limit) break;
    }
    at += each.bytes;
  }
  if (begin >= 0) f(text.substr(static_cast<size_t>(begin)));
}

template <class F>
void split_at(std::string_view text, std::string_view separator, int64_t limit, F&& f) {
  if (separator.empty()) return split_at_spaces(text, limit, f);
  size_t begin = 0;
  for (int64_t parts = 0; parts != limit; ++parts) {
    const size_t at = text.find(separator, begin);
    if (at == text.npos) break;
    f(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  f(text.substr(begin));
}

tenon_status text_split(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                        const char* separator, uint64_t separator_bytes, int64_t limit,
                        tenon_err* err) {
  const std::string_view between(separator, separator_bytes);
  Strings strings;
  tenon_status status = read_strings(ctx, "text_split", text, offsets, &strings, err);
  if (status == TENON_OK) status = expect_utf8("text_split", strings, err);
  tenon_tensor *counts, *parts_text, *parts_offsets;
  if (status == TENON_OK)
    status = host->output_alloc(ctx, 2, TENON_DTYPE_I64, 1, &strings.count, &counts, err);
  if (status != TENON_OK) return status;
  int64_t total = 0, bytes = 0;
  for (int64_t i = 0; i < strings.count; ++i) {
    int64_t parts = 0;
    split_at(strings[i], between, limit, [&](std::string_view part) {
      ++parts;
      bytes += static_cast<int64_t>(part.size());
    });
    data_of<int64_t>(counts)[i] = parts;
    total += parts;
  }
  const int64_t ends = total + 1;
  status = host->output_alloc(ctx, 0, TENON_DTYPE_U8, 1, &bytes, &parts_text, err);
  if (status == TENON_OK)
    status = host->output_alloc(ctx, 1, TENON_DTYPE_I64, 1, &ends, &parts_offsets, err);
  if (status != TENON_OK) return status;
  auto* to = data_of<uint8_t>(parts_text);
  auto* end_of = data_of<int64_t>(parts_offsets);
  *end_of = 0;
  for (int64_t i = 0; i < strings.count; ++i)
    split_at(strings[i], between, limit, [&](std::string_view part) {
      to = std::copy(part.begin(), part.end(), to);
      end_of[1] = end_of[0] + static_cast<int64_t>(part.size());
      ++end_of;
    });
  return TENON_OK;
}
TENON_BOX_text_split(text_split_boxed, text_split);

// -- hash, lookup ------------------------------------------------------------------------------------------

constexpr uint64_t kPrime1 = 0x9e3779b185ebca87, kPrime2 = 0xc2b2ae3d27d4eb4f,
                   kPrime3 = 0x165667b19e3779f9, kPrime4 = 0x85ebca77c2b2ae63,
                   kPrime5 = 0x27d4eb2f165667c5;

template <class T>
T read_as(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

uint64_t mix(uint64_t sum, uint64_t value) {
  return std::rotl(sum + value * kPrime2, 31) * kPrime1;
}

// XXH64 (Collet, 2012).
uint64_t hash_of(std::string_view text, uint64_t seed) {
  const char *at = text.data(), *end = at + text.size();
  uint64_t hash = seed + kPrime5;
  if (text.size() >= 32) {
    uint64_t sums[] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; end - at >= 32; at += 32)
      for (int i = 0; i < 4; ++i) sums[i] = mix(sums[i], read_as<uint64_t>(at + 8 * i));
    hash = std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) +
           std::rotl(sums[3], 18);
    for (const uint64_t sum : sums) hash = (hash ^ mix(0, sum)) * kPrime1 + kPrime4;
  }
  hash += text.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ mix(0, read_as<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ read_as<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ static_cast<uint8_t>(*at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

tenon_status text_hash(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                       int64_t seed, tenon_tensor* out, tenon_err* err) {
  Strings strings;
  const tenon_status status = read_strings(ctx, "text_hash", text, offsets, &strings, err);
  if (status != TENON_OK) return status;
  parallel(strings.count, mean_bytes(strings), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      data_of<int64_t>(out)[i] =
          static_cast<int64_t>(hash_of(strings[i], static_cast<uint64_t>(seed)));
  });
  return TENON_OK;
}
TENON_BOX_text_hash(text_hash_boxed, text_hash);

// Where `key` is in a table of numbers of keys, or the free slot where it belongs; -1 is free.
int64_t slot_of(const int64_t* table, uint64_t mask, const Strings& keys, std::string_view key) {
  uint64_t at = hash_of(key, 0) & mask;
  while (table[at] >= 0 && keys[table[at]] != key) at = (at + 1) & mask;
  return static_cast<int64_t>(at);
}

tenon_status text_lookup(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                         const tenon_tensor* keys, const tenon_tensor* keys_offsets,
                         int64_t missing, tenon_tensor* out, tenon_err* err) {
  Strings strings, known;
  tenon_status status = read_strings(ctx, "text_lookup", text, offsets, &strings, err);
  if (status == TENON_OK)
    status = read_strings(ctx, "text_lookup", keys, keys_offsets, &known, err);
  if (status != TENON_OK) return status;
  const uint64_t slots = std::bit_ceil(2 * static_cast<uint64_t>(known.count) + 1);
  void* memory;
  status = host->scratch(ctx, slots * sizeof(int64_t), &memory, err);
  if (status != TENON_OK) return status;
  auto* table = static_cast<int64_t*>(memory);
  std::fill_n(table, slots, int64_t{-1});
  for (int64_t i = 0; i < known.count; ++i) {
    int64_t& slot = table[slot_of(table, slots - 1, known, known[i])];
    if (slot < 0) slot = i;  // of equal keys the first counts
  }
  parallel(strings.count, 4 * mean_bytes(strings), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t found = table[slot_of(table, slots - 1, known, strings[i])];
      data_of<int64_t>(out)[i] = found < 0 ? missing : found;
    }
  });
  return TENON_OK;
}
TENON_BOX_text_lookup(text_lookup_boxed, text_lookup);

constexpr uint64_t kBytes = dtype_bit(TENON_DTYPE_U8);
const tenon_kernel_def kKernels[] = {TENON_KERNEL_text_take(text_take, nullptr, kBytes, 0, 0),
                                     TENON_KERNEL_text_equal(text_equal, nullptr, kBytes, 0, 0),
                                     TENON_KERNEL_text_find(text_find, nullptr, kBytes, 0, 0),
                                     TENON_KERNEL_text_split(text_split, nullptr, kBytes, 0, 0),
                                     TENON_KERNEL_text_hash(text_hash, nullptr, kBytes, 0, 0),
                                     TENON_KERNEL_text_lookup(text_lookup, nullptr, kBytes, 0, 0)};

}  // namespace

KernelList strings_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
