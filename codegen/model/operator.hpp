// SPDX-License-Identifier: Apache-2.0
// One operator as the emitters see it: everything parsed, checked and located.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "expression/node.hpp"
#include "model/dtype.hpp"
#include "model/signature.hpp"

namespace tenon::codegen {

enum class OperatorKind { Elementwise, Reduction, View, Kernel, Composite };
const char* yaml_name(OperatorKind kind);

// Values equal TENON_COMPUTE_*.
enum class Compute { First = 0, Promote = 1, PromoteFloat = 2, Output = 3 };

struct OutDtype {
  enum Rule { Same, Bool, Int64, Real, Accumulate, Float, Param, Native };
  Rule rule = Same;
  std::string param;  // with Param
};

struct DtypeRules {
  Compute compute = Compute::First;
  DtypeMask allow = all_dtypes();
  std::vector<OutDtype> outs;         // one per result
  bool outs_given = false;            // `out` was written: a native shape rule does not decide
  std::vector<std::string> promoted;  // tensor parameters converted to the compute dtype
  std::map<std::string, DtypeMask> checked;  // tensor parameters held to a class
  bool float32_interior = false;             // the decomposition computes smaller floats in float32
  bool is_promoted(const std::string& name) const;
};

// Mirrors tenon::interior::Rule.
struct InteriorRule {
  uint64_t tensors = 0, rounded = 0;
  bool first = false;
  bool stays_wide = false, takes_floats = false;
};

struct ShapeRule {
  enum Kind { Broadcast, Same, Reduce, Of, Native, DataDependent };
  Kind kind = Native;
  std::vector<std::string> params;  // arguments of the rule as written
  bool keepdim = false;             // Reduce without a keepdim parameter
};

// A scalar expression and the compute dtypes it serves.
struct ScalarCase {
  DtypeMask mask = 0;
  Steps parts;  // the lines `name = ...` before the expression
  Node expression;
};

struct Reduction {
  std::optional<Node> init;  // none: the first element starts, and nothing cannot be reduced
  Node map, combine, finish;
};

// Whether `grad` holds for complex tensors: tenon/services/autograd.h.
enum class ComplexGradient { None, AsWritten, Holomorphic };

// What mixed precision does with the floats that an operator is given: tenon/services/amp.h.
enum class Amp { Keep, Low, High, Widest };
const char* yaml_name(Amp amp);

struct Gradient {
  std::vector<std::string> params;  // more than one: the expression has as many results
  Steps steps;
  Location where;
};

struct Example {
  std::string text;
  Node call, value;
  bool approximate = false;
  Location where;
};

// One call that tests make, `hypot(normal(3, 4), uniform(0.5, 2, 4))`: arguments that are tensors are
// random numbers of a shape, or lists of numbers.
struct Sample {
  std::string text;
  Node call;
  std::string label;      // tells the samples of one operator apart
  std::string reference;  // overrides the operator's
  std::string dtype;      // of the result, where the usual rules do not say it
  std::string why;        // the reason for `grad`
  std::optional<std::vector<std::string>> grad;  // parameters to differentiate; none: all floats
  std::optional<double> rtol, atol;              // in float64
  int64_t smooth = -1;   // how many results, from the first, have gradients; -1: all
  bool is_made = false;  // from `reference` and `domain`
  Location where;
};

// Arguments for which an operator is tested.
struct Range {
  std::string low_text, high_text;  // as written
  double low = 0, high = 0;
};

// A kernel that the package brings: one C++ function, `<op>_<device>`.
struct WrittenKernel {
  std::string device;  // "cpu"
  DtypeMask mask = 0;
  Location where;
};

// Of `in_place`: the result is computed in memory of its own, then copied over the first argument.
inline constexpr const char* kByCopy = "by_copy";

// What imports an operator of ONNX, from opset `since` to the next line of that operator.
struct OnnxLine {
  std::string name;  // "ReduceSum"
  int64_t since = 1;
  bool is_native = false;
  // An expression in ONNX's names, "sum(x=input(0), axis=axes)"; or a C++ function's name.
  std::string text;
  Location where;
};

// What a library calls an operator. With the signature that it has there, "(input, *, out=None)", the
// operator is that function, and is called by it; without one it is the function's counterpart.
struct Spelling {
  std::string name, signature;
  Location where;
};
using Names = std::map<std::string, std::vector<Spelling>>;  // library -> spellings

struct Operator {
  std::string name_space;  // "tenon"
  std::string name;        // "add"
  std::string file;        // as given on the command line
  Location where;
  std::string doc;
  Location doc_where;
  Signature signature;
  Location signature_where;
  OperatorKind kind = OperatorKind::Kernel;
  DtypeRules dtypes;
  std::optional<ShapeRule> shape;  // composite: none
  Location shape_where;
  std::vector<ScalarCase> cases;  // elementwise `expr`
  Steps element_steps;            // `expr` of several results: one line for each, and for parts
  std::optional<Reduction> reduction;  // `reduce`
  std::vector<WrittenKernel> kernels;  // `kernels`
  Steps decompose;
  bool decompose_native = false;
  std::vector<Gradient> gradients;
  ComplexGradient complex_gradient = ComplexGradient::None;
  Amp amp = Amp::Keep;
  std::string flops;     // of one call, as written; "unknown"; empty: one for each element
  std::string in_place;  // the parameter that the result may be written over, kByCopy, or nothing
  std::string rows;      // the parameter that names the axes along which it works, or last(count)
  std::vector<std::string> shard;  // how it acts on tensors of which ranks have parts
  std::vector<std::string>
      earlier;  // signatures of earlier versions: hash, and how calls by it are told now
  bool never_differentiable = false;  // `grad: none`, or no result can carry a gradient
  std::set<std::string> tags;
  bool method = false;
  Names names;
  std::vector<OnnxLine> onnx;
  std::vector<Example> examples;
  std::string reference;                // the result in NumPy, in the names of the signature
  std::map<std::string, Range> domain;  // tensor parameter -> its numbers in samples
  std::vector<Sample> samples;

  std::string qualified_name() const { return name_space + "::" + name; }
  std::string schema() const { return qualified_name() + signature.canonical(); }
  bool has_tag(const char* tag) const { return tags.count(tag) != 0; }
  bool is_composite() const { return kind == OperatorKind::Composite; }
  bool is_view() const { return kind == OperatorKind::View; }
  bool is_elementwise() const { return kind == OperatorKind::Elementwise; }
  // Results may be written over arguments: element i depends on elements i alone.
  bool may_alias() const { return is_elementwise() || has_tag("elementwise"); }
  bool data_dependent() const { return has_tag("data_dependent"); }
  // What tenon/ops/interior.hpp must know of an operator with `interior: float32`.
  InteriorRule interior_rule() const;
  // Shape and dtype follow TENON_SHAPE_BROADCAST, so that no shape function is needed.
  bool uses_broadcast_rule() const;
  // A kernel may be written for it, with the schema's own C signature.
  bool has_typed_form() const { return !is_view() && !signature.list_result(); }
  // `add_`: the result is written over the first argument.
  bool has_in_place_form() const;
  // Kernels and the decomposition may write over the first argument, which they read.
  bool writes_in_place() const { return !in_place.empty() && in_place != kByCopy; }
  bool has_out_form() const { return !is_view() && !signature.list_result() && !data_dependent(); }
  bool is_public() const { return !has_tag("internal"); }
  std::string summary() const;  // first sentence of doc
};

// All operators of a run. Those of imported files are known to expressions but not emitted.
// A keyword that other libraries have for parameters, with ours: of those that an operator has, the
// first counts.
struct Keyword {
  std::string name;
  std::vector<std::string> takes;  // operators take it for these
  std::vector<std::string> means;  // errors name these, and signatures of other libraries mean them
};

struct Package {
  std::string name_space;
  std::vector<std::string> files;  // emitted, in order
  std::vector<std::unique_ptr<Operator>> operators;
  std::vector<const Operator*> emitted;  // in file order
  // Of the file of names (load/names.hpp): what is no operator, by its path in `tenon`, and keywords.
  std::map<std::string, Names> functions;
  std::vector<Keyword> keywords;
  // Methods of Tensor that are functions of another library: by its name, their names, with "_" at the end in place.
  std::map<std::string, std::vector<std::string>> methods;

  // Returns the operator of the same name that was there before, if any; then nothing is added.
  const Operator* add(std::unique_ptr<Operator> op, bool emit);
  // "add" in `name_space`, then in tenon; "acme::swiglu" as it is.
  const Operator* find(const std::string& name, const std::string& name_space) const;
  std::vector<std::string> operator_names() const;
  std::vector<const Operator*> in_file(const std::string& file) const;

 private:
  std::unordered_map<std::string, const Operator*> by_name_;
};

}  // namespace tenon::codegen
