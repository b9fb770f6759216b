// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler.hpp"

#include <atomic>
#include <iterator>
#include <mutex>

#include "runtime/compiler_functions.hpp"
#include "runtime/library.hpp"
#include "runtime/vendor.hpp"

namespace gpu {
namespace {

CompilerFunctions compiler = {};

constexpr Symbol kCompilerSymbols[] = {
#define TENON_GPU_SYMBOL(result, member, cuda, hip, parameters) \
  {TENON_GPU_NAME(cuda, hip), offsetof(CompilerFunctions, member)},
    TENON_GPU_COMPILER_FUNCTIONS(TENON_GPU_SYMBOL)
#undef TENON_GPU_SYMBOL
};

std::mutex compiler_mutex;
std::atomic<bool> compiler_loaded{false};

// A program of the compiler, destroyed at the end of its scope.
struct Program {
  CompilerHandle handle = nullptr;
  ~Program() {
    if (handle) compiler.destroy(&handle);
  }
};

std::string log_of(const Program& program) {
  size_t bytes = 0;
  if (compiler.log_bytes(program.handle, &bytes) || bytes < 2) return "no message";
  std::string log(bytes, '\0');
  if (compiler.log(program.handle, log.data())) return "no message";
  log.resize(log.find('\0') == log.npos ? bytes : log.find('\0'));
  while (!log.empty() && log.back() == '\n') log.pop_back();
  return log;
}

}  // namespace

tenon_status load_compiler(tenon_err* err) try {
  if (compiler_loaded.load(std::memory_order_acquire)) return TENON_OK;
  std::lock_guard lock(compiler_mutex);
  if (compiler_loaded.load(std::memory_order_relaxed)) return TENON_OK;
  std::string why;
  void* library = open_library(vendor::kCompilerVariable, vendor::kCompilerNames, &why);
  if (!library)
    return fail(err, TENON_UNAVAILABLE, "the compiler was not found (%s); %s", why.c_str(),
                vendor::kInstallCompiler);
  CompilerFunctions found = {};
  if (const char* missing =
          find_symbols(library, kCompilerSymbols, std::size(kCompilerSymbols), &found))
    return fail(err, TENON_UNAVAILABLE, "the compiler lacks %s; expected %s or later, update it",
                missing, vendor::kOldestCompiler);
  compiler = found;
  compiler_loaded.store(true, std::memory_order_release);
  return TENON_OK;
} catch (const std::bad_alloc&) {
  return fail_host_memory(err);
}

std::string compiler_version() {
  int major = 0, minor = 0;
  compiler.version(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

tenon_status compile(const std::string& name, const std::string& source,
                     const std::string& architecture, std::string* binary, tenon_err* err) {
  Program program;
  CompilerResult result =
      compiler.create(&program.handle, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (result)
    return fail(err, TENON_INTERNAL, "program %s: %s", name.c_str(), compiler.error_text(result));
  const std::string chip = vendor::kArchitectureOption + architecture;
  const char* options[] = {chip.c_str(), "-std=c++17"};
  result = compiler.compile(program.handle, std::size(options), options);
  if (result)
    return fail(err, TENON_INVALID_ARGUMENT, "program %s does not compile for %s: %s: %.3000s",
                name.c_str(), architecture.c_str(), compiler.error_text(result),
                log_of(program).c_str());
  size_t bytes = 0;
  result = compiler.code_bytes(program.handle, &bytes);
  if (!result) {
    binary->assign(bytes, '\0');
    result = compiler.code(program.handle, binary->data());
  }
  return result ? fail(err, TENON_INTERNAL, "program %s: expected a binary for %s, got %s",
                       name.c_str(), architecture.c_str(), compiler.error_text(result))
                : TENON_OK;
}

}  // namespace gpu
