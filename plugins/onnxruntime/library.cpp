// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <dlfcn.h>

#include <tenon/error.hpp>
#include <tenon/plugin.hpp>
#include <tenon/shared_libraries.hpp>

#include <algorithm>
#include <filesystem>

namespace tenon::onnxruntime {
namespace {

constexpr const char* kVariable = "TENON_ONNXRUNTIME";
constexpr const char* kFix =
    "install ONNX Runtime 1.14 or later (pip install onnxruntime), or set TENON_ONNXRUNTIME to the "
    "path of its library";

// The wheel puts its library, whose name ends in the version, into onnxruntime/capi.
std::vector<std::string> paths_to_try() {
  namespace fs = std::filesystem;
  const std::string named = environment_text(kVariable);
  if (!named.empty()) return {named};
  std::vector<std::string> paths;
  std::error_code problem;
  for (const fs::path& folder : folders_above(reinterpret_cast<void*>(&paths_to_try)))
    for (const auto& entry : fs::directory_iterator(folder / "onnxruntime" / "capi", problem))
      if (entry.path().filename().string().starts_with("libonnxruntime.so"))
        paths.push_back(entry.path());
  std::sort(paths.rbegin(), paths.rend());
  paths.insert(paths.end(), {"libonnxruntime.so.1", "libonnxruntime.so"});
  return paths;
}

}  // namespace

// Never destroyed: threads of the library may run until the process ends.
const Library& Library::get() {
  static const Library* instance = new Library;
  if (!instance->problem_.empty()) throw Error(TENON_UNAVAILABLE, instance->problem_);
  return *instance;
}

Library::Library() {
  try {
    open();
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
  const std::string text = problem_.empty() ? "ONNX Runtime " + version_ : problem_;
  host->log(0, text.data(), text.size());
}

void Library::open() {
  std::string reasons;
  void* library = open_first_library(paths_to_try(), &reasons);
  if (!library)
    throw Error(TENON_UNAVAILABLE, "onnxruntime: expected a library of ONNX Runtime, got none (" +
                                       reasons + "); " + kFix);
  const auto base = reinterpret_cast<const ApiBase* (*)()>(::dlsym(library, "OrtGetApiBase"));
  if (!base)
    throw Error(
        TENON_UNAVAILABLE,
        std::string("onnxruntime: expected a library with OrtGetApiBase, got one that is not "
                    "ONNX Runtime; ") +
            kFix);
  version_ = base()->version();
  const auto* table = static_cast<void* const*>(base()->get_api(kApiVersion));
  if (!table)
    throw Error(TENON_UNAVAILABLE,
                "onnxruntime: expected ONNX Runtime 1.14 or later, got " + version_ + "; " + kFix);
#define TENON_ONNXRUNTIME_TAKE(index, name, result, parameters) \
  api_.name = reinterpret_cast<decltype(api_.name)>(table[index]);
  TENON_ONNXRUNTIME_FUNCTIONS(TENON_ONNXRUNTIME_TAKE)
#undef TENON_ONNXRUNTIME_TAKE
  constexpr int kErrors = 3, kArena = 1, kDefaultMemory = 0;
  check(api_.create_env(kErrors, "tenon", &env_), "environment");
  check(api_.disable_telemetry(env_), "environment");
  check(api_.create_cpu_memory_info(kArena, kDefaultMemory, &host_memory_), "memory");
  char** names = nullptr;
  int count = 0;
  check(api_.available_providers(&names, &count), "providers");
  providers_.assign(names, names + count);
  check(api_.release_available_providers(names, count), "providers");
}

void Library::check(Status* status, const char* what) const {
  if (!status) return;
  const std::string text = std::string("onnxruntime: ") + what + ": " + api_.error_text(status);
  constexpr int kInvalidArgument = 2, kNotImplemented = 9;
  const int code = api_.error_code(status);
  api_.release_status(status);
  throw Error(code == kNotImplemented    ? TENON_UNSUPPORTED
              : code == kInvalidArgument ? TENON_INVALID_ARGUMENT
                                         : TENON_UNKNOWN,
              text);
}

}  // namespace tenon::onnxruntime
