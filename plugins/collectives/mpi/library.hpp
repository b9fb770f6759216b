// SPDX-License-Identifier: Apache-2.0
// What is used of MPI, whichever library it is: bytes between ranks, and communicators of some of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::collectives {

// A communicator or a request of the library: an integer in MPICH, a pointer in Open MPI.
struct MpiHandle {
  uint64_t bits = 0;
};

// Every call may be made by any thread, and throws what the library said.
class Mpi {
 public:
  virtual ~Mpi() = default;

  // Initialises the library, if the program has not, and may wait for all ranks of the job.
  virtual void start() = 0;
  // Since then: of MPI's world, which mpirun or srun made.
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  // "Open MPI v4.1.4"
  virtual std::string version() const = 0;

  // Called by all of these ranks, and no others; waits for them.
  virtual MpiHandle create_communicator(const std::vector<int32_t>& ranks) const = 0;
  virtual void free_communicator(MpiHandle& communicator) const = 0;

  // The memory is the library's until test() says that it is done.
  virtual MpiHandle send(const void* data, size_t size, int32_t peer,
                         MpiHandle communicator) const = 0;
  virtual MpiHandle receive(void* data, size_t size, int32_t peer,
                            MpiHandle communicator) const = 0;
  // Whether the request is done; then `bytes` (optional) receives how many came.
  virtual bool test(MpiHandle& request, size_t* bytes) const = 0;
  // A receive that nothing comes for any more.
  virtual void cancel(MpiHandle& request) const = 0;
};

// The library that started this process's rank, opened by the first call; throws why there is none.
// `size` is that of the job, because a process that mpirun did not start is the only rank of its world.
Mpi& mpi(int32_t size);

// From now on the process ends without telling the library: other ranks may be dead or hang, and it would wait for
// them. mpirun sees that and ends the job.
void abandon_mpi();

// Has `work` called before the library is finalised, unless it is abandoned.
void before_mpi_ends(void (*work)());

}  // namespace tenon::collectives
