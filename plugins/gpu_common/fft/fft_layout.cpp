// SPDX-License-Identifier: Apache-2.0
#include "fft/fft_layout.hpp"

#include <cstring>

namespace gpu::fft {
namespace {

// Whether each axis holds the next one a whole number of times.
bool nest(std::span<const Axis> axes, int64_t Axis::*stride, int64_t Axis::*extent, Side* out) {
  out->stride = axes.back().*stride;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Axis& inner = axes[i];
    if (i == 0) {
      out->embed[0] = inner.*extent;
      continue;
    }
    const int64_t outer_stride = axes[i - 1].*stride;
    if (outer_stride % (inner.*stride) != 0 || outer_stride / (inner.*stride) < inner.*extent)
      return false;
    out->embed[i] = outer_stride / (inner.*stride);
  }
  return true;
}

// Transforms lie behind one another, or all of them between neighbours of the innermost axis: the layouts that programs
// commonly give to a library.
bool lies_apart(const Side& side, const Layout& layout, int64_t outer_extent) {
  Number span = side.stride;
  for (size_t i = 1; i < static_cast<size_t>(layout.rank); ++i) span *= side.embed[i];
  return layout.batch == 1 || side.distance >= span * outer_extent ||
         side.distance * layout.batch <= side.stride;
}

}  // namespace

size_t LayoutHash::operator()(const Layout& layout) const {
  static_assert(sizeof(Layout) % sizeof(uint64_t) == 0);
  uint64_t words[sizeof(Layout) / sizeof(uint64_t)];
  std::memcpy(words, &layout, sizeof words);
  uint64_t hash = 14695981039346656037u;  // FNV-1a over words
  for (uint64_t word : words) hash = (hash ^ word) * 1099511628211u;
  return hash ^ hash >> 32;
}

std::optional<Layout> describe(int type, std::span<const Axis> axes, std::span<const Axis> others) {
  Layout layout;
  layout.type = type;
  layout.rank = static_cast<Number>(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) layout.n[i] = axes[i].length;
  if (!nest(axes, &Axis::in_stride, &Axis::in_extent, &layout.in) ||
      !nest(axes, &Axis::out_stride, &Axis::out_extent, &layout.out))
    return std::nullopt;
  for (size_t i = others.size(); i-- > 0;) {
    const Axis& axis = others[i];
    if (axis.length == 1) continue;
    if (layout.batch == 1) {
      layout.in.distance = axis.in_stride;
      layout.out.distance = axis.out_stride;
    } else if (axis.in_stride != layout.in.distance * layout.batch ||
               axis.out_stride != layout.out.distance * layout.batch) {
      return std::nullopt;
    }
    layout.batch *= axis.length;
  }
  if (!lies_apart(layout.in, layout, axes[0].in_extent) ||
      !lies_apart(layout.out, layout, axes[0].out_extent))
    return std::nullopt;
  return layout;
}

}  // namespace gpu::fft
