// SPDX-License-Identifier: Apache-2.0
#include "operators/sample.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "operators/sample_table.hpp"
#include "operators/special.hpp"
#include "subject/plugin.hpp"

namespace tenon::kit {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Sample sample() {
    Sample sample;
    sample.text = text_;
    std::string name = word();
    sample.op = real_host()->op_find(name.c_str());
    for (skip(); at_ < text_.size(); skip()) sample.arguments.push_back(argument());
    return sample;
  }

 private:
  [[noreturn]] void refuse(const char* expected) {
    throw std::invalid_argument("sample \"" + text_ + "\": expected " + expected + " at column " +
                                std::to_string(at_ + 1));
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (next() == ' ') ++at_;
  }
  void take(char c) {
    if (next() != c) refuse(std::string(1, c).c_str());
    ++at_;
  }
  std::string word() {
    size_t start = at_;
    while (std::isalnum(static_cast<unsigned char>(next())) || next() == '_' || next() == ':')
      ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string number_text() {
    size_t start = at_;
    while (std::isdigit(static_cast<unsigned char>(next())) || next() == '-' || next() == '.' ||
           next() == 'e')
      ++at_;
    if (start == at_) refuse("a number");
    return text_.substr(start, at_ - start);
  }
  std::vector<int64_t> integers(char open, char close) {
    std::vector<int64_t> list;
    take(open);
    while (next() != close) {
      list.push_back(std::strtoll(number_text().c_str(), nullptr, 10));
      if (next() == ',') ++at_;
    }
    take(close);
    return list;
  }
  TensorSpec tensor() {
    TensorSpec spec;
    spec.domain = next();
    ++at_;
    spec.shape = integers('[', ']');
    if (spec.domain == 'i') {
      take('<');
      spec.limit = std::strtoll(number_text().c_str(), nullptr, 10);
    }
    return spec;
  }
  Argument argument() {
    bool is_tensor = at_ + 1 < text_.size() && text_[at_ + 1] == '[';
    if (is_tensor) return tensor();
    if (next() == '(') return integers('(', ')');
    if (next() == '{') {
      std::vector<TensorSpec> list;
      take('{');
      for (skip(); next() != '}'; skip()) list.push_back(tensor());
      take('}');
      return list;
    }
    if (next() == '\'') {
      size_t end = text_.find('\'', ++at_);
      if (end == std::string::npos) refuse("a closing '");
      std::string inside = text_.substr(at_, end - at_);
      at_ = end + 1;
      return inside;
    }
    if (std::isalpha(static_cast<unsigned char>(next()))) {
      std::string name = word();
      if (name == "none") return Nothing{};
      if (name == "true" || name == "false") return name == "true";
      if (name == "T") return TestedDtype{};
      if (name == "D") return TestedDevice{};
      refuse("none, true, false, T or D");
    }
    std::string number = number_text();
    if (number.find_first_of(".e") != std::string::npos)
      return std::strtod(number.c_str(), nullptr);
    return static_cast<int64_t>(std::strtoll(number.c_str(), nullptr, 10));
  }

  const std::string& text_;
  size_t at_ = 0;
};

bool is_elementwise(const tenon_op_def& def) {
  if (def.shape != TENON_SHAPE_BROADCAST) return false;
  for (uint32_t i = 0; i < def.nparams; ++i) {
    const tenon_param_def& param = def.params[i];
    if (param.kind == TENON_PARAM_TENSOR && !(param.flags & TENON_PARAM_FLAG_BROADCAST))
      return false;
    if (param.kind != TENON_PARAM_TENSOR &&
        !(param.flags & (TENON_PARAM_FLAG_OPTIONAL | TENON_PARAM_FLAG_HAS_DEFAULT)))
      return false;
  }
  return true;
}

// The operator over tensors of these shapes, in turn; `domain` for all of the dtype under test.
std::string elementwise(const char* name, const tenon_op_def& def, char domain,
                        const std::vector<std::string>& shapes) {
  std::string line = name;
  size_t tensors = 0;
  for (uint32_t i = 0; i < def.nparams; ++i) {
    const tenon_param_def& param = def.params[i];
    if (param.kind != TENON_PARAM_TENSOR) break;
    bool is_mask = !(param.flags & TENON_PARAM_FLAG_PROMOTE) && def.compute != TENON_COMPUTE_FIRST;
    line += std::string(" ") + (is_mask ? 'b' : domain) + shapes[tensors++ % shapes.size()];
  }
  return line;
}

std::vector<std::string> elementwise_lines(const char* name, const tenon_op_def& def,
                                           SampleKind kind) {
  std::string domains = "xu";
  if (auto found = kDomains.find(name); found != kDomains.end()) domains = found->second;
  auto over = [&](char domain, std::vector<std::string> shapes) {
    return elementwise(name, def, domain, shapes);
  };
  std::vector<std::string> lines;
  switch (kind) {
    case SampleKind::kGeneral:
      for (char domain : domains)
        for (const char* shape : {"[33,5]", "[64]", "[1025]"})
          lines.push_back(over(domain, {shape}));
      break;
    case SampleKind::kNan:
      // What infinities give follows from the definition of these alone; of others, from how they
      // are computed.
      if (def.flags & TENON_OP_INTERNAL || kNoNan.count(name)) break;
      lines.push_back(over(kExact.count(name) ? 'n' : 'm', {"[9,9]"}));
      break;
    case SampleKind::kEmpty:
      for (const char* shape : {"[0]", "[2,0,3]"}) lines.push_back(over(domains[0], {shape}));
      lines.push_back(over(domains[0], {"[0,3]", "[1,3]", "[3]"}));
      break;
    case SampleKind::kZeroDim:
      lines.push_back(over(domains[0], {"[]"}));
      break;
    case SampleKind::kBroadcast:
      lines.push_back(over(domains[0], {"[3]", "[]"}));
      lines.push_back(over(domains[0], {"[]", "[3]"}));
      lines.push_back(over(domains[0], {"[4,1,3]", "[2,1]", "[3]"}));
      lines.push_back(over(domains[0], {"[5]", "[3,5]", "[1,5]"}));
      lines.push_back(over(domains[0], {"[2,3,1,5]", "[1,3,4,1]", "[4,5]"}));
      break;
    case SampleKind::kSpecial: {
      if (kNoNan.count(name) && !special_rule(name)) break;
      const SpecialRule* rule = special_rule(name);
      const bool is_plain = def.compute != TENON_COMPUTE_FIRST && !(def.flags & TENON_OP_INTERNAL);
      const bool is_open = is_plain && def.nparams == 1 && domains == "xu";
      if (!rule && !is_open) break;
      const char domain = rule ? rule->domain : 'v';
      size_t count = special_numbers(domain).size();
      lines.push_back(over(domain, {text("[", domain == 'y' ? count * count : count, "]")}));
      break;
    }
    case SampleKind::kHalf: {
      const SpecialRule* rule = special_rule(name);
      if (!rule || !is_exact(*rule)) break;
      const char domain = rule->domain == 'y' ? 'k' : 'g';
      const size_t count = special_numbers(domain).size();
      lines.push_back(over(domain, {text("[", domain == 'k' ? count * count : count, "]")}));
      break;
    }
    case SampleKind::kInteger:
      if (kIntegerFunctions.count(name)) lines.push_back(over('e', {kAllEnds}));
      break;
    case SampleKind::kOdd:
      for (const char* shape : {"[1]", "[2]", "[3]", "[5]", "[7]", "[9]", "[15]", "[17]", "[31]"})
        lines.push_back(over(domains[0], {shape}));
      break;
    case SampleKind::kLarge:
      for (const char* shape : {"[65535]", "[65536]", "[65537]"})
        lines.push_back(over('l', {shape}));
      break;
  }
  return lines;
}

// Every line of the table, by operator.
const std::multimap<std::string, std::string>& table(SampleKind kind) {
  static std::map<SampleKind, std::multimap<std::string, std::string>> tables;
  auto& lines = tables[kind];
  if (lines.empty())
    for (const char* line : sample_lines(kind)) {
      std::string text = line;
      lines.emplace(text.substr(0, text.find(' ')), text);
    }
  return lines;
}

// Do its tensors have different shapes, or is one a number?
bool broadcasts(const Sample& sample, const tenon_op_def& def) {
  const std::vector<int64_t>* shape = nullptr;
  for (size_t i = 0; i < sample.arguments.size(); ++i) {
    if (def.params[i].kind != TENON_PARAM_TENSOR) continue;
    const auto* tensor = std::get_if<TensorSpec>(&sample.arguments[i]);
    if (!tensor || (shape && tensor->shape != *shape)) return true;
    shape = &tensor->shape;
  }
  return false;
}

bool is_empty(const Sample& sample) {
  return std::any_of(
      sample.arguments.begin(), sample.arguments.end(), [](const Argument& argument) {
        const auto* tensor = std::get_if<TensorSpec>(&argument);
        return tensor && std::count(tensor->shape.begin(), tensor->shape.end(), 0) > 0;
      });
}

}  // namespace

Sample parse_sample(const std::string& line) { return Parser(line).sample(); }

std::vector<Sample> samples_of(const tenon_op* op, SampleKind kind) {
  const tenon_op_def& def = *real_host()->op_def(op);
  std::string full = def.name, name = full.rfind("tenon::", 0) == 0 ? full.substr(7) : full;
  std::vector<std::string> lines;
  auto [first, last] = table(kind).equal_range(name);
  for (; first != last; ++first) lines.push_back(first->second);
  if (kind == SampleKind::kEmpty) {
    std::tie(first, last) = table(SampleKind::kGeneral).equal_range(name);
    for (; first != last; ++first)
      if (is_empty(parse_sample(first->second))) lines.push_back(first->second);
  }
  for (std::string& line : primitive_lines(name, kind)) lines.push_back(line);
  // Masks of elementwise operators of a FIRST compute dtype are written out in the table.
  if (is_elementwise(def) &&
      (lines.empty() || kind != SampleKind::kGeneral || def.compute != TENON_COMPUTE_FIRST))
    for (std::string& line : elementwise_lines(name.c_str(), def, kind)) lines.push_back(line);
  std::vector<Sample> samples;
  for (const std::string& line : lines) samples.push_back(parse_sample(line));
  // Samples that are empty or broadcast are for the checks of that alone, so that a fault there is
  // reported as one.
  if (kind == SampleKind::kGeneral) {
    std::erase_if(samples, is_empty);
    if (is_elementwise(def))
      std::erase_if(samples, [&](const Sample& sample) { return broadcasts(sample, def); });
  }
  return samples;
}

}  // namespace tenon::kit
