// SPDX-License-Identifier: Apache-2.0
#include "service/process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <system_error>
#include <tenon/tensor.hpp>
#include <thread>

extern char** environ;

namespace tenon::isolated {
namespace {

// <prefix>/bin/tenon-plugin-host, where <prefix>/lib/libtenon.so is: its copy of the host is ours.
std::string find_program() {
  Dl_info info{};
  char path[PATH_MAX];
  if (!dladdr(reinterpret_cast<const void*>(host->fail), &info) || !info.dli_fname ||
      !realpath(info.dli_fname, path))
    return {};
  std::string program = path;
  for (int i = 0; i < 2; ++i) program.resize(std::min(program.size(), program.rfind('/')));
  return program + "/bin/tenon-plugin-host";
}

std::string describe_status(const siginfo_t& info) {
  const std::string number = std::to_string(info.si_status);
  if (info.si_code == CLD_EXITED) return "died: it exited with code " + number;
  const char* name = sigdescr_np(info.si_status);
  return "died: signal " + number + " (" + (name ? name : "unknown") + ")";
}

// What posix_spawn is told, and takes back.
struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSettings(int shared_descriptor) {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, shared_descriptor, kSharedDescriptor);
    // A process group of its own: Ctrl-C is for the program to handle.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

std::shared_ptr<Process> Process::start(tenon_err* err) try {
  std::shared_ptr<Process> self(new Process);
  self->program_ = find_program();
  if (!self->map_shared(err)) return nullptr;
  // The kernel ends the process when the thread that started it ends. So that is one which lives as
  // long as the process, and no signal handler of the program ever runs on it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([self] { self->keep(); }).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  self->start_result_.wait(kNotStarted);
  if (const int error = self->start_result_.load()) {
    fail(err, TENON_UNAVAILABLE,
         "isolated: cannot start " + self->program_ + ": " + strerror(error) +
             "; it is installed beside libtenon.so, as ../bin/tenon-plugin-host");
    return nullptr;
  }
  return self;
} catch (const std::bad_alloc&) {
  fail_host_memory(err);
  return nullptr;
} catch (const std::system_error& error) {
  fail(err, TENON_UNAVAILABLE, std::string("isolated: cannot start a thread: ") + error.what());
  return nullptr;
}

Process::~Process() {
  if (shared_) munmap(shared_, sizeof *shared_);
  if (descriptor_ >= 0) close(descriptor_);
}

bool Process::map_shared(tenon_err* err) {
  descriptor_ = memfd_create("tenon-isolated", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void* memory = MAP_FAILED;
  // The seals: a process that shrinks it would turn our next access into SIGBUS.
  if (descriptor_ >= 0 && ftruncate(descriptor_, sizeof(Shared)) == 0 &&
      fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    fail(err, TENON_OUT_OF_MEMORY,
         std::string("isolated: cannot make shared memory: ") + strerror(errno));
    return false;
  }
  madvise(memory, sizeof(Shared), MADV_DONTFORK);
  shared_ = static_cast<Shared*>(memory);  // zeros, as atomic words and numbers begin
  shared_->magic = kMagic;
  shared_->version = kWireVersion;
  shared_->bytes = sizeof(Shared);
  return true;
}

int Process::spawn() {
  SpawnSettings settings(descriptor_);
  const std::string parent = std::to_string(getpid());
  char* const arguments[] = {program_.data(), const_cast<char*>(parent.c_str()), nullptr};
  return posix_spawn(&id_, program_.c_str(), &settings.files, &settings.attributes, arguments,
                     environ);
}

void Process::keep() {
  const int error = spawn();
  start_result_.store(error);
  start_result_.notify_all();
  if (error == 0) watch();
}

void Process::watch() {
  siginfo_t info{};
  int result;
  // WNOWAIT: its process id is not reused until no thread here can signal it any more.
  while ((result = waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT)) != 0 &&
         errno == EINTR) {
  }
  std::lock_guard lock(mutex_);
  is_reaped_ = true;
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
  // A program that ignores SIGCHLD, or waits for everything, takes the status away from us.
  if (ending_.empty()) ending_ = result == 0 ? describe_status(info) : "died";
  has_ended_.store(true, std::memory_order_release);
  is_gone_.store(true, std::memory_order_release);
  for (Lane& lane : shared_->lanes) announce_end(lane);
  changed_.notify_all();
}

std::string Process::how_it_ended() const {
  std::lock_guard lock(mutex_);
  return ending_;
}

void Process::end(const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (ending_.empty()) ending_ = reason;
  has_ended_.store(true, std::memory_order_release);
  if (!is_reaped_) kill(id_, SIGKILL);
}

bool Process::wait_gone(uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                           [this] { return is_gone(); });
}

}  // namespace tenon::isolated
