// SPDX-License-Identifier: Apache-2.0
// Atomic operations of the device language. Kernels of several streams run on several threads of
// the host, so they are atomic there too.
#pragma once

#define SIMULATED_ATOMIC(name, type, operation) \
  inline type name(type* p, type v) { return __atomic_fetch_##operation(p, v, __ATOMIC_RELAXED); }
#define SIMULATED_ATOMIC_INTEGERS(name, operation) \
  SIMULATED_ATOMIC(name, int, operation)           \
  SIMULATED_ATOMIC(name, unsigned, operation)      \
  SIMULATED_ATOMIC(name, unsigned long, operation) \
  SIMULATED_ATOMIC(name, unsigned long long, operation)
SIMULATED_ATOMIC_INTEGERS(atomicAdd, add)
SIMULATED_ATOMIC_INTEGERS(atomicSub, sub)
SIMULATED_ATOMIC_INTEGERS(atomicAnd, and)
SIMULATED_ATOMIC_INTEGERS(atomicOr, or)
SIMULATED_ATOMIC_INTEGERS(atomicXor, xor)

// The others by comparison and exchange: `b` is the value before, `v` the operand.
#define SIMULATED_ATOMIC_LOOP(name, type, result)                                              \
  inline type name(type* p, type v) {                                                          \
    type b, after;                                                                             \
    __atomic_load(p, &b, __ATOMIC_RELAXED);                                                    \
    do {                                                                                       \
      after = (result);                                                                        \
    } while (                                                                                  \
        !__atomic_compare_exchange(p, &b, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
    return b;                                                                                  \
  }
#define SIMULATED_ATOMIC_LOOPS(name, result)         \
  SIMULATED_ATOMIC_LOOP(name, int, result)           \
  SIMULATED_ATOMIC_LOOP(name, unsigned, result)      \
  SIMULATED_ATOMIC_LOOP(name, long long, result)     \
  SIMULATED_ATOMIC_LOOP(name, unsigned long, result) \
  SIMULATED_ATOMIC_LOOP(name, unsigned long long, result)
SIMULATED_ATOMIC_LOOPS(atomicMin, v < b ? v : b)
SIMULATED_ATOMIC_LOOPS(atomicMax, v > b ? v : b)
SIMULATED_ATOMIC_LOOPS(atomicExch, v)
SIMULATED_ATOMIC_LOOP(atomicExch, float, v)
SIMULATED_ATOMIC_LOOP(atomicAdd, float, b + v)
SIMULATED_ATOMIC_LOOP(atomicAdd, double, b + v)
SIMULATED_ATOMIC_LOOP(atomicInc, unsigned, b >= v ? 0 : b + 1)
SIMULATED_ATOMIC_LOOP(atomicDec, unsigned, b == 0 || b > v ? v : b - 1)

#define SIMULATED_ATOMIC_CAS(type)                                                                 \
  inline type atomicCAS(type* p, type expected, type desired) {                                    \
    __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    return expected;                                                                               \
  }
SIMULATED_ATOMIC_CAS(int)
SIMULATED_ATOMIC_CAS(unsigned)
SIMULATED_ATOMIC_CAS(unsigned short)
SIMULATED_ATOMIC_CAS(unsigned long)
SIMULATED_ATOMIC_CAS(unsigned long long)
