// SPDX-License-Identifier: Apache-2.0
// Einstein summation: parse the equation, then contract the operands one after another with matmul.
#include <map>

#include <tenon/ops/interior.hpp>

#include "composites/compose.hpp"

namespace tenon::standard_ops {
namespace {

// Axes are named by labels: a letter's code, or kEllipsis + k for the axis that is k-th from the
// end among those that `...` stands for.
using Labels = std::vector<int>;
constexpr int kEllipsis = 256;

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
  bool explicit_output = false;
};

struct Term {
  Tensor tensor;
  Labels labels;
};

bool contains(const Labels& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}
int64_t axis_of(const Labels& labels, int label) {
  return std::ranges::find(labels, label) - labels.begin();
}

Equation split_equation(std::string_view text) {
  std::string compact;
  for (char c : text)
    if (c != ' ') compact += c;
  Equation equation;
  size_t arrow = compact.find("->");
  if (arrow != std::string::npos) {
    equation.explicit_output = true;
    equation.output = compact.substr(arrow + 2);
    compact.resize(arrow);
  }
  for (size_t start = 0; start <= compact.size();) {
    size_t comma = std::min(compact.find(',', start), compact.size());
    equation.inputs.push_back(compact.substr(start, comma - start));
    start = comma + 1;
  }
  return equation;
}

// "i...j" to labels, where `...` takes what is left of `ndim` axes. False if the text is no such
// thing or needs another number of axes.
bool parse_labels(const std::string& text, int64_t ndim, Labels* labels) {
  size_t dots = text.find("...");
  int64_t letters = static_cast<int64_t>(text.size()) - (dots == std::string::npos ? 0 : 3);
  int64_t hidden = ndim - letters;
  if (hidden < 0 || (dots == std::string::npos && hidden != 0)) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (int64_t k = hidden; k-- > 0;) labels->push_back(kEllipsis + static_cast<int>(k));
      i += 2;
      continue;
    }
    char c = text[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return false;
    labels->push_back(c);
  }
  return true;
}

// A letter that occurs twice in one operand names its diagonal.
void take_diagonals(Scope& scope, Term& term) {
  for (size_t i = 0; i < term.labels.size() && scope.ok(); ++i) {
    int label = term.labels[i];
    for (size_t j = i + 1; j < term.labels.size(); ++j) {
      if (term.labels[j] != label) continue;
      term.tensor =
          ops::diagonal(scope, term.tensor, 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(i));
      term.labels.push_back(label);
      i = static_cast<size_t>(-1);  // begin again: axes have moved
      break;
    }
  }
}

void sum_out(Scope& scope, Term& term, const Labels& keep) {
  Shape axes;
  Labels left;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(keep, term.labels[i]))
      left.push_back(term.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return;
  term.tensor = ops::sum(scope, term.tensor, axes);
  term.labels = left;
}

Tensor in_order(Scope& scope, const Term& term, const Labels& order) {
  Shape axes;
  for (int label : order) axes.push_back(axis_of(term.labels, label));
  return ops::permute(scope, term.tensor, axes);
}

Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Contraction {
 public:
  Contraction(Scope& scope, std::map<int, int64_t> extents)
      : scope_(scope), extents_(std::move(extents)) {}

  // One term from two; labels outside `keep` are summed over.
  Term pair(Term a, Term b, const Labels& keep) {
    sum_out(scope_, a, joined({keep, b.labels}));
    sum_out(scope_, b, joined({keep, a.labels}));
    Labels batch, summed, rows, columns;
    for (int label : a.labels)
      (!contains(b.labels, label) ? rows : contains(keep, label) ? batch : summed).push_back(label);
    for (int label : b.labels)
      if (!contains(a.labels, label)) columns.push_back(label);
    // An axis of length 1 broadcasts against the others of its name, which reshapes cannot do.
    a.tensor = widened(a);
    b.tensor = widened(b);
    Tensor left = in_order(scope_, a, joined({batch, rows, summed}));
    Tensor right = in_order(scope_, b, joined({batch, summed, columns}));
    Shape head = extents(batch), shape = extents(joined({batch, rows, columns}));
    int64_t m = product(extents(rows)), k = product(extents(summed)), n = product(extents(columns));
    auto matrix = [&](const Tensor& tensor, int64_t height, int64_t width) {
      Shape form = head;
      form.insert(form.end(), {height, width});
      return ops::reshape(scope_, tensor, form);
    };
    Tensor l = matrix(left, m, k), r = matrix(right, k, n);
    Tensor product_ = summed.empty() ? ops::multiply(scope_, l, r) : ops::matmul(scope_, l, r);
    return {ops::reshape(scope_, product_, shape), joined({batch, rows, columns})};
  }

 private:
  Shape extents(const Labels& labels) const {
    Shape shape;
    for (int label : labels) shape.push_back(extents_.at(label));
    return shape;
  }

  // At its full length along every axis.
  Tensor widened(const Term& term) {
    return ops::expand(scope_, term.tensor, extents(term.labels));
  }

  Scope& scope_;
  std::map<int, int64_t> extents_;
};

// Without "->": axes of the ellipsis, then letters that occur once, in alphabetical order.
Labels implicit_output(const std::vector<Term>& terms) {
  std::map<int, int> uses;
  for (const Term& term : terms)
    for (int label : term.labels) ++uses[label];
  Labels hidden, letters;
  for (auto [label, count] : uses) {
    if (label >= kEllipsis)
      hidden.insert(hidden.begin(), label);
    else if (count == 1)
      letters.push_back(label);
  }
  return joined({hidden, letters});
}

}  // namespace

TENON_DECOMPOSE(einsum) {
  Scope scope(err);
  std::string text(text_of(args[0]));
  auto operands = tensors_of(args[1]);
  Equation equation = split_equation(text);
  auto wrong = [&](const char* expected) {
    return shapes::fail(err, TENON_INVALID_ARGUMENT, "einsum",
                        "expected %s, got '%s' for %zu operands", expected, text.c_str(),
                        operands.size());
  };
  if (operands.empty() || equation.inputs.size() != operands.size())
    return wrong("one group of letters for each operand, separated by commas");

  std::vector<Term> terms;
  std::map<int, int64_t> extents;
  int64_t hidden = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    Term term{Tensor::borrow(operands[i]), {}};
    if (!parse_labels(equation.inputs[i], operands[i]->ndim, &term.labels))
      return wrong("one letter for each axis of the operand, or '...' for some of them");
    for (size_t axis = 0; axis < term.labels.size(); ++axis) {
      int label = term.labels[axis];
      if (label >= kEllipsis) hidden = std::max<int64_t>(hidden, label - kEllipsis + 1);
      int64_t extent = operands[i]->shape[axis];
      auto [known, added] = extents.emplace(label, extent);
      if (!added && known->second == 1) known->second = extent;
      if (known->second != extent && extent != 1)
        return shapes::fail(
            err, TENON_INVALID_ARGUMENT, "einsum",
            "expected one length for each letter of '%s', got %lld and %lld for the same one",
            text.c_str(), ll(known->second), ll(extent));
    }
    terms.push_back(std::move(term));
  }
  Labels output;
  if (equation.explicit_output) {
    size_t dots = equation.output.find("...");
    int64_t letters =
        static_cast<int64_t>(equation.output.size()) - (dots == std::string::npos ? 0 : 3);
    if (!parse_labels(equation.output, letters + (dots == std::string::npos ? 0 : hidden), &output))
      return wrong("letters after '->'");
    for (size_t i = 0; i < output.size(); ++i)
      if (!extents.contains(output[i]) ||
          contains(Labels(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(i)),
                   output[i]))
        return wrong("every letter after '->' once, and among the operands");
  } else {
    output = implicit_output(terms);
  }

  // One contraction adds up in float32 by itself; of several, what is in between is kept there too.
  int32_t dtype = operands[0]->dtype;
  for (const tenon_tensor* operand : operands) dtype = host->dtype_promote(dtype, operand->dtype);
  if (terms.size() > 2)
    for (Term& term : terms) term.tensor = interior::widened(scope, term.tensor);

  for (Term& term : terms) take_diagonals(scope, term);
  Contraction contraction(scope, extents);
  Term result = std::move(terms[0]);
  for (size_t i = 1; i < terms.size() && scope.ok(); ++i) {
    Labels keep = output;
    for (size_t later = i + 1; later < terms.size(); ++later)
      keep = joined({keep, terms[later].labels});
    result = contraction.pair(std::move(result), std::move(terms[i]), keep);
  }
  if (!scope.ok()) return scope.status();
  sum_out(scope, result, output);
  Tensor ordered = in_order(scope, result, output);
  // Sums of integers are wider than their products.
  if (scope.ok() && ordered->dtype != dtype) ordered = ops::cast(scope, ordered, dtype);
  return finish(scope, outs, ordered);
}

}  // namespace tenon::standard_ops
