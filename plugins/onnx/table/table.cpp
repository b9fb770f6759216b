// SPDX-License-Identifier: Apache-2.0
#include "table/table.hpp"

#include <tenon/schema/words.hpp>
#include <tenon/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "onnx_lines.hpp"

namespace tenon::onnx {
namespace {

// Parts of one line of schema.txt; what is between [], "" and () stays together.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  bool is_text = false;
  for (char c : line) {
    if (c == '"') is_text = !is_text;
    if (!is_text) depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == ' ' && depth == 0 && !is_text) {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

Formal formal_of(std::string text) {
  Formal formal;
  if (text.size() > 3 && text.compare(text.size() - 3, 3, "...") == 0) {
    formal.is_variadic = true;
    text.resize(text.size() - 3);
  } else if (!text.empty() && text.back() == '?') {
    formal.is_optional = true;
    text.pop_back();
  }
  formal.name = std::move(text);
  return formal;
}

std::vector<Formal> formals_of(std::string_view list) {
  std::vector<Formal> formals;
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string name(list.substr(0, comma));
    name.erase(0, name.find_first_not_of(' '));
    if (!name.empty()) formals.push_back(formal_of(std::move(name)));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return formals;
}

FormalAttribute attribute_of(const std::string& word) {
  FormalAttribute attribute;
  const size_t colon = word.find(':'), sign = word.find('=');
  attribute.name = word.substr(0, colon);
  attribute.type = word.substr(colon + 1, sign == std::string::npos ? sign : sign - colon - 1);
  if (sign != std::string::npos) attribute.standard = word.substr(sign + 1);
  if (attribute.type.back() == '!') {
    attribute.is_required = true;
    attribute.type.pop_back();
  }
  return attribute;
}

Schema schema_of(std::string_view line) {
  const std::vector<std::string> words = words_of(line);
  Schema schema;
  schema.name = words.at(0);
  schema.since = std::atoll(words.at(1).c_str());
  schema.inputs = formals_of(std::string_view(words.at(2)).substr(1, words[2].size() - 2));
  size_t i = 3;
  for (; i < words.size() && words[i] != "->"; ++i)
    schema.attributes.push_back(attribute_of(words[i]));
  std::string outputs;
  for (++i; i < words.size(); ++i) {
    if (words[i] == "deprecated")
      schema.is_deprecated = true;
    else
      outputs += words[i];
  }
  schema.outputs = formals_of(outputs);
  return schema;
}

template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

// "ReduceSum 13 import sum(input(0))", as traits of operators say it.
Claim claim_of(std::string_view line, std::string origin) {
  Claim claim;
  claim.origin = std::move(origin);
  const size_t name = line.find(' '), since = line.find(' ', name + 1),
               kind = line.find(' ', since + 1);
  claim.name = line.substr(0, name);
  claim.since = std::atoll(std::string(line.substr(name + 1, since - name - 1)).c_str());
  claim.kind =
      line.substr(since + 1, kind - since - 1) == "native" ? Claim::Native : Claim::Expression;
  claim.text = line.substr(kind + 1);
  return claim;
}

template <class Row>
const Row* newest(const std::map<std::string, std::vector<Row>>& rows, const std::string& name,
                  int64_t version) {
  const auto found = rows.find(name);
  if (found == rows.end()) return nullptr;
  const Row* best = nullptr;
  for (const Row& row : found->second)
    if (row.since <= version && (!best || row.since >= best->since)) best = &row;
  return best;
}

}  // namespace

const FormalAttribute* Schema::find_attribute(std::string_view attribute) const {
  for (const FormalAttribute& one : attributes)
    if (one.name == attribute) return &one;
  return nullptr;
}

void Table::add_claim(Claim claim) {
  std::vector<Claim>& claims = claims_[claim.name];
  claims.push_back(std::move(claim));
}

Table Table::read() {
  Table table;
  for (const char* part : kSchemas)
    for_each_line(part, [&](std::string_view line) {
      if (line.empty() || line[0] == '#') return;
      Schema schema = schema_of(line);
      table.schemas_[schema.name].push_back(std::move(schema));
    });
  for (auto& [name, versions] : table.schemas_)
    std::sort(versions.begin(), versions.end(),
              [](const Schema& a, const Schema& b) { return a.since < b.since; });
  for (const ClaimRow& row : kClaims)
    table.add_claim({row.name, row.since, row.is_native ? Claim::Native : Claim::Expression,
                     row.text, row.origin});
  for (const RefusalRow& row : kRefusals)
    table.refusals_[row.name].push_back({row.name, row.reason, row.since});
  for (uint32_t id = 0; id < host->op_count(); ++id) {
    const tenon_op_def* def = host->op_def(host->op_at(id));
    if (!def || def->struct_size <= offsetof(tenon_op_def, traits) || !def->traits) continue;
    for_each_line(def->traits, [&](std::string_view line) {
      static constexpr std::string_view kKey = "onnx: ";
      if (line.substr(0, kKey.size()) == kKey)
        table.add_claim(claim_of(line.substr(kKey.size()), def->name));
    });
  }
  return table;
}

const Schema* Table::find(const std::string& name, int64_t opset) const {
  return newest(schemas_, name, opset);
}

bool Table::has_domain(const std::string& domain) const {
  return std::any_of(schemas_.begin(), schemas_.end(), [&](const auto& entry) {
    const size_t dot = entry.first.rfind('.');
    return entry.first.substr(0, dot == std::string::npos ? 0 : dot) == domain;
  });
}

const Refusal* Table::refusal(const Schema& schema) const {
  const auto found = refusals_.find(schema.name);
  if (found == refusals_.end()) return nullptr;
  for (const Refusal& row : found->second)
    if (row.since == 0 || row.since == schema.since) return &row;
  return nullptr;
}

const Claim* Table::claim(const Schema& schema) const {
  return refusal(schema) ? nullptr : newest(claims_, schema.name, schema.since);
}

std::string Table::nearest(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& entry : schemas_) names.push_back(entry.first);
  return schema::did_you_mean(name, names);
}

}  // namespace tenon::onnx
