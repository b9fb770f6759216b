/* SPDX-License-Identifier: Apache-2.0
 *
 * TENON_TRY(call): returns from the enclosing function with the status of a call that failed. C11
 * and C++20. */
#ifndef TENON_TRY_H_
#define TENON_TRY_H_

#include <tenon/abi.h>

#define TENON_TRY(call)                                                 \
  do {                                                                  \
    const tenon_status tenon_try_ = (call);                             \
    if (__builtin_expect(tenon_try_ != TENON_OK, 0)) return tenon_try_; \
  } while (0)

#endif /* TENON_TRY_H_ */
