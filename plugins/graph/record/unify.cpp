// SPDX-License-Identifier: Apache-2.0
#include "record/unify.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "record/compare_recordings.hpp"
#include "support/host.hpp"
#include "text/text.hpp"

namespace tenon::graph {
namespace {

// Sums of products of a few sizes stay far below; what does not is no expression.
using Wide = __int128;
constexpr Wide kLimit = Wide{1} << 62;

// A product of sizes, by the power of each.
struct Monomial {
  std::vector<int> powers;
  Wide at(const Sizes& sizes) const {
    Wide product = 1;
    for (size_t d = 0; d < powers.size(); ++d)
      for (int i = 0; i < powers[d]; ++i)
        product = std::min(kLimit, product * std::max<int64_t>(1, sizes[d]));
    return product;
  }
  std::string text(const std::vector<Dimension>& dimensions) const {
    std::string text;
    for (size_t d = 0; d < powers.size(); ++d)
      for (int i = 0; i < powers[d]; ++i) text += (text.empty() ? "" : "*") + dimensions[d].name;
    return text;
  }
};

// Of rising degree, up to that of the scores of attention in all heads and sequences.
std::vector<Monomial> monomials(size_t dimensions) {
  constexpr int kMaxDegree = 4;
  std::vector<Monomial> all, last = {{std::vector<int>(dimensions)}};
  for (int degree = 1; degree <= kMaxDegree; ++degree) {
    std::vector<Monomial> next;
    for (const Monomial& each : last) {
      // Not before the last size in it, so that each product is made once.
      size_t from = 0;
      for (size_t d = 0; d < dimensions; ++d)
        if (each.powers[d]) from = d;
      for (size_t d = from; d < dimensions; ++d) {
        next.push_back(each);
        ++next.back().powers[d];
      }
    }
    all.insert(all.end(), next.begin(), next.end());
    last = std::move(next);
  }
  return all;
}

// (constant + sum of factors[i] * monomials[i]) / divisor
struct Polynomial {
  std::vector<std::pair<Wide, const Monomial*>> terms;
  Wide constant = 0, divisor = 1;

  bool satisfies(const std::vector<int64_t>& values, const std::vector<Sizes>& sizes) const {
    for (size_t i = 0; i < values.size(); ++i) {
      Wide sum = constant;
      for (const auto& [factor, monomial] : terms) {
        const Wide product = monomial->at(sizes[i]);
        if (product >= kLimit || factor >= kLimit / product || factor <= -kLimit / product)
          return false;
        sum += factor * product;
      }
      if (sum != divisor * values[i]) return false;
    }
    return true;
  }

  void reduce() {
    auto common = [](Wide a, Wide b) {
      a = a < 0 ? -a : a;
      b = b < 0 ? -b : b;
      while (b != 0) a = std::exchange(b, a % b);
      return a;
    };
    Wide divides = common(divisor, constant);
    for (const auto& [factor, monomial] : terms) divides = common(divides, factor);
    if (divides == 0) return;
    if (divisor < 0) divides = -divides;
    divisor /= divides;
    constant /= divides;
    for (auto& [factor, monomial] : terms) factor /= divides;
  }

  std::string text(const std::vector<Dimension>& dimensions) const {
    auto digits = [](Wide number) { return std::to_string(static_cast<int64_t>(number)); };
    std::string text;
    for (const auto& [factor, monomial] : terms) {
      const Wide size = factor < 0 ? -factor : factor;
      if (text.empty())
        text += factor < 0 ? "-" : "";
      else
        text += factor < 0 ? " - " : " + ";
      text += (size == 1 ? "" : digits(size) + "*") + monomial->text(dimensions);
    }
    if (constant != 0)
      text += (constant < 0 ? " - " : " + ") + digits(constant < 0 ? -constant : constant);
    return divisor == 1 ? text : "(" + text + ")/" + digits(divisor);
  }
};

// A line's pieces: words, texts in quotes, integers, single characters.
std::string_view take_token(std::string_view& line) {
  auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == ':' || c == '.';
  };
  size_t end = 1;
  if (line[0] == '"') {
    while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, line.size());
  } else if (line[0] == '%' && line.size() > 1 && is_word(line[1])) {
    while (end < line.size() && is_word(line[end])) ++end;
  } else if (is_word(line[0]) || (line[0] == '-' && line.size() > 1 && is_word(line[1]))) {
    // 1e-05 is one number.
    while (end < line.size() && (is_word(line[end]) || ((line[end] == '-' || line[end] == '+') &&
                                                        line[end - 1] == 'e' && line[0] <= '9')))
      ++end;
  }
  const std::string_view token = line.substr(0, end);
  line.remove_prefix(end);
  return token;
}

std::optional<int64_t> integer_of(std::string_view token) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return value;
}

// A number of type float, as the text form writes it.
std::optional<double> float_of(std::string_view token) {
  if (token.find_first_of(".e") == token.npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> lines_of(const std::string& text) {
  std::vector<std::string_view> lines;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

class Unifier {
 public:
  Unifier(std::vector<Dimension> dimensions, const std::vector<Sample>& samples)
      : dimensions_(std::move(dimensions)), samples_(samples) {
    for (const Sample& sample : samples) sizes_.push_back(sample.sizes);
  }

  ProgramPtr run() {
    check_leaves();
    std::string header;
    for (const Dimension& d : dimensions_)
      header += "dimension " + d.name + " from " + std::to_string(d.min) + " to " +
                std::to_string(d.max) + " by " + std::to_string(d.multiple) + " at " +
                std::to_string(d.recorded) + "\n";
    std::string format;  // the first line, which all samples share
    std::vector<std::string> texts, requirements;
    for (const Sample& sample : samples_) {
      std::string text = program_text(*sample.program);
      format = text.substr(0, text.find('\n') + 1);
      texts.push_back(text.substr(format.size()));
      requirements.push_back(sample.requirements);
    }
    const std::string required = unified_requirements(requirements);
    const Program& first = *samples_[0].program;
    ProgramPtr program = parse_program(format + header + required + unified(texts, false));
    for (size_t i = 0; i < program->graph.leaves.size(); ++i) {
      const ValueId value = program->graph.leaves[i].value;
      program->graph.leaves[i] = first.graph.leaves[i];
      program->graph.leaves[i].value = value;
    }
    program->changes = first.changes;
    set_numerics(program->graph, first.graph.numerics);
    set_claimers(program->graph, first.graph.claimers);
    program->refuses_gradients = first.refuses_gradients;
    return program;
  }

 private:
  std::string at(size_t sample) const {
    std::string text = "at ";
    for (size_t d = 0; d < dimensions_.size(); ++d)
      text += (d ? ", " : "") + dimensions_[d].name + " = " + std::to_string(sizes_[sample][d]);
    return text;
  }
  [[noreturn]] void fail(size_t sample, std::string_view first, std::string_view other,
                         const std::string& why) const {
    throw Error(TENON_FAILED_PRECONDITION,
                "export: " + why + ": " + at(0) + "\n    " + std::string(first) + "\n  and " +
                    at(sample) + "\n    " + std::string(other) +
                    "\n  Export it for fewer sizes (min, max, multiple_of), or once for each");
  }

  // Weights are the same tensors at every size, and so is data of the program's own.
  void check_leaves() const {
    const Graph& first = samples_[0].program->graph;
    for (size_t s = 1; s < samples_.size(); ++s) {
      const Graph& other = samples_[s].program->graph;
      if (first.leaves.size() != other.leaves.size())
        throw Error(TENON_FAILED_PRECONDITION,
                    "export: the function uses " + std::to_string(first.leaves.size()) +
                        " tensors from outside " + at(0) + ", and " +
                        std::to_string(other.leaves.size()) + " " + at(s));
      for (size_t i = 0; i < first.leaves.size(); ++i) {
        const Tensor &a = first.leaves[i].tensor, &b = other.leaves[i].tensor;
        const bool has_both = a && b;
        if (!has_both || a.get() == b.get()) continue;
        if (type_of(*a.get()) != type_of(*b.get()) ||
            (first.leaves[i].is_constant ? !has_same_bytes(a, b)
                                         : !is_same_memory(*a.get(), *b.get())))
          throw Error(TENON_FAILED_PRECONDITION,
                      "export: the function uses a tensor " + type_text(type_of(*a.get())) +
                          " from outside " + at(0) + ", and another one, " +
                          type_text(type_of(*b.get())) + ", " + at(s) +
                          "; make what depends on sizes by operators (tenon.arange, tenon.full, "
                          "tenon.where)");
      }
    }
  }

  // What holds whatever the sizes are is left out, as is what was said before.
  std::string unified_requirements(const std::vector<std::string>& each) const {
    std::string required;
    const std::string all = unified(each, true);
    for (std::string_view line : lines_of(all)) {
      const bool names_one =
          std::any_of(dimensions_.begin(), dimensions_.end(),
                      [&](const auto& d) { return line.find(d.name) != line.npos; });
      const std::string text = "require " + std::string(line) + "\n";
      const size_t equal = line.find(" == ");
      if (equal != line.npos && line.substr(0, equal) == line.substr(equal + 4)) continue;
      if (names_one && required.find(text) == required.npos) required += text;
    }
    return required;
  }

  // `encloses`: expressions stand among operators of theirs.
  std::string unified(const std::vector<std::string>& texts, bool encloses) const {
    std::vector<std::vector<std::string_view>> lines;
    for (const std::string& text : texts) lines.push_back(lines_of(text));
    std::string out;
    for (size_t i = 0; i < lines[0].size(); ++i) {
      std::vector<std::string_view> same;
      for (size_t s = 0; s < lines.size(); ++s)
        same.push_back(i < lines[s].size() ? lines[s][i] : std::string_view("(nothing)"));
      out += unified_line(same, encloses) + "\n";
    }
    for (size_t s = 1; s < lines.size(); ++s)
      if (lines[s].size() > lines[0].size())
        fail(s, "(nothing)", lines[s][lines[0].size()], kDiffers);
    return out;
  }

  std::string unified_line(const std::vector<std::string_view>& whole, bool encloses) const {
    std::vector<std::string_view> rest = whole;
    std::string out;
    while (!rest[0].empty()) {
      std::vector<std::string_view> tokens;
      for (size_t s = 0; s < rest.size(); ++s) {
        if (rest[s].empty()) fail(s, whole[0], whole[s], kDiffers);
        tokens.push_back(take_token(rest[s]));
      }
      std::vector<int64_t> values;
      size_t other = 0;  // a sample that differs
      for (size_t s = 0; s < tokens.size(); ++s) {
        if (tokens[s] != tokens[0]) other = s;
        const std::optional<int64_t> value = integer_of(tokens[s]);
        if (value) values.push_back(*value);
      }
      if (other == 0) {
        out += tokens[0];
        continue;
      }
      if (const std::string expression = fitted_float(tokens); !expression.empty()) {
        out += expression;
        continue;
      }
      if (values.size() < tokens.size()) {
        for (size_t s = 1; s < tokens.size(); ++s)
          if (tokens[s] != tokens[0]) fail(s, whole[0], whole[s], kDiffers);
      }
      std::string expression = fitted(values, sizes_, dimensions_);
      if (expression.empty() && is_result_type(whole[0], whole[0].size() - rest[0].size()))
        expression = "?";
      if (expression.empty())
        fail(other, whole[0], whole[other],
             "a number of a step is no expression of the sizes (a sum of products)");
      const bool is_name = std::none_of(expression.begin(), expression.end(),
                                        [](char c) { return c == ' ' || c == '*' || c == '-'; });
      out += encloses && !is_name ? "(" + expression + ")" : expression;
    }
    for (size_t s = 1; s < rest.size(); ++s)
      if (!rest[s].empty()) fail(s, whole[0], whole[s], kDiffers);
    return out;
  }

  // Floats that are an expression of the sizes, or a power of two divided by one, such as the factor
  // in the gradient of a mean: "1.0/(4*batch)". Powers of two are exact, however the factor was
  // computed. "": they are not.
  std::string fitted_float(const std::vector<std::string_view>& tokens) const {
    constexpr double kExact = 0x1p53;  // integers above are not all numbers
    std::vector<double> numbers;
    for (std::string_view token : tokens) {
      const std::optional<double> number = float_of(token);
      if (!number || *number == 0) return "";
      numbers.push_back(*number);
    }
    // number = of_size(size, scale), where `size_of` is about the inverse.
    auto fit = [&](double scale, char operation, auto size_of, auto of_size) -> std::string {
      std::vector<int64_t> values;
      for (double number : numbers) {
        const double size = std::nearbyint(size_of(number, scale));
        if (!(std::abs(size) < kExact) || of_size(size, scale) != number) return "";
        values.push_back(static_cast<int64_t>(size));
      }
      const std::string expression = fitted(values, sizes_, dimensions_);
      const std::string text =
          scale == 0.5 ? "0.5" : std::to_string(static_cast<int>(scale)) + ".0";
      return expression.empty() ? "" : text + operation + "(" + expression + ")";
    };
    const auto quotient = [](double a, double b) { return b / a; };
    const auto product = [](double a, double b) { return a * b; };
    for (double scale : {1.0, 2.0, 4.0, 0.5})
      if (std::string text = fit(scale, '/', quotient, quotient); !text.empty()) return text;
    return fit(
        1, '*', [](double a, double b) { return a / b; }, product);
  }

  // Is this position of a step's line in the type of a result? The operator says what that is.
  static bool is_result_type(std::string_view line, size_t position) {
    const size_t callee = line.find(" = ");
    return callee != line.npos && position < callee && line.find(" = view(") != callee &&
           line.find('%') < position;
  }

  static constexpr const char* kDiffers = "the function does something else at another size";
  std::vector<Dimension> dimensions_;
  const std::vector<Sample>& samples_;
  std::vector<Sizes> sizes_;
};

}  // namespace

std::string fitted(const std::vector<int64_t>& values, const std::vector<Sizes>& sizes,
                   const std::vector<Dimension>& dimensions) {
  const std::vector<Monomial> all = monomials(dimensions.size());
  auto slope = [&](const Monomial& m, size_t i) { return m.at(sizes[i]) - m.at(sizes[0]); };
  auto rise = [&](size_t i) { return Wide{values[i]} - values[0]; };
  auto is_fitted = [&](Polynomial& p) {
    p.constant = p.divisor * values[0];
    for (const auto& [factor, monomial] : p.terms) p.constant -= factor * monomial->at(sizes[0]);
    p.reduce();
    return p.satisfies(values, sizes);
  };
  for (const Monomial& m : all) {
    for (size_t i = 1; i < values.size(); ++i) {
      if (slope(m, i) == 0 || m.at(sizes[i]) >= kLimit) continue;
      Polynomial p{{{rise(i), &m}}, 0, slope(m, i)};
      if (is_fitted(p)) return p.text(dimensions);
      break;
    }
  }
  // Two products need two samples that tell them apart, and two more that agree.
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = a + 1; b < all.size(); ++b) {
      bool is_tried = false;
      for (size_t i = 1; i < values.size() && !is_tried; ++i)
        for (size_t j = i + 1; j < values.size() && !is_tried; ++j) {
          const Wide ai = slope(all[a], i), aj = slope(all[a], j), bi = slope(all[b], i),
                     bj = slope(all[b], j);
          constexpr Wide kSmall = Wide{1} << 40;
          if (std::max({ai, aj, bi, bj}) > kSmall || std::min({ai, aj, bi, bj}) < -kSmall) continue;
          const Wide determinant = ai * bj - aj * bi;
          if (determinant == 0) continue;
          is_tried = true;
          const Wide factor_a = rise(i) * bj - rise(j) * bi, factor_b = ai * rise(j) - aj * rise(i);
          if (factor_a == 0 || factor_b == 0) continue;
          Polynomial p{{{factor_a, &all[a]}, {factor_b, &all[b]}}, 0, determinant};
          if (is_fitted(p) && values.size() >= 5) return p.text(dimensions);
        }
    }
  return "";
}

ProgramPtr unify(std::vector<Dimension> dimensions, const std::vector<Sample>& samples) {
  return Unifier(std::move(dimensions), samples).run();
}

ProgramPtr changed(const Program& program,
                   const std::function<ProgramPtr(const Program&)>& change) {
  if (!program.dimensions) return change(program);
  const Dimensions& dimensions = *program.dimensions;
  std::vector<ProgramPtr> programs;
  std::vector<Sample> samples;
  std::string requirements;
  for (std::string_view line : lines_of(dimensions.text))
    if (line.starts_with("require ")) requirements += std::string(line.substr(8)) + "\n";
  for (const Sizes& sizes : dimensions.samples()) {
    programs.push_back(change(*instantiate(program, sizes)));
    samples.push_back({programs.back().get(), sizes, requirements});
  }
  return unify(dimensions.list, samples);
}

}  // namespace tenon::graph
