// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/random.hpp"

#include <sys/random.h>

#include <ctime>
#include <mutex>
#include <unordered_map>

#include "kernel_core/abi/slots.hpp"
#include "kernel_core/runtime/fork.hpp"

namespace tenon::core {
namespace {

struct Position {
  uint64_t seed;
  uint64_t offset;
};

// Different in every process, until a program asks for a seed of its own.
uint64_t fresh_seed() {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof seed))
    return seed;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_nsec) * 0x9e3779b97f4a7c15u ^
         static_cast<uint64_t>(now.tv_sec);
}

struct Generators {
  std::mutex mutex;
  uint64_t seed = fresh_seed();
  std::unordered_map<tenon_device_id, Position> positions;

  Generators() { lock_across_fork(ForkOrder::kRandom, mutex); }

  Position& at(tenon_device_id device) {
    return positions.try_emplace(device, Position{seed, 0}).first->second;
  }
};

Generators& generators() {
  static auto* all = new Generators;
  return *all;
}
[[maybe_unused]] const auto& made_early = generators();  // see fork.hpp

}  // namespace

void reserve_random(tenon_device_id device, uint64_t count, uint64_t* seed, uint64_t* offset) {
  Generators& all = generators();
  std::lock_guard lock(all.mutex);
  Position& position = all.at(device);
  *seed = position.seed;
  *offset = position.offset;
  position.offset += count;
}

namespace slots {

void random_seed(uint64_t seed) {
  Generators& all = generators();
  std::lock_guard lock(all.mutex);
  all.seed = seed;
  for (auto& [device, position] : all.positions) position = {seed, 0};
}

void random_get(tenon_device_id device, uint64_t* seed, uint64_t* offset) {
  reserve_random(device, 0, seed, offset);
}

void random_set(tenon_device_id device, uint64_t seed, uint64_t offset) {
  Generators& all = generators();
  std::lock_guard lock(all.mutex);
  all.at(device) = {seed, offset};
}

}  // namespace slots
}  // namespace tenon::core
