// SPDX-License-Identifier: Apache-2.0
#include "load/load.hpp"

#include <algorithm>
#include <cctype>

#include "expression/parser.hpp"
#include "load/earlier.hpp"
#include "load/flops.hpp"
#include "load/in_place.hpp"
#include "load/names.hpp"
#include "load/onnx.hpp"
#include "load/rows.hpp"
#include "load/rules.hpp"
#include "load/samples.hpp"
#include "load/shard.hpp"
#include "load/yaml_entry.hpp"
#include "support/text.hpp"

namespace tenon::codegen {
namespace {

const std::vector<std::string> kOperatorKeys = {
    "op",      "doc",       "sig",          "kind",      "dtypes", "shape", "expr",
    "reduce",  "kernels",   "complex_grad", "decompose", "grad",   "amp",   "flops",
    "rows",    "in_place",  "earlier",      "tags",      "method", "names", "onnx",
    "example", "reference", "domain",       "samples",   "shard"};
const std::vector<std::string> kTags = {"random",        "data_dependent", "convert",  "draws",
                                        "materialize",   "elementwise",    "internal", "primitive",
                                        "to_primitives", "strided"};

// [a-z][a-z0-9_]*
bool is_plain_name(const std::string& name) {
  bool good = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
  for (char c : name)
    good = good && (std::islower(static_cast<unsigned char>(c)) ||
                    std::isdigit(static_cast<unsigned char>(c)) || c == '_');
  return good;
}

void read_name(const YamlEntry& entry, Operator& op) {
  op.name = entry.text("op");
  if (!is_plain_name(op.name) || op.name.back() == '_')
    throw Error(op.where, cat("`op`: expected a name like `log_softmax` ([a-z][a-z0-9_]*, not "
                              "ending in _), got `",
                              op.name, "`"));
  if (is_reserved_word(op.name))
    throw Error(op.where, cat("`op`: `", op.name, "` is reserved (C++, Python or generated code)"));
}

OperatorKind read_kind(const YamlEntry& entry) {
  std::string text = entry.text("kind");
  std::vector<std::string> known;
  for (OperatorKind kind : {OperatorKind::Elementwise, OperatorKind::Reduction, OperatorKind::View,
                            OperatorKind::Kernel, OperatorKind::Composite}) {
    if (text == yaml_name(kind)) return kind;
    known.push_back(yaml_name(kind));
  }
  throw Error(entry.where("kind"), cat("`kind`: expected one of ", join(known, " "), ", got `",
                                       text, "`", did_you_mean(text, known)));
}

// YAML ends an unquoted text inside {} and [] at the first comma.
void check_not_cut(const std::string& text, const Location& where, const std::string& what) {
  if (std::count(text.begin(), text.end(), '(') != std::count(text.begin(), text.end(), ')'))
    throw Error(where, cat(what, ": parentheses do not match in `", text,
                           "`; inside {} and [] put quotes around text with commas"));
}

Steps read_steps(const YamlEntry& entry, const YAML::Node& node, const std::string& what) {
  Steps steps;
  for (const auto& [text, where] : entry.scalars(node, what)) {
    check_not_cut(text, where, what);
    if (!steps.empty() && steps.back().name.empty())
      throw Error(where,
                  cat(what, ": a line follows the result; write `name = expression` before it"));
    steps.push_back(parse_step(text, where, what));
  }
  if (!steps.back().name.empty())
    throw Error(steps.back().expression.where,
                cat(what, ": the last line is the result and has no `", steps.back().name, " =`"));
  return steps;
}

// `expr` as a list: each line names a result or a part of one. The same lines are the decomposition.
void read_element_steps(const YamlEntry& entry, const YAML::Node& node, Operator& op) {
  for (const auto& [text, where] : entry.scalars(node, "expr")) {
    check_not_cut(text, where, "expr");
    op.element_steps.push_back(parse_step(text, where, "expr"));
    if (op.element_steps.back().name.empty())
      throw Error(where, "expr: every line of a list is `name = expression`");
  }
  op.decompose = op.element_steps;
  Node results;
  results.kind = NodeKind::List;
  results.where = op.decompose.front().expression.where;
  for (const Result& result : op.signature.results) {
    Node name;
    name.kind = NodeKind::Name;
    name.text = result.name;
    name.where = results.where;
    results.children.push_back(name);
  }
  op.decompose.push_back({"", results.children.size() == 1 ? results.children[0] : results});
}

void read_cases(const YamlEntry& entry, Operator& op) {
  YAML::Node node = entry.find("expr");
  if (!node) return;
  if (node.IsSequence() && op.kind != OperatorKind::Elementwise)
    return read_element_steps(entry, node, op);
  const auto add_case = [&](const YamlEntry& in, const YAML::Node& lines, DtypeMask mask,
                            const std::string& what) {
    if (!lines.IsSequence()) {
      op.cases.push_back(
          {mask, {}, parse_expression(in.scalar(lines, what), in.location(lines), what)});
      return;
    }
    Steps steps = read_steps(in, lines, what);
    Node result = std::move(steps.back().expression);
    steps.pop_back();
    op.cases.push_back({mask, std::move(steps), std::move(result)});
  };
  if (!node.IsMap()) return add_case(entry, node, op.dtypes.allow, "expr");
  DtypeMask covered = 0;
  YamlEntry map(node, op.file, "expr");
  for (const auto& [key, value] : map.items()) {
    DtypeMask mask = parse_dtype_class(key, map.location(value), "expr") & op.dtypes.allow;
    if (mask & covered)
      map.fail(value, cat("expr.", key, ": ", describe(mask & covered), " is served twice"));
    if (mask == 0)
      map.fail(value,
               cat("expr.", key, ": none of it is in `allow: ", describe(op.dtypes.allow), "`"));
    covered |= mask;
    add_case(map, value, mask, cat("expr.", key));
  }
  if (DtypeMask missing = op.dtypes.allow & ~covered)
    map.fail(node,
             cat("expr: no expression for ", describe(missing), "; add one or narrow `allow`"));
}

void read_reduction(const YamlEntry& entry, Operator& op) {
  YAML::Node node = entry.find("reduce");
  if (!node) return;
  YamlEntry map(node, op.file, "reduce");
  map.check_keys({"init", "map", "combine", "finish"});
  auto part = [&](const std::string& key, const std::string& otherwise) {
    std::string text = otherwise.empty() ? map.text(key) : map.text_or(key, otherwise);
    return parse_expression(text, map.where(key), "reduce." + key);
  };
  op.reduction =
      Reduction{std::nullopt, part("map", "x"), part("combine", ""), part("finish", "a")};
  if (map.has("init")) op.reduction->init = part("init", "");
}

// A device's dtypes: a class, or a list of classes and names. Classes are narrowed to `allow`.
void read_kernels(const YamlEntry& entry, Operator& op) {
  YAML::Node node = entry.find("kernels");
  if (!node) return;
  if (!node.IsMap())
    entry.fail(node, "kernels: expected devices and their dtypes, like {cpu: [float32, float64]}");
  YamlEntry map(node, op.file, "kernels");
  for (const auto& [device, value] : map.items()) {
    std::string key = cat("kernels.", device);
    if (!is_plain_name(device))
      map.fail(value, cat("kernels: expected a device kind like `cpu` ([a-z][a-z0-9_]*), got `",
                          device, "`"));
    if (device == "meta")
      map.fail(value, "kernels: `meta` holds no data and runs no kernel; it needs the shape only");
    WrittenKernel kernel{device, 0, map.location(value)};
    for (const auto& [text, where] : map.scalars(value, key)) {
      DtypeMask mask = parse_dtype_class(text, where, key);
      if (!(mask & op.dtypes.allow))
        throw Error(where, cat(key, ": `", text, "` is not in `allow: ", describe(op.dtypes.allow),
                               "`, so it would never be called"));
      kernel.mask |= mask & op.dtypes.allow;
    }
    op.kernels.push_back(std::move(kernel));
  }
}

void read_decompose(const YamlEntry& entry, Operator& op) {
  YAML::Node node = entry.find("decompose");
  if (!node) return;
  if (!op.element_steps.empty())
    entry.fail(node, "`decompose`: the lines of `expr` are the decomposition, too; leave it out");
  if (node.IsScalar() && node.Scalar() == "native") {
    op.decompose_native = true;
    return;
  }
  op.decompose = read_steps(entry, node, "decompose");
}

void read_gradients(const YamlEntry& entry, Operator& op) {
  YAML::Node node = entry.find("grad");
  if (!node) return;
  if (node.IsScalar() && node.Scalar() == "none") {
    op.never_differentiable = true;
    return;
  }
  YamlEntry map(node, op.file, "grad, or `none`");
  for (const auto& [key, value] : map.items()) {
    if (value.IsNull())
      map.fail(value, cat("grad: `", key,
                          "` has no expression; quote expressions with commas: "
                          "{x: \"f(dout, y)\"}"));
    Gradient gradient;
    gradient.where = map.location(value);
    std::istringstream names(key);
    for (std::string name; std::getline(names, name, ',');)
      gradient.params.push_back(trimmed(name));
    gradient.steps = read_steps(map, value, "grad." + key);
    op.gradients.push_back(std::move(gradient));
  }
}

void read_complex_gradient(const YamlEntry& entry, Operator& op) {
  if (!entry.find("complex_grad")) return;
  const std::string text = entry.text("complex_grad");
  const std::vector<std::string> known = {"as_written", "holomorphic"};
  if (text != known[0] && text != known[1])
    throw Error(entry.where("complex_grad"),
                cat("`complex_grad`: expected one of ", join(known, " "), ", got `", text, "`",
                    did_you_mean(text, known)));
  if (op.gradients.empty())
    throw Error(entry.where("complex_grad"),
                "`complex_grad`: expected a `grad` of which it tells; remove it, or add one");
  op.complex_gradient =
      text == known[0] ? ComplexGradient::AsWritten : ComplexGradient::Holomorphic;
}

// Parts of composites are cast, not the whole. One that computes small floats in float32 may leave
// its results there.
void read_amp(const YamlEntry& entry, Operator& op) {
  const bool promotes =
      op.is_elementwise() && !op.has_tag("primitive") && op.dtypes.outs[0].rule != OutDtype::Bool;
  op.amp = promotes ? Amp::Widest : Amp::Keep;
  if (!entry.has("amp")) return;
  const std::string text = entry.text("amp");
  std::vector<std::string> known;
  for (Amp amp : {Amp::Keep, Amp::Low, Amp::High, Amp::Widest}) {
    if (text == yaml_name(amp)) op.amp = amp;
    known.push_back(yaml_name(amp));
  }
  if (text != yaml_name(op.amp))
    throw Error(entry.where("amp"), cat("`amp`: expected one of ", join(known, " "), ", got `",
                                        text, "`", did_you_mean(text, known)));
  if (op.is_view())
    throw Error(entry.where("amp"), "`amp`: a view shares memory and cannot be cast; leave it out");
  const bool stays_wide = op.amp == Amp::High && op.dtypes.float32_interior;
  if (op.is_composite() && !stays_wide)
    throw Error(entry.where("amp"),
                "`amp`: the parts of a composite are cast one by one; leave it out, or write "
                "`high` beside `dtypes: {interior: float32}` for results that stay float32");
}

void read_tags(const YamlEntry& entry, Operator& op) {
  YAML::Node node = entry.find("tags");
  if (!node) return;
  for (const auto& [tag, where] : entry.scalars(node, "tags")) {
    if (std::find(kTags.begin(), kTags.end(), tag) == kTags.end())
      throw Error(where, cat("`tags`: unknown tag `", tag, "`", did_you_mean(tag, kTags),
                             "; known: ", join(kTags, " ")));
    op.tags.insert(tag);
  }
}

// The value of an example: `[1., 2.]`, or a tuple `([1.], [2])` for several results.
Node parse_value(TokenStream& tokens) {
  if (!tokens.accept("(")) return parse_operand(tokens);
  Node tuple;
  tuple.kind = NodeKind::Tuple;
  tuple.where = tokens.where();
  do {
    tuple.children.push_back(parse_operand(tokens));
  } while (tokens.accept(","));
  tokens.expect(")");
  return tuple.children.size() == 1 ? std::move(tuple.children[0]) : tuple;
}

void read_examples(const YamlEntry& entry, Operator& op) {
  YAML::Node node = entry.find("example");
  if (!node) return;
  for (const auto& [text, where] : entry.scalars(node, "example")) {
    check_not_cut(text, where, "example");
    TokenStream tokens(text, where, "example");
    Example example;
    example.text = text;
    example.where = where;
    example.call = parse_operand(tokens);
    example.approximate = tokens.accept("~=");
    if (!example.approximate && !tokens.accept("=="))
      tokens.fail_expected("`==` or `~=` between call and value");
    example.value = parse_value(tokens);
    tokens.expect_end();
    op.examples.push_back(std::move(example));
  }
}

std::unique_ptr<Operator> read_operator(const YAML::Node& node, const std::string& path,
                                        const std::string& name_space) {
  YamlEntry entry(node, path, "an operator");
  entry.check_keys(kOperatorKeys);
  auto op = std::make_unique<Operator>();
  op->name_space = name_space;
  op->file = path;
  op->where = entry.where("op");
  read_name(entry, *op);
  op->doc = trimmed(entry.text("doc"));
  op->doc_where = entry.where("doc");
  if (op->doc.empty()) throw Error(op->doc_where, "`doc`: expected a sentence, got nothing");
  op->signature_where = entry.where("sig");
  op->signature = parse_signature(entry.text("sig"), op->signature_where);
  if (op->signature.params.size() > 32)
    throw Error(op->signature_where, "sig: an operator has at most 32 parameters");
  op->kind = read_kind(entry);
  read_tags(entry, *op);
  op->dtypes = read_dtype_rules(entry, *op);
  op->shape_where = entry.where("shape");
  op->shape = read_shape_rule(entry, *op);
  if (op->shape && op->shape->kind == ShapeRule::DataDependent) op->tags.insert("data_dependent");
  read_cases(entry, *op);
  read_reduction(entry, *op);
  read_kernels(entry, *op);
  read_decompose(entry, *op);
  read_gradients(entry, *op);
  read_complex_gradient(entry, *op);
  read_amp(entry, *op);
  read_flops(entry, *op);
  read_rows(entry, *op);
  read_shard(entry, *op);
  read_in_place(entry, *op);
  read_earlier(entry, *op);
  const std::vector<Param>& params = op->signature.params;
  op->method =
      entry.flag_or("method", true) && !params.empty() && params[0].is_tensor() && op->is_public();
  if (entry.has("names")) op->names = read_names(entry.find("names"), path, "names");
  read_onnx(entry, *op);
  read_examples(entry, *op);
  read_samples(entry, *op);
  return op;
}

}  // namespace

void load_file(const std::string& path, bool emit, Package& package,
               std::vector<std::string>& errors) {
  YAML::Node document;
  try {
    document = YAML::LoadFile(path);
  } catch (const YAML::BadFile&) {
    errors.push_back(cat(path, ":1: cannot read this file"));
    return;
  } catch (const YAML::Exception& error) {
    errors.push_back(cat(path, ":", error.mark.line + 1, ": not valid YAML: ", error.msg));
    return;
  }
  try {
    YamlEntry file(document, path, "an operator file");
    file.check_keys({"namespace", "ops"});
    std::string name_space = file.text("namespace");
    if (emit) {
      if (!package.name_space.empty() && package.name_space != name_space)
        throw Error(file.where("namespace"), cat("files of one run share a namespace: expected `",
                                                 package.name_space, "`, got `", name_space, "`"));
      package.name_space = name_space;
      package.files.push_back(path);
    }
    YAML::Node ops = file.require("ops");
    if (!ops.IsSequence()) file.fail(ops, "`ops`: expected a list of operators");
    for (const YAML::Node& node : ops) {
      try {
        auto op = read_operator(node, path, name_space);
        Location where = op->where;
        std::string name = op->qualified_name();
        if (const Operator* other = package.add(std::move(op), emit))
          throw Error(where, cat("`", name, "` is already defined at ", other->where.origin()));
      } catch (const Error& error) {
        errors.push_back(error.what());
      }
    }
  } catch (const Error& error) {
    errors.push_back(error.what());
  }
}

}  // namespace tenon::codegen
