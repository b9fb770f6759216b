// SPDX-License-Identifier: Apache-2.0
// What connects one rank of a group to each of the others: a stream of bytes in both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/meeting.hpp"

namespace tenon::collectives {

class Links : public Sleeper {
 public:
  // As many bytes as can be moved at once; 0: none.
  virtual size_t try_write(int32_t peer, const void* data, size_t size) = 0;
  virtual size_t try_read(int32_t peer, void* data, size_t size) = 0;
  // Whether nothing can come from a rank that has left, but what was there when it was known to have left.
  virtual bool has_ended(int32_t peer) const = 0;
  // How many bytes a rank may be ahead of another before it has to wait, about.
  virtual size_t room() const = 0;
  // After writing, once for all that was written: the rank may look.
  virtual void tell(int32_t peer) = 0;
  // Before the tries whose failure makes the rank sleep, so that nothing is missed between the two.
  virtual uint32_t look() = 0;
  // Until something may be moved from or to these ranks, or wake() was called, or the deadline.
  virtual void sleep(uint32_t looked, const std::vector<int32_t>& readers,
                     const std::vector<int32_t>& writers, uint64_t deadline) = 0;
};

// `ranks` are those of the meeting, in the order of the group, of which `rank` is this one. Returns when all of them
// have come; `path` is the same text on all of them, and of no other group.
std::unique_ptr<Links> make_shared_memory(Meeting& meeting, const std::string& path,
                                          const std::vector<int32_t>& ranks, int32_t rank);
std::unique_ptr<Links> make_sockets(Meeting& meeting, const std::string& path,
                                    const std::vector<int32_t>& ranks, int32_t rank);
// Of a meeting whose transport is MPI.
std::unique_ptr<Links> make_mpi(Meeting& meeting, const std::string& path,
                                const std::vector<int32_t>& ranks, int32_t rank);

}  // namespace tenon::collectives
