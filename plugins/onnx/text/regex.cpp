// SPDX-License-Identifier: Apache-2.0
#include "text/regex.hpp"

#include <tenon/error.hpp>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "text/texts.hpp"

namespace tenon::onnx {
namespace {

using Set = Regex::Set;
using State = Regex::State;

constexpr size_t kMaxStates = 10000, kMaxPattern = 10000, kMaxAtoms = 200000;
constexpr int kMaxDepth = 200, kMaxRepeat = 1000;
constexpr char32_t kMaxLetter = 0x10ffff;

const Set kDigits{{{'0', '9'}}, false},
    kWord{{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, false},
    kSpace{{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, false};

bool is_word(char32_t letter) { return kWord.has(letter); }

Set complement(const Set& set) {
  Set result;
  auto ranges = set.ranges;
  std::sort(ranges.begin(), ranges.end());
  char32_t next = 0;
  for (const auto& [low, high] : ranges) {
    if (low > next) result.ranges.push_back({next, low - 1});
    next = std::max<char32_t>(next, high + 1);
  }
  if (next <= kMaxLetter) result.ranges.push_back({next, kMaxLetter});
  return result;
}

// States from the end to the beginning: each is built in front of what comes next.
class Builder {
 public:
  Builder(const std::u32string& pattern, std::vector<State>& states)
      : pattern_(pattern), states_(states) {
    if (pattern.size() > kMaxPattern) refuse("is longer than 10000 letters");
  }

  size_t build() {
    const size_t accept = add({State::kAccept, {}, 0, 0});
    const size_t start = alternation(accept, 0);
    if (at_ < pattern_.size()) refuse("has a ) without its (");
    return start;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(TENON_INVALID_ARGUMENT,
                "attribute `pattern`: expected a regular expression of RE2, got `" +
                    encoded(pattern_.substr(0, 100)) + "`, which " + why);
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    throw Error(TENON_UNSUPPORTED,
                "attribute `pattern`: " + what + " in `" + encoded(pattern_.substr(0, 100)) + "`");
  }

  size_t add(State state) {
    if (states_.size() >= kMaxStates) refuse("takes more than 10000 states");
    states_.push_back(std::move(state));
    return states_.size() - 1;
  }
  bool is_at(char32_t letter) const { return at_ < pattern_.size() && pattern_[at_] == letter; }
  bool take(char32_t letter) {
    const bool is_there = is_at(letter);
    at_ += is_there;
    return is_there;
  }
  char32_t need(const char* what) {
    if (at_ >= pattern_.size()) refuse(std::string("ends where ") + what + " is expected");
    return pattern_[at_++];
  }

  // What stands from here to | or ), before `next`. Its text is parsed anew for each copy, so that states follow each other.
  size_t alternation(size_t next, int depth) {
    if (depth > kMaxDepth) refuse("has groups that are more than 200 deep in each other");
    const bool ignores_case = ignores_case_, has_lines = dot_is_all_;
    size_t start = sequence(next, depth);
    while (take('|')) {
      const size_t other = sequence(next, depth);
      start = add({State::kSplit, {}, start, other});
    }
    ignores_case_ = ignores_case;
    dot_is_all_ = has_lines;
    return start;
  }

  struct Piece {
    size_t begin, end;        // of an atom in the pattern
    int least = 1, most = 1;  // most -1: any number
    bool ignores_case, dot_is_all;
  };

  size_t sequence(size_t next, int depth) {
    std::vector<Piece> pieces;
    while (at_ < pattern_.size() && !is_at('|') && !is_at(')')) {
      if (take_flags()) continue;
      Piece piece{at_, 0, 1, 1, ignores_case_, dot_is_all_};
      atom(std::nullopt, depth);
      piece.end = at_;
      quantifier(piece);
      pieces.push_back(piece);
    }
    const size_t end = at_;
    const bool ignores_case = ignores_case_, dot_is_all = dot_is_all_;
    for (size_t i = pieces.size(); i-- > 0;) next = repeated(pieces[i], next, depth);
    at_ = end;
    ignores_case_ = ignores_case;
    dot_is_all_ = dot_is_all;
    return next;
  }

  size_t repeated(const Piece& piece, size_t next, int depth) {
    const auto copy = [&](size_t before) {
      at_ = piece.begin;
      ignores_case_ = piece.ignores_case;
      dot_is_all_ = piece.dot_is_all;
      return *atom(before, depth);
    };
    if (piece.most < 0) {
      const size_t loop = add({State::kSplit, {}, next, next});
      const size_t body = copy(loop);
      states_[loop].other = body;
      next = loop;
    }
    for (int i = std::max(piece.most, 0); i > piece.least; --i) {
      const size_t body = copy(next);
      next = add({State::kSplit, {}, body, next});
    }
    for (int i = 0; i < piece.least; ++i) next = copy(next);
    return next;
  }

  // (?i), (?s), (?i-s): for what follows in the group.
  bool take_flags() {
    if (pattern_.compare(at_, 2, U"(?") != 0) return false;
    size_t end = at_ + 2;
    bool is_on = true, ignores_case = ignores_case_, dot_is_all = dot_is_all_;
    for (; end < pattern_.size() && pattern_[end] != ')' && pattern_[end] != ':'; ++end) {
      const char32_t flag = pattern_[end];
      if (flag == '-')
        is_on = false;
      else if (flag == 'i')
        ignores_case = is_on;
      else if (flag == 's')
        dot_is_all = is_on;
      else if (flag == 'm' || flag == 'U')
        unsupported("flag `" + encoded(std::u32string(1, flag)) + "`");
      else
        return false;  // a name, or an error, which the atom finds
    }
    if (end >= pattern_.size() || pattern_[end] != ')' || end == at_ + 2) return false;
    ignores_case_ = ignores_case;
    dot_is_all_ = dot_is_all;
    at_ = end + 1;
    return true;
  }

  void quantifier(Piece& piece) {
    if (take('*')) {
      piece.least = 0, piece.most = -1;
    } else if (take('+')) {
      piece.most = -1;
    } else if (take('?')) {
      piece.least = 0;
    } else if (const auto counts = braces()) {
      std::tie(piece.least, piece.most) = *counts;
    } else {
      return;
    }
    take('?');  // as few as possible: the same texts match
    if (is_at('*') || is_at('+') || is_at('?')) refuse("repeats a repetition");
  }

  // {2}, {2,}, {2,5}; anything else is a letter.
  std::optional<std::pair<int, int>> braces() {
    if (!is_at('{')) return std::nullopt;
    size_t at = at_ + 1;
    const auto number = [&]() -> std::optional<int> {
      int value = 0;
      const size_t begin = at;
      while (at < pattern_.size() && pattern_[at] >= '0' && pattern_[at] <= '9' && value < 100000)
        value = value * 10 + static_cast<int>(pattern_[at++] - '0');
      return at == begin ? std::nullopt : std::optional(value);
    };
    const auto least = number();
    if (!least) return std::nullopt;
    int most = *least;
    if (at < pattern_.size() && pattern_[at] == ',') {
      ++at;
      most = number().value_or(-1);
    }
    if (at >= pattern_.size() || pattern_[at] != '}') return std::nullopt;
    if (*least > kMaxRepeat || most > kMaxRepeat || (most >= 0 && most < *least))
      refuse("repeats other than from 0 to 1000 times");
    at_ = at + 1;
    return std::pair(*least, most);
  }

  // The start of the atom before `next`; without it the atom is read over.
  std::optional<size_t> atom(std::optional<size_t> next, int depth) {
    const auto made = [&](State state) -> std::optional<size_t> {
      if (!next) return std::nullopt;
      state.next = *next;
      return add(std::move(state));
    };
    if (++atoms_ > kMaxAtoms) refuse("repeats repetitions too often");
    const char32_t letter = need("an expression");
    switch (letter) {
      case '(':
        return group(next, depth);
      case '[':
        return made({State::kLetters, bracket(), 0, 0});
      case '.':
        return made({State::kLetters,
                     dot_is_all_ ? Set{{{0, kMaxLetter}}, false} : Set{{{'\n', '\n'}}, true}, 0,
                     0});
      case '^':
        return made({State::kBegin, {}, 0, 0});
      case '$':
        return made({State::kEnd, {}, 0, 0});
      case '*':
      case '+':
      case '?':
        refuse("repeats nothing");
      case '\\':
        return escape(made);
      default:
        return made({State::kLetters, one(letter), 0, 0});
    }
  }

  template <class Made>
  std::optional<size_t> escape(const Made& made) {
    const char32_t letter = need("an escape");
    switch (letter) {
      case 'A':
        return made({State::kBegin, {}, 0, 0});
      case 'z':
        return made({State::kEnd, {}, 0, 0});
      case 'b':
        return made({State::kBoundary, {}, 0, 0});
      case 'B':
        return made({State::kNoBoundary, {}, 0, 0});
      default:
        if (const auto set = class_of(letter)) return made({State::kLetters, *set, 0, 0});
        return made({State::kLetters, one(escaped(letter)), 0, 0});
    }
  }

  std::optional<size_t> group(std::optional<size_t> next, int depth) {
    const bool ignores_case = ignores_case_, dot_is_all = dot_is_all_;
    if (take('?')) {
      if (is_at('P') || is_at('<')) {
        take('P');
        if (!take('<')) refuse("has a group that begins with (?P and no name");
        while (need("the > of a name") != '>') {
        }
      } else {
        bool is_on = true;
        for (char32_t flag = need("a flag"); flag != ':'; flag = need("a flag")) {
          if (flag == '-')
            is_on = false;
          else if (flag == 'i')
            ignores_case_ = is_on;
          else if (flag == 's')
            dot_is_all_ = is_on;
          else
            unsupported("a group that begins with (?" + encoded(std::u32string(1, flag)));
        }
      }
    }
    std::optional<size_t> start;
    if (next)
      start = alternation(*next, depth + 1);
    else
      skip_group(depth + 1);
    if (!take(')')) refuse("has a ( without its )");
    ignores_case_ = ignores_case;
    dot_is_all_ = dot_is_all;
    return start;
  }

  // To the ) of the group.
  void skip_group(int depth) {
    if (depth > kMaxDepth) refuse("has groups that are more than 200 deep in each other");
    while (at_ < pattern_.size() && !is_at(')')) {
      if (take('|') || take_flags()) continue;
      atom(std::nullopt, depth);
      Piece piece{};
      quantifier(piece);
    }
  }

  Set one(char32_t letter) const {
    Set set{{{letter, letter}}, false};
    return with_both_cases(std::move(set));
  }

  Set with_both_cases(Set set) const {
    if (!ignores_case_) return set;
    const auto ranges = set.ranges;
    for (const auto& [low, high] : ranges) {
      if (high - low > 0x300) unsupported("ranges of many letters in either case");
      for (char32_t letter = low; letter <= high; ++letter)
        for (const bool is_upper : {false, true}) {
          const char32_t other = with_case(std::u32string(1, letter), is_upper)[0];
          set.ranges.push_back({other, other});
        }
    }
    return set;
  }

  // \d and so on.
  std::optional<Set> class_of(char32_t letter) const {
    switch (letter) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return complement(kWord);
      case 's':
        return kSpace;
      case 'S':
        return complement(kSpace);
      default:
        return std::nullopt;
    }
  }

  // The letter that an escape stands for.
  char32_t escaped(char32_t letter) {
    switch (letter) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        return '\a';
      case 'x':
        return hexadecimal();
      default:
        break;
    }
    if (is_word(letter) || letter >= 0x80)
      unsupported("the escape \\" + encoded(std::u32string(1, letter)));
    return letter;
  }

  char32_t hexadecimal() {
    const bool is_long = take('{');
    char32_t value = 0;
    for (int count = 0; is_long ? !is_at('}') : count < 2; ++count) {
      const char32_t digit = need("a digit");
      const bool is_decimal = digit >= '0' && digit <= '9', is_lower = digit >= 'a' && digit <= 'f',
                 is_upper = digit >= 'A' && digit <= 'F';
      if (!is_decimal && !is_lower && !is_upper) refuse("has an escape \\x of other than digits");
      value = value * 16 + (is_decimal ? digit - '0'
                            : is_lower ? digit - 'a' + 10
                                       : digit - 'A' + 10);
      if (value > kMaxLetter) refuse("has an escape of no letter");
    }
    if (is_long) take('}');
    return value;
  }

  Set bracket() {
    Set set;
    const bool is_negated = take('^');
    for (bool is_first = true; is_first || !is_at(']'); is_first = false) {
      if (at_ >= pattern_.size()) refuse("has a [ without its ]");
      if (pattern_.compare(at_, 2, U"[:") == 0) {
        named_class(set);
        continue;
      }
      char32_t low = need("a letter");
      if (low == '\\') {
        const char32_t escape = need("an escape");
        if (const auto named = class_of(escape)) {
          set.ranges.insert(set.ranges.end(), named->ranges.begin(), named->ranges.end());
          continue;
        }
        low = escaped(escape);
      }
      char32_t high = low;
      if (is_at('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        high = need("a letter");
        if (high == '\\') high = escaped(need("an escape"));
        if (high < low) refuse("has a range whose end is before its beginning");
      }
      set.ranges.push_back({low, high});
    }
    take(']');
    set = with_both_cases(std::move(set));
    return is_negated ? complement(set) : set;
  }

  void named_class(Set& set) {
    static const std::pair<std::u32string_view, Set> kNamed[] = {
        {U"alpha", {{{'A', 'Z'}, {'a', 'z'}}, false}},
        {U"digit", kDigits},
        {U"alnum", {{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, false}},
        {U"upper", {{{'A', 'Z'}}, false}},
        {U"lower", {{{'a', 'z'}}, false}},
        {U"space", {{{'\t', '\r'}, {' ', ' '}}, false}},
        {U"word", kWord},
        {U"xdigit", {{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, false}},
        {U"punct", {{{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, false}},
        {U"blank", {{{'\t', '\t'}, {' ', ' '}}, false}}};
    for (const auto& [name, named] : kNamed) {
      const std::u32string whole = U"[:" + std::u32string(name) + U":]";
      if (pattern_.compare(at_, whole.size(), whole) != 0) continue;
      at_ += whole.size();
      set.ranges.insert(set.ranges.end(), named.ranges.begin(), named.ranges.end());
      return;
    }
    unsupported("a class that begins with [:");
  }

  const std::u32string& pattern_;
  std::vector<State>& states_;
  size_t at_ = 0, atoms_ = 0;
  bool ignores_case_ = false, dot_is_all_ = false;
};

}  // namespace

bool Regex::Set::has(char32_t letter) const {
  const bool is_in = std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
    return letter >= range.first && letter <= range.second;
  });
  return is_in != is_negated;
}

Regex::Regex(const std::u32string& pattern) { start_ = Builder(pattern, states_).build(); }

// Adds what is reached from a state without a letter.
void Regex::follow(size_t first, size_t at, const std::u32string& text, std::vector<size_t>& states,
                   std::vector<size_t>& seen, size_t mark) const {
  std::vector<size_t> open = {first};
  while (!open.empty()) {
    const size_t index = open.back();
    open.pop_back();
    if (seen[index] == mark) continue;
    seen[index] = mark;
    const State& state = states_[index];
    const bool is_boundary =
        (at > 0 && is_word(text[at - 1])) != (at < text.size() && is_word(text[at]));
    switch (state.kind) {
      case State::kSplit:
        open.push_back(state.next);
        open.push_back(state.other);
        break;
      case State::kBegin:
        if (at == 0) open.push_back(state.next);
        break;
      case State::kEnd:
        if (at == text.size()) open.push_back(state.next);
        break;
      case State::kBoundary:
        if (is_boundary) open.push_back(state.next);
        break;
      case State::kNoBoundary:
        if (!is_boundary) open.push_back(state.next);
        break;
      default:
        states.push_back(index);
    }
  }
}

bool Regex::matches(const std::u32string& text) const {
  std::vector<size_t> now, next, seen(states_.size(), ~size_t{0});
  follow(start_, 0, text, now, seen, 0);
  for (size_t at = 0; at < text.size(); ++at) {
    next.clear();
    for (size_t index : now)
      if (states_[index].kind == State::kLetters && states_[index].set.has(text[at]))
        follow(states_[index].next, at + 1, text, next, seen, at + 1);
    now.swap(next);
  }
  return std::any_of(now.begin(), now.end(),
                     [&](size_t index) { return states_[index].kind == State::kAccept; });
}

}  // namespace tenon::onnx
