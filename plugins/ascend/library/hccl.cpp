// SPDX-License-Identifier: Apache-2.0
#include "hccl.hpp"

#include <tenon/abi.h>
#include <tenon/shared_libraries.hpp>

namespace ascend::hccl {

Functions library;

namespace {

constexpr const char* kInstall =
    "install CANN's toolkit, to which HCCL belongs, and source its set_env.sh, or name the file in "
    "TENON_ASCEND_COLLECTIVE";

// A function may be missing because only one of the libraries could be opened.
std::string unopened(const std::string& why) { return why.empty() ? "" : " (" + why + ")"; }

// Since HCCL is two packages, libhcomm.so has what makes and destroys communicators; before, libhccl.so had all.
std::string open() {
  const tenon::SharedLibraries libraries("TENON_ASCEND_COLLECTIVE", {"libhccl.so", "libhcomm.so"});
  const std::string& why = libraries.problem();
  if (libraries.empty())
    return "the library of collectives was not found (" + why + "); " + kInstall;
#define ASCEND_FIND(result, member, name, parameters, optional)                     \
  library.member = reinterpret_cast<result(*) parameters>(libraries.find(#name));   \
  if (!library.member && !(optional))                                               \
    return std::string("the library of collectives lacks " #name) + unopened(why) + \
           "; expected the one of CANN 8 or later, update it";
  ASCEND_COLLECTIVE_FUNCTIONS(ASCEND_FIND)
#undef ASCEND_FIND
  return "";
}

}  // namespace

const std::string& problem() {
  static const std::string text = open();
  return text;
}

// The widest set that a page names. A chip that lacks one of them refuses the call, on every rank alike.
int reduced_type(int dtype) {
  switch (dtype) {
    case TENON_DTYPE_I8:
      return 0;
    case TENON_DTYPE_I16:
      return 1;
    case TENON_DTYPE_I32:
      return 2;
    case TENON_DTYPE_F16:
      return 3;
    case TENON_DTYPE_F32:
      return 4;
    case TENON_DTYPE_I64:
      return 5;
    case TENON_DTYPE_U64:
      return 6;
    case TENON_DTYPE_F64:
      return 10;
    case TENON_DTYPE_BF16:
      return 11;
    default:
      return -1;
  }
}

}  // namespace ascend::hccl
