// SPDX-License-Identifier: Apache-2.0
// The text form. Printing what was parsed gives the same text, and parsing what was printed the
// same program, but for the contents of leaves, which text does not hold.
//
//   tenon.program 2                              1: inputs and results have no names
//   dimension batch from 1 to 64 by 1 at 4         a size that calls choose; it was recorded at 4
//   require batch % 8 == 0                         a program of other sizes was not recorded
//   detached                                       it has made and freed its history of gradients
//   inputs_apart                                   inputs may not lie in memory that it writes
//   operator tenon::matmul 6b7c21f0a4e5d398        the schema hash of each operator that is used
//   input %0: float32[4, 8] cpu:0 "x"
//   leaf %1: float32[8, 2] cpu:0 "weight"          a tensor from outside
//   constant %2: float32[] cpu:0                   data of the program
//   %3: float32[4, 2] cpu:0 = tenon::matmul(%0, %1) at "train.py":12
//   %3 = tenon::add(%3, %2)                        writes into %3
//   grad %1 = %4 from none                         sets %1.grad, which was none before the run
//   return %3 "scores"
//
// A program without names is written as format 1, which earlier versions read.
// Tensor arguments stand first, others have their parameter's name; defaults are left out. A number
// of type float has a point or an exponent. `no_grad` after the arguments: gradients were off.
// Where there are dimensions, integers of types and arguments may be expressions of them:
// `2*batch + 1`, `(batch - 1)/2`, and floats may be divided by or multiplied with one: `1.0/batch`,
// `1.0*(4*batch)`. `?` in the type of a result is a size that the operator says.
#pragma once

#include <string>
#include <string_view>

#include "program/program.hpp"

namespace tenon::graph {

// `with_locations` false: what two recordings of one function have in common.
std::string program_text(const Program& program, bool with_locations = true);

// Throws Error with the number of the line. Leaves have no tensors yet. The program is verified.
// `sizes` of its dimensions: the program of these sizes alone. NULL: that of the recorded ones,
// which keeps the text for others.
ProgramPtr parse_program(std::string_view text, const Sizes* sizes = nullptr);

}  // namespace tenon::graph
