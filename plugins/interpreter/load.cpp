// SPDX-License-Identifier: Apache-2.0
// From paths to operators: read, check against what is loaded, define, and replace what the same
// files defined before.
#include <algorithm>
#include <check/check.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <load/load.hpp>
#include <map>
#include <mutex>
#include <support/text.hpp>
#include <tenon/operator_traits.hpp>
#include <unordered_map>

#include "operator_file.hpp"

namespace tenon::interpreter {
namespace {

using codegen::cat;

// With the mutex held.
struct Loaded {
  std::mutex mutex;
  std::vector<const OperatorFile*> files;
  uint32_t count = 0;  // ever made
};
Loaded& loaded() {
  static Loaded* instance = new Loaded;  // outlives static destructors
  return *instance;
}

std::string real_path(const std::string& path) {
  std::error_code error;
  std::string real = std::filesystem::canonical(path, error);
  return error ? path : real;
}

std::string joined(const std::vector<std::string>& errors) {
  constexpr size_t kMaxErrors = 50;
  std::vector<std::string> shown(errors.begin(),
                                 errors.begin() + std::min(errors.size(), kMaxErrors));
  if (errors.size() > kMaxErrors) shown.push_back(cat("and ", errors.size() - kMaxErrors, " more"));
  return codegen::join(shown, "\n");
}

const codegen::Operator* find_emitted(const codegen::Package& package, const char* name) {
  for (const codegen::Operator* op : package.emitted)
    if (op->qualified_name() == name) return op;
  return nullptr;
}

// A loaded operator as expressions see it: its signature, and what its result may be written over.
std::unique_ptr<codegen::Operator> imported(const tenon_op_def& def) {
  const std::string name = def.name;
  const size_t colons = name.find("::");
  auto op = std::make_unique<codegen::Operator>();
  op->name_space = name.substr(0, colons);
  op->name = name.substr(colons + 2);
  op->where = {def.origin ? def.origin : "", 1};
  op->signature =
      codegen::parse_signature(std::string_view(def.schema).substr(name.size()), op->where);
  op->in_place = trait(def, "in_place: ");
  return op;
}

// Which namespaces the expressions in some files can name: the host's, their own, and those that
// they write out. Thousands of operators of others need not be read.
class Namespaces {
 public:
  explicit Namespaces(const codegen::Package& package)
      : named_{{"tenon", true}, {package.name_space, true}} {
    for (const codegen::Operator* op : package.emitted) named_[op->name_space] = true;
    for (const std::string& path : package.files) {
      std::ifstream file(path);
      text_.append(std::istreambuf_iterator<char>(file), {});
    }
  }
  bool names(const std::string& name_space) {
    auto [known, is_new] = named_.try_emplace(name_space, false);
    if (is_new) known->second = text_.find(name_space + "::") != text_.npos;
    return known->second;
  }

 private:
  std::string text_;
  std::unordered_map<std::string, bool> named_;
};

// Add the operators of the host that can be named, but not those that are about to be replaced.
void import_operators(codegen::Package& package, const std::vector<const OperatorFile*>& replaced,
                      std::vector<std::string>& clashes) {
  Namespaces namespaces(package);
  for (uint32_t id = 0; id < host->op_count(); ++id) {
    const tenon_op* op = host->op_at(id);
    const tenon_op_def* def = op ? host->op_def(op) : nullptr;
    if (!def || !def->name) continue;
    const std::string_view name = def->name;
    if (!namespaces.names(std::string(name.substr(0, name.find("::"))))) continue;
    const bool goes = std::any_of(replaced.begin(), replaced.end(),
                                  [&](const OperatorFile* file) { return file->defines(*def); });
    if (goes) continue;
    if (const codegen::Operator* own = find_emitted(package, def->name)) {
      clashes.push_back(cat(own->where.text(), ": `", def->name, "` is already defined at ",
                            def->origin && *def->origin ? def->origin : "an unknown place",
                            "; rename one of the two, or unload the other"));
      continue;
    }
    try {
      package.add(imported(*def), false);
    } catch (const codegen::Error&) {
      // A signature that this version cannot read: expressions do without it.
    }
  }
}

void check_namespace(const codegen::Package& package, std::vector<std::string>& errors) {
  if (package.name_space != "tenon" || package.emitted.empty()) return;
  errors.push_back(cat(package.emitted[0]->where.text(),
                       ": the namespace `tenon` is the host's own; choose another one"));
}

void check_names(const codegen::Package& package, std::vector<std::string>& errors) {
  const std::string& name = package.name_space;
  bool good = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
  for (char c : name) good = good && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
  if (!good && !package.files.empty())
    errors.push_back(cat(package.files[0],
                         ":1: `namespace`: expected a name like `acme` "
                         "([a-z][a-z0-9_]*), got `",
                         name, "`"));
}

using Definitions = std::map<std::string, std::vector<std::unique_ptr<Definition>>>;

// By file. What each emitted operator is goes from the package to its definition.
Definitions define(codegen::Package& package, std::vector<std::string>& errors) {
  Definitions definitions;
  for (const std::string& file : package.files) definitions[file];
  for (const codegen::Operator* op : package.emitted) {
    try {
      auto copy = std::make_unique<codegen::Operator>(*op);
      definitions[op->file].push_back(std::make_unique<Definition>(std::move(copy), package));
    } catch (const codegen::Error& error) {
      errors.push_back(error.what());
    }
  }
  return definitions;
}

// Several plugins in and out, or none.
class Exchange {
 public:
  explicit Exchange(tenon_err* err) : err_(err) {}

  tenon_status run(const std::vector<const OperatorFile*>& out,
                   const std::vector<const OperatorFile*>& in) {
    tenon_status status = TENON_OK;
    size_t gone = 0, come = 0;
    while (status == TENON_OK && gone < out.size())
      if ((status = out[gone]->detach(err_)) == TENON_OK) ++gone;
    while (status == TENON_OK && come < in.size())
      if ((status = in[come]->attach(err_)) == TENON_OK) ++come;
    if (status == TENON_OK) return status;
    // Back to what was. The first failure is what the caller hears of.
    tenon_err* ignored = host->err_create();
    while (come > 0) in[--come]->detach(ignored);
    for (size_t i = 0; i < gone; ++i) out[i]->attach(ignored);
    host->err_destroy(ignored);
    return status;
  }

 private:
  tenon_err* err_;
};

tenon_status register_rules(const std::vector<const OperatorFile*>& out,
                            const std::vector<const OperatorFile*>& in, tenon_err* err) {
  const auto* autograd = static_cast<const tenon_autograd_api*>(
      host->service_find(TENON_AUTOGRAD_SERVICE, TENON_AUTOGRAD_VERSION));
  if (!autograd) return TENON_OK;
  for (const OperatorFile* file : out)
    for (const auto& definition : file->definitions()) {
      tenon_grad_rule nothing = definition->rule();
      nothing.backward_self = nullptr;
      const tenon_status status = autograd->rule_register(&nothing, err);
      if (status != TENON_OK) return status;
    }
  for (const OperatorFile* file : in)
    for (const auto& definition : file->definitions()) {
      const tenon_status status = autograd->rule_register(&definition->rule(), err);
      if (status != TENON_OK) return status;
    }
  return TENON_OK;
}

}  // namespace

tenon_status load_files(const std::vector<std::string>& paths, std::vector<std::string>& defined,
                        tenon_err* err) {
  if (paths.empty())
    return fail(err, TENON_INVALID_ARGUMENT, "expected at least one operator file, got none");
  Loaded& self = loaded();
  std::lock_guard lock(self.mutex);
  codegen::Package package;
  std::vector<std::string> errors, clashes;
  for (const std::string& path : paths) codegen::load_file(path, true, package, errors);
  if (errors.empty()) check_names(package, errors);
  if (errors.empty()) check_namespace(package, errors);
  if (!errors.empty()) return fail(err, TENON_INVALID_ARGUMENT, joined(errors));

  std::vector<const OperatorFile*> out, in;
  for (const OperatorFile* file : self.files)
    for (const std::string& path : paths)
      if (file->path() == real_path(path)) out.push_back(file);
  import_operators(package, out, clashes);
  if (!clashes.empty()) return fail(err, TENON_ALREADY_EXISTS, joined(clashes));
  codegen::check_package(package, errors);
  Definitions definitions;
  if (errors.empty()) definitions = define(package, errors);
  if (!errors.empty()) return fail(err, TENON_INVALID_ARGUMENT, joined(errors));

  std::vector<std::unique_ptr<const OperatorFile>> made;
  for (const std::string& path : paths) {
    auto own = definitions.extract(path);
    if (own.empty()) continue;  // named twice
    made.push_back(std::make_unique<const OperatorFile>(
        real_path(path), cat("operators_", ++self.count), std::move(own.mapped())));
    in.push_back(made.back().get());
  }
  const tenon_status status = Exchange(err).run(out, in);
  if (status != TENON_OK) return status;
  for (auto& file : made) (void)file.release();
  std::erase_if(self.files, [&](const OperatorFile* file) {
    return std::find(out.begin(), out.end(), file) != out.end();
  });
  self.files.insert(self.files.end(), in.begin(), in.end());
  for (const OperatorFile* file : in)
    for (const auto& definition : file->definitions()) defined.push_back(definition->table().name);
  return register_rules(out, in, err);
}

}  // namespace tenon::interpreter
