// SPDX-License-Identifier: Apache-2.0
// Two families of libraries have different handles and constants, so that no one header describes both. What they
// agree on, the functions of MPI 3.0, is here once, as a template over the handle.
#include "mpi/library.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <tenon/error.hpp>
#include <tenon/shared_libraries.hpp>

namespace tenon::collectives {
namespace {

constexpr int kThreadMultiple = 3;  // in all of them, as MPI_SUCCESS is 0
constexpr int kTextBytes = 8192;    // of a version; the largest of these libraries
constexpr int kMessages = 0;  // the tag of all messages: each group has a communicator of its own

template <class Handle>
struct Functions {
  int (*initialized)(int*);
  int (*finalized)(int*);
  int (*init_thread)(int*, char***, int, int*);
  int (*query_thread)(int*);
  int (*finalize)();
  int (*comm_rank)(Handle, int*);
  int (*comm_size)(Handle, int*);
  int (*comm_group)(Handle, Handle*);
  int (*group_incl)(Handle, int, const int*, Handle*);
  int (*group_free)(Handle*);
  int (*comm_create_group)(Handle, Handle, int, Handle*);
  int (*comm_set_errhandler)(Handle, Handle);
  int (*comm_free)(Handle*);
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*);
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*);
  int (*test)(Handle*, int*, void*);
  int (*wait)(Handle*, void*);
  int (*cancel)(Handle*);
  int (*get_count)(const void*, Handle, int*);
  int (*error_string)(int, char*, int*);
};
constexpr const char* kNames[] = {"MPI_Initialized",
                                  "MPI_Finalized",
                                  "MPI_Init_thread",
                                  "MPI_Query_thread",
                                  "MPI_Finalize",
                                  "MPI_Comm_rank",
                                  "MPI_Comm_size",
                                  "MPI_Comm_group",
                                  "MPI_Group_incl",
                                  "MPI_Group_free",
                                  "MPI_Comm_create_group",
                                  "MPI_Comm_set_errhandler",
                                  "MPI_Comm_free",
                                  "MPI_Isend",
                                  "MPI_Irecv",
                                  "MPI_Test",
                                  "MPI_Wait",
                                  "MPI_Cancel",
                                  "MPI_Get_count",
                                  "MPI_Error_string"};
static_assert(sizeof(Functions<void*>) == sizeof kNames);

template <class Handle>
struct Constants {
  Handle world, byte, errors_return;
};

// A status is larger in no library, and read by its own functions alone.
struct Status {
  alignas(16) char bytes[128];
};

std::atomic<bool> is_abandoned = false;
std::atomic<void (*)()> last_work = nullptr;

template <class Handle>
class Library final : public Mpi {
 public:
  Library(void* library, const Constants<Handle>& constants, const std::string& version)
      : constants_(constants), version_(version) {
    void** slot = reinterpret_cast<void**>(&functions_);
    for (const char* name : kNames)
      if (!(*slot++ = dlsym(library, name)))
        throw Error(TENON_UNAVAILABLE, version_ + " has no " + name);
  }

  void start() override {
    std::lock_guard lock(mutex_);
    if (size_ > 0) return;
    initialise();
    check(functions_.comm_rank(constants_.world, &rank_), "MPI_Comm_rank");
    check(functions_.comm_size(constants_.world, &size_), "MPI_Comm_size");
  }

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return size_; }
  std::string version() const override { return version_; }

  MpiHandle create_communicator(const std::vector<int32_t>& ranks) const override {
    Handle world = {}, group = {}, made = {};
    check(functions_.comm_group(constants_.world, &world), "MPI_Comm_group");
    check(functions_.group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group),
          "MPI_Group_incl");
    // Of groups that are made at the same time none has a rank of another: no tag tells them apart.
    check(functions_.comm_create_group(constants_.world, group, 0, &made), "MPI_Comm_create_group");
    check(functions_.comm_set_errhandler(made, constants_.errors_return),
          "MPI_Comm_set_errhandler");
    functions_.group_free(&group);
    functions_.group_free(&world);
    return out(made);
  }
  void free_communicator(MpiHandle& communicator) const override {
    Handle handle = in(communicator);
    check(functions_.comm_free(&handle), "MPI_Comm_free");
    communicator = out(handle);
  }

  MpiHandle send(const void* data, size_t size, int32_t peer,
                 MpiHandle communicator) const override {
    Handle request = {};
    check(functions_.isend(data, static_cast<int>(size), constants_.byte, peer, kMessages,
                           in(communicator), &request),
          "MPI_Isend");
    return out(request);
  }
  MpiHandle receive(void* data, size_t size, int32_t peer, MpiHandle communicator) const override {
    Handle request = {};
    check(functions_.irecv(data, static_cast<int>(size), constants_.byte, peer, kMessages,
                           in(communicator), &request),
          "MPI_Irecv");
    return out(request);
  }
  bool test(MpiHandle& request, size_t* bytes) const override {
    Handle handle = in(request);
    int is_done = 0, count = 0;
    Status status;
    check(functions_.test(&handle, &is_done, &status), "MPI_Test");
    request = out(handle);
    if (is_done && bytes) {
      check(functions_.get_count(&status, constants_.byte, &count), "MPI_Get_count");
      *bytes = static_cast<size_t>(count);
    }
    return is_done;
  }
  void cancel(MpiHandle& request) const override {
    Handle handle = in(request);
    Status status;
    check(functions_.cancel(&handle), "MPI_Cancel");
    check(functions_.wait(&handle, &status), "MPI_Wait");
    request = out(handle);
  }

 private:
  static Handle in(MpiHandle handle) {
    Handle own;
    memcpy(&own, &handle.bits, sizeof own);
    return own;
  }
  static MpiHandle out(Handle own) {
    MpiHandle handle;
    memcpy(&handle.bits, &own, sizeof own);
    return handle;
  }

  void check(int result, const char* function) const {
    if (result == 0) return;
    char text[kTextBytes] = "";
    int size = 0;
    functions_.error_string(result, text, &size);
    throw Error(TENON_UNAVAILABLE, version_ + ": " + function + ": " + text);
  }

  // The program may have done it before, by another package that uses the same library.
  void initialise() {
    int is_initialised = 0, is_finalised = 0, level = 0;
    check(functions_.finalized(&is_finalised), "MPI_Finalized");
    if (is_finalised)
      throw Error(TENON_FAILED_PRECONDITION,
                  version_ + " was finalised before, and cannot begin again");
    check(functions_.initialized(&is_initialised), "MPI_Initialized");
    if (is_initialised) {
      check(functions_.query_thread(&level), "MPI_Query_thread");
    } else {
      check(functions_.init_thread(nullptr, nullptr, kThreadMultiple, &level), "MPI_Init_thread");
      check(functions_.comm_set_errhandler(constants_.world, constants_.errors_return),
            "MPI_Comm_set_errhandler");
      finalize_ = functions_.finalize;
      process_ = getpid();
      atexit([] {
        if (getpid() != process_ || is_abandoned) return;
        if (last_work) last_work.load()();
        if (!is_abandoned) finalize_();
      });
    }
    if (level < kThreadMultiple)
      throw Error(TENON_UNSUPPORTED,
                  version_ + ": expected the thread level MPI_THREAD_MULTIPLE (3), got " +
                      std::to_string(level) +
                      (is_initialised ? "; the program initialised MPI itself, with less"
                                      : "; the library was built without it"));
  }

  std::mutex mutex_;  // of the start
  Constants<Handle> constants_;
  std::string version_;
  Functions<Handle> functions_;
  int rank_ = 0, size_ = 0;
  static inline int (*finalize_)() = nullptr;
  static inline pid_t process_ = 0;  // those that are made by fork are no ranks
};

std::string version_of(void* library) {
  using GetVersion = int (*)(char*, int*);
  const auto get = reinterpret_cast<GetVersion>(dlsym(library, "MPI_Get_library_version"));
  char text[kTextBytes] = "";
  int size = 0;
  if (get) get(text, &size);
  // "Open MPI v4.1.4, package: ..."; "MPICH Version:\t4.0.2\nMPICH Release date: ..."
  std::string first(text, strcspn(text, ",\n"));
  std::replace(first.begin(), first.end(), '\t', ' ');
  return first.substr(0, 64);  // enough to tell libraries apart
}

std::unique_ptr<Mpi> use(void* library) {
  const std::string version = version_of(library);
  // Open MPI's constants are addresses of its data.
  if (void* world = dlsym(library, "ompi_mpi_comm_world")) {
    const Constants<void*> constants = {world, dlsym(library, "ompi_mpi_byte"),
                                        dlsym(library, "ompi_mpi_errors_return")};
    return std::make_unique<Library<void*>>(library, constants, version);
  }
  // Those of MPICH are numbers, which Intel's MPI and MVAPICH have agreed to share.
  if (version.rfind("MPICH", 0) == 0 || version.rfind("Intel(R) MPI", 0) == 0 ||
      version.rfind("MVAPICH", 0) == 0) {
    constexpr Constants<int> kConstants = {0x44000000, 0x4c00010d, 0x54000001};
    return std::make_unique<Library<int>>(library, kConstants, version);
  }
  throw Error(
      TENON_UNSUPPORTED,
      "expected Open MPI, MPICH, or a library with MPICH's handles (Intel MPI, MVAPICH), got " +
          (version.empty() ? std::string("a library without MPI_Get_library_version")
                           : "\"" + version + "\""));
}

bool has_any(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (getenv(variable)) return true;
  return false;
}

std::unique_ptr<Mpi> open(int32_t size) {
  const std::vector<std::string> open_mpi = {"libmpi.so.40", "libmpi.so.80"},
                                 mpich = {"libmpich.so.12", "libmpi.so.12"};
  std::vector<std::string> names = open_mpi;
  names.insert(names.end(), mpich.begin(), mpich.end());
  // A process has one MPI: a second library beside one that is in use would be another world.
  for (const std::string& name : names)
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE))
      return use(library);
  const bool is_open_mpi = has_any({"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}),
             is_mpich = has_any({"PMI_RANK", "PMI_SIZE", "PMI_FD"});
  if (!is_open_mpi && !is_mpich && size > 1)
    throw Error(
        TENON_FAILED_PRECONDITION,
        "backend \"mpi\": expected ranks that mpirun or srun started, got a process without their "
        "variables; start it with `mpirun -n " +
            std::to_string(size) + " python ...`");
  if (is_open_mpi)
    names = open_mpi;
  else if (is_mpich)
    names = mpich;
  const std::string named = environment_text("TENON_MPI");
  if (!named.empty()) names = {named};
  std::string problem;
  void* library = open_first_library(names, &problem);
  if (!library)
    throw Error(
        TENON_UNAVAILABLE,
        std::string("backend \"mpi\" needs the library of the MPI that started this process "
                    "(Debian: apt-get install ") +
            (is_mpich && !is_open_mpi ? "mpich" : "openmpi-bin") +
            "; or its path in the variable TENON_MPI): " + problem);
  return use(library);
}

}  // namespace

Mpi& mpi(int32_t size) {
  // Kept for ever: groups of other threads may use it until the process ends.
  static Mpi& library = *open(size).release();
  return library;
}

void abandon_mpi() { is_abandoned = true; }

void before_mpi_ends(void (*work)()) { last_work = work; }

}  // namespace tenon::collectives
