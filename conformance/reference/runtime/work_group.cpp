// SPDX-License-Identifier: Apache-2.0
// Items that meet at barriers need stacks of their own: each is a fiber, and a barrier gives the
// thread to the next one. Without barriers, one after another is enough.
#include "work_group.hpp"

#include <ucontext.h>

#include <memory>
#include <vector>

namespace reference {
namespace {

constexpr size_t kStackBytes = 64 << 10;

// f(x, y, z) in the order in which hardware numbers items.
template <class F>
void for_each(const uint32_t (&extent)[3], F&& f) {
  for (uint32_t z = 0; z < extent[2]; ++z)
    for (uint32_t y = 0; y < extent[1]; ++y)
      for (uint32_t x = 0; x < extent[0]; ++x) f(x, y, z);
}

struct Fiber {
  WorkItem item;  // first: the barrier gets a pointer to it
  ucontext_t context, *scheduler;
  const KernelEntry* kernel;
  void* const* arguments;
  bool done;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
};

void fiber_barrier(WorkItem* item) {
  auto* fiber = reinterpret_cast<Fiber*>(item);
  swapcontext(&fiber->context, fiber->scheduler);
}

// makecontext passes ints only.
void fiber_main(unsigned low, unsigned high) {
  auto* fiber = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  fiber->kernel->call(&fiber->item, fiber->arguments);
  fiber->done = true;
  swapcontext(&fiber->context, fiber->scheduler);  // for good
}

void start(Fiber& fiber, ucontext_t* scheduler) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  fiber.scheduler = scheduler;
  fiber.done = false;
  const auto address = reinterpret_cast<uintptr_t>(&fiber);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(fiber_main), 2,
              static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
}

// Each round takes every item to its next barrier, or to its end.
void run_fibers(std::vector<Fiber>& fibers) {
  ucontext_t scheduler;
  for (Fiber& fiber : fibers) start(fiber, &scheduler);
  for (bool left = true; left;) {
    left = false;
    for (Fiber& fiber : fibers) {
      if (fiber.done) continue;
      swapcontext(&scheduler, &fiber.context);
      left |= !fiber.done;
    }
  }
}

void no_barrier(WorkItem*) {}

}  // namespace

void run_groups(const KernelEntry& kernel, void* const* arguments, const uint32_t (&groups)[3],
                const uint32_t (&size)[3]) {
  WorkItem item = {};
  for (int d = 0; d < 3; ++d) {
    item.groups[d] = groups[d];
    item.size[d] = size[d];
  }
  const bool fibers_needed = kernel.uses_barrier && size[0] * size[1] * size[2] > 1;
  item.barrier = fibers_needed ? fiber_barrier : no_barrier;
  std::vector<Fiber> fibers(fibers_needed ? size_t{size[0]} * size[1] * size[2] : 0);
  for_each(groups, [&](uint32_t gx, uint32_t gy, uint32_t gz) {
    item.group[0] = gx;
    item.group[1] = gy;
    item.group[2] = gz;
    size_t next = 0;
    for_each(size, [&](uint32_t x, uint32_t y, uint32_t z) {
      item.local[0] = x;
      item.local[1] = y;
      item.local[2] = z;
      if (!fibers_needed) return kernel.call(&item, arguments);
      Fiber& fiber = fibers[next++];
      fiber.item = item;
      fiber.kernel = &kernel;
      fiber.arguments = arguments;
    });
    if (fibers_needed) run_fibers(fibers);
  });
}

}  // namespace reference
