// SPDX-License-Identifier: Apache-2.0
#include "warmup.hpp"

#include <tenon/abi.h>
#include <tenon/error.hpp>

#include <charconv>

#include "config.hpp"

namespace tenon::predictor {

std::vector<InputShapes> parse_shapes(const std::string& text) {
  auto refuse = [&](const std::string& piece) {
    throw Error(TENON_INVALID_ARGUMENT,
                "warmup: expected 'recorded', or shapes such as 'x=1x3x224x224,mask=1x224; "
                "x=8x3x224x224,mask=8x224', got '" +
                    piece + "' in '" + text + "'");
  };
  std::vector<InputShapes> runs;
  for (const std::string& run : pieces(text, ';')) {
    InputShapes shapes;
    if (run != "recorded")
      for (const std::string& input : pieces(run, ',')) {
        const size_t equal = input.rfind('=');
        if (equal == input.npos || equal == 0) refuse(input);
        std::vector<int64_t> shape;
        for (const char *at = input.data() + equal + 1, *end = input.data() + input.size();
             at != end;) {
          int64_t size = 0;
          const auto [next, error] = std::from_chars(at, end, size);
          if (error != std::errc() || size < 0 ||
              (next != end && (*next != 'x' || next + 1 == end)))
            refuse(input);
          shape.push_back(size);
          at = next == end ? end : next + 1;
        }
        if (shape.size() > TENON_MAX_NDIM || !shapes.emplace(input.substr(0, equal), shape).second)
          refuse(input);
      }
    runs.push_back(std::move(shapes));
  }
  return runs;
}

}  // namespace tenon::predictor
