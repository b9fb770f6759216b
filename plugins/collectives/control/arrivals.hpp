// SPDX-License-Identifier: Apache-2.0
// Connections that were accepted and have not said yet who they are. No rank waits for one of them: a stranger that
// connects and says nothing, or says it slowly, costs the ranks no time.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "control/hello.hpp"
#include "control/socket.hpp"

namespace tenon::collectives {

class Arrivals {
 public:
  // Takes those that wait at the listener. Throws if the system gives out no more.
  void accept(const Socket& listener);
  // Entries for poll(), one for each connection.
  void add_to(std::vector<pollfd>& entries) const;
  // Gives `take` the connections of ranks that have said all of their first words, and drops those of strangers, and
  // those that are late.
  void read(const std::string& token, int32_t size,
            const std::function<void(const Hello&, Socket)>& take);

 private:
  struct Arrival {
    Socket socket;
    uint64_t deadline;
    Hello hello;
    size_t has_read = 0;
  };
  std::list<Arrival> arrivals_;  // the oldest first
};

}  // namespace tenon::collectives
