// SPDX-License-Identifier: Apache-2.0
// The handles of the solver's libraries. A handle has memory of the device that its work uses, so that every stream has
// handles of its own: work on two streams shares none.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/device.hpp"
#include "solver/solver.hpp"

namespace gpu::solver {

struct Handles {
  explicit Handles(const Library& functions) : library(functions) {}
  ~Handles();
  Status make(Stream stream);
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  const Library& library;
  Handle solver = nullptr, blas = nullptr;
  // How Jacobi's method and the general eigensolver work: as the library does by default.
  Handle syevj = nullptr, gesvdj = nullptr, geev = nullptr;
  bool recorded = false;  // a graph replays work that uses the handles' memory
  std::mutex mutex;       // held while work is queued
};

// Every function is called with the device current, from any thread.
class HandlesOfStreams : public LibraryState {
 public:
  explicit HandlesOfStreams(const Library& library) : library_(library) {}

  // NULL: a library does not start, with `*status`.
  std::shared_ptr<Handles> find(const tenon_stream_s& stream, Status* status);

 private:
  const Library& library_;
  std::mutex mutex_;
  std::map<Stream, std::shared_ptr<Handles>> handles_;
};

HandlesOfStreams& handles_of(tenon_device device);

}  // namespace gpu::solver
