// SPDX-License-Identifier: Apache-2.0
// Data that a composite reads on the host, and chooses by them what it calls. A recording keeps the calls alone, and would go
// on with what was found in one run: so it is told, and refuses what is no constant of its program. Operators that are
// composites on some devices alone are recorded as a whole, and need none of this.
#pragma once

#include "composites/compose.hpp"

namespace tenon::standard_ops {

// Call it before the data of `x` are read: an error while this thread records, unless they are constants of the program.
// `rest` says why and what to do instead, behind the operator's name and the line of the caller's program.
tenon_status expect_readable(const char* op, const Tensor& x, const char* rest, tenon_err* err);

// Whether this process has the elements of `x` in memory; else the scope fails. Of a tensor that is composed of others
// there is nothing to read.
bool has_elements(Scope& scope, const Tensor& x);

// Does this thread record the calls that the composite makes?
bool is_recorded();

}  // namespace tenon::standard_ops
