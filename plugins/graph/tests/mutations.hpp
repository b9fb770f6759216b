// SPDX-License-Identifier: Apache-2.0
// Texts and files with a few bytes changed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace tenon::test {

// A small generator, the same everywhere.
struct Draw {
  uint64_t state;
  uint64_t below(uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  }
};

// Changes a few bytes, repeats and cuts some out.
inline std::string mutated(std::string contents, Draw& draw) {
  for (uint64_t changes = 1 + draw.below(2); changes > 0 && !contents.empty(); --changes) {
    const uint64_t at = draw.below(contents.size()), length = 1 + draw.below(12);
    switch (draw.below(5)) {
      case 0:
        contents[at] = static_cast<char>(draw.below(256));
        break;
      case 1:
      case 2:
        contents[at] = "0123456789%[](),=:\"\n"[draw.below(20)];
        break;
      case 3:
        contents.erase(at, length);
        break;
      default:
        contents.insert(at, contents.substr(draw.below(contents.size()), length));
    }
  }
  return contents;
}

// How many files, from the first seed on: TENON_TEST_MUTATIONS, for hours under a sanitizer.
inline uint64_t mutations(uint64_t usual) {
  const char* wanted = std::getenv("TENON_TEST_MUTATIONS");
  return wanted ? std::strtoull(wanted, nullptr, 10) : usual;
}

}  // namespace tenon::test
