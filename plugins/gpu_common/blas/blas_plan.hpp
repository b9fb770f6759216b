// SPDX-License-Identifier: Apache-2.0
// The algorithms of a BLAS library for one GEMM on one device, and the cache of these. The library's
// heuristic takes some ten microseconds, so that it is asked once for each shape, and a second time for more than one
// algorithm where autotuning asks.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "blas/blas.hpp"
#include "blas/gemm.hpp"
#include "runtime/device.hpp"

namespace gpu::blas {

class Plan {
 public:
  // NULL: the library has no algorithm for this product.
  static std::unique_ptr<Plan> make(const Library& library, Handle handle, const Gemm& gemm);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // The algorithm at this index of the heuristic's list; NULL: the list is shorter. The first one is always there.
  const HeuristicResult* algorithm(size_t rank, tenon_device device) const;
  // Queues the product. `bias` is NULL exactly if the GEMM has none.
  Status run(const HeuristicResult& algorithm, const void* x, const void* y, const void* bias,
             void* out, void* workspace, Stream stream) const;

 private:
  Plan(const Library& library, Handle handle, const Gemm& gemm)
      : library_(library), handle_(handle), gemm_(gemm) {}
  bool build();
  bool build_desc();
  // At most `count` go to `results`. Returns how many.
  int ask_heuristic(int count, HeuristicResult* results) const;

  const Library& library_;
  Handle handle_;
  MatmulDesc desc_ = nullptr;
  Layout x_ = nullptr, y_ = nullptr, out_ = nullptr;
  Gemm gemm_;
  HeuristicResult first_ = {};
  mutable std::once_flag others_once_;
  mutable std::vector<HeuristicResult> others_;
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
