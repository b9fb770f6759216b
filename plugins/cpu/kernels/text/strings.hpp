// SPDX-License-Identifier: Apache-2.0
// Strings in the layout of Apache Arrow: the bytes of all of them, and where each begins. Offsets and bytes may come from
// files and from memory that others write, so both are checked in each call, and errors say where.
#pragma once

#include "index/indices.hpp"

#include <cstring>
#include <string_view>

namespace tenon::cpu::TENON_CPU_ISA {

// String i is the bytes from offsets[i] to offsets[i + 1].
struct Strings {
  const uint8_t* bytes = nullptr;
  const int64_t* offsets = nullptr;
  int64_t count = 0;

  std::string_view operator[](int64_t i) const {
    return {reinterpret_cast<const char*>(bytes) + offsets[i],
            static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }
  int64_t total() const { return offsets[count] - offsets[0]; }
};

// Offsets ascend, from any of the bytes to any other: a slice of an array of Arrow's begins and ends inside.
inline tenon_status read_strings(tenon_ctx* ctx, const char* op, const tenon_tensor* text,
                                 const tenon_tensor* offsets, Strings* out, tenon_err* err) {
  const int64_t most = text->numel, count = offsets->numel;
  tenon_status status = TENON_OK;
  if (text->ndim != 1 || offsets->ndim != 1 || count == 0)
    return fail_format(
        err, TENON_INVALID_ARGUMENT,
        "[%s] expected bytes as a vector and one more offset than there are strings, "
        "got shapes %s and %s",
        op, shape_text(*text).c_str(), shape_text(*offsets).c_str());
  out->bytes = data_of<uint8_t>(text);
  out->count = count - 1;
  with_index_type(offsets, [&]<class P>(const P* from) {
    int64_t before = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t offset = signed_index(from[i]);
      if (offset < before || offset > most) {
        status = fail_format(err, TENON_INVALID_ARGUMENT,
                             "[%s] expected offsets that ascend from 0 to at most the %lld bytes "
                             "of the text, got %lld at position %lld",
                             op, static_cast<long long>(most), static_cast<long long>(offset),
                             static_cast<long long>(i));
        return;
      }
      before = offset;
    }
    if constexpr (std::is_same_v<P, int64_t>) {
      out->offsets = from;
    } else {
      void* memory;
      status = host->scratch(ctx, static_cast<uint64_t>(count) * sizeof(int64_t), &memory, err);
      if (status != TENON_OK) return;
      auto* wide = static_cast<int64_t*>(memory);
      for (int64_t i = 0; i < count; ++i) wide[i] = static_cast<int64_t>(from[i]);
      out->offsets = wide;
    }
  });
  return status;
}

inline bool is_ascii(const uint8_t* from, int64_t count) {
  uint8_t any = 0;
  for (int64_t i = 0; i < count; ++i) any |= from[i];
  return any < 0x80;
}

inline bool continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

// The character at `from`, of which there are `left` bytes, and how many it takes: 0 if they are not UTF-8, which has
// neither longer forms than needed nor surrogates.
struct Character {
  uint32_t code;
  int bytes;
};

inline Character decode(const uint8_t* from, int64_t left) {
  const uint8_t first = from[0];
  if (first < 0x80) return {first, 1};
  const int bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (bytes == 0 || left < bytes) return {0, 0};
  uint32_t code = first & (0x7fu >> bytes);
  for (int i = 1; i < bytes; ++i) {
    if (!continues(from[i])) return {0, 0};
    code = code << 6 | (from[i] & 0x3fu);
  }
  constexpr uint32_t kMinCode[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kMinCode[bytes] || is_surrogate || code > 0x10ffff) return {0, 0};
  return {code, bytes};
}

inline int encoded_bytes(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

inline uint8_t* encode(uint32_t code, uint8_t* to) {
  const int bytes = encoded_bytes(code);
  if (bytes == 1) {
    *to = static_cast<uint8_t>(code);
    return to + 1;
  }
  for (int i = bytes - 1; i > 0; --i, code >>= 6)
    to[i] = static_cast<uint8_t>(0x80 | (code & 0x3f));
  to[0] = static_cast<uint8_t>((0xf00u >> bytes & 0xff) | code);
  return to + bytes;
}

// Where the first byte is that is not UTF-8, counted in the text; -1 if all are.
inline int64_t first_fault(const Strings& strings) {
  const int64_t begin = strings.offsets[0];
  if (is_ascii(strings.bytes + begin, strings.total())) return -1;
  for (int64_t i = 0; i < strings.count; ++i) {
    const int64_t end = strings.offsets[i + 1];
    for (int64_t at = strings.offsets[i]; at < end;) {
      const int bytes = decode(strings.bytes + at, end - at).bytes;
      if (bytes == 0) return at;
      at += bytes;
    }
  }
  return -1;
}

inline tenon_status expect_utf8(const char* op, const Strings& strings, tenon_err* err) {
  const int64_t at = first_fault(strings);
  if (at < 0) return TENON_OK;
  const int64_t* owner =
      std::upper_bound(strings.offsets, strings.offsets + strings.count + 1, at) - 1;
  return fail_format(
      err, TENON_INVALID_ARGUMENT,
      "[%s] expected text in UTF-8, got the byte 0x%02x at position %lld, in string %lld", op,
      strings.bytes[at], static_cast<long long>(at),
      static_cast<long long>(owner - strings.offsets));
}

// New strings: `length(i)` bytes each, which `write(i, to)` writes. Both are called by several threads.
template <class Length, class Write>
tenon_status make_strings(tenon_ctx* ctx, int64_t count, int64_t work, Length&& length,
                          Write&& write, tenon_err* err) {
  const int64_t shape[] = {count + 1};
  tenon_tensor *offsets, *text;
  tenon_status status = host->output_alloc(ctx, 1, TENON_DTYPE_I64, 1, shape, &offsets, err);
  if (status != TENON_OK) return status;
  auto* ends = data_of<int64_t>(offsets);
  ends[0] = 0;
  parallel(count, work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ends[i + 1] = length(i);
  });
  for (int64_t i = 0; i < count; ++i) ends[i + 1] += ends[i];
  status = host->output_alloc(ctx, 0, TENON_DTYPE_U8, 1, &ends[count], &text, err);
  if (status != TENON_OK) return status;
  auto* to = data_of<uint8_t>(text);
  parallel(count, work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) write(i, to + ends[i]);
  });
  return TENON_OK;
}

}  // namespace tenon::cpu::TENON_CPU_ISA
