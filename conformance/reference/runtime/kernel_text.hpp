// SPDX-License-Identifier: Apache-2.0
// From Kernel C to C: finds the kernels in preprocessed text and adds, for each, a function that
// unpacks its arguments, so that the host can call it without knowing its signature.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reference {

// Where a work item is; tk_item in kernel_prelude.c.
struct WorkItem {
  int64_t group[3], groups[3], local[3], size[3];
  void (*barrier)(WorkItem*);
};

// One kernel, as the compiled library lists it in `tk_entries`, after which comes one without a
// name.
struct KernelEntry {
  const char* name;
  void (*call)(WorkItem*, void* const* arguments);
  const uint32_t* parameters;  // size of a value, or kBufferParameter
  uint32_t count;
  uint32_t uses_barrier;
};
inline constexpr uint32_t kBufferParameter = UINT32_MAX;

// The prelude, then `source`; errors will name `name`.
std::string with_prelude(std::string_view name, std::string_view source);
// What the compiler is given, from what the preprocessor made of that. On failure, `*why` is set.
std::string finish_kernel_text(std::string preprocessed, std::string* why);

}  // namespace reference
