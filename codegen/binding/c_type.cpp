// SPDX-License-Identifier: Apache-2.0
#include "binding/c_type.hpp"

#include <cctype>

#include "support/text.hpp"

namespace tenon::codegen {
namespace {

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

bool take(std::string_view& text, std::string_view token) {
  skip_spaces(text);
  if (text.substr(0, token.size()) != token) return false;
  text.remove_prefix(token.size());
  return true;
}

std::string take_name(std::string_view& text, const Location& where) {
  skip_spaces(text);
  size_t length = 0;
  while (length < text.size() && (std::isalnum(static_cast<unsigned char>(text[length])) ||
                                  text[length] == '_' || text[length] == ':'))
    ++length;
  if (length == 0) throw Error(where, cat("`call`: expected a type at `", text, "`"));
  const std::string name(text.substr(0, length));
  text.remove_prefix(length);
  return name;
}

CType wrap(CType::Kind kind, CType inner) { return {kind, "", {std::move(inner)}}; }

}  // namespace

CType read_type(std::string_view& text, const Location& where) {
  CType type{CType::Kind::Name, take_name(text, where), {}};
  const bool is_const = type.name == "const";
  if (is_const) type.name = take_name(text, where);
  if (take(text, "<")) {
    do type.args.push_back(read_type(text, where));
    while (take(text, ","));
    if (!take(text, ">")) throw Error(where, cat("`call`: expected `>` at `", text, "`"));
  }
  if (is_const) type = wrap(CType::Kind::Const, std::move(type));
  for (;;) {
    if (take(text, "*"))
      type = wrap(CType::Kind::Pointer, std::move(type));
    else if (take(text, "&"))
      type = wrap(CType::Kind::Reference, std::move(type));
    else
      break;
  }
  skip_spaces(text);
  return type;
}

std::string spelled(const CType& type, const TypeNames& names) {
  switch (type.kind) {
    case CType::Kind::Const:
      return cat("const ", spelled(type.inner(), names));
    case CType::Kind::Pointer:
      return cat(spelled(type.inner(), names), "*");
    case CType::Kind::Reference:
      return cat(spelled(type.inner(), names), "&");
    default:
      break;
  }
  const auto found = names.find(type.name);
  std::string text = found == names.end() ? type.name : found->second;
  if (!type.args.empty())
    text += cat("<", join(type.args, ", ", [&](const CType& one) { return spelled(one, names); }), ">");
  return text;
}

}  // namespace tenon::codegen
