// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <cctype>
#include <map>
#include <string>

namespace simulated {
namespace {

struct Entry {
  std::string name;
  const char* text;
};

// "NOT_READY": "CUDA_ERROR_NOT_READY" or "hipErrorNotReady".
std::string vendor_name(std::string name) {
  const bool success = name == "SUCCESS";
  if (!SIMULATED_HIP) return success ? "CUDA_SUCCESS" : "CUDA_ERROR_" + name;
  std::string result = success ? "hip" : "hipError";
  bool word_begins = true;
  for (char c : name) {
    if (c != '_') result += word_begins ? c : static_cast<char>(std::tolower(c));
    word_begins = c == '_';
  }
  return result;
}

const std::map<Error, Entry>& entries() {
  static const auto* map = new std::map<Error, Entry>{
#define SIMULATED_ENTRY(name, number, text) {number, {vendor_name(#name), text}},
      SIMULATED_ERRORS(SIMULATED_ENTRY)
#undef SIMULATED_ENTRY
  };
  return *map;
}

}  // namespace

const char* error_name(Error error) {
  auto found = entries().find(error);
  return found == entries().end() ? nullptr : found->second.name.c_str();
}

const char* error_text(Error error) {
  auto found = entries().find(error);
  return found == entries().end() ? nullptr : found->second.text;
}

}  // namespace simulated
