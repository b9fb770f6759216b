// SPDX-License-Identifier: Apache-2.0
// Recordings of one function at several sizes made one program of all sizes.
#pragma once

#include "program/dimensions.hpp"
#include "program/program.hpp"

namespace tenon::graph {

// What a function was asked at sizes[i]: the program, and in lines what it found of the sizes, such as
// "16 % 8 == 0", which has to hold at every size.
struct Sample {
  const Program* program;
  Sizes sizes;
  std::string requirements;
};

// Where texts of the samples differ, they differ in integers, for which an expression of the sizes is found that
// all samples satisfy. Throws Error (TENON_FAILED_PRECONDITION) where there is none, or where the function does
// something else at another size.
ProgramPtr unify(std::vector<Dimension> dimensions, const std::vector<Sample>& samples);

// "3*batch + 1": `values[i]` at `sizes[i]`, as a sum of a number and at most two products of sizes. "": none.
std::string fitted(const std::vector<int64_t>& values, const std::vector<Sizes>& sizes,
                   const std::vector<Dimension>& dimensions);

// The program that `change` makes of each sample, as one again; of a program of one size, what it makes of that.
ProgramPtr changed(const Program& program, const std::function<ProgramPtr(const Program&)>& change);

}  // namespace tenon::graph
