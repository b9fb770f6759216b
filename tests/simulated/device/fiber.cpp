// SPDX-License-Identifier: Apache-2.0
#include "fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace simulated {
namespace {

thread_local std::vector<Fiber*> kept;
thread_local Fiber* entered = nullptr;

}  // namespace

#if defined(__x86_64__)

// Saves the registers that a call preserves, and the stack pointer in *from; continues at `to`.
extern "C" void simulated_switch_stack(void** from, void* to);
asm(R"(
.text
.globl simulated_switch_stack
.hidden simulated_switch_stack
.type simulated_switch_stack, @function
simulated_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simulated_switch_stack, .-simulated_switch_stack
)");

void Fiber::prepare() {
  // As simulated_switch_stack leaves it: six registers and the return address; the ABI wants the
  // stack pointer to be 8 below a multiple of 16 when a function begins.
  auto* top = reinterpret_cast<void**>(stack_ + kStackBytes);
  top[-2] = reinterpret_cast<void*>(&Fiber::begin);
  for (int i = 3; i <= 8; ++i) top[-i] = nullptr;
  inside_ = top - 8;
}

void Fiber::enter() {
  Fiber* before = entered;
  entered = this;
  simulated_switch_stack(&outside_, inside_);
  entered = before;
}

void Fiber::leave() { simulated_switch_stack(&inside_, outside_); }

#else

namespace {
struct Contexts {
  ucontext_t inside, outside;
};
}  // namespace

void Fiber::prepare() {
  if (!inside_) inside_ = new Contexts;
  auto* contexts = static_cast<Contexts*>(inside_);
  getcontext(&contexts->inside);
  contexts->inside.uc_stack.ss_sp = stack_;
  contexts->inside.uc_stack.ss_size = kStackBytes;
  contexts->inside.uc_link = nullptr;
  makecontext(&contexts->inside, &Fiber::begin, 0);
}

void Fiber::enter() {
  Fiber* before = entered;
  entered = this;
  auto* contexts = static_cast<Contexts*>(inside_);
  swapcontext(&contexts->outside, &contexts->inside);
  entered = before;
}

void Fiber::leave() {
  auto* contexts = static_cast<Contexts*>(inside_);
  swapcontext(&contexts->inside, &contexts->outside);
}

#endif

void Fiber::begin() {
  entered->main_();
  std::abort();  // the function of a fiber leaves, it does not return
}

Fiber* Fiber::take(void (*main)()) {
  Fiber* fiber;
  if (kept.empty()) {
    fiber = new Fiber;
    void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    fiber->stack_ = static_cast<char*>(memory);
    mprotect(memory, 4096, PROT_NONE);  // an overflow is a fault, not another stack's contents
  } else {
    fiber = kept.back();
    kept.pop_back();
  }
  fiber->main_ = main;
  fiber->prepare();
  return fiber;
}

void Fiber::give_back(Fiber* fiber) { kept.push_back(fiber); }

}  // namespace simulated
