// SPDX-License-Identifier: Apache-2.0
// What headers of glibc 2.36 and libstdc++ 12 take for granted and glibc 2.27 does not have. scripts/wheel_libraries.sh compiles this
// file, and every library of a wheel links what it needs of it, hidden.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

// glibc 2.32 says here whether a process has one thread, so that libstdc++ can count references without atomic instructions.
// No knowledge is a safe answer.
char __libc_single_threaded = 0;

// Waits of glibc 2.30 until a clock shows a time: the system's, where it has them. Otherwise they wait by the wall clock, whose steps
// make a wait longer or shorter, as they did with every libstdc++ before version 10; libstdc++ looks at the clock afterwards.
static struct timespec wall_time(clockid_t clock, const struct timespec* until) {
  enum { kSecond = 1000000000 };
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) {
    wall.tv_nsec += kSecond;
    --wall.tv_sec;
  } else if (wall.tv_nsec >= kSecond) {
    wall.tv_nsec -= kSecond;
    ++wall.tv_sec;
  }
  return wall;
}

// The system's function, or `other`. It is looked for once.
static void* find(_Atomic(void*)* found, const char* name, void* other) {
  void* function = atomic_load_explicit(found, memory_order_relaxed);
  if (!function) {
    function = dlsym(RTLD_DEFAULT, name);
    if (!function) function = other;
    atomic_store_explicit(found, function, memory_order_relaxed);
  }
  return function;
}

typedef int (*condition_wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static int condition_by_wall_clock(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                   clockid_t clock, const struct timespec* until) {
  const struct timespec wall = wall_time(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  static _Atomic(void*) found;
  return ((condition_wait)find(&found, "pthread_cond_clockwait", (void*)condition_by_wall_clock))(
      condition, mutex, clock, until);
}

typedef int (*mutex_wait)(pthread_mutex_t*, clockid_t, const struct timespec*);
static int mutex_by_wall_clock(pthread_mutex_t* mutex, clockid_t clock,
                               const struct timespec* until) {
  const struct timespec wall = wall_time(clock, until);
  return pthread_mutex_timedlock(mutex, &wall);
}
int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  static _Atomic(void*) found;
  return ((mutex_wait)find(&found, "pthread_mutex_clocklock", (void*)mutex_by_wall_clock))(
      mutex, clock, until);
}

// Of glibc 2.32, "Segmentation fault". The older function has a buffer for numbers that have no name.
typedef const char* (*describe_signal)(int);
static const char* describe_by_strsignal(int number) { return strsignal(number); }
const char* sigdescr_np(int number) {
  static _Atomic(void*) found;
  return ((describe_signal)find(&found, "sigdescr_np", (void*)describe_by_strsignal))(number);
}

// Of glibc 2.32, "SEGV"; NULL for numbers that are no signal.
typedef const char* (*abbreviate_signal)(int);
static const char* abbreviate_by_table(int number) {
  static const char* const kNames[] = {
      NULL,   "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
      "SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
      "TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "POLL", "PWR",  "SYS"};
  return number > 0 && number < (int)(sizeof kNames / sizeof kNames[0]) ? kNames[number] : NULL;
}
const char* sigabbrev_np(int number) {
  static _Atomic(void*) found;
  return ((abbreviate_signal)find(&found, "sigabbrev_np", (void*)abbreviate_by_table))(number);
}
