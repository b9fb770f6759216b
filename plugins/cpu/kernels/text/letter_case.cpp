// SPDX-License-Identifier: Apache-2.0
// text_lower and text_upper. Text that is ASCII, by far the most frequent, is changed without looking at characters.
#include "text/letter_case_table.hpp"
#include "text/strings.hpp"

#include <tenon/signatures/text.h>

namespace tenon::cpu::TENON_CPU_ONCE {
namespace {

enum class Mode { kFull, kSimple, kAscii };

template <size_t N>
bool contains(const CodeRange (&ranges)[N], uint32_t code) {
  const auto* found = std::upper_bound(
      ranges, ranges + N, code, [](uint32_t x, const CodeRange& each) { return x < each.first; });
  return found != ranges && code <= (found - 1)->last;
}

template <size_t N>
uint32_t mapped(const CaseRange (&ranges)[N], uint32_t code) {
  const auto* found = std::upper_bound(
      ranges, ranges + N, code, [](uint32_t x, const CaseRange& each) { return x < each.first; });
  if (found == ranges) return code;
  --found;
  if (code > found->last || (code - found->first) % found->step != 0) return code;
  return static_cast<uint32_t>(static_cast<int32_t>(code) + found->change);
}

constexpr uint32_t kCapitalSigma = 0x3a3, kFinalSigma = 0x3c2, kDottedI = 0x130;

// A capital sigma ends a word: a letter stands before it and none behind it. What is no letter of its own, such as an
// apostrophe, is passed over.
bool ends_word(const uint8_t* begin, const uint8_t* at, const uint8_t* end) {
  const uint8_t* before = at;
  bool is_behind_letter = false;
  while (before > begin) {
    do --before;
    while (before > begin && continues(*before));
    const uint32_t code = decode(before, end - before).code;
    if (contains(kCaseIgnorable, code)) continue;
    is_behind_letter = contains(kCased, code);
    break;
  }
  if (!is_behind_letter) return false;
  for (const uint8_t* behind = at + 2; behind < end;) {
    const Character each = decode(behind, end - behind);
    behind += each.bytes;
    if (contains(kCaseIgnorable, each.code)) continue;
    return !contains(kCased, each.code);
  }
  return true;
}

// f(code) for each character that the one at `at` becomes.
template <bool is_lower, class F>
void change(const Character& each, const uint8_t* begin, const uint8_t* at, const uint8_t* end,
            Mode mode, F&& f) {
  if constexpr (is_lower) {
    if (mode == Mode::kFull && each.code == kCapitalSigma)
      return f(ends_word(begin, at, end) ? kFinalSigma : mapped(kLower, each.code));
    if (mode == Mode::kFull && each.code == kDottedI) return f(0x69u), f(0x307u);
    f(mapped(kLower, each.code));
  } else {
    if (mode == Mode::kFull) {
      const auto* found =
          std::lower_bound(std::begin(kUpperOfSeveral), std::end(kUpperOfSeveral), each.code,
                           [](const SeveralCodes& entry, uint32_t x) { return entry.code < x; });
      if (found != std::end(kUpperOfSeveral) && found->code == each.code) {
        for (const uint32_t code : found->becomes)
          if (code != 0) f(code);
        return;
      }
    }
    f(mapped(kUpper, each.code));
  }
}

template <bool is_lower>
void change_ascii(const uint8_t* from, int64_t count, uint8_t* to) {
  constexpr uint8_t kFirst = is_lower ? 'A' : 'a';
  for (int64_t i = 0; i < count; ++i) {
    const bool moves = static_cast<uint8_t>(from[i] - kFirst) < 26;
    to[i] = static_cast<uint8_t>(from[i] ^ (moves ? 0x20 : 0));
  }
}

template <bool is_lower>
tenon_status change_case(tenon_ctx* ctx, const char* op, const tenon_tensor* text,
                         const tenon_tensor* offsets, std::string_view name, tenon_err* err) {
  constexpr std::string_view kNames[] = {"full", "simple", "ascii"};
  const auto* known = std::find(std::begin(kNames), std::end(kNames), name);
  if (known == std::end(kNames))
    return fail_format(err, TENON_INVALID_ARGUMENT,
                       "[%s] expected mode 'full', 'simple' or 'ascii', got '%.*s'", op,
                       static_cast<int>(name.size()), name.data());
  const auto mode = static_cast<Mode>(known - kNames);
  Strings strings;
  tenon_status status = read_strings(ctx, op, text, offsets, &strings, err);
  if (status == TENON_OK && mode != Mode::kAscii) status = expect_utf8(op, strings, err);
  if (status != TENON_OK) return status;
  const int64_t mean = strings.total() / std::max<int64_t>(strings.count, 1) + 4;
  const bool is_plain =
      mode == Mode::kAscii || is_ascii(strings.bytes + strings.offsets[0], strings.total());
  const auto bytes_of = [&](int64_t i) {
    return reinterpret_cast<const uint8_t*>(strings[i].data());
  };
  if (is_plain)
    return make_strings(
        ctx, strings.count, mean,
        [&](int64_t i) { return static_cast<int64_t>(strings[i].size()); },
        [&](int64_t i, uint8_t* to) {
          change_ascii<is_lower>(bytes_of(i), static_cast<int64_t>(strings[i].size()), to);
        },
        err);
  const auto for_changed = [&](int64_t i, auto&& f) {
    const uint8_t *begin = bytes_of(i), *end = begin + strings[i].size();
    for (const uint8_t* at = begin; at < end;) {
      const Character each = decode(at, end - at);
      change<is_lower>(each, begin, at, end, mode, f);
      at += each.bytes;
    }
  };
  return make_strings(
      ctx, strings.count, 8 * mean,
      [&](int64_t i) {
        int64_t bytes = 0;
        for_changed(i, [&](uint32_t code) { bytes += encoded_bytes(code); });
        return bytes;
      },
      [&](int64_t i, uint8_t* to) {
        for_changed(i, [&](uint32_t code) { to = encode(code, to); });
      },
      err);
}

tenon_status text_lower(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                        const char* mode, uint64_t mode_bytes, tenon_err* err) {
  return change_case<true>(ctx, "text_lower", text, offsets, {mode, mode_bytes}, err);
}
TENON_BOX_text_lower(text_lower_boxed, text_lower);

tenon_status text_upper(tenon_ctx* ctx, const tenon_tensor* text, const tenon_tensor* offsets,
                        const char* mode, uint64_t mode_bytes, tenon_err* err) {
  return change_case<false>(ctx, "text_upper", text, offsets, {mode, mode_bytes}, err);
}
TENON_BOX_text_upper(text_upper_boxed, text_upper);

constexpr uint64_t kBytes = dtype_bit(TENON_DTYPE_U8);
const tenon_kernel_def kKernels[] = {TENON_KERNEL_text_lower(text_lower, nullptr, kBytes, 0, 0),
                                     TENON_KERNEL_text_upper(text_upper, nullptr, kBytes, 0, 0)};

}  // namespace

KernelList letter_case_kernels() { return kKernels; }

}  // namespace tenon::cpu::TENON_CPU_ONCE
