// SPDX-License-Identifier: Apache-2.0
// The operators of one library, as they are being defined. Part of tenon/extension.hpp.
#pragma once

#include <tenon/extension/definition.hpp>

namespace tenon {

class Operators;

namespace extension {

class Library;

// What the build says about the library, and TENON_OPERATORS.
struct Identity {
  const char* name;
  const char* version;
  const char* name_space;
};

const tenon_plugin* query(const Identity& identity, void (*define)(Operators&), uint32_t host_min,
                          uint32_t host_max, const tenon_host* host, tenon_err* err) noexcept;

}  // namespace extension

class Operators {
 public:
  explicit Operators(extension::Library& library) : library_(library) {}

  // `signature` is "name(parameters) -> results" (share/tenon/opdefs/README.md). What the operator
  // does is said by steps on the result.
  Definition& def(std::string_view signature, const char* file = __builtin_FILE(),
                  uint32_t line = __builtin_LINE());

  // F is the operator: it takes the arguments and returns tensors.
  template <auto F>
  Definition& def(std::string_view signature, const char* file = __builtin_FILE(),
                  uint32_t line = __builtin_LINE()) {
    return def(signature, file, line).whole().template decompose<F>();
  }

 private:
  extension::Library& library_;
};

}  // namespace tenon
