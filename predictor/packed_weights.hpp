// SPDX-License-Identifier: Apache-2.0
// The weights of a program, and what of them executables read in a packed form.
#pragma once

#include <tenon/services/graph.h>

#include <string>
#include <vector>

namespace tenon::predictor {

// Borrowed from the program, without those that have no tensor. Throws Error.
std::vector<const tenon_tensor*> weights_of(const tenon_graph_program* program);

// "packed weights: 20, 66 MiB, of which the file holds 20\n"; "" where nothing is packed, or not yet.
std::string packed_weights_text(const tenon_graph_program* program);

}  // namespace tenon::predictor
