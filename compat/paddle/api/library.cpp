// SPDX-License-Identifier: Apache-2.0
// Loading a library of custom operators: what its static initialisers registered becomes a plugin
// of Tenon, made in memory.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "api/definition.hpp"
#include "api/gradient.hpp"
#include "api/missing_functions.hpp"
#include "api/registry.hpp"
#include "core/library.hpp"
#include "formats/json_writer.hpp"

namespace tenon::paddle {
namespace {

// One attached table. Never freed: recorded calls and cached operators point into it.
struct Attached {
  std::string name;
  std::string origin;
  std::deque<Definition> definitions;
  std::vector<tenon_op_def> ops;
  std::vector<tenon_kernel_def> kernels;
  tenon_plugin table = {};

  void attach() {
    for (const Definition& definition : definitions) {
      ops.push_back(definition.op_def());
      if (definition.kernel_def()) kernels.push_back(*definition.kernel_def());
    }
    table = {.struct_size = sizeof table,
             .revision = TENON_ABI_REVISION,
             .name = name.c_str(),
             .version = "1",
             .vendor = "",
             .ops = ops.data(),
             .kernels = kernels.data(),
             .nops = static_cast<uint32_t>(ops.size()),
             .op_size = sizeof(tenon_op_def),
             .nkernels = static_cast<uint32_t>(kernels.size()),
             .kernel_size = sizeof(tenon_kernel_def),
             .stop = [](tenon_err*) -> tenon_status { return TENON_OK; }};
    for (const Definition& definition : definitions)
      if (definition.kernel_def()) register_gradient(definition);
    ErrorSink err;
    err.check(host->plugin_attach(&table, origin.c_str(), err));
  }
};

// A loaded library. It stays in memory for good, as what it defined may be in use.
struct Library {
  std::string name;
  std::string path;
  std::vector<std::string> operators;  // as registered
  std::deque<Declaration> declarations;
  std::vector<std::string> plugins;  // attached for it, first the library's own
  std::vector<std::string> warnings;
};

struct Libraries {
  std::mutex mutex;  // loading
  std::map<std::string, Library*> by_name;
  std::mutex attaching;  // what follows
  std::map<std::pair<const Declaration*, std::vector<uint32_t>>, const tenon_op*> operators;
  std::map<const Declaration*, Library*> owners;
};
Libraries& libraries() {
  static Libraries* instance = new Libraries;
  return *instance;
}

const tenon_op* operator_named(const std::string& name) {
  const tenon_op* op = host->op_find(name.c_str());
  if (!op)
    throw Error(TENON_NOT_FOUND, "operator " + name + " is not defined; was its library replaced?");
  return op;
}

// What the library registered, declared and linked: operator, gradient, double gradient.
void declare(Library& library) {
  library.operators = registered_by(library.path);
  if (library.operators.empty())
    throw Error(TENON_NOT_FOUND,
                "it registers no operator; expected PD_BUILD_OP in one of its sources");
  for (const std::string& name : library.operators) {
    Declaration* before = nullptr;
    for (const ::paddle::OpMetaInfo& info : PD_GetOpMetaInfoMap().at(name)) {
      Declaration& op = library.declarations.emplace_back(info);
      library.warnings.insert(library.warnings.end(), op.warnings.begin(), op.warnings.end());
      op.forward = before;
      if (before) before->gradient = &op;
      before = &op;
    }
  }
}

void attach(Library& library) {
  auto* attached = new Attached;
  attached->name = "paddle_custom_" + library.name;
  attached->origin = library.path;
  for (const Declaration& op : library.declarations)
    attached->definitions.emplace_back(
        op, op.is_variable ? std::vector<uint32_t>() : std::vector<uint32_t>(op.outputs.size(), 1));
  // Rules of operators with variable results are made when these are counted; what is wrong with
  // them is to be known now.
  for (const Declaration& op : library.declarations)
    if (op.is_variable && op.gradient)
      register_gradient(*new Definition(op, std::vector<uint32_t>(op.outputs.size(), 1)));
  attached->attach();
  library.plugins.push_back(attached->name);
}

// Take its operators out of the host. What was unloaded by hand is gone already.
void detach(Library& library) {
  ErrorSink err;
  while (!library.plugins.empty()) {
    tenon_status status = host->plugin_unload(library.plugins.back().c_str(), err);
    if (status == TENON_NOT_FOUND)
      host->err_clear(err);
    else
      err.check(status);
    library.plugins.pop_back();
  }
  Libraries& all = libraries();
  std::lock_guard lock(all.attaching);
  std::erase_if(all.operators, [&](const auto& entry) {
    auto owner = all.owners.find(entry.first.first);
    return owner != all.owners.end() && owner->second == &library;
  });
}

bool is_attached(const Library& library) {
  return std::all_of(
      library.declarations.begin(), library.declarations.end(),
      [](const Declaration& op) { return host->op_find(op.operator_name.c_str()) != nullptr; });
}

void check_faults(const std::string& path) {
  std::string text;
  for (const Fault& fault : take_faults())
    if (fault.library == path) text += (text.empty() ? "" : "; ") + fault.text;
  if (!text.empty()) throw Error(TENON_ALREADY_EXISTS, text);
}

// -- the description that the bindings read

void describe(JsonWriter& json, const Name& name, int written) {
  json.object("", [&] {
    json.string("name", name.identifier);
    json.boolean("list", name.is_list);
    json.boolean("optional", name.is_optional);
    json.number("written", written);
  });
}

void describe(JsonWriter& json, const Declaration& op) {
  json.object("", [&] {
    json.string("name", op.info.name);
    json.string("operator", op.operator_name);
    json.array("inputs", [&] {
      for (const Name& input : op.inputs) describe(json, input, -1);
    });
    json.array("attributes", [&] {
      for (const auto& attribute : op.attributes)
        json.object("", [&] {
          json.string("name", attribute.identifier);
          json.string("type", attribute_type_name(attribute.type));
        });
    });
    json.array("outputs", [&] {
      for (size_t j = 0; j < op.outputs.size(); ++j)
        describe(json, op.outputs[j], op.written_input[j]);
    });
  });
}

std::string describe(const Library& library) {
  JsonWriter json;
  json.object("", [&] {
    json.strings("warnings", library.warnings);
    json.array("operators", [&] {
      for (const Declaration& op : library.declarations)
        if (!op.forward) describe(json, op);
    });
  });
  return json.text();
}

// Functions for devices that the build has no code for may be missing.
void open_operators(Library& library) {
  tenon_library opened;
  std::string failure;
  try {
    opened = open_library(library.path, 0);
  } catch (const Error& error) {
    failure = error.what();
    if (error.code() != TENON_UNAVAILABLE) throw;
  }
  if (failure.find("undefined symbol") != failure.npos) {
    failure.clear();
    opened = open_library(library.path, TENON_LIBRARY_LAZY);
    std::string names;
    for (const std::string& name : bind_missing_functions(opened.handle))
      names += (names.empty() ? "" : ", ") + name;
    if (!names.empty())
      library.warnings.push_back("no library defines functions that it calls: " + names +
                                 "; a call of one will be an error");
  }
  if (!failure.empty()) throw Error(TENON_NOT_FOUND, failure);
  rename_library(opened.opened_as, library.path);
}

const Library& load(const std::string& path, const std::string& name) {
  Libraries& all = libraries();
  std::lock_guard lock(all.mutex);
  auto known = all.by_name.find(name);
  if (known != all.by_name.end() && known->second->path == path) {
    if (!is_attached(*known->second)) {
      detach(*known->second);
      attach(*known->second);
    }
    return *known->second;
  }
  for (const auto& [other, library] : all.by_name)
    if (library->path == path)
      throw Error(TENON_ALREADY_EXISTS, "it is loaded already, as \"" + other + "\"");
  ErrorSink err;
  err.check(host->plugin_load_default(err));

  // What is built anew takes the place of what it was.
  if (known != all.by_name.end()) {
    detach(*known->second);
    forget(known->second->operators);
    all.by_name.erase(known);
  }
  auto* library = new Library{.name = name, .path = path};
  try {
    open_operators(*library);
    check_faults(path);
    declare(*library);
    attach(*library);
  } catch (...) {
    forget(registered_by(path));
    throw;
  }
  all.by_name[name] = library;
  std::lock_guard attaching(all.attaching);
  for (const Declaration& op : library->declarations) all.owners[&op] = library;
  return *library;
}

}  // namespace

const tenon_op* find_operator(const Declaration& op, const std::vector<uint32_t>& counts) {
  Libraries& all = libraries();
  std::lock_guard lock(all.attaching);
  auto [position, is_new] = all.operators.try_emplace({&op, counts}, nullptr);
  if (!is_new && position->second) return position->second;
  if (op.is_variable) {
    auto* attached = new Attached;
    Definition& definition = attached->definitions.emplace_back(op, counts);
    attached->name =
        "paddle_custom_op_" + definition.name().substr(definition.name().find("::") + 2);
    attached->origin = op.info.library;
    attached->attach();
    if (auto owner = all.owners.find(&op); owner != all.owners.end())
      owner->second->plugins.push_back(attached->name);
    return position->second = operator_named(definition.name());
  }
  return position->second = operator_named(op.operator_name);
}

}  // namespace tenon::paddle

// For the language bindings. Load a library of custom operators as `name`; `sink` receives a
// description of its operators as JSON, or what is wrong. An earlier library of that name
// ([a-z0-9_]*) is replaced. `path` is absolute.
extern "C" PADDLE_API tenon_status tenon_paddle_load_operators(const char* path, const char* name,
                                                               tenon_sink_fn sink, void* user) {
  using namespace tenon::paddle;
  ErrorSink err;
  std::string text;
  tenon_status status = guarded(err, [&] { text = describe(load(path, name)); });
  if (status != TENON_OK) text = tenon::host->err_text(err);
  sink(user, text.data(), text.size());
  return status;
}
