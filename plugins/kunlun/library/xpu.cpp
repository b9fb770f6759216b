// SPDX-License-Identifier: Apache-2.0
#include "xpu.hpp"

#include <tenon/shared_libraries.hpp>

#include <cstdlib>

namespace kunlun {

Functions xpu;

namespace {

constexpr const char* kInstall = "install XRE and XDNN of Kunlun, or set ";

std::string open_runtime() {
  const tenon::SharedLibraries libraries("TENON_KUNLUN_RUNTIME", {"libxpurt.so"});
  if (libraries.empty())
    return "XRE was not found (" + libraries.problem() + "); " + kInstall +
           "TENON_KUNLUN_RUNTIME to the path of libxpurt.so";
#define KUNLUN_FIND(member, symbol, parameters)                              \
  xpu.member = reinterpret_cast<int(*) parameters>(libraries.find(#symbol)); \
  if (!xpu.member)                                                           \
    return std::string("XRE lacks " #symbol "; ") + kInstall +               \
           "TENON_KUNLUN_RUNTIME to another version";
  KUNLUN_RUNTIME_FUNCTIONS(KUNLUN_FIND)
#undef KUNLUN_FIND
#define KUNLUN_FIND_OPTIONAL(member, symbol, parameters) \
  xpu.member = reinterpret_cast<int(*) parameters>(libraries.find(#symbol));
  KUNLUN_OPTIONAL_FUNCTIONS(KUNLUN_FIND_OPTIONAL)
#undef KUNLUN_FIND_OPTIONAL
  return "";
}

const tenon::SharedLibraries& operator_libraries() {
  static const tenon::SharedLibraries libraries("TENON_KUNLUN_OPERATORS", {"libxpuapi.so"});
  return libraries;
}

std::string open_operators() {
  const tenon::SharedLibraries& libraries = operator_libraries();
  if (libraries.empty())
    return "XDNN was not found (" + libraries.problem() + "); " + kInstall +
           "TENON_KUNLUN_OPERATORS to the path of libxpuapi.so";
  xpu.create_context =
      reinterpret_cast<Context* (*)()>(libraries.find("_ZN5baidu3xpu3api14create_contextEv"));
  xpu.destroy_context = reinterpret_cast<void (*)(Context*)>(
      libraries.find("_ZN5baidu3xpu3api15destroy_contextEPNS1_7ContextE"));
  if (xpu.create_context && xpu.destroy_context) return "";
  return std::string("XDNN lacks create_context or destroy_context; ") + kInstall +
         "TENON_KUNLUN_OPERATORS to another version";
}

// The numbers of xpu/defs.h that a user meets.
const char* meaning(int error) {
  switch (std::abs(error)) {
    case 701:
      return "no such device";
    case 702:
      return "the runtime is not initialised";
    case 703:
      return "there is no device";
    case 704:
      return "driver and runtime have versions that do not fit";
    case kNoDeviceMemory:
      return "device memory not enough";
    case kNoHostMemory:
      return "host memory not enough";
    case 707:
      return "invalid parameter";
    case kNotSupported:
      return "not supported";
    case 713:
      return "the device is in a bad state after an earlier error";
    case 714:
      return "a kernel failed";
    case 715:
      return "a kernel did not end in time";
    default:
      return "see xpu/defs.h";
  }
}

}  // namespace

const std::string& runtime_problem() {
  static const std::string problem = open_runtime();
  return problem;
}

const std::string& operators_problem() {
  static const std::string problem = open_operators();
  return problem;
}

void* find_operator_function(const char* symbol) { return operator_libraries().find(symbol); }

std::string describe_failure(const char* function, int error) {
  return std::string(function) + " returned " + std::to_string(error) + " (" + meaning(error) + ")";
}

}  // namespace kunlun
