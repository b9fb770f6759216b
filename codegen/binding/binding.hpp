// SPDX-License-Identifier: Apache-2.0
// Binding files: operators of a vendor's library as kernels. An entry names the vendor's function, how each
// of its parameters is made, the dtypes it serves and where its signature is documented:
//
//   - op: add
//     call: aclnnAdd(Tensor x, Tensor y, Scalar 1, Tensor out)
//     dtypes: float16|float32
//     source: math/add/docs/aclnnAdd&aclnnInplaceAdd.md
//
// From it come a kernel and, where the call has conditions, its can_run. What a parameter of a kind is made
// of, and how the library is called, is C++ of the plugin's own: the class Call in `header`. Where functions take
// pointers, sizes and vectors, a file has `types`, and a call reads as the function's prototype:
//
//   - op: add
//     call: broadcast_add<T>(Context*, const T* x, const T* y, T* out, const std::vector<int64_t>& shape of x,
//       const std::vector<int64_t>& shape of y)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emit/emit.hpp"
#include "model/operator.hpp"

namespace tenon::codegen {

struct Binding {
  const Operator* op = nullptr;
  std::string function;  // as people write it
  std::string symbol;    // of a function of C++, in the library's symbol table; empty otherwise
  std::string suffix;    // of the kernel's name, where each dtype has a kernel of its own
  std::string run =
      "run(";  // the method of Call that calls the function, up to its first parameter
  std::vector<std::string> parameters;  // C++ that makes each: "call.tensor(args[0])"
  std::vector<std::string> conditions;  // C++ that is true for the calls that are served
  DtypeMask dtypes = 0;
  bool deterministic = true;  // the same arguments give the same bits
  bool reusable = true;       // what the library plans for a call may serve later ones
  bool broadcasts = false;    // the function does; otherwise its operands arrive expanded
  std::string source;
  std::string assumes;  // what the source does not say, and has to be seen on a device
  Location where;
};

// How the prototypes of a library are written: of C, or of C++ with a scope.
struct Language {
  std::string scope;                      // "baidu::xpu::api"; empty: C
  std::map<int, std::string> types;       // dtype to the name of its type
  std::map<int, std::string> letters;     // dtype to what `?` is in the name of a function
  std::vector<std::string> global_types;  // classes that are not in the scope
};

struct BindingSet {
  std::string name_space;  // C++ namespace of Call, and of what is generated
  std::string header;      // of Call
  std::string library;     // whose signatures these are, and of which version
  std::vector<std::string> files;
  std::vector<Binding> bindings;
};

// Reads `path` into `set`. `package` holds the operators that may be bound. One message per refused entry goes
// to `errors`; the others are kept.
void load_bindings(const std::string& path, const Package& package, BindingSet& set,
                   std::vector<std::string>& errors);

// bindings.hpp, bindings.cpp
std::vector<OutputFile> emit_bindings(const BindingSet& set);

}  // namespace tenon::codegen
