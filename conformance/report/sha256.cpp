// SPDX-License-Identifier: Apache-2.0
#include "report/sha256.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tenon::kit {
namespace {

// The standard's constants: the first 32 bits of the fractional parts of roots of the first primes.
// A long double holds cube roots of primes below 312 exactly enough: 3 + 32 bits of 64.
uint32_t fraction(long double root) {
  return static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L);
}

struct Constants {
  std::array<uint32_t, 8> start;
  std::array<uint32_t, 64> rounds;

  Constants() {
    size_t found = 0;
    for (uint32_t candidate = 2; found < rounds.size(); ++candidate) {
      bool is_prime = true;
      for (uint32_t divisor = 2; divisor * divisor <= candidate; ++divisor)
        is_prime = is_prime && candidate % divisor != 0;
      if (!is_prime) continue;
      if (found < start.size())
        start[found] = fraction(std::sqrt(static_cast<long double>(candidate)));
      rounds[found++] = fraction(std::cbrt(static_cast<long double>(candidate)));
    }
  }
};

void absorb(std::array<uint32_t, 8>& state, const unsigned char* block,
            const Constants& constants) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  for (size_t i = 16; i < 64; ++i) {
    uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + constants.rounds[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

std::string sha256(std::string_view bytes) {
  static const Constants constants;
  std::array<uint32_t, 8> state = constants.start;
  std::string padded(bytes);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>(uint64_t{bytes.size()} * 8 >> shift);
  for (size_t at = 0; at < padded.size(); at += 64)
    absorb(state, reinterpret_cast<const unsigned char*>(padded.data()) + at, constants);
  std::string hex;
  for (uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
  return hex;
}

}  // namespace tenon::kit
