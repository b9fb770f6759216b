// SPDX-License-Identifier: Apache-2.0
#include "operators/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "operators/special.hpp"

namespace tenon::kit {
namespace {

// Small, fast, and the same everywhere; std::uniform_real_distribution is not.
class Random {
 public:
  Random(uint64_t seed, uint64_t variant)
      : variant_(variant), state_((seed ^ variant << 40) * 0x9e3779b97f4a7c15u + 1) {}
  uint32_t below(uint32_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state_ >> 33) * uint64_t{limit} >> 31);
  }
  double unit() { return (below(1 << 24) + 0.5) / (1 << 24); }
  uint64_t variant() const { return variant_; }  // for values that are not drawn

 private:
  uint64_t variant_;
  uint64_t state_;
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Neighbours differ, and so do elements a power of two apart. Sums of 2^18 are exact in float32.
template <class Value>
void fill_large(Value* values, size_t count, uint64_t variant) {
  for (size_t i = 0, step = variant % 61; i < count; ++i, step = (step + 37) % 61)
    values[i] = static_cast<Value>(1 + double(step)) / 8;
}

// The ends of a dtype, numbers next to them, and counts by which its bits can be shifted. Those
// that it does not have wrap around.
std::vector<int64_t> integer_ends(int32_t dtype) {
  const auto bits = static_cast<int64_t>(8 * real_host()->dtype_size(dtype));
  const bool is_unsigned = dtype == TENON_DTYPE_U8 || dtype == TENON_DTYPE_U16 ||
                           dtype == TENON_DTYPE_U32 || dtype == TENON_DTYPE_U64;
  const int64_t least = is_unsigned ? 0 : static_cast<int64_t>(~uint64_t{0} << (bits - 1));
  const auto most = static_cast<int64_t>(~uint64_t{0} >> (64 - bits + !is_unsigned));
  return {0,        1,     -1,    2,         -2,   3,        -7, bits - 1, bits,
          bits + 1, -bits, least, least + 1, most, most - 1, 64, 100,      -100};
}

// Two of them are more than the dtype holds.
std::vector<int64_t> large_integers(int32_t dtype) {
  const int64_t most = integer_ends(dtype)[13];
  return {most, most - 1, most / 2 + 5};
}

std::vector<double> floats(const TensorSpec& spec, bool is_first, Random& random) {
  std::vector<double> values(static_cast<size_t>(product(spec.shape)));
  if (spec.domain == 'l') {
    fill_large(values.data(), values.size(), random.variant());
    return values;
  }
  if (std::strchr("ztpvyghk", spec.domain)) {
    const std::vector<double>& special = special_numbers(spec.domain);
    const bool is_paired = spec.domain == 'y' || spec.domain == 'k';
    size_t pace = is_paired && !is_first ? special.size() : 1;
    for (size_t i = 0; i < values.size(); ++i) values[i] = special[i / pace % special.size()];
    return values;
  }
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  // Second and third tensors run through special values at other paces, so that all pairs meet.
  static const double kSpecial[] = {kNan, kInf, -kInf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5};
  size_t pace = is_first ? 1 : 9;
  for (size_t i = 0; i < values.size(); ++i) {
    switch (spec.domain) {
      case 'u':
        values[i] = 1.9 * random.unit() - 0.95;
        break;
      case 's':
        values[i] = 0.125 * (double(order[i]) - double(values.size() / 2)) + 0.0625;
        break;
      case 'n':
        values[i] = kSpecial[i / pace % 9];
        break;
      case 'm':
        values[i] = random.below(5) == 0 ? kNan : 1.9 * random.unit() - 0.95;
        break;
      default:
        values[i] = 0.25 + 2 * random.unit();
    }
  }
  return values;
}

std::vector<int64_t> integers(const TensorSpec& spec, int32_t dtype, Range range, bool is_first,
                              Random& random) {
  if (spec.domain == 'e' || spec.domain == 'w') {
    const std::vector<int64_t> ends =
        spec.domain == 'e' ? integer_ends(dtype) : large_integers(dtype);
    const size_t pace = is_first ? 1 : ends.size();
    std::vector<int64_t> values(static_cast<size_t>(product(spec.shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = ends[i / pace % ends.size()];
    return values;
  }
  std::vector<double> draft = floats(spec, is_first, random);
  std::vector<int64_t> values(draft.size());
  bool is_signed = dtype == TENON_DTYPE_I8 || dtype == TENON_DTYPE_I16 ||
                   dtype == TENON_DTYPE_I32 || dtype == TENON_DTYPE_I64;
  bool is_wide64 = dtype == TENON_DTYPE_I64 || dtype == TENON_DTYPE_U64;
  bool is_wide32 = dtype == TENON_DTYPE_I32 || dtype == TENON_DTYPE_U32;
  for (size_t i = 0; i < values.size(); ++i) {
    if (spec.domain == 's') {
      values[i] = static_cast<int64_t>(std::floor(draft[i] * 8)) + (is_signed ? 0 : 64);
      continue;
    }
    // Never 0, and small enough that shifts, powers and products stay inside.
    values[i] = 1 + random.below(4);
    if (is_signed && spec.domain == 'u' && random.below(2)) values[i] = -values[i];
    if (range == Range::kWide && is_first && is_wide64)
      values[i] += (int64_t{1} << 53) + 2 * random.below(1000);
    if (range == Range::kWide && is_first && is_wide32)
      values[i] += (int64_t{1} << 24) + 2 * random.below(1000);
  }
  return values;
}

template <class Value>
Tensor to_tensor(Engine& engine, int32_t dtype, const std::vector<int64_t>& shape,
                 const std::vector<Value>& values) {
  Tensor tensor = engine.create(engine.cpu(), dtype, shape);
  if (!values.empty()) std::memcpy(tensor->data, values.data(), values.size() * sizeof(Value));
  return tensor;
}

Tensor make_source(Engine& engine, const TensorSpec& spec, int32_t dtype, Range range,
                   bool is_first, Random& random) {
  std::vector<int64_t> whole(static_cast<size_t>(product(spec.shape)));
  if (spec.domain == 'i') {
    for (int64_t& value : whole) value = random.below(static_cast<uint32_t>(spec.limit));
    return to_tensor(engine, TENON_DTYPE_I64, spec.shape, whole);
  }
  if (spec.domain == 'b' || dtype == TENON_DTYPE_BOOL) {
    for (int64_t& value : whole) value = random.below(2);
    return engine.cast(to_tensor(engine, TENON_DTYPE_I64, spec.shape, whole), TENON_DTYPE_BOOL);
  }
  if (spec.domain == 'f' || spec.domain == 'h') dtype = TENON_DTYPE_F32;
  if (spec.domain == 'l' && dtype == TENON_DTYPE_F32) {
    Tensor tensor = engine.create(engine.cpu(), dtype, spec.shape);
    fill_large(static_cast<float*>(tensor->data), static_cast<size_t>(tensor->numel),
               random.variant());
    return tensor;
  }
  if (is_integer(dtype))
    return engine.cast(to_tensor(engine, TENON_DTYPE_I64, spec.shape,
                                 integers(spec, dtype, range, is_first, random)),
                       dtype);
  std::vector<double> values = floats(spec, is_first, random);
  if (!is_complex(dtype))
    return engine.cast(to_tensor(engine, TENON_DTYPE_F64, spec.shape, values), dtype);
  std::vector<double> pairs;
  for (double value : values) pairs.insert(pairs.end(), {value, 0.5 * random.unit() - 0.25});
  return engine.cast(to_tensor(engine, TENON_DTYPE_C128, spec.shape, pairs), dtype);
}

// Copies elements on the CPU: `to` at its strides takes those of `from` in order.
void scatter(const Tensor& from, const Tensor& to, const std::vector<int64_t>& strides,
             int64_t offset) {
  size_t size = real_host()->dtype_size(from->dtype);
  std::vector<int64_t> place(static_cast<size_t>(from->ndim));
  for (int64_t i = 0; i < from->numel; ++i) {
    int64_t at = offset;
    for (size_t d = 0; d < place.size(); ++d) at += place[d] * strides[d];
    std::memcpy(static_cast<char*>(to->data) + static_cast<size_t>(at) * size,
                static_cast<const char*>(from->data) + static_cast<size_t>(i) * size, size);
    for (size_t d = place.size(); d-- > 0;) {
      if (++place[d] < from->shape[d]) break;
      place[d] = 0;
    }
  }
}

// `source` on the device in this layout; `storage` receives what it lies in.
Tensor place(Engine& engine, Tensor& source, Layout layout, Tensor& storage) {
  std::vector<int64_t> shape = shape_of(source), strides = dense_strides(shape);
  int64_t offset = 0, room = source->numel;
  if (source->numel == 0) layout = Layout::kContiguous;
  switch (layout) {
    case Layout::kContiguous:
      return storage = engine.on(engine.device(), source);
    case Layout::kTransposed: {
      int64_t step = 1;
      for (size_t d = 0; d < shape.size(); step *= shape[d++]) strides[d] = step;
      break;
    }
    case Layout::kReversed:
      for (int64_t& stride : strides) stride *= -2;
      offset = 2 * (source->numel - 1) + 1;
      room = 2 * source->numel + 1;
      break;
    case Layout::kOffset:
      offset = 1;
      room = source->numel + 1;
      break;
    case Layout::kPitched: {
      if (shape.empty()) return storage = engine.on(engine.device(), source);
      const int64_t length = shape.back(), pitch = length + 3;
      for (size_t d = 0; d + 1 < shape.size(); ++d) strides[d] = strides[d] / length * pitch;
      offset = 2;
      room = source->numel / length * pitch + 2;
      break;
    }
    case Layout::kRepeated:
    case Layout::kMixed:
      if (shape.empty()) return storage = engine.on(engine.device(), source);
      // The answer is computed from rows that are equal in memory, too.
      for (int64_t row = 1; row < shape[0]; ++row)
        std::memcpy(static_cast<char*>(source->data) + static_cast<size_t>(row * strides[0]) *
                                                           real_host()->dtype_size(source->dtype),
                    source->data,
                    static_cast<size_t>(strides[0]) * real_host()->dtype_size(source->dtype));
      strides[0] = 0;
      room = std::max<int64_t>(source->numel / shape[0], 1);
      if (layout == Layout::kRepeated) break;
      for (size_t d = 1; d < shape.size(); ++d) {
        offset += (shape[d] - 1) * strides[d];
        strides[d] = -strides[d];
      }
      break;
  }
  Tensor image = engine.create(engine.cpu(), source->dtype, {room});
  std::memset(image->data, 0, static_cast<size_t>(room) * real_host()->dtype_size(source->dtype));
  scatter(source, image, strides, offset);
  storage = engine.on(engine.device(), image);
  return engine.view(storage, source->dtype, shape, strides, offset);
}

}  // namespace

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kContiguous:
      return "contiguous";
    case Layout::kTransposed:
      return "transposed";
    case Layout::kReversed:
      return "negative strides";
    case Layout::kOffset:
      return "offset by one element";
    case Layout::kPitched:
      return "rows with gaps between them";
    case Layout::kRepeated:
      return "stride 0";
    case Layout::kMixed:
      return "stride 0 and negative strides";
  }
  return "?";
}

Arguments make_arguments(Engine& engine, const Sample& sample, int32_t dtype, Layout layout,
                         Range range, uint64_t seed) {
  Arguments made;
  Random random(std::hash<std::string>()(sample.text), seed);
  auto add_tensor = [&](const TensorSpec& spec) {
    bool is_first = made.sources.empty();
    Tensor source = make_source(engine, spec, dtype, range, is_first, random);
    Tensor storage, placed = place(engine, source, layout, storage);
    made.sources.push_back(source);
    made.storages.push_back(storage);
    made.tensors.push_back(placed);
  };
  auto add = [&](tenon_value value) {
    made.cpu.push_back(value);
    made.device.push_back(value);
  };
  for (const Argument& argument : sample.arguments) {
    if (auto* spec = std::get_if<TensorSpec>(&argument)) {
      add_tensor(*spec);
      made.cpu.push_back(boxed(made.sources.back().get()));
      made.device.push_back(boxed(made.tensors.back().get()));
    } else if (auto* specs = std::get_if<std::vector<TensorSpec>>(&argument)) {
      auto& on_cpu = made.tensor_lists.emplace_back();
      auto& on_device = made.tensor_lists.emplace_back();
      for (const TensorSpec& spec : *specs) {
        add_tensor(spec);
        on_cpu.push_back(made.sources.back().get());
        on_device.push_back(made.tensors.back().get());
      }
      uint32_t count = static_cast<uint32_t>(specs->size());
      made.cpu.push_back(boxed(on_cpu.data(), count));
      made.device.push_back(boxed(on_device.data(), count));
    } else if (auto* whole = std::get_if<int64_t>(&argument)) {
      add(boxed(*whole));
    } else if (auto* number = std::get_if<double>(&argument)) {
      add(boxed(*number));
    } else if (auto* truth = std::get_if<bool>(&argument)) {
      add(boxed(*truth));
    } else if (auto* words = std::get_if<std::string>(&argument)) {
      std::string& kept = made.texts.emplace_back(*words);
      add(boxed(std::string_view(kept)));
    } else if (auto* list = std::get_if<std::vector<int64_t>>(&argument)) {
      auto& kept = made.lists.emplace_back(*list);
      add(boxed(kept.data(), kept.size()));
    } else if (std::holds_alternative<TestedDtype>(argument)) {
      add(boxed_dtype(dtype));
    } else if (std::holds_alternative<TestedDevice>(argument)) {
      made.cpu.push_back(boxed_device(engine.cpu()));
      made.device.push_back(boxed_device(engine.device()));
    } else {
      add(kNoValue);
    }
  }
  return made;
}

std::string bytes_of(Engine& engine, const Tensor& tensor) {
  Tensor here = tensor->device == engine.cpu() ? tensor : engine.on(engine.cpu(), tensor);
  return std::string(static_cast<const char*>(here->data),
                     static_cast<size_t>(here->numel) * real_host()->dtype_size(here->dtype));
}

std::vector<double> numbers(Engine& engine, const Tensor& tensor) {
  Tensor here = engine.on(engine.cpu(), tensor);
  int64_t count = here->numel;
  if (is_complex(here->dtype)) {
    count *= 2;
    int32_t half = here->dtype == TENON_DTYPE_C64 ? TENON_DTYPE_F32 : TENON_DTYPE_F64;
    here = engine.view(here, half, {count}, {1}, 0);
  }
  Tensor wide = engine.cast(here, TENON_DTYPE_F64);
  const double* first = static_cast<const double*>(wide->data);
  return {first, first + count};
}

}  // namespace tenon::kit
