// SPDX-License-Identifier: Apache-2.0
// How ranks meet, and what is known of them. The thread is in heartbeat.cpp.
#include "control/meeting.hpp"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <tenon/error.hpp>

#include "control/hello.hpp"
#include "control/time.hpp"

namespace tenon::collectives {
namespace {

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw Error(TENON_UNAVAILABLE, "the system gave no random bytes");
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string with_letter(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

// Ranks with the same text see the same /dev/shm, and use it; or, behind this word, the same library of MPI.
constexpr char kMpi[] = "mpi:";
std::string machine_text(const MeetingOptions& options) {
  if (!options.mpi.empty())
    return kMpi + with_letter(options.mpi, ' ', '_');  // what is published has words
  const char* transport = getenv("TENON_COLLECTIVES_TRANSPORT");
  if (transport && strcmp(transport, "tcp") == 0) return random_token();
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat status = {};
  stat("/dev/shm", &status);
  return boot + "-" + std::to_string(status.st_dev) + "-" + std::to_string(status.st_ino) + "-" +
         std::to_string(geteuid());
}

std::mutex all_mutex;
std::set<Meeting*> all_meetings;

std::string list_of(const std::vector<int32_t>& ranks) {
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text + "]";
}

}  // namespace

Meeting::Meeting(Store& store, const MeetingOptions& options)
    : options_(options),
      machine_(machine_text(options)),
      peers_(static_cast<size_t>(options.size)) {
  const uint64_t deadline = deadline_after(options.timeout_ns);
  listener_ = listen_on(nullptr, 0);
  agree_on_token(store, deadline);
  publish(store, deadline);
  call_lower_ranks(deadline);
  await_higher_ranks(deadline);
  for (Peer& peer : peers_) peer.heard_at = now_ns();
  pokes_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (pokes_ < 0) throw Error(TENON_UNAVAILABLE, "the system has no descriptor left");
  {
    [[maybe_unused]] static const int is_registered =
        pthread_atfork(hold_for_fork, go_on_in_parent, go_on_in_child);
    std::lock_guard lock(all_mutex);
    all_meetings.insert(this);
  }
  // Signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Meeting::~Meeting() {
  {
    std::lock_guard lock(all_mutex);
    all_meetings.erase(this);
  }
  if (is_forked_) {
    new std::thread(std::move(thread_));  // kept for ever: the thread is in the parent
    return;
  }
  is_stopping_ = true;
  poke();
  thread_.join();
  close(pokes_);
}

// No other thread is inside of a meeting while the process is copied, or its mutex would stay locked in the copy.
void Meeting::hold_for_fork() {
  all_mutex.lock();
  for (Meeting* meeting : all_meetings) meeting->mutex_.lock();
}

void Meeting::go_on_in_parent() {
  for (Meeting* meeting : all_meetings) meeting->mutex_.unlock();
  all_mutex.unlock();
}

// A process made by fork holds copies of the connections, which would hide the end of this one.
void Meeting::go_on_in_child() {
  for (Meeting* meeting : all_meetings) {
    meeting->is_forked_ = true;
    meeting->listener_ = Socket();
    for (Peer& peer : meeting->peers_) peer.control = Socket();
    meeting->arrivals_ = Arrivals();
    meeting->data_.clear();
    close(std::exchange(meeting->pokes_, -1));
  }
  go_on_in_parent();
}

void Meeting::agree_on_token(Store& store, uint64_t deadline) {
  const std::string key = options_.name + "/token", own = random_token();
  bool is_first = true;
  if (options_.rank == 0) {
    token_ = store.compare_set(key, "", own);
    is_first = token_ == own;
  } else {
    token_ = get_patiently(store, key, 0, deadline);
    is_first = store.add(options_.name + "/taken/" + std::to_string(options_.rank), 1) == 1;
  }
  if (!is_first)
    throw Error(TENON_INVALID_ARGUMENT, "rank " + std::to_string(options_.rank) + " of " +
                                            options_.name +
                                            " has come twice; ranks must be different");
}

void Meeting::publish(Store& store, uint64_t deadline) {
  const auto key = [&](int32_t rank) { return options_.name + "/rank/" + std::to_string(rank); };
  store.set(key(options_.rank), std::to_string(options_.size) + " " + store.address() + " " +
                                    std::to_string(listener_.local_port()) + " " + machine_);
  for (int32_t rank = 0; rank < options_.rank; ++rank) {
    const std::string value = get_patiently(store, key(rank), rank, deadline);
    int size = 0;
    unsigned port = 0;
    char address[128], machine[kMachineBytes];
    if (sscanf(value.c_str(), "%d %127s %u %127s", &size, address, &port, machine) != 4)
      throw Error(TENON_DATA_LOSS, "the store has no address of rank " + std::to_string(rank));
    if (size != options_.size)
      throw Error(TENON_INVALID_ARGUMENT, "rank " + std::to_string(options_.rank) + " of " +
                                              std::to_string(options_.size) + " met rank " +
                                              std::to_string(rank) + " of " + std::to_string(size) +
                                              "; sizes must be equal");
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.address = address;
    peer.port = port;
    peer.machine = machine;
  }
}

std::string Meeting::get_patiently(Store& store, const std::string& key, int32_t from,
                                   uint64_t deadline) {
  for (;;) {
    check_interrupt();
    try {
      return store.get(key, std::min(deadline, deadline_after(kSecond / 2)));
    } catch (const Error& error) {
      if (error.code() != TENON_DEADLINE_EXCEEDED) throw;
    }
    if (time_left(deadline) == 0) never_came({from});
  }
}

void Meeting::never_came(const std::vector<int32_t>& missing) const {
  throw Error(TENON_DEADLINE_EXCEEDED,
              "rank " + std::to_string(options_.rank) + " of " + std::to_string(options_.size) +
                  " waited " + seconds_text(options_.timeout_ns) + " for ranks " +
                  list_of(missing) +
                  "; every rank must make its communicator with the same id and size");
}

void Meeting::call_lower_ranks(uint64_t deadline) {
  const Hello hello = make_hello(token_, kControl, options_.rank, machine_, "");
  for (int32_t rank = 0; rank < options_.rank; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.control = connect_to(peer.address, peer.port, deadline);
    peer.control.write(&hello, sizeof hello, deadline);
  }
}

void Meeting::await_higher_ranks(uint64_t deadline) {
  for (;;) {
    std::vector<int32_t> missing;
    for (int32_t rank = options_.rank + 1; rank < options_.size; ++rank)
      if (!peers_[static_cast<size_t>(rank)].control) missing.push_back(rank);
    if (missing.empty()) return;
    check_interrupt();
    if (time_left(deadline) == 0) never_came(missing);
    std::vector<pollfd> entries = {{listener_.get(), POLLIN, 0}};
    arrivals_.add_to(entries);
    poll(entries.data(), entries.size(), milliseconds_left(deadline, 250));
    if (entries[0].revents) arrivals_.accept(listener_);
    arrivals_.read(token_, options_.size, [this](const Hello& hello, Socket socket) {
      if (hello.purpose == kData) {  // that rank is ahead of this one
        data_[{hello.from, text_of(hello.group)}] = std::move(socket);
        return;
      }
      Peer& peer = peers_[static_cast<size_t>(hello.from)];
      peer.machine = text_of(hello.machine);
      peer.control = std::move(socket);
    });
  }
}

bool Meeting::is_one_machine(const std::vector<int32_t>& ranks) const {
  for (const int32_t rank : ranks)
    if (rank != options_.rank && peers_[static_cast<size_t>(rank)].machine != machine_)
      return false;
  return true;
}

void Meeting::check_same_transport() const {
  const auto text_of = [](const std::string& machine) {
    if (machine.rfind(kMpi, 0) != 0) return std::string("no MPI");
    return with_letter(machine.substr(strlen(kMpi)), '_', ' ');
  };
  for (int32_t rank = 0; rank < options_.size; ++rank) {
    const std::string& other = peers_[static_cast<size_t>(rank)].machine;
    if (rank != options_.rank && text_of(other) != text_of(machine_))
      throw Error(TENON_INVALID_ARGUMENT, "expected all ranks to ask for the same backend, got " +
                                              text_of(machine_) + " on rank " +
                                              std::to_string(options_.rank) + " and " +
                                              text_of(other) + " on rank " + std::to_string(rank));
  }
}

Failure Meeting::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void Meeting::check() const {
  if (is_forked_)
    throw Error(
        TENON_FAILED_PRECONDITION,
        "this process was made by fork and is no rank; make the group in it, or start it anew");
  if (!has_failed()) return;
  const Failure failure = this->failure();
  throw Error(failure.kind == TENON_COLLECTIVE_MISMATCH      ? TENON_INVALID_ARGUMENT
              : failure.kind == TENON_COLLECTIVE_PEER_FAILED ? TENON_UNAVAILABLE
              : failure.kind == TENON_COLLECTIVE_TIMEOUT     ? TENON_DEADLINE_EXCEEDED
                                                             : TENON_ABORTED,
              failure.text);
}

void Meeting::check_interrupt() const {
  if (options_.is_interrupted && options_.is_interrupted(options_.user))
    throw Error(TENON_CANCELLED, "the wait for other ranks was interrupted");
}

bool Meeting::is_here(int32_t rank) const {
  std::lock_guard lock(mutex_);
  return peers_[static_cast<size_t>(rank)].is_here;
}

int32_t Meeting::first_dead(const std::vector<int32_t>& ranks) const {
  std::lock_guard lock(mutex_);
  for (const int32_t rank : ranks) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!peer.is_here && !peer.said_goodbye) return rank;
  }
  return -1;
}

std::string Meeting::gone_text(int32_t rank) const {
  std::lock_guard lock(mutex_);
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  std::string text = "rank " + std::to_string(rank) + " is gone: ";
  text += peer.said_goodbye ? "it left its groups" : "its process ended or its connection was lost";
  if (!peer.last.sequence) return text + ", and no call of it was heard of";
  text += peer.last.end_ns ? " after " : " in ";
  return text + number_text(peer.last) + ", " + call_text(peer.last);
}

std::string Meeting::state_text(int32_t rank) const {
  std::lock_guard lock(mutex_);
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  const uint64_t silent = now_ns() - peer.heard_at;
  std::string text = "rank " + std::to_string(rank);
  if (silent > kSecond)
    text += " was last heard of " + seconds_text(silent) + " ago,";
  else
    text += " is alive,";
  if (!peer.last.sequence) return text + " no call of it was heard of";
  text += peer.last.end_ns ? " after " : " in ";
  return text + number_text(peer.last) + ", " + call_text(peer.last);
}

uint32_t Meeting::copy_peers(tenon_group_peer* out, uint32_t capacity) const {
  std::lock_guard lock(mutex_);
  uint32_t count = 0;
  for (int32_t rank = 0; rank < options_.size; ++rank) {
    if (rank == options_.rank) continue;
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (count < capacity) out[count] = {rank, peer.is_here, now_ns() - peer.heard_at, peer.last};
    ++count;
  }
  return count;
}

void Meeting::add_sleeper(Sleeper* sleeper) {
  std::lock_guard lock(mutex_);
  sleepers_.insert(sleeper);
}

void Meeting::remove_sleeper(Sleeper* sleeper) {
  if (is_forked_) return;  // a thread of the parent may have held the mutex
  std::lock_guard lock(mutex_);
  sleepers_.erase(sleeper);
}

Socket Meeting::connect_data(int32_t rank, const std::string& group, uint64_t deadline) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  Socket socket = connect_to(peer.address, peer.port, deadline);
  const Hello hello = make_hello(token_, kData, options_.rank, machine_, group);
  socket.write(&hello, sizeof hello, deadline);
  return socket;
}

Socket Meeting::await_data(int32_t rank, const std::string& group, uint64_t deadline) {
  // The news that a rank has left may come before the connection that it made while it was there.
  constexpr uint64_t kUnderWay = 2 * kSecond;
  uint64_t end_of_way = 0;  // 0: the rank is here
  for (;;) {
    check();
    check_interrupt();
    {
      std::lock_guard lock(mutex_);
      auto found = data_.find({rank, group});
      if (found != data_.end()) {
        Socket socket = std::move(found->second);
        data_.erase(found);
        return socket;
      }
    }
    if (end_of_way == 0 && !is_here(rank)) end_of_way = deadline_after(kUnderWay);
    if (end_of_way != 0 && time_left(end_of_way) == 0)
      throw Error(TENON_UNAVAILABLE, gone_text(rank) + "; a group with it was to be made");
    if (time_left(deadline) == 0)
      throw Error(TENON_DEADLINE_EXCEEDED, "rank " + std::to_string(options_.rank) +
                                               " waited for " + state_text(rank) +
                                               " to make the group " + group);
    const timespec pause = {0, 2'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace tenon::collectives
