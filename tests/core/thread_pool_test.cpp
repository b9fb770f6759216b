// SPDX-License-Identifier: Apache-2.0
#include "kernel_core/runtime/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/services/threads.h>

#include "kernel_core/types/status.hpp"

namespace tenon::test {
namespace {

using namespace tenon::core;
using Body = std::function<void(int64_t, int64_t)>;

void run(int64_t begin, int64_t end, int64_t grain, Body body) {
  auto call = [](void* user, int64_t b, int64_t e) { (*static_cast<Body*>(user))(b, e); };
  parallel_for(begin, end, grain, call, &body);
}

class ThreadPool : public testing::Test {
 protected:
  void SetUp() override { set_thread_count(4); }
};

TEST_F(ThreadPool, VisitsEveryIndexOnce) {
  for (int64_t size : {0, 1, 2, 3, 7, 15, 16, 17, 100, 1023, 70001}) {
    for (int64_t grain : {-1, 0, 1, 3, 1000, 1000000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(size));
      run(-5, size - 5, grain, [&](int64_t begin, int64_t end) {
        ASSERT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i + 5)];
      });
      for (auto& visit : visits) ASSERT_EQ(visit, 1);
    }
  }
}

TEST_F(ThreadPool, WhatAChunkThrowsReachesTheCallerOnceAllAreDone) {
  for (int64_t thrower : {0, 63, 99}) {  // the caller's own chunk, and others'
    std::atomic<int> running{0};
    auto body = [&](int64_t begin, int64_t end) {
      ++running;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      --running;
      if (begin <= thrower && thrower < end)
        throw std::runtime_error("chunk of " + std::to_string(thrower));
    };
    try {
      run(0, 100, 1, body);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "chunk of " + std::to_string(thrower));
    }
    EXPECT_EQ(running, 0);
  }
  std::atomic<int64_t> sum{0};
  run(0, 1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 1000);
}

TEST_F(ThreadPool, KeepsToTheGrainAndSharesEvenly) {
  for (int64_t size : {10, 99, 1000, 65536, 1000003}) {
    for (int64_t grain : {1, 3, 50, 1030, 30000}) {
      std::mutex mutex;
      std::vector<int64_t> sizes;
      run(0, size, grain, [&](int64_t begin, int64_t end) {
        std::lock_guard lock(mutex);
        sizes.push_back(end - begin);
      });
      auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      if (sizes.size() > 1) {
        EXPECT_GE(*least, grain);
      }
      EXPECT_LE(*most, 3 * (*least + 128));  // a thread's first share is of three chunks at most
    }
  }
}

TEST_F(ThreadPool, SurvivesTheWidestRange) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::atomic<uint64_t> sum{0};
  run(kMin, kMax, 1, [&](int64_t begin, int64_t end) {
    sum += static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  });
  EXPECT_EQ(sum, UINT64_MAX);
}

TEST_F(ThreadPool, RunsNestedRegionsSerially) {
  std::atomic<int> total{0};
  run(0, 64, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto thread = std::this_thread::get_id();
      int calls = 0;
      run(0, 1000, 1, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), thread);
        EXPECT_EQ(e - b, 1000);
        ++calls;
      });
      EXPECT_EQ(calls, 1);
      ++total;
    }
  });
  EXPECT_EQ(total, 64);
}

TEST_F(ThreadPool, ServesConcurrentCallersWithoutBlocking) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        run(0, 1000, 10, [&](int64_t begin, int64_t end) { total += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 500 * 1000);
}

TEST_F(ThreadPool, LetsTheCallerFinishWhenWorkersAreLate) {
  // A chunk blocks whichever worker takes it until the caller has done all the others.
  auto caller = std::this_thread::get_id();
  std::atomic<int64_t> done_by_caller{0};
  std::atomic<int64_t> stuck{0};
  run(0, 16, 1, [&](int64_t begin, int64_t end) {
    if (std::this_thread::get_id() == caller) {
      done_by_caller += end - begin;
      return;
    }
    stuck += end - begin;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (done_by_caller + stuck < 16 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_EQ(done_by_caller + stuck, 16);
  });
  EXPECT_LE(stuck, 3 * 3);  // three workers, each with its first claim
}

TEST_F(ThreadPool, UsesSeveralThreads) {
  // Two chunks that wait for one another need two threads.
  std::atomic<int> inside{0};
  run(0, 2, 1, [&](int64_t, int64_t) {
    ++inside;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 2);
}

TEST_F(ThreadPool, LeavesEveryThreadAChunkWhereThereAreAsMany) {
  for (int threads : {3, 4, 7}) {
    set_thread_count(threads);
    for (int chunks : {threads, 2 * threads, 3 * threads}) {
      // Shares of as many chunks wait for one another.
      std::atomic<int> inside{0};
      run(0, chunks, 1, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(end - begin, chunks / threads);
        ++inside;
        auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (inside < threads && std::chrono::steady_clock::now() < deadline)
          std::this_thread::yield();
      });
      ASSERT_EQ(inside, threads);
    }
  }
}

TEST_F(ThreadPool, BeginsWithTheSameShareInEveryRegion) {
  for (int threads : {2, 4}) {
    set_thread_count(threads);
    std::vector<std::thread::id> before;
    for (int round = 0; round < 50; ++round) {
      // The first of every four chunks wait for one another.
      std::atomic<int> inside{0};
      std::vector<std::thread::id> now(static_cast<size_t>(threads));
      run(0, 4 * threads, 1, [&](int64_t begin, int64_t) {
        if (begin % 4 != 0) return;
        now[static_cast<size_t>(begin / 4)] = std::this_thread::get_id();
        ++inside;
        auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (inside < threads && std::chrono::steady_clock::now() < deadline)
          std::this_thread::yield();
      });
      ASSERT_EQ(now[0], std::this_thread::get_id());
      if (round > 0) {
        ASSERT_EQ(now, before);
      }
      before = now;
    }
  }
}

// Workers that wake up beside their caller move away, and may come back.
TEST_F(ThreadPool, WorkersMayRunWhereTheCallerMay) {
  cpu_set_t before, single;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::atomic<int> wrong{0};
  auto check = [&](const cpu_set_t& allowed) {
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // they sleep by then
      run(0, 64, 1, [&](int64_t, int64_t) {
        cpu_set_t here;
        sched_getaffinity(0, sizeof here, &here);
        wrong += !CPU_EQUAL(&here, &allowed);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      });
    }
  };
  check(before);
  // Nowhere to go: workers that are started now have one processor.
  set_thread_count(1);
  CPU_ZERO(&single);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &single);
  ASSERT_EQ(sched_setaffinity(0, sizeof single, &single), 0);
  set_thread_count(3);
  check(single);
  set_thread_count(1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(wrong, 0);
}

TEST_F(ThreadPool, WakesWorkersThatSleep) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::atomic<int> inside{0};
    run(0, 2, 1, [&](int64_t, int64_t) {
      ++inside;
      auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    ASSERT_EQ(inside, 2);
  }
}

TEST_F(ThreadPool, ManyShortRegionsInARow) {
  std::vector<int> values(64);
  for (int i = 1; i <= 20000; ++i) {
    run(0, 64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) ++values[static_cast<size_t>(k)];
    });
  }
  for (int value : values) ASSERT_EQ(value, 20000);
}

TEST_F(ThreadPool, ChangesItsSizeBetweenRegions) {
  for (int32_t count : {1, 3, 8, 2, 5, 1, 4}) {
    set_thread_count(count);
    EXPECT_EQ(thread_count(), count);
    std::mutex mutex;
    std::vector<std::thread::id> seen;
    run(0, 1000, 1, [&](int64_t, int64_t) {
      std::lock_guard lock(mutex);
      if (std::find(seen.begin(), seen.end(), std::this_thread::get_id()) == seen.end())
        seen.push_back(std::this_thread::get_id());
    });
    EXPECT_LE(seen.size(), static_cast<size_t>(count));
  }
  set_thread_count(-3);
  EXPECT_EQ(thread_count(), 1);
}

TEST_F(ThreadPool, WorksInAForkedChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer cannot start threads in a forked child";
#endif
  run(0, 100, 1, [](int64_t, int64_t) {});
  pid_t child = fork();
  if (child == 0) {
    std::atomic<int64_t> total{0};
    for (int i = 0; i < 100; ++i) run(0, 1000, 1, [&](int64_t b, int64_t e) { total += e - b; });
    _exit(total == 100000 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The system copies the memory page by page while the other threads go on, so the child may find
// chunks in the slot of a worker that, by another page, has not started.
TEST_F(ThreadPool, ForkWhileAnotherThreadStartsWorkers) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot start threads in a forked child";
#endif
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (int32_t count = 1; !stop.load(); count = 5 - count) {
      set_thread_count(count);
      for (int i = 0; i < 20; ++i) run(0, 1000, 1, [](int64_t, int64_t) {});
    }
  });
  for (int i = 0; i < 100; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      set_thread_count(4);
      for (int n = 0; n < 100; ++n) {
        std::atomic<int64_t> total{0};
        run(0, 1000, 1, [&](int64_t b, int64_t e) { total += e - b; });
        if (total != 1000) _exit(1);
      }
      _exit(0);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "child " << i;
  }
  stop.store(true);
  other.join();
}

// -- pools of users --------------------------------------------------------------------------------------

const tenon_threads_api& threads_service() {
  register_threads_service();  // again, where the loader has done it
  return *static_cast<const tenon_threads_api*>(
      slots::service_find(TENON_THREADS_SERVICE, TENON_THREADS_VERSION));
}

tenon_thread_pool* make_pool(int32_t threads, int32_t spin = -1) {
  const tenon_thread_pool_options options = {sizeof options, threads, spin, 0};
  tenon_thread_pool* pool = nullptr;
  EXPECT_EQ(threads_service().pool_create(&options, &pool, nullptr), TENON_OK);
  return pool;
}

// The threads that run chunks which wait for each other.
size_t count_threads(int32_t expected) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int32_t> inside{0};
  run(0, expected, 1, [&](int64_t, int64_t) {
    {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    ++inside;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (inside < expected && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  });
  return ids.size();
}

TEST_F(ThreadPool, AThreadHasAPoolOfItsOwn) {
  const tenon_threads_api& service = threads_service();
  tenon_thread_pool* pool = make_pool(3, 0);
  EXPECT_EQ(service.pool_use(pool), nullptr);
  EXPECT_EQ(thread_count(), 3);
  EXPECT_EQ(count_threads(3), 3u);
  std::thread([] { EXPECT_EQ(thread_count(), 4); }).join();  // others have the process's
  set_thread_count(2);                                       // which this is about
  EXPECT_EQ(thread_count(), 3);
  run(0, 8, 1, [&](int64_t, int64_t) { EXPECT_EQ(thread_count(), 3); });  // in workers, too
  EXPECT_EQ(service.pool_use(nullptr), pool);
  EXPECT_EQ(thread_count(), 2);
  service.pool_destroy(pool);
  EXPECT_EQ(count_threads(2), 2u);
}

TEST_F(ThreadPool, PoolsRunAtOnce) {
  const tenon_threads_api& service = threads_service();
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (int t = 0; t < 4; ++t)
    users.emplace_back([&, t] {
      tenon_thread_pool* pool = make_pool(1 + t);
      service.pool_use(pool);
      for (int n = 0; n < 200; ++n) {
        std::atomic<int64_t> total{0};
        run(0, 1000, 1, [&](int64_t b, int64_t e) { total += e - b; });
        if (total != 1000) ++wrong;
      }
      service.pool_use(nullptr);
      service.pool_destroy(pool);
    });
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ThreadPool, APoolIsMadeAnewInAForkedChild) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer cannot start threads in a forked child";
#endif
  const tenon_threads_api& service = threads_service();
  tenon_thread_pool* pool = make_pool(3);
  service.pool_use(pool);
  run(0, 1000, 1, [](int64_t, int64_t) {});
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that hangs
    const bool is_right = count_threads(3) == 3;
    service.pool_use(nullptr);
    service.pool_destroy(pool);
    _exit(is_right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  service.pool_use(nullptr);
  service.pool_destroy(pool);
}

TEST_F(ThreadPool, WrongNumbersAreRefused) {
  const char* const threads_text = "thread pool: expected 1 or more threads of at most 1024, got ";
  const char* const spin_text =
      "thread pool: expected -1 or a number of microseconds of at most 1000000, got ";
  const std::tuple<int32_t, int32_t, std::string> cases[] = {
      {0, -1, threads_text + std::string("0")},
      {-1, -1, threads_text + std::string("-1")},
      {1025, -1, threads_text + std::string("1025")},
      {1, 1000001, spin_text + std::string("1000001")},
      {1, -2, spin_text + std::string("-2")},
      {1, std::numeric_limits<int32_t>::min(), spin_text + std::string("-2147483648")},
  };
  for (const auto& [threads, spin, text] : cases) {
    const tenon_thread_pool_options options = {sizeof options, threads, spin, 0};
    tenon_thread_pool* pool = nullptr;
    tenon_err err = {};
    EXPECT_EQ(threads_service().pool_create(&options, &pool, &err), TENON_INVALID_ARGUMENT);
    EXPECT_EQ(pool, nullptr);
    EXPECT_EQ(err.text, text);
  }
}

}  // namespace
}  // namespace tenon::test
