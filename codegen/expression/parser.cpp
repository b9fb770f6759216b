// SPDX-License-Identifier: Apache-2.0
#include "expression/parser.hpp"

#include <cerrno>
#include <cstdlib>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

constexpr int kComparison = 3;  // level of == and its like
constexpr int kTightest = 9;

int level_of(const Token& token) {
  if (token.kind != TokenKind::Sign) return 0;
  const std::string& sign = token.text;
  if (sign == "||") return 1;
  if (sign == "&&") return 2;
  if (sign == "==" || sign == "!=" || sign == "<" || sign == "<=" || sign == ">" || sign == ">=")
    return kComparison;
  if (sign == "|") return 4;
  if (sign == "^") return 5;
  if (sign == "&") return 6;
  if (sign == "<<" || sign == ">>") return 7;
  if (sign == "+" || sign == "-") return 8;
  if (sign == "*" || sign == "/" || sign == "//" || sign == "%") return kTightest;
  return 0;
}

class Parser {
 public:
  explicit Parser(TokenStream& tokens) : tokens_(tokens) {}

  Node expression() {
    // Refused before the stack is used up: no one writes this by hand.
    if (++depth_ > kMaxDepth) tokens_.fail(cat("nested more than ", kMaxDepth, " deep"));
    Node node = conditional();
    --depth_;
    return node;
  }

  Node conditional() {
    Node condition = binary(1);
    if (!tokens_.accept("?")) return condition;
    Node node = make(NodeKind::Conditional);
    Node then = expression();
    tokens_.expect(":");
    Node otherwise = expression();
    node.children = {std::move(condition), std::move(then), std::move(otherwise)};
    return node;
  }

  Node binary(int level) {
    if (level > kTightest) return unary();
    Node left = binary(level + 1);
    while (level_of(tokens_.peek()) == level) {
      Node node = make(NodeKind::Binary);
      count_link();
      node.text = tokens_.next().text;
      Node right = binary(level + 1);
      node.children = {std::move(left), std::move(right)};
      left = std::move(node);
      if (level == kComparison && level_of(tokens_.peek()) == level)
        tokens_.fail("comparisons do not chain; write `a < b && b < c`");
    }
    return left;
  }

 private:
  Node make(NodeKind kind) const {
    Node node;
    node.kind = kind;
    node.where = tokens_.where();
    return node;
  }

  // `a + b + c + ...` is as deep as it is long, and a walk over the tree needs stack for each link.
  void count_link() {
    if (++links_ > kMaxLinks)
      tokens_.fail(cat("more than ", kMaxLinks, " signs in one expression; split it into steps"));
  }

  Node unary() {
    for (const char* sign : {"-", "!", "~"}) {
      if (!tokens_.accept(sign)) continue;
      Node node = make(NodeKind::Unary);
      node.text = sign;
      if (++depth_ > kMaxDepth) tokens_.fail(cat("nested more than ", kMaxDepth, " deep"));
      node.children.push_back(unary());
      --depth_;
      return node;
    }
    return postfix(primary());
  }

  Node postfix(Node base) {
    while (true) {
      if (tokens_.accept(".")) {
        Node node = make(NodeKind::Member);
        count_link();
        node.text = tokens_.expect_name("a member name");
        node.children.push_back(std::move(base));
        base = std::move(node);
      } else if (tokens_.accept("[")) {
        Node node = make(NodeKind::Subscript);
        count_link();
        Node index = expression();
        tokens_.expect("]");
        node.children = {std::move(base), std::move(index)};
        base = std::move(node);
      } else {
        return base;
      }
    }
  }

  Node primary() {
    if (tokens_.accept("(")) {
      Node inner = expression();
      tokens_.expect(")");
      return inner;
    }
    if (tokens_.accept("[")) return list();
    switch (tokens_.peek().kind) {
      case TokenKind::Integer:
      case TokenKind::Float:
        return number();
      case TokenKind::String: {
        Node node = make(NodeKind::String);
        node.text = tokens_.next().text;
        return node;
      }
      case TokenKind::Name:
        return name();
      default:
        tokens_.fail_expected("a value");
    }
  }

  Node number() {
    Token token = tokens_.next();
    Node node = make(token.kind == TokenKind::Integer ? NodeKind::Integer : NodeKind::Float);
    node.text = token.text;
    node.number = std::strtod(token.text.c_str(), nullptr);
    if (node.kind == NodeKind::Integer) {
      errno = 0;
      node.integer = std::strtoll(token.text.c_str(), nullptr, 10);
      if (errno != 0) tokens_.fail(cat("`", token.text, "` does not fit into 64 bits"));
    }
    return node;
  }

  Node name() {
    std::string text = tokens_.next().text;
    if (text == "true" || text == "false") {
      Node node = make(NodeKind::Boolean);
      node.boolean = text == "true";
      return node;
    }
    if (text == "none") return make(NodeKind::None);
    while (tokens_.accept("::")) text += "::" + tokens_.expect_name("an operator name");
    if (tokens_.accept("(")) return call(std::move(text));
    Node node = make(NodeKind::Name);
    node.text = std::move(text);
    return node;
  }

  Node call(std::string callee) {
    Node node = make(NodeKind::Call);
    node.text = std::move(callee);
    while (!tokens_.accept(")")) {
      Node argument = expression();
      std::string keyword;
      if (argument.kind == NodeKind::Name && tokens_.accept("=")) {
        keyword = argument.text;
        argument = expression();
      } else if (!node.keywords.empty() && !node.keywords.back().empty()) {
        tokens_.fail(cat("in the call of `", node.text, "`: positional argument after `",
                         node.keywords.back(), "=`"));
      }
      node.children.push_back(std::move(argument));
      node.keywords.push_back(std::move(keyword));
      if (!tokens_.at(")")) tokens_.expect(",");
    }
    return node;
  }

  Node list() {
    Node node = make(NodeKind::List);
    while (!tokens_.accept("]")) {
      node.children.push_back(expression());
      if (!tokens_.at("]")) tokens_.expect(",");
    }
    return node;
  }

  static constexpr int kMaxDepth = 200, kMaxLinks = 500;
  TokenStream& tokens_;
  int depth_ = 0, links_ = 0;
};

}  // namespace

Node parse_expression(std::string_view text, const Location& where, const std::string& what) {
  TokenStream tokens(text, where, what);
  Node node = Parser(tokens).expression();
  tokens.expect_end();
  return node;
}

Node parse_operand(TokenStream& tokens) { return Parser(tokens).binary(kComparison + 1); }

Step parse_step(std::string_view text, const Location& where, const std::string& what) {
  TokenStream tokens(text, where, what);
  Step step;
  step.expression = Parser(tokens).expression();
  if (step.expression.kind == NodeKind::Name && tokens.accept("=")) {
    step.name = step.expression.text;
    step.expression = Parser(tokens).expression();
  }
  tokens.expect_end();
  return step;
}

std::string text_of(const Node& node) {
  auto child = [&](size_t i) { return text_of(node.children[i]); };
  switch (node.kind) {
    case NodeKind::Integer:
    case NodeKind::Float:
    case NodeKind::Name:
      return node.text;
    case NodeKind::Boolean:
      return node.boolean ? "true" : "false";
    case NodeKind::None:
      return "none";
    case NodeKind::String:
      return "'" + node.text + "'";
    case NodeKind::Unary:
      return node.text + child(0);
    case NodeKind::Binary:
      return cat("(", child(0), " ", node.text, " ", child(1), ")");
    case NodeKind::Conditional:
      return cat("(", child(0), " ? ", child(1), " : ", child(2), ")");
    case NodeKind::List:
      return cat("[", join(node.children, ", ", text_of), "]");
    case NodeKind::Tuple:
      return cat("(", join(node.children, ", ", text_of), ")");
    case NodeKind::Member:
      return cat(child(0), ".", node.text);
    case NodeKind::Subscript:
      return cat(child(0), "[", child(1), "]");
    case NodeKind::Call: {
      std::string result = node.text + "(";
      for (size_t i = 0; i < node.children.size(); ++i) {
        if (i > 0) result += ", ";
        if (!node.keywords[i].empty()) result += node.keywords[i] + "=";
        result += child(i);
      }
      return result + ")";
    }
  }
  return "";
}

}  // namespace tenon::codegen
