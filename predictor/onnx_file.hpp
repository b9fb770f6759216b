// SPDX-License-Identifier: Apache-2.0
// A model of ONNX as programs: one of many sizes where that is possible, else one for each size that a call brings.
#pragma once

#include <tenon/services/onnx.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config.hpp"
#include "program.hpp"
#include "signature.hpp"
#include "sizes.hpp"

namespace tenon::predictor {

class OnnxFile {
 public:
  // Whether the path is of such a file, by its ending.
  static bool is_one(const std::string& path);

  // Opens the file and settles its sizes by the keys `sizes` and `shapes`. Throws Error.
  explicit OnnxFile(const Config& config);
  ~OnnxFile();
  OnnxFile(const OnnxFile&) = delete;
  OnnxFile& operator=(const OnnxFile&) = delete;

  // Of all sizes, or, where reason() is not empty, of the first ones. Throws Error.
  Program load();
  // Each size gets a program of its own for this reason; that of the first sizes. Throws Error.
  Program give_up(std::string reason);
  // Why there is no one program of all sizes; empty: there is.
  const std::string& reason() const { return reason_; }
  // Of these sizes, one for each dimension.
  Program at(const std::vector<int64_t>& sizes) const { return at(sizes, 0); }

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  // The axes of the program's inputs whose size is a dimension.
  struct Site {
    size_t input, axis, dimension;
  };
  const std::vector<Site>& sites() const { return sites_; }

 private:
  struct Input {
    std::string name;
    std::vector<std::vector<int64_t>> shapes;  // at the recorded sizes; several: of a sequence
    std::vector<Site> sites;                   // `input` is the index in `shapes`
  };

  Program at(const std::vector<int64_t>& sizes, uint32_t flags) const;
  void read_inputs();
  void settle(const tenon_onnx_input& input, const std::map<std::string, SizeRange>& sizes,
              const NamedShapes& shapes, std::map<std::string, size_t>& known);
  size_t add_dimension(const std::string& name, SizeRange range);
  void check_names(const std::map<std::string, SizeRange>& sizes, const NamedShapes& shapes,
                   const std::vector<tenon_onnx_input>& inputs) const;

  const std::string path_, sizes_text_, shapes_text_;
  const tenon_onnx_api& service_;
  tenon_onnx_model* model_ = nullptr;
  std::vector<Input> inputs_;
  std::vector<Dimension> dimensions_;
  std::vector<Site> sites_;
  std::string reason_;
};

}  // namespace tenon::predictor
