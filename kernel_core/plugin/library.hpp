// SPDX-License-Identifier: Apache-2.0
// Third stage: a library mapped into the process.
#pragma once

#include <tenon/abi.h>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <string>

#include "kernel_core/plugin/refusal.hpp"

namespace tenon::core {

class Library {
 public:
  // Bind every symbol now and show none to others: an unresolved symbol is then an error here, and
  // not the death of the process at the first call.
  Refusal open(const std::string& path);

  // NULL if it does not export the entry point.
  tenon_plugin_query_fn query_function() const;

  // Is a library of that path mapped, by whomever?
  static bool is_mapped(const std::string& path);

 private:
  boost::dll::shared_library library_;
};

}  // namespace tenon::core
