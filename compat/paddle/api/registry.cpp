// SPDX-License-Identifier: Apache-2.0
#include "api/registry.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>

namespace tenon::paddle {
namespace {

struct Registry {
  std::mutex mutex;
  ::paddle::OpMetaInfoMap operators;
  std::vector<Fault> faults;
  ::paddle::OpMetaInfo discarded;  // what the rest of a faulty registration writes into
};
Registry& registry() {
  static Registry* instance = new Registry;  // outlives the static destructors of libraries
  return *instance;
}

// The file that a piece of code is in.
std::string library_of(const void* address) {
  Dl_info found;
  return dladdr(address, &found) && found.dli_fname ? found.dli_fname : "the program";
}

constexpr const char* kMacros[] = {"PD_BUILD_OP", "PD_BUILD_GRAD_OP", "PD_BUILD_DOUBLE_GRAD_OP"};

}  // namespace

std::vector<Fault> take_faults() {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  return std::exchange(self.faults, {});
}

std::vector<std::string> registered_by(const std::string& library) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  std::vector<std::string> names;
  for (const auto& [name, family] : self.operators)
    if (!family.empty() && family[0].library == library) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void rename_library(const std::string& opened_as, const std::string& path) {
  if (opened_as == path) return;
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  for (auto& [name, family] : self.operators)
    for (::paddle::OpMetaInfo& info : family)
      if (info.library == opened_as) info.library = path;
  for (Fault& fault : self.faults) {
    if (fault.library != opened_as) continue;
    fault.library = path;
    for (size_t at = 0; (at = fault.text.find(opened_as, at)) != std::string::npos;)
      fault.text.replace(at, opened_as.size(), path);
  }
}

void forget(const std::vector<std::string>& names) {
  Registry& self = registry();
  std::lock_guard lock(self.mutex);
  for (const std::string& name : names) self.operators.erase(name);
}

}  // namespace tenon::paddle

extern "C" paddle::OpMetaInfoMap& PD_GetOpMetaInfoMap() {
  return tenon::paddle::registry().operators;
}

namespace paddle {

using tenon::paddle::registry;

// Runs in static initialisers, from which nothing may be thrown: what is wrong is told when the
// library has been loaded.
OpMetaInfoBuilder::OpMetaInfoBuilder(std::string name, size_t index)
    : name_(std::move(name)), index_(index) {
  std::string library = tenon::paddle::library_of(__builtin_return_address(0));
  std::lock_guard lock(registry().mutex);
  auto& family = registry().operators[name_];
  std::string macro = std::string(tenon::paddle::kMacros[index_]) + "(" + name_ + ")";
  std::string fault;
  if (family.size() > index_)
    fault = macro + " in " + library + ": the operator is registered already by " +
            family[index_].library + "; rename one of the two";
  else if (index_ > 0 && !family.empty() && family[0].library != library)
    fault = macro + " in " + library + ": the operator belongs to " + family[0].library;
  else if (family.size() < index_)
    fault = macro + " in " + library + ": expected " + tenon::paddle::kMacros[index_ - 1] + "(" +
            name_ + ") before it";
  if (!fault.empty()) {
    if (family.empty()) registry().operators.erase(name_);
    registry().faults.push_back({library, fault});
    index_ = SIZE_MAX;
    return;
  }
  static constexpr const char* kSuffixes[] = {"", "_grad", "_grad_grad"};
  OpMetaInfo& info = family.emplace_back();
  info.name = name_ + kSuffixes[index_];
  info.library = library;
}

OpMetaInfo& OpMetaInfoBuilder::info() {
  if (index_ == SIZE_MAX) return registry().discarded;
  return registry().operators.at(name_).at(index_);
}

OpMetaInfoBuilder& OpMetaInfoBuilder::Inputs(std::vector<std::string>&& inputs) {
  info().inputs = std::move(inputs);
  return *this;
}
OpMetaInfoBuilder& OpMetaInfoBuilder::Outputs(std::vector<std::string>&& outputs) {
  info().outputs = std::move(outputs);
  return *this;
}
OpMetaInfoBuilder& OpMetaInfoBuilder::Attrs(std::vector<std::string>&& attrs) {
  info().attrs = std::move(attrs);
  return *this;
}
OpMetaInfoBuilder& OpMetaInfoBuilder::SetInplaceMap(
    std::unordered_map<std::string, std::string>&& map) {
  info().inplace_map = std::move(map);
  return *this;
}
OpMetaInfoBuilder& OpMetaInfoBuilder::SetKernelFn(KernelFunction function) {
  info().kernel = function;
  return *this;
}
OpMetaInfoBuilder& OpMetaInfoBuilder::SetInferShapeFn(InferShapeFunction function) {
  info().infer_shape = function;
  return *this;
}
OpMetaInfoBuilder& OpMetaInfoBuilder::SetInferDtypeFn(InferDtypeFunction function) {
  info().infer_dtype = function;
  return *this;
}

}  // namespace paddle
