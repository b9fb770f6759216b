// SPDX-License-Identifier: Apache-2.0
#include "acl.hpp"

#include <tenon/abi.h>
#include <tenon/shared_libraries.hpp>

namespace ascend {

Functions acl;

namespace {

constexpr const char* kInstall =
    "install CANN's toolkit and kernels for your chip and source its set_env.sh, or set ";

std::string open_runtime() {
  const tenon::SharedLibraries libraries("TENON_ASCEND_RUNTIME", {"libascendcl.so"});
  if (libraries.empty())
    return "AscendCL was not found (" + libraries.problem() + "); " + kInstall +
           "TENON_ASCEND_RUNTIME to the path of libascendcl.so";
#define ASCEND_FIND(result, name, parameters)                               \
  acl.name = reinterpret_cast<result(*) parameters>(libraries.find(#name)); \
  if (!acl.name) return std::string("AscendCL lacks " #name "; ") + kInstall + "another version";
  ASCEND_RUNTIME_FUNCTIONS(ASCEND_FIND)
#define ASCEND_FIND_OPTIONAL(result, name, parameters) \
  acl.name = reinterpret_cast<result(*) parameters>(libraries.find(#name));
  ASCEND_OPTIONAL_FUNCTIONS(ASCEND_FIND_OPTIONAL)
  const int error = acl.aclInit(nullptr);
  if (error && error != kRepeatInitialize) return describe_failure("aclInit", error);
  return "";
}

// Since CANN 8.3 the operators are in several libraries; before, in one.
const tenon::SharedLibraries& operator_libraries() {
  static const tenon::SharedLibraries libraries(
      "TENON_ASCEND_OPERATORS", {"libopapi.so", "libopapi_math.so", "libopapi_nn.so",
                                 "libopapi_transformer.so", "libnnopbase.so"});
  return libraries;
}

std::string open_operators() {
  const tenon::SharedLibraries& libraries = operator_libraries();
  if (libraries.empty())
    return "the operators of CANN were not found (" + libraries.problem() + "); " + kInstall +
           "TENON_ASCEND_OPERATORS to the paths of libopapi.so and libnnopbase.so";
  ASCEND_OPERATOR_FUNCTIONS(ASCEND_FIND)
  ASCEND_OPTIONAL_OPERATOR_FUNCTIONS(ASCEND_FIND_OPTIONAL)
#undef ASCEND_FIND_OPTIONAL
#undef ASCEND_FIND
  return "";
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

void* find_operator_function(const std::string& name) {
  return operator_libraries().find(name.c_str());
}

std::string describe_failure(const char* function, int error) {
  std::string text = std::string(function) + " returned " + std::to_string(error);
  const char* detail = acl.aclGetRecentErrMsg ? acl.aclGetRecentErrMsg() : nullptr;
  if (detail && *detail) text += std::string(" (") + detail + ")";
  return text;
}

int acl_dtype(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_F32:
      return 0;
    case TENON_DTYPE_F16:
      return 1;
    case TENON_DTYPE_I8:
      return 2;
    case TENON_DTYPE_I32:
      return 3;
    case TENON_DTYPE_U8:
      return 4;
    case TENON_DTYPE_I16:
      return 6;
    case TENON_DTYPE_U16:
      return 7;
    case TENON_DTYPE_U32:
      return 8;
    case TENON_DTYPE_I64:
      return 9;
    case TENON_DTYPE_U64:
      return 10;
    case TENON_DTYPE_F64:
      return 11;
    case TENON_DTYPE_BOOL:
      return 12;
    case TENON_DTYPE_C64:
      return 16;
    case TENON_DTYPE_C128:
      return 17;
    case TENON_DTYPE_BF16:
      return 27;
    case TENON_DTYPE_F8E5M2:
      return 35;
    case TENON_DTYPE_F8E4M3:
      return 36;
    default:
      return -1;
  }
}

}  // namespace ascend
