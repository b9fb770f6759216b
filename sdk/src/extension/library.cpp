// SPDX-License-Identifier: Apache-2.0
// The plugin table of a library of operators.
#include <dlfcn.h>

#include <memory>

#include <tenon/extension/operators.hpp>
#include <tenon/operator_package.hpp>

#include "described.hpp"

namespace tenon {
namespace extension {

class Library {
 public:
  explicit Library(const Identity& identity) : name_space(identity.name_space) {
    table.struct_size = sizeof table;
    table.revision = TENON_ABI_REVISION;
    table.name = identity.name;
    table.version = identity.version;
    table.vendor = identity.name_space;
    table.start = [](const tenon_host*, tenon_err* err) { return current->start(err); };
    table.stop = [](tenon_err* err) { return current->stop(err); };
  }

  void finish() {
    for (auto& op : described) {
      op->finish();
      ops.push_back(op->def);
      kernels.insert(kernels.end(), op->kernels.begin(), op->kernels.end());
      if (op->rule.backward_self) rules.push_back(op->rule);
    }
    table.ops = ops.data();
    table.nops = static_cast<uint32_t>(ops.size());
    table.op_size = sizeof(tenon_op_def);
    table.kernels = kernels.data();
    table.nkernels = static_cast<uint32_t>(kernels.size());
    table.kernel_size = sizeof(tenon_kernel_def);
  }

  tenon_status start(tenon_err* err) {
    if (rules.empty()) return TENON_OK;
    const tenon_status status =
        register_gradients(rules.data(), static_cast<uint32_t>(rules.size()), err);
    if (status != TENON_OK) (void)withdraw(nullptr);
    return status;
  }

  // Recorded calls and tensors' deleters may still point at code of this library: it stays mapped.
  tenon_status stop(tenon_err* err) {
    Dl_info info;
    if (!dladdr(&current, &info) || !dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE))
      return fail(err, TENON_UNAVAILABLE, "the library cannot be kept mapped");
    return withdraw(err);
  }

  static inline Library* current = nullptr;

  std::string name_space;
  std::deque<std::unique_ptr<Described>> described;
  std::deque<Definition> definitions;
  tenon_plugin table = {};

 private:
  tenon_status withdraw(tenon_err* err) {
    std::vector<tenon_grad_rule> none(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) {
      none[i].struct_size = sizeof none[i];
      none[i].flags = TENON_GRAD_RULE_REPLACE;
      none[i].op = rules[i].op;
    }
    return none.empty() ? TENON_OK
                        : register_gradients(none.data(), static_cast<uint32_t>(none.size()), err);
  }

  std::vector<tenon_op_def> ops;
  std::vector<tenon_kernel_def> kernels;
  std::vector<tenon_grad_rule> rules;
};

const tenon_plugin* query(const Identity& identity, void (*define)(Operators&), uint32_t host_min,
                          uint32_t host_max, const tenon_host* table, tenon_err* err) noexcept {
  if (host_min > TENON_ABI_EPOCH || host_max < TENON_ABI_EPOCH) {
    constexpr std::string_view text = "this plugin speaks ABI epoch 1 only";
    table->fail(err, TENON_UNSUPPORTED, 0, text.data(), text.size());
    return nullptr;
  }
  host = table;
  const tenon_status status = guarded(err, [&] {
    // Never destroyed, and made anew if the library is loaded again: recorded gradients point into
    // it.
    auto library = std::make_unique<Library>(identity);
    Operators operators(*library);
    define(operators);
    library->finish();
    Library::current = library.release();
  });
  return status == TENON_OK ? &Library::current->table : nullptr;
}

}  // namespace extension

Definition& Operators::def(std::string_view signature, const char* file, uint32_t line) {
  std::string origin(file);
  origin = origin.substr(origin.find_last_of('/') + 1) + ":" + std::to_string(line);
  const std::string_view name = signature.substr(0, signature.find('('));
  std::string full(signature);
  if (name.find("::") == name.npos)
    full = library_.name_space + "::" + full;
  else if (!name.starts_with(library_.name_space + "::"))
    throw Error(TENON_INVALID_ARGUMENT,
                origin + ": expected an operator of namespace " + library_.name_space +
                    ", which TENON_OPERATORS says, got " + std::string(name));
  try {
    library_.described.push_back(std::make_unique<extension::Described>(full, origin));
  } catch (const SchemaError& error) {
    throw Error(TENON_INVALID_ARGUMENT,
                origin + ": " + error.what() + "; the signature is `" + full + "`");
  }
  return library_.definitions.emplace_back(*library_.described.back());
}

}  // namespace tenon
