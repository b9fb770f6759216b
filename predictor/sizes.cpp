// SPDX-License-Identifier: Apache-2.0
#include "sizes.hpp"

#include <tenon/abi.h>
#include <tenon/error.hpp>

#include <charconv>
#include <optional>

#include "config.hpp"

namespace tenon::predictor {
namespace {

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || number < 0)
    return std::nullopt;
  return number;
}

// "8" or "1:64".
std::optional<SizeRange> parse_range(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) {
    const auto size = parse_number(text);
    return size ? std::optional(SizeRange{*size, *size}) : std::nullopt;
  }
  const auto min = parse_number(text.substr(0, colon)), max = parse_number(text.substr(colon + 1));
  if (!min || !max || *min < 1 || *max <= *min) return std::nullopt;
  return SizeRange{*min, *max};
}

// Pieces "name=rest" between commas.
template <class Visit>
void for_each_pair(const std::string& key, const std::string& example, const std::string& text,
                   Visit&& visit) {
  for (const std::string& piece : pieces(text, ',')) {
    const size_t equal = piece.rfind('=');
    if (equal == piece.npos || equal == 0 ||
        !visit(piece.substr(0, equal), piece.substr(equal + 1)))
      throw Error(TENON_INVALID_ARGUMENT, "config: `" + key + "`: expected " + example + ", got '" +
                                              piece + "' in '" + text + "'");
  }
}

}  // namespace

std::map<std::string, SizeRange> parse_sizes(const std::string& text) {
  std::map<std::string, SizeRange> sizes;
  for_each_pair("sizes", "sizes such as 'batch=8' or 'batch=1:64', each name once", text,
                [&](const std::string& name, const std::string& size) {
                  const auto range = parse_range(size);
                  return range && sizes.emplace(name, *range).second;
                });
  return sizes;
}

NamedShapes parse_named_shapes(const std::string& text) {
  NamedShapes shapes;
  for_each_pair("shapes", "shapes such as 'x=1x3x224x224' or 'x=1:8x3x224x224'", text,
                [&](const std::string& name, const std::string& sizes) {
                  std::vector<SizeRange> shape;
                  for (size_t begin = 0; begin < sizes.size();) {
                    const size_t end = std::min(sizes.find('x', begin), sizes.size());
                    const auto range =
                        parse_range(std::string_view(sizes).substr(begin, end - begin));
                    if (!range || end + 1 == sizes.size() || shape.size() == TENON_MAX_NDIM)
                      return false;
                    shape.push_back(*range);
                    begin = end + 1;
                  }
                  shapes.emplace_back(name, std::move(shape));
                  return true;
                });
  return shapes;
}

}  // namespace tenon::predictor
