// SPDX-License-Identifier: Apache-2.0
// The algorithm of a BLAS library for one GEMM on one device, and the cache of these. The library's
// heuristic takes some ten microseconds, so that it is asked once for each shape.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "blas.hpp"
#include "device.hpp"
#include "gemm.hpp"

namespace gpu::blas {

class Plan {
 public:
  // NULL: the library has no algorithm for this product.
  static std::unique_ptr<Plan> make(const Library& library, Handle handle, const Gemm& gemm);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Queues the product. `bias` is NULL exactly if the GEMM has none.
  Status run(const void* x, const void* y, const void* bias, void* out, void* workspace,
             Stream stream) const;

 private:
  Plan(const Library& library, Handle handle) : library_(library), handle_(handle) {}
  bool build(const Gemm& gemm);
  bool build_desc(const Gemm& gemm);
  bool choose_algorithm(const Gemm& gemm);

  const Library& library_;
  Handle handle_;
  MatmulDesc desc_ = nullptr;
  Layout x_ = nullptr, y_ = nullptr, out_ = nullptr;
  Algorithm algorithm_ = {};
  uint64_t workspace_bytes_ = 0;
  int scale_dtype_ = 0;            // of the factors, and of what is added up
  mutable std::mutex bias_mutex_;  // the address of the bias is part of the description
};

// The plans of one device. Every function is called with the device current, from any thread.
class Plans : public LibraryState {
 public:
  explicit Plans(const Library& library) : library_(library) {}
  ~Plans() override;
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;

  // NULL: the library has none, or cannot be used on this device.
  std::shared_ptr<const Plan> find(const Gemm& gemm);

 private:
  const Library& library_;
  std::mutex mutex_;
  Handle handle_ = nullptr;
  bool is_broken_ = false;
  std::unordered_map<Gemm, std::shared_ptr<const Plan>, GemmHash> plans_;
};

}  // namespace gpu::blas
