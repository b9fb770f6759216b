// SPDX-License-Identifier: Apache-2.0
#include "solver/solver_handles.hpp"

namespace gpu::solver {
namespace {

// A program that makes streams all the time would fill memory with handles otherwise. The libraries wait for the device
// before they free a handle's memory.
constexpr size_t kMaxStreams = 32;

}  // namespace

Handles::~Handles() {
  if (geev) library.destroy_options(geev);
  if (syevj) library.destroy_syevj(syevj);
  if (gesvdj) library.destroy_gesvdj(gesvdj);
  if (solver) library.destroy(solver);
  if (blas) library.blas_destroy(blas);
}

Status Handles::make(Stream stream) {
  Status status = library.create(&solver);
  if (status == 0) status = library.blas_create(&blas);
  if (status == 0) status = library.set_stream(solver, stream);
  if (status == 0) status = library.blas_set_stream(blas, stream);
  if (status == 0) status = library.create_syevj(&syevj);
  if (status == 0) status = library.create_gesvdj(&gesvdj);
  return status || !library.has_geev() ? status : library.create_options(&geev);
}

std::shared_ptr<Handles> HandlesOfStreams::find(const tenon_stream_s& stream, Status* status) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Handles> handles;
  if (const auto found = handles_.find(stream.stream); found != handles_.end()) {
    handles = found->second;
  } else {
    if (handles_.size() >= kMaxStreams)
      std::erase_if(handles_, [](const auto& entry) { return !entry.second->recorded; });
    handles = std::make_shared<Handles>(library_);
    *status = handles->make(stream.stream);
    if (*status) return nullptr;
    handles_.emplace(stream.stream, handles);
  }
  handles->recorded |= stream.capturing;
  return handles;
}

HandlesOfStreams& handles_of(tenon_device device) {
  return *device->library_state<HandlesOfStreams>(
      kSolverLibrary, [] { return std::make_unique<HandlesOfStreams>(*library()); });
}

}  // namespace gpu::solver
