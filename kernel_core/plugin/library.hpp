// SPDX-License-Identifier: Apache-2.0
// Third stage: a library mapped into the process.
#pragma once

#include <tenon/abi.h>

#include <memory>
#include <string>

#include "kernel_core/plugin/refusal.hpp"
#include "kernel_core/plugin/sealed_copy.hpp"

namespace tenon::core {

class Library {
 public:
  // Lazily: a function that nothing defines ends the process at its call. Now: it is an error here.
  enum class Binding { kNow, kLazily };

  Library() = default;
  Library(Library&& other) noexcept;
  Library& operator=(Library&& other) noexcept;
  ~Library() { close(); }

  // Maps the file at `path`, or the copy of it, if there is one, and shows its symbols to no other
  // library. Once this has returned, dladdr and debuggers know a copy by the file's path, too.
  // False: it could not be, and `problem` is what the system said.
  bool open(const std::string& path, SealedCopy copy, std::string& problem,
            Binding binding = Binding::kNow);
  void close();

  void* handle() const { return handle_; }
  const SealedCopy& copy() const { return copy_; }
  // What dladdr called it while its constructors ran.
  const std::string& opened_as() const { return opened_as_; }
  // Refused if it does not export the entry point of plugins.
  Refusal check_entry_point(const std::string& path) const;
  tenon_plugin_query_fn query_function() const;

  // Is a library mapped that was opened under that name, by whomever?
  static bool is_mapped(const std::string& name);

 private:
  void* handle_ = nullptr;
  SealedCopy copy_;
  std::string opened_as_;
  // Of a copy: the name that dladdr says, and the system's own, which it wants back.
  std::unique_ptr<std::string> shown_name_;
  char* system_name_ = nullptr;
};

// What the system said of the file at `path`, as a reason.
Refusal explain_open_failure(const std::string& path, const std::string& problem);

}  // namespace tenon::core
