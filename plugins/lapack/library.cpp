// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <tenon/shared_libraries.hpp>
#include <tenon/status.hpp>

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <vector>

namespace tenon::lapack {
namespace {

// Names without the letter of the element type; two names where complex routines have another.
struct Name {
  const char* real;
  const char* complex;
};
constexpr Name kNames[] = {
    {"potrf", "potrf"}, {"getrf", "getrf"}, {"getri", "getri"}, {"gesv", "gesv"},
    {"trsm", "trsm"},   {"gemm", "gemm"},   {"geqrf", "geqrf"}, {"orgqr", "ungqr"},
    {"gesdd", "gesdd"}, {"syevd", "heevd"}, {"geev", "geev"},   {"gelsd", "gelsd"},
    {"sytrf", "sytrf"}, {"sytrs", "sytrs"}, {"sytrf", "hetrf"}, {"sytrs", "hetrs"}};
static_assert(sizeof(Routines<float>) == sizeof kNames / sizeof *kNames * sizeof(void*));

// How a library decorates names: scipy_dgetrf_64_ is that of a wheel of OpenBLAS with wide integers.
struct Decoration {
  const char *before, *after;
  bool has_64_bits;
};
constexpr Decoration kDecorations[] = {{"", "_", false},
                                       {"scipy_", "_", false},
                                       {"scipy_", "_64_", true},
                                       {"", "_64_", true},
                                       {"", "_64", true}};

void* find(void* file, const Decoration& decoration, const std::string& name) {
  return ::dlsym(file, (decoration.before + name + decoration.after).c_str());
}

template <class T>
bool fill(Routines<T>& routines, void* file, const Decoration& decoration, char letter) {
  void** slot = reinterpret_cast<void**>(&routines);
  for (const Name& name : kNames) {
    *slot =
        find(file, decoration, std::string(1, letter) + (kIsComplex<T> ? name.complex : name.real));
    if (!*slot++) return false;
  }
  return true;
}

// A function of OpenBLAS, or NULL: wheels decorate the names of these, too.
void* find_openblas(void* file, const std::string& name) {
  for (const char* before : {"", "scipy_"})
    for (const char* after : {"", "64_"})
      if (void* found = ::dlsym(file, (before + name + after).c_str())) return found;
  return nullptr;
}

// The instructions that the library computes with, as OpenBLAS names them; "" for other libraries.
std::string core_of(void* file) {
  void* found = find_openblas(file, "openblas_get_corename");
  const char* name = found ? reinterpret_cast<const char* (*)()>(found)() : nullptr;
  return name ? name : "";
}

// The name of the kernels in OpenBLAS that suit this processor; NULL where its own choice is as good.
const char* better_core(const std::string& chosen) {
#if defined(__x86_64__)
  // What an OpenBLAS computes with that is older than the processor.
  if (chosen != "Prescott" && chosen != "Generic") return nullptr;
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

// The library by its path. An OpenBLAS that does not know the processor computes with SSE3, three times slower: it is
// loaded once more, and told. It reads the variable while it is loaded, and not where another part of the process
// has loaded it before.
void* load(const std::string& path) {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  void* file = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* core = file && !std::getenv(kVariable) ? better_core(core_of(file)) : nullptr;
  if (!core) return file;
  ::dlclose(file);
  ::setenv(kVariable, core, 0);
  file = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ::unsetenv(kVariable);
  return file;
}

// OpenBLAS has threads of its own, which wait for work in loops on the cores that the host's threads
// use, and which a batch in parallel would multiply. One thread also makes results independent of the
// number of cores. Batches run in parallel on the host's threads.
void limit_threads(void* file) {
  void* found = find_openblas(file, "openblas_set_num_threads");
  if (!found) return;
  const char* wanted = std::getenv("TENON_LAPACK_THREADS");
  reinterpret_cast<void (*)(int)>(found)(wanted ? std::max(1, std::atoi(wanted)) : 1);
}

// The wheels scipy-openblas32 and -64, where they are installed beside the package of this plugin.
std::vector<std::string> wheels() {
  return files_in(folders_above(reinterpret_cast<void*>(&wheels)),
                  {"scipy_openblas32/lib/libscipy_openblas.so",
                   "scipy_openblas64/lib/libscipy_openblas64_.so"});
}

bool open(const std::string& path, Library& library) {
  void* file = load(path);
  if (!file) return false;
  for (const Decoration& decoration : kDecorations) {
    if (fill(library.s, file, decoration, 's') && fill(library.d, file, decoration, 'd') &&
        fill(library.c, file, decoration, 'c') && fill(library.z, file, decoration, 'z')) {
      library.has_64_bits = decoration.has_64_bits;
      library.name = path;
      limit_threads(file);
      return true;
    }
  }
  ::dlclose(file);
  return false;
}

}  // namespace

const Library* library(const char* op, tenon_err* err) {
  static std::mutex mutex;
  static Library found;
  const std::lock_guard lock(mutex);
  if (!found.name.empty()) return &found;
  std::vector<std::string> paths;
  if (const std::string wanted = environment_text("TENON_LAPACK"); !wanted.empty()) {
    paths = {wanted};
  } else {
    paths = wheels();
    paths.insert(paths.end(), {"libopenblas.so.0", "liblapack.so.3", "libmkl_rt.so.2"});
  }
  // A failure is not remembered: a later call may find what was installed or set in between.
  std::string tried;
  for (const std::string& path : paths) {
    if (open(path, found)) return &found;
    tried += (tried.empty() ? "" : ", ") + path;
  }
  fail_format(err, TENON_UNAVAILABLE,
              "[%s] expected a LAPACK library, found none in %s; install one (pip install "
              "scipy-openblas32, or apt-get install libopenblas0-pthread), or set TENON_LAPACK to "
              "the path of one",
              op, tried.c_str());
  return nullptr;
}

}  // namespace tenon::lapack
