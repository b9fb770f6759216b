// SPDX-License-Identifier: Apache-2.0
#include "operators/subjects.hpp"

#include <algorithm>

namespace tenon::kit {
namespace {

constexpr int32_t kByImportance[] = {
    TENON_DTYPE_F32,    TENON_DTYPE_F64,   TENON_DTYPE_F16,  TENON_DTYPE_BF16, TENON_DTYPE_I64,
    TENON_DTYPE_I32,    TENON_DTYPE_I16,   TENON_DTYPE_I8,   TENON_DTYPE_U8,   TENON_DTYPE_U16,
    TENON_DTYPE_U32,    TENON_DTYPE_U64,   TENON_DTYPE_BOOL, TENON_DTYPE_C64,  TENON_DTYPE_C128,
    TENON_DTYPE_F8E4M3, TENON_DTYPE_F8E5M2};

int rank(const Subject& subject) {
  uint32_t flags = subject.def().flags;
  if (flags & TENON_OP_MATERIALIZE) return 0;
  if (flags & TENON_OP_CONVERT) return 1;
  return subject.is_native ? 2 : 3;
}

}  // namespace

std::string short_name(const tenon_op* op) {
  std::string name = real_host()->op_def(op)->name;
  return name.rfind("tenon::", 0) == 0 ? name.substr(7) : name;
}

std::vector<Subject> subjects(Engine& engine) {
  std::vector<Subject> found;
  const tenon_host* host = real_host();
  bool has_native = false;
  for (uint32_t id = 0; id < host->op_count(); ++id) {
    Subject subject;
    subject.op = host->op_at(id);
    if (!subject.op || !host->op_def(subject.op)) continue;
    const tenon_op_def& def = subject.def();
    // Views run nowhere; random numbers have no right answer; lists are made of other operators.
    if (def.flags & (TENON_OP_VIEW | TENON_OP_RANDOM | TENON_OP_LIST_OUTPUT)) continue;
    subject.name = short_name(subject.op);
    for (int32_t dtype : kByImportance) {
      if (def.dtype_mask && !in_mask(def.dtype_mask, dtype)) continue;
      std::string route = engine.route(subject.op, dtype);
      // Some opcodes of a primitive may be made of others, and the device promises none of them.
      const bool is_promised =
          route == "native" || (route == "lowered" && !(def.flags & TENON_OP_PRIMITIVE));
      if (!is_promised) continue;
      if (subject.dtypes.empty()) subject.is_native = route == "native";
      subject.dtypes.push_back(dtype);
    }
    has_native |= subject.is_native;
    if (!subject.dtypes.empty()) found.push_back(std::move(subject));
  }
  if (!has_native) engine.session().absent("the device has no kernels");
  std::stable_sort(found.begin(), found.end(),
                   [](const Subject& a, const Subject& b) { return rank(a) < rank(b); });
  return found;
}

void for_each_subject(Engine& engine, Route route,
                      const std::function<void(const Subject&)>& body) {
  Session& session = engine.session();
  std::vector<Subject> all = subjects(engine);
  if (route == Route::kLowered)
    for (const Subject& subject : all)
      if (subject.is_native && session.is_skipped(subject.name))
        session.absent(subject.name + " failed, and operators are made of it");
  for (const Subject& subject : all) {
    if (subject.is_native != (route == Route::kNative) || !session.begin(subject.name)) continue;
    body(subject);
    if (session.subject_failed() && subject.def().flags & TENON_OP_MATERIALIZE) break;
  }
  session.begin("");
}

}  // namespace tenon::kit
