// SPDX-License-Identifier: Apache-2.0
// `abs<T>(Context*, const T* x, T* out, int64_t numel of x)`: the prototype of a function of C or C++, with what
// each parameter is made of.
#pragma once

#include <set>
#include <string_view>

#include "binding/binding.hpp"

namespace tenon::codegen {

// Fills function, symbol, parameters, conditions and suffix of `binding`, whose operator is known, for one
// dtype. Adds the positions of the operator's parameters that the call uses to `used`.
void parse_prototype(std::string_view text, const Location& where, const Language& language,
                     int dtype, Binding& binding, std::set<int>& used);

// `returns: double out`: the type of what a function of C returns, and the result that it becomes. Fills
// run of `binding`.
void parse_returned(const std::string& text, const Location& where, const Language& language,
                    int dtype, Binding& binding);

}  // namespace tenon::codegen
