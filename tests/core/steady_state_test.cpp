// SPDX-License-Identifier: Apache-2.0
// Counts what a call must not do once it is warm: allocate, lock, compare strings. The functions
// that would do it are replaced, in this program, by ones that count.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "fake_plugins.hpp"

namespace {

struct Counts {
  long allocations = 0, locks = 0, string_calls = 0;
};
Counts counts;
bool counting = false;

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
void* malloc(size_t bytes) {
  static auto real = next<void* (*)(size_t)>("malloc");
  if (counting) ++counts.allocations;
  return real(bytes);
}
void* realloc(void* block, size_t bytes) {
  static auto real = next<void* (*)(void*, size_t)>("realloc");
  if (counting) ++counts.allocations;
  return real(block, bytes);
}
void* aligned_alloc(size_t align, size_t bytes) {
  static auto real = next<void* (*)(size_t, size_t)>("aligned_alloc");
  if (counting) ++counts.allocations;
  return real(align, bytes);
}
void free(void* block) {
  static auto real = next<void (*)(void*)>("free");
  if (counting && block) ++counts.allocations;
  real(block);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static auto real = next<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  if (counting) ++counts.locks;
  return real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  static auto real = next<int (*)(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  if (counting) ++counts.locks;
  return real(lock);
}
int strcmp(const char* a, const char* b) {
  if (counting) ++counts.string_calls;
  while (*a && *a == *b) ++a, ++b;
  return static_cast<unsigned char>(*a) - static_cast<unsigned char>(*b);
}
int memcmp(const void* a, const void* b, size_t bytes) {
  if (counting) ++counts.string_calls;
  auto *x = static_cast<const unsigned char*>(a), *y = static_cast<const unsigned char*>(b);
  for (size_t i = 0; i < bytes; ++i)
    if (x[i] != y[i]) return x[i] - y[i];
  return 0;
}
}

namespace {

using namespace tenon::core;

// Run `call` warm, then a thousand times counted.
template <class Call>
Counts count_steady_state(Call call) {
  for (int i = 0; i < 100; ++i) call();
  counts = {};
  counting = true;
  for (int i = 0; i < 1000; ++i) call();
  counting = false;
  return counts;
}

struct SteadyState : testing::Test {
  void SetUp() override {
    fake::install();
    x = fake::tensor({3}, {1, 2, 3});
    y = fake::tensor({3}, {4, 5, 6});
    column = fake::tensor({3, 1}, {1, 2, 3});
  }
  TensorRef x, y, column;
  tenon_err err;

  void run(const char* name, tenon_value a, tenon_value b, uint32_t nargs, tenon_tensor* out,
           const char* what) {
    Operator* op = find_operator(name);
    tenon_status status = TENON_OK;
    Counts seen = count_steady_state([&] {
      tenon_value args[2] = {a, b}, outs[1] = {};
      if (out) outs[0] = tenon::boxed(out);
      if (status == TENON_OK) status = slots::op_call(op, args, nargs, outs, 1, &err);
      if (!out && status == TENON_OK) slots::tensor_release(as_tensor(outs[0]));
    });
    EXPECT_EQ(status, TENON_OK) << err.text;
    EXPECT_EQ(seen.allocations, 0) << what;
    EXPECT_EQ(seen.locks, 0) << what;
    EXPECT_EQ(seen.string_calls, 0) << what;
  }
};

TEST_F(SteadyState, TheCountersCount) {
  Counts seen = count_steady_state([] {
    auto* volatile block = std::malloc(10);
    std::free(block);
    find_operator("fake::add");
  });
  EXPECT_GE(seen.allocations, 2000);
  EXPECT_GE(seen.locks, 1000);
}

TEST_F(SteadyState, CallsAllocateNothingLockNothingAndLookUpNoName) {
  run("fake::add", fake::value(x), fake::value(y), 2, nullptr, "new result");
  run("fake::add", fake::value(x), fake::value(y), 2, x.get(), "in place");
  run("fake::add", fake::value(x), fake::number(2), 2, nullptr, "with a number");
  run("fake::add", fake::value(x), fake::value(column), 2, nullptr, "broadcast");
  run("fake::copy", fake::value(x), {}, 1, nullptr, "general path");
  run("fake::reversed", fake::value(x), {}, 1, nullptr, "view");
  run("fake::doubled", fake::value(x), {}, 1, nullptr, "decomposition");
}

}  // namespace
