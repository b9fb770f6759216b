// SPDX-License-Identifier: Apache-2.0
#include "control/arrivals.hpp"

#include <tenon/error.hpp>

#include "control/time.hpp"

namespace tenon::collectives {
namespace {

constexpr uint64_t kPatience = 5 * kSecond;
// Ranks say who they are as soon as they are connected, so that those that are dropped for new ones are strangers.
constexpr size_t kMaxArrivals = 1024;

}  // namespace

void Arrivals::accept(const Socket& listener) {
  while (Socket socket = accept_from(listener, 0)) {
    if (arrivals_.size() == kMaxArrivals) arrivals_.pop_front();
    arrivals_.push_back({std::move(socket), deadline_after(kPatience), {}});
  }
}

void Arrivals::add_to(std::vector<pollfd>& entries) const {
  for (const Arrival& arrival : arrivals_) entries.push_back({arrival.socket.get(), POLLIN, 0});
}

void Arrivals::read(const std::string& token, int32_t size,
                    const std::function<void(const Hello&, Socket)>& take) {
  for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
    bool is_over = time_left(arrival->deadline) == 0;
    try {
      char* hello = reinterpret_cast<char*>(&arrival->hello);
      arrival->has_read += arrival->socket.try_read(hello + arrival->has_read,
                                                    sizeof arrival->hello - arrival->has_read);
    } catch (const Error&) {  // it was closed
      is_over = true;
    }
    if (arrival->has_read == sizeof arrival->hello) {
      is_over = true;
      if (is_valid(arrival->hello, token, size)) take(arrival->hello, std::move(arrival->socket));
    }
    arrival = is_over ? arrivals_.erase(arrival) : std::next(arrival);
  }
}

}  // namespace tenon::collectives
