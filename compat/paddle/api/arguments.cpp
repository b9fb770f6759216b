// SPDX-License-Identifier: Apache-2.0
#include "api/arguments.hpp"

#include <tenon/unbox.h>

#include <cstring>
#include <limits>

namespace tenon::paddle {
namespace {

int narrowed(const Declaration& op, const Attribute& attribute, int64_t value) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    throw Error(TENON_OUT_OF_RANGE, "[" + op.info.name + "] attribute `" + attribute.name +
                                        "`: expected an int of 32 bits, got " +
                                        std::to_string(value));
  return static_cast<int>(value);
}

template <typename T>
std::vector<T> floats(const tenon_value& value) {
  const double* data = tenon_arg_floats(&value);
  return {data, data + tenon_arg_count(&value)};
}

// Lists of texts travel as one: each followed by a zero byte.
std::vector<std::string> texts(const tenon_value& value) {
  std::vector<std::string> result;
  const char* at = tenon_arg_string(&value);
  const char* end = at + value.aux;
  while (at < end) {
    const void* zero = std::memchr(at, 0, static_cast<size_t>(end - at));
    const char* stop = zero ? static_cast<const char*>(zero) : end;
    result.emplace_back(at, stop);
    at = stop + 1;
  }
  return result;
}

}  // namespace

std::vector<::paddle::any> attributes_of(const Declaration& op, const tenon_value* args) {
  std::vector<::paddle::any> result;
  result.reserve(op.attributes.size());
  const tenon_value* value = args + op.inputs.size();
  for (const Attribute& attribute : op.attributes) {
    switch (attribute.type) {
      case AttributeType::kBool:
        result.emplace_back(tenon_arg_bool(value) != 0);
        break;
      case AttributeType::kInt:
        result.emplace_back(narrowed(op, attribute, tenon_arg_int(value)));
        break;
      case AttributeType::kInt64:
        result.emplace_back(tenon_arg_int(value));
        break;
      case AttributeType::kFloat:
        result.emplace_back(static_cast<float>(tenon_arg_float(value)));
        break;
      case AttributeType::kDouble:
        result.emplace_back(tenon_arg_float(value));
        break;
      case AttributeType::kString:
        result.emplace_back(std::string(tenon_arg_string(value), value->aux));
        break;
      case AttributeType::kInts: {
        std::vector<int> list;
        const int64_t* data = tenon_arg_ints(value);
        for (uint64_t i = 0; i < tenon_arg_count(value); ++i)
          list.push_back(narrowed(op, attribute, data[i]));
        result.emplace_back(std::move(list));
        break;
      }
      case AttributeType::kInt64s: {
        const int64_t* data = tenon_arg_ints(value);
        result.emplace_back(std::vector<int64_t>(data, data + tenon_arg_count(value)));
        break;
      }
      case AttributeType::kFloats:
        result.emplace_back(floats<float>(*value));
        break;
      case AttributeType::kDoubles:
        result.emplace_back(floats<double>(*value));
        break;
      case AttributeType::kStrings:
        result.emplace_back(texts(*value));
        break;
    }
    ++value;
  }
  return result;
}

}  // namespace tenon::paddle
