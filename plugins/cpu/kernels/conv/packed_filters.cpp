// SPDX-License-Identifier: Apache-2.0
#include "conv/packed_filters.hpp"

#include "conv/depthwise.hpp"
#include "conv/nchw16c.hpp"
#include "conv/winograd.hpp"
#include "conv/winograd_nhwc.hpp"

#include <iterator>
#include <mutex>
#include <vector>

namespace tenon::cpu::TENON_CPU_ISA {
namespace {

#define TENON_CPU_TEXT(x) #x
#define TENON_CPU_TEXT_OF(x) TENON_CPU_TEXT(x)
constexpr const char* kIsaName = TENON_CPU_TEXT_OF(TENON_CPU_ISA);

constexpr const char* kNames[] = {"Winograd", "Winograd NHWC", "blocks", "depthwise"};

bool has_bias(FilterPacking packing) {
  return packing == FilterPacking::kBlocks || packing == FilterPacking::kDepthwise;
}

int64_t elements_of(FilterPacking packing, const ConvShapes& s) {
  switch (packing) {
    case FilterPacking::kWinograd:
      return winograd_weight_elements<float>(s);
    case FilterPacking::kWinogradLast:
      return weight_elements_last(FilteredBlocks<float>(s));
    case FilterPacking::kBlocks:
      return packed_elements<float>(ConvPhases(s));
    case FilterPacking::kDepthwise:
      break;
  }
  return FilteredBlocks<float>::whole(s.channels) * s.group_filters() * (s.taps() + 1);
}

void pack(FilterPacking packing, const ConvShapes& s, const float* weight, const float* bias,
          float* to) {
  switch (packing) {
    case FilterPacking::kWinograd:
      return transform_weights(s, weight, false, to);
    case FilterPacking::kWinogradLast:
      return transform_weights_last(s, FilteredBlocks<float>(s), weight, false, to);
    case FilterPacking::kBlocks:
      return pack_phases(ConvPhases(s), weight, bias, to);
    case FilterPacking::kDepthwise:
      return transpose_filters(s, weight, bias, to);
  }
}

// The sum of what given filters are packed to: another layout, and other transforms, have another
// one, so that packed filters of an earlier version are not taken for those of this one.
std::string sum_of_packing(FilterPacking packing) {
  std::string sums;
  constexpr int64_t kSizes[][2] = {{72, 40}, {24, 264}};  // Whole vectors and parts of them.
  for (const auto& [filters, channels] : kSizes) {
    ConvShapes s = {};
    const bool is_depthwise = packing == FilterPacking::kDepthwise;
    s.batch = 1;
    s.filters = filters;
    s.channels = is_depthwise ? filters : channels;
    s.groups = is_depthwise ? filters : 1;
    s.height = s.width = s.rows = s.columns = 8;
    for (int axis = 0; axis < 2; ++axis) {
      s.kernel[axis] = 3;
      s.stride[axis] = s.padding[axis] = s.dilation[axis] = 1;
    }
    std::vector<float> weight(static_cast<size_t>(s.filters * s.depth()));
    std::vector<float> bias(static_cast<size_t>(s.filters));
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 8191) / 7.0f;
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = -1.0f - static_cast<float>(i);
    std::vector<float> packed(static_cast<size_t>(elements_of(packing, s)));
    pack(packing, s, weight.data(), bias.data(), packed.data());
    sums += (sums.empty() ? "" : "-") + sum_of(packed.data(), static_cast<int64_t>(packed.size()));
  }
  return sums;
}

const std::string& sum_once(FilterPacking packing) {
  static std::once_flag once[std::size(kNames)];
  static std::string sums[std::size(kNames)];
  const auto i = static_cast<size_t>(packing);
  std::call_once(once[i], [&] { sums[i] = sum_of_packing(packing); });
  return sums[i];
}

// "avx512 blocks 0f3a...: 64 filters, 3 channels, 1 groups, 7x7, step 2x2, dilation 1x1"
std::string form_of(FilterPacking packing, const ConvShapes& s) {
  const auto pair = [](const int64_t(&of)[2]) {
    return std::to_string(of[0]) + "x" + std::to_string(of[1]);
  };
  return std::string(kIsaName) + " " + kNames[static_cast<size_t>(packing)] + " " +
         sum_once(packing) + ": " + std::to_string(s.filters) + " filters, " +
         std::to_string(s.channels) + " channels, " + std::to_string(s.groups) + " groups, " +
         pair(s.kernel) + ", step " + pair(s.stride) + ", dilation " + pair(s.dilation);
}

}  // namespace

std::shared_ptr<const PackedConstant> packed_filters(FilterPacking packing, const ConvShapes& s,
                                                     const ConvConstants& constants) {
  PackedSource source{constants.weight, constants.weight_version, nullptr, 0};
  if (has_bias(packing) && constants.bias) {
    source.bias = constants.bias;
    source.bias_version = constants.bias_version;
  }
  return packed_constant(source, form_of(packing, s), elements_of(packing, s),
                         [&](float* to) { pack(packing, s, source.weight, source.bias, to); });
}

}  // namespace tenon::cpu::TENON_CPU_ISA
