// SPDX-License-Identifier: Apache-2.0
// Programs of many sizes: axes of the inputs whose size a call chooses.
//
// Such a program is its text form, with expressions of the sizes in it; text/text.hpp has the
// grammar. A call binds the sizes, and the text with these sizes is a program like any other, which
// is kept for the next call.
#pragma once

#include <tenon/tensor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct tenon_graph_program;

namespace tenon::graph {

struct Dimension {
  std::string name;
  int64_t min = 1, max = 1, multiple = 1;
  int64_t recorded = 1;  // the size for which the program's own graph and plan are
  bool allows(int64_t size) const { return size >= min && size <= max && size % multiple == 0; }
};
std::string range_text(const Dimension& dimension);  // "batch from 2 to 64, multiples of 2"

struct ReleaseProgram;  // program/program.hpp

using Sizes = std::vector<int64_t>;  // one for each dimension

struct Dimensions {
  // An axis of an input that is a dimension: a call's size is read from there.
  struct Site {
    uint32_t input, axis, dimension;
  };
  std::vector<Dimension> list;
  std::vector<Site> sites;
  // By value of the program, for each axis: the dimension that is its size, or TENON_GRAPH_SIZE_*.
  std::vector<std::vector<int32_t>> of_values;
  std::string text;
  // Reads the text at these sizes; the parser of texts sets it (text/parse.cpp).
  std::unique_ptr<tenon_graph_program, ReleaseProgram> (*parse)(std::string_view text,
                                                                const Sizes* sizes) = nullptr;

  Sizes recorded() const;
  // Sizes at which a function is recorded, to tell from these how a program depends on them: the
  // recorded ones first, then the ends of each range and sizes in between.
  std::vector<Sizes> samples() const;
};

// What a program of many sizes was made into for calls so far; the last ones that were used.
class Instances {
 public:
  using Made = std::shared_ptr<const tenon_graph_program>;
  // Makes it if it is not there. Any thread. Throws Error.
  Made get(const Sizes& sizes, const std::function<Made()>& make);

 private:
  static constexpr size_t kKept = 32;
  std::mutex mutex_;
  std::vector<std::pair<Sizes, Made>> made_;  // the last used one first
};

// The program for these sizes, with the leaves of `program`. Throws Error.
std::unique_ptr<tenon_graph_program, ReleaseProgram> instantiate(const tenon_graph_program& program,
                                                                 const Sizes& sizes);
// The kept program of these sizes, which is made where it is not there yet.
Instances::Made instance_of(const tenon_graph_program& program, const Sizes& sizes);
// The program of one call's inputs. Throws Error where they are of no size that the program takes.
Instances::Made instance_for(const tenon_graph_program& program, tenon_tensor* const* inputs,
                             uint32_t ninputs);

}  // namespace tenon::graph
