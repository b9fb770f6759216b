// SPDX-License-Identifier: Apache-2.0
// How results of an operator may be sharded: the lines `shard:` of an operator definition, which tenon-codegen checks and the
// plugin `sharding` reads from tenon_op_def.traits. The grammar is in opdefs/README.md.
#pragma once

#include <cctype>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct ShardingRule {
  enum class Kind {
    kElementwise,  // results have the axes that broadcasting gives
    kReduction,    // of the axes that `rows` names, by the monoid `word`
    kRows,         // `word` names the axes that stay whole; the others are independent
    kLike,         // a new tensor in the shape of the first one
    kRandom,       // a composite that draws random numbers in the shape of its tensors
    kProduct       // axes by letters
  };
  // Axes of a tensor: small letters, which may be cut, capital ones, which may not, and `...`, written as '.', for leading
  // axes that broadcast. An axis in brackets is absent where the tensor has an axis less, and from results then, too.
  struct Axes {
    std::string letters;
    char optional = 0;
  };
  // Where an axis that no result has is cut, results are Partial(`reduce`), and so have to be the parameters `added`.
  struct Contraction {
    char letter;
    std::string reduce;
    std::vector<std::string> added;
  };
  using Names = std::vector<std::string>;

  Kind kind = Kind::kProduct;
  std::string word;
  std::vector<Axes> operands, results;  // of kProduct: in the order of tensor parameters
  std::vector<Contraction> contractions;
  std::vector<Names> linear;  // sets of parameters in which the operator is linear together
  Names whole;                // of kRows: tensors that are never cut
  bool adds_axes =
      false;  // of kRows: the names are axes of the result, which the first tensor lacks
  std::string condition,
      value;  // the rule holds only if this parameter has this value, a number or a text

  // Throws std::invalid_argument with a text.
  static ShardingRule parse(std::string_view text);
};

namespace sharding_text {

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

inline std::vector<std::string_view> split(std::string_view text, std::string_view by) {
  std::vector<std::string_view> parts;
  for (size_t at; (at = text.find(by)) != text.npos; text.remove_prefix(at + by.size()))
    parts.push_back(trimmed(text.substr(0, at)));
  parts.push_back(trimmed(text));
  return parts;
}

inline std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  for (std::string_view word : split(text, " "))
    if (!word.empty()) found.emplace_back(word);
  return found;
}

[[noreturn]] inline void raise(const char* expected, std::string_view got) {
  throw std::invalid_argument("expected " + std::string(expected) + ", got `" + std::string(got) +
                              "`");
}

inline ShardingRule::Axes axes(std::string_view text) {
  ShardingRule::Axes made;
  for (const std::string& word : words(text)) {
    const bool is_optional = word.size() == 3 && word[0] == '[' && word[2] == ']';
    const char letter = word == "..." ? '.' : is_optional ? word[1] : word[0];
    if (word != "..." &&
        ((word.size() != 1 && !is_optional) || !std::isalpha(static_cast<unsigned char>(letter))))
      raise("axes such as `... m k`, `[m] k` or `...`", text);
    if (made.letters.find(letter) != std::string::npos || (letter == '.' && !made.letters.empty()))
      raise("each axis once, and `...` in front", text);
    if (is_optional) made.optional = letter;
    made.letters += letter;
  }
  return made;
}

inline void read_clause(std::string_view text, ShardingRule& rule) {
  std::vector<std::string> all = words(text);
  if (all.empty()) raise("something behind `;`", text);
  const std::string first = all.front();
  all.erase(all.begin());
  if (first == "linear") {
    for (std::string_view set : split(trimmed(text.substr(text.find("linear") + 6)), "|"))
      rule.linear.push_back(words(set));
    for (const auto& set : rule.linear)
      if (set.empty()) raise("names of parameters behind `linear`", text);
  } else if (first == "whole" && !all.empty()) {
    rule.whole = all;
  } else if (first == "new" && all.empty()) {
    rule.adds_axes = true;
  } else if (first == "if" && all.size() == 3 && all[1] == "==") {
    rule.condition = all[0];
    rule.value = all[2];
  } else if (first.size() == 2 && first[1] == ':' && !all.empty() &&
             (all[0] == "sum" || all[0] == "max" || all[0] == "min")) {
    ShardingRule::Contraction made{first[0], all[0], {}};
    if (all.size() > 1) {
      if (all[1] != "+" || all.size() == 2) raise("`k: sum + bias`", text);
      made.added.assign(all.begin() + 2, all.end());
    }
    rule.contractions.push_back(made);
  } else {
    raise("`linear x y | z`, `whole x`, `new`, `if axis == 0` or `k: sum + bias`", text);
  }
}

}  // namespace sharding_text

inline ShardingRule ShardingRule::parse(std::string_view text) {
  using namespace sharding_text;
  ShardingRule rule;
  const std::vector<std::string_view> clauses = split(text, ";");
  const std::string_view head = clauses[0];
  const std::vector<std::string> named = words(head);
  if (head.find("->") != head.npos) {
    const auto sides = split(head, "->");
    if (sides.size() != 2) raise("one `->`", head);
    for (std::string_view each : split(sides[0], ",")) rule.operands.push_back(axes(each));
    for (std::string_view each : split(sides[1], ",")) rule.results.push_back(axes(each));
  } else if (named.size() == 1 && named[0] == "elementwise") {
    rule.kind = Kind::kElementwise;
  } else if (named.size() == 1 && named[0] == "like") {
    rule.kind = Kind::kLike;
  } else if (named.size() == 1 && named[0] == "random") {
    rule.kind = Kind::kRandom;
  } else if (named.size() == 2 && named[0] == "reduce") {
    rule.kind = Kind::kReduction;
    rule.word = named[1];
    if (rule.word != "sum" && rule.word != "mean" && rule.word != "max" && rule.word != "min")
      raise("`reduce sum`, mean, max or min", head);
  } else if (named.size() == 2 && named[0] == "rows") {
    rule.kind = Kind::kRows;
    rule.word = named[1];
  } else {
    raise(
        "`elementwise`, `like`, `random`, `reduce sum`, `rows axis` or axes such as `... m k, ... "
        "k n -> ... m n`",
        head);
  }
  for (size_t i = 1; i < clauses.size(); ++i) read_clause(clauses[i], rule);
  return rule;
}

}  // namespace tenon
